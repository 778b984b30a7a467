// Package up runs Chaperone for one owner on one machine: it prepares the data
// folder, starts chaperone-browserd and then chaperoned, restarts one that
// dies, and stops both in the right order.
package up

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/daemon/child"
	"github.com/chaperone-agents/chaperone/internal/daemon/datadir"
)

// Config of a run; DataDir, Listen, Ceremony, Bin and Log are needed.
type Config struct {
	DataDir      string
	Listen       string // host:port of chaperoned, on loopback; port 0 picks a free one
	Ceremony     string // host:port of the sign-in surface, on loopback
	Headless     bool   // leases of profiles without a display; sign-ins are always headed
	Isolation    string // "namespaces" or "weak"
	ApprovalWait time.Duration
	ToolNames    string
	Dev          string    // development file, or empty
	Bin          string    // folder of the programs
	ChildLog     io.Writer // where the children log; nil means this program's standard error
	Log          *slog.Logger
}

// Running is what is known once everything answers; clients find it in
// running.json of the data folder.
type Running struct {
	Console   string `json:"console"`  // "http://127.0.0.1:8787"
	Ceremony  string `json:"ceremony"` // "http://localhost:8788"
	PID       int    `json:"pid"`
	LoginCode string `json:"-"` // one-time code; printed, never kept
}

const (
	stopTime     = 20 * time.Second // for a child to seal and stop
	restartPause = 500 * time.Millisecond
	maxRestarts  = 5 // in restartWindow; then the fault is not a passing one
)

const restartWindow = time.Minute

// Run starts everything, calls ready once, and returns when ctx ends (nil) or
// when a child cannot be kept running.
func Run(ctx context.Context, c Config, ready func(Running)) error {
	for _, address := range []string{c.Listen, c.Ceremony} {
		if err := loopback(address); err != nil {
			return err
		}
	}
	dir, err := datadir.Prepare(c.DataDir)
	if err != nil {
		return err
	}
	unlock, err := dir.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	if c.ChildLog == nil {
		c.ChildLog = os.Stderr
	}
	s := &supervisor{Config: c, dir: dir}
	defer s.stop()
	defer os.Remove(dir.Running())
	if err := s.startBrowserd(ctx); err != nil {
		return err
	}
	if err := s.startChaperoned(ctx); err != nil {
		return err
	}
	note, err := json.Marshal(s.running)
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(dir.Running(), append(note, '\n'), 0o600); err != nil {
		return fmt.Errorf("the data folder cannot be written: %w", err)
	}
	ready(s.running)
	return s.keep(ctx)
}

type supervisor struct {
	Config
	dir        datadir.Dir
	browserd   *child.Process
	chaperoned *child.Process
	running    Running
	restarts   []time.Time
}

// keep restarts what dies until ctx ends.
func (s *supervisor) keep(ctx context.Context) error {
	for {
		var name string
		var start func(context.Context) error
		select {
		case <-ctx.Done():
			return nil
		case <-s.browserd.Exited():
			name, start = "chaperone-browserd", s.startBrowserd
			s.Log.Error("chaperone-browserd ended and is started again; its browsers are gone", "cause", s.browserd.Err())
		case <-s.chaperoned.Exited():
			name, start = "chaperoned", s.startChaperoned
			s.Log.Error("chaperoned ended and is started again", "cause", s.chaperoned.Err())
		}
		now := time.Now()
		s.restarts = append(s.restarts, now)
		if len(s.restarts) > maxRestarts {
			if now.Sub(s.restarts[len(s.restarts)-1-maxRestarts]) < restartWindow {
				return fmt.Errorf("%s ended %d times within %s; its messages above say why", name, maxRestarts+1, restartWindow)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(restartPause):
		}
		if err := start(ctx); err != nil {
			return err
		}
	}
}

func (s *supervisor) startBrowserd(ctx context.Context) error {
	args := []string{
		"--supervised", "--create", "--socket", s.dir.Socket(), "--service-credential", s.dir.ServiceCredential(),
		"--keys", s.dir.Keys(), "--profiles", s.dir.Profiles(), "--egress-log", s.dir.EgressLog(),
		"--ceremony-listen", s.Ceremony, "--isolation", s.Isolation,
		"--worker", filepath.Join(s.Bin, "chaperone-worker"),
	}
	p, r, err := s.start(ctx, "chaperone-browserd", args)
	if err != nil {
		return err
	}
	s.browserd, s.Ceremony = p, r.Address // a restart keeps the port
	_, port, err := net.SplitHostPort(r.Address)
	s.running.Ceremony = "http://localhost:" + port
	return err
}

func (s *supervisor) startChaperoned(ctx context.Context) error {
	args := []string{
		"--supervised", "--database", s.dir.Database(), "--images", s.dir.Images(), "--browserd", s.dir.Socket(),
		"--service-credential", s.dir.ServiceCredential(), "--owner-credential", s.dir.OwnerCredential(),
		"--listen", s.Listen, "--approval-wait", s.ApprovalWait.String(), "--tool-names", s.ToolNames,
	}
	if s.Headless {
		args = append(args, "--headless")
	}
	p, r, err := s.start(ctx, "chaperoned", args)
	if err != nil {
		return err
	}
	s.chaperoned, s.Listen = p, r.Address
	s.running.Console, s.running.PID, s.running.LoginCode = "http://"+r.Address, os.Getpid(), r.Code
	return nil
}

func (s *supervisor) start(ctx context.Context, name string, args []string) (*child.Process, child.Ready, error) {
	if s.Dev != "" {
		args = append(args, "--dev", s.Dev)
	}
	return child.Start(ctx, filepath.Join(s.Bin, name), args, s.ChildLog)
}

// stop ends chaperoned first, so that no call arrives at a service that is
// sealing its profiles.
func (s *supervisor) stop() {
	if s.chaperoned != nil {
		s.chaperoned.Stop(stopTime)
	}
	if s.browserd != nil {
		s.browserd.Stop(stopTime)
	}
}

func loopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fault.Newf(fault.MalformedRequest, "%q is not host:port, such as 127.0.0.1:8787.", address)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fault.Newf(fault.MalformedRequest, "%q is no loopback address. The embedded default listens on loopback only, such as 127.0.0.1:8787.", address)
	}
	return nil
}

// Find reads what a running supervisor of the folder wrote. It returns
// fs.ErrNotExist when nothing runs there.
func Find(dir datadir.Dir) (Running, error) {
	var r Running
	body, err := os.ReadFile(dir.Running())
	if err != nil {
		return r, err
	}
	unlock, err := dir.Lock()
	if err == nil {
		unlock() // the note outlived its writer
		return r, os.ErrNotExist
	}
	if !errors.Is(err, datadir.ErrRunning) {
		return r, err
	}
	return r, json.Unmarshal(body, &r)
}
