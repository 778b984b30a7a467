// Package child is the small contract between `chaperone up` and the programs
// it supervises. A child prints one JSON line on standard output when it is
// ready, logs to standard error, stops cleanly on SIGTERM, and ends within a
// second when its standard input closes, which is how it learns that the
// supervisor died.
package child

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// Ready is the line a child prints.
type Ready struct {
	Event   string `json:"event"`             // "ready"
	Address string `json:"address,omitempty"` // host:port, where the program listens on one
	Code    string `json:"code,omitempty"`    // one-time console login code, from chaperoned only
}

// Announce prints the ready line.
func Announce(r Ready) error {
	r.Event = "ready"
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = fmt.Printf("%s\n", line)
	return err
}

// orphanTime is how long an orphan may take to end.
const orphanTime = time.Second

// Context ends on SIGINT or SIGTERM. When supervised is true it also ends when
// standard input closes, and the process is then ended by force if it takes
// longer than a second.
func Context(supervised bool) (context.Context, context.CancelFunc) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if supervised {
		go func() {
			io.Copy(io.Discard, os.Stdin) // returns when the supervisor is gone
			if ctx.Err() == nil {
				cancel()
				time.AfterFunc(orphanTime, func() { os.Exit(1) })
			}
		}()
	}
	return ctx, cancel
}

// Process is a started child.
type Process struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	exited chan struct{}
	err    error
}

// readyTime bounds a start.
const readyTime = 60 * time.Second

// Start runs the program and returns once it is ready. It fails with the
// child's end if that comes first.
func Start(ctx context.Context, binary string, args []string, stderr io.Writer) (*Process, Ready, error) {
	cmd := exec.Command(binary, args...)
	cmd.Stderr = stderr
	// A group of its own: an interrupt typed at the supervisor's terminal reaches
	// the supervisor only, which then stops its children in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = environment()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, Ready{}, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, Ready{}, err
	}
	if err := cmd.Start(); err != nil {
		return nil, Ready{}, fmt.Errorf("%s cannot be started: %w", binary, err)
	}
	p := &Process{cmd: cmd, stdin: stdin, exited: make(chan struct{})}
	lines := make(chan Ready, 1)
	go func() {
		defer close(p.exited)
		scanner := bufio.NewScanner(stdout)
		for scanner.Scan() {
			var r Ready
			if json.Unmarshal(scanner.Bytes(), &r) == nil && r.Event == "ready" {
				select {
				case lines <- r:
				default:
				}
			}
		}
		p.err = cmd.Wait()
	}()
	timer := time.NewTimer(readyTime)
	defer timer.Stop()
	select {
	case r := <-lines:
		return p, r, nil
	case <-p.exited:
		return nil, Ready{}, fmt.Errorf("%s ended before it was ready (%v); its messages above say why", binary, exitReason(p.err))
	case <-timer.C:
		err = fmt.Errorf("%s was not ready after %s", binary, readyTime)
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.Stop(0)
	return nil, Ready{}, err
}

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Err says how the process ended; valid once Exited is closed.
func (p *Process) Err() error { return exitReason(p.err) }

// PID of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stop asks the child to stop and ends it by force after patience.
func (p *Process) Stop(patience time.Duration) {
	if patience > 0 {
		p.cmd.Process.Signal(syscall.SIGTERM) // an error means that it has ended
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-p.exited:
		case <-timer.C:
		}
	}
	p.cmd.Process.Kill()
	p.stdin.Close()
	<-p.exited
}

func exitReason(err error) error {
	if err == nil {
		return errors.New("it stopped by itself")
	}
	return err
}

// environment passes on only what a child needs; credentials and proxy
// settings of the owner's shell stay behind.
func environment() []string {
	var env []string
	for _, name := range []string{"HOME", "PATH", "LANG", "LC_ALL", "TMPDIR", "TZ", "XDG_DATA_HOME", "GOCOVERDIR", "GORACE"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}
