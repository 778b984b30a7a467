// Package leak looks for what must not be left behind: processes after a stop
// or a crash, and secrets in files, databases, logs and command lines
// (STORE-01, META-01, CER-02, LEASE-09, GATE-01). It reads /proc and the files
// themselves and asks nothing of the programs under test.
package leak

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Process is one process as /proc shows it.
type Process struct {
	PID     int
	Parent  int
	UID     int // effective
	Name    string
	Cmdline string // arguments, separated by spaces
	Started uint64 // clock ticks since boot; with PID it names a process for good
	Dead    bool   // ended, not yet waited for by its parent
}

func (p Process) String() string {
	return fmt.Sprintf("%d (%s, uid %d, parent %d): %.120s", p.PID, p.Name, p.UID, p.Parent, p.Cmdline)
}

// Processes lists all processes but this one.
func Processes() ([]Process, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(dirs) == 0 {
		return nil, fmt.Errorf("leak: /proc is not readable: %w", err)
	}
	var out []Process
	for _, d := range dirs {
		pid, err := strconv.Atoi(filepath.Base(d))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if p, ok := inspect(d, pid); ok { // else it has ended meanwhile
			out = append(out, p)
		}
	}
	return out, nil
}

func inspect(dir string, pid int) (Process, bool) {
	p := Process{PID: pid}
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return p, false
	}
	// The name is in parentheses and may hold any character, also spaces.
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return p, false
	}
	p.Name = string(stat[open+1 : end])
	fields := strings.Fields(string(stat[end+1:])) // from the third field on
	if len(fields) < 20 {
		return p, false
	}
	p.Dead = fields[0] == "Z" || fields[0] == "X"
	p.Parent, _ = strconv.Atoi(fields[1])
	p.Started, _ = strconv.ParseUint(fields[19], 10, 64)
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return p, false
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "Uid:"); ok {
			if f := strings.Fields(rest); len(f) > 1 {
				p.UID, _ = strconv.Atoi(f[1])
			}
		}
	}
	cmdline, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil {
		return p, false
	}
	p.Cmdline = strings.TrimSpace(string(bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '})))
	return p, true
}

// Which says which processes are meant.
type Which func(Process) bool

// ByUID is every process of the user.
func ByUID(uid int) Which { return func(p Process) bool { return p.UID == uid } }

// ByMarker is every process whose arguments contain the text, such as the path
// of a data folder. Environments are no use: Chromium overwrites its own.
func ByMarker(text string) Which {
	return func(p Process) bool { return text != "" && strings.Contains(p.Cmdline, text) }
}

// Any is a process that one of them means.
func Any(which ...Which) Which {
	return func(p Process) bool {
		return slices.ContainsFunc(which, func(w Which) bool { return w(p) })
	}
}

// Family is the process and everything that descends from it now. Take it
// before a kill: orphans lose their parent, but not their number and start.
func Family(pid int) (Which, error) {
	all, err := Processes()
	if err != nil {
		return nil, err
	}
	in := map[int]uint64{}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			_, known := in[p.PID]
			_, child := in[p.Parent]
			if !known && (p.PID == pid || child) {
				in[p.PID], grown = p.Started, true
			}
		}
	}
	return func(p Process) bool {
		started, ok := in[p.PID]
		return ok && started == p.Started
	}, nil
}

// Alive lists the living processes that are meant.
func Alive(which Which) ([]Process, error) {
	all, err := Processes()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(p Process) bool { return p.Dead || !which(p) }), nil
}

// Survivors waits until none is alive and returns nil, or returns those that
// still are when ctx ends.
func Survivors(ctx context.Context, which Which) ([]Process, error) {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		left, err := Alive(which)
		if err != nil || len(left) == 0 {
			return nil, err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return left, nil
		}
	}
}

// Reporter is the part of testing.TB that the helpers use.
type Reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// NoProcess reports every process that is still alive after the time.
func NoProcess(t Reporter, within time.Duration, which Which) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	left, err := Survivors(ctx, which)
	if err != nil {
		t.Errorf("%v", err)
	}
	for _, p := range left {
		t.Errorf("still alive after %v: %v", within, p)
	}
}
