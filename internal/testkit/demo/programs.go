package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// programs is a running `chaperone up`.
type programs struct {
	Console  string `json:"console"`
	LoginURL string `json:"login_url"`
	Ceremony string `json:"ceremony"`

	cmd  *exec.Cmd
	done chan struct{} // closed when it has been waited for
}

func startPrograms(ctx context.Context, bin, data, dev string, log *tail) (*programs, error) {
	p := &programs{done: make(chan struct{})}
	p.cmd = exec.Command(filepath.Join(bin, "chaperone"), "--data", data, "up", "--json", "--listen", "127.0.0.1:0", "--dev", dev)
	p.cmd.Stderr = log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	ready := make(chan error, 1)
	go func() {
		defer close(p.done)
		lines := bufio.NewReader(out)
		line, err := lines.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, p)
		}
		ready <- err
		io.Copy(io.Discard, lines)
		p.cmd.Wait()
	}()
	select {
	case err = <-ready:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("chaperone up did not start: %w: %s", err, log), p.stop())
	}
	return p, nil
}

// stop ends everything as Ctrl-C does.
func (p *programs) stop() error {
	p.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-p.done:
		return nil
	case <-time.After(60 * time.Second):
		p.cmd.Process.Kill()
		<-p.done
		return errors.New("chaperone up did not stop within a minute")
	}
}

// tail keeps the last of what the programs wrote, all of it up to 1 MiB.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	t.b = t.b[max(0, len(t.b)-1<<20):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
