package driver

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a child in its own group, which dies with its parent.
type process struct {
	cmd    *exec.Cmd
	tail   *tail
	exited chan struct{}
}

func start(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, tail: &tail{}, exited: make(chan struct{})}
	cmd.Stderr = p.tail
	cmd.WaitDelay = time.Second // strays may hold stderr open
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait() // how it ended does not matter: every end is treated alike
		close(p.exited)
	}()
	return p, nil
}

// kill ends the whole group and waits, at most five seconds, until it is gone.
func (p *process) kill() error {
	pgid := p.cmd.Process.Pid
	deadline := time.Now().Add(5 * time.Second)
	for {
		err := syscall.Kill(-pgid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("driver: process group %d survives", pgid)
		}
		select {
		case <-p.exited:
			time.Sleep(5 * time.Millisecond) // the kernel is still reaping the others
		case <-time.After(5 * time.Millisecond):
		}
	}
	<-p.exited
	return nil
}

// tail keeps the last 4 KiB that a program wrote, for launch errors only.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - 4096; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}

// startDisplay starts a private X server, readable only with the cookie in
// Home (HEAD-01), and returns its display name.
func (c Config) startDisplay(ctx context.Context) (*process, string, error) {
	auth := filepath.Join(c.Home, "xauthority")
	if err := os.WriteFile(auth, xauthority(), 0o600); err != nil {
		return nil, "", err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, "", err
	}
	defer r.Close()
	cmd := exec.Command(c.Xvfb, "-displayfd", "3", "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-noreset", "-auth", auth)
	cmd.ExtraFiles = []*os.File{w}
	cmd.Env = c.environment("")
	cmd.Dir = c.Home
	p, err := start(cmd)
	w.Close()
	if err != nil {
		return nil, "", err
	}
	number := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(io.LimitReader(r, 32)).ReadString('\n')
		if err != nil {
			line = ""
		}
		number <- strings.TrimSpace(line)
	}()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	select {
	case n := <-number:
		if n != "" {
			return p, ":" + n, nil
		}
		err = fmt.Errorf("driver: the display did not start: %s", p.tail)
	case <-ctx.Done():
		err = fmt.Errorf("driver: the display did not start in time")
	}
	return nil, "", errors.Join(err, p.kill())
}

// xauthority is an authority file with one random cookie for every display.
func xauthority() []byte {
	cookie := make([]byte, 16)
	rand.Read(cookie)
	field := func(b []byte) []byte { return append([]byte{byte(len(b) >> 8), byte(len(b))}, b...) }
	file := []byte{0xff, 0xff} // any family
	for _, part := range [][]byte{nil, nil, []byte("MIT-MAGIC-COOKIE-1"), cookie} {
		file = append(file, field(part)...)
	}
	return file
}
