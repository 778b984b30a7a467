// Package guest runs programs that nobody wrote with this product in mind, for
// tests (GATE-02): as an unprivileged user, on loopback, out of one folder,
// with nothing of this process's environment, and ended with all their
// children.
package guest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// User is who the programs run as, and the folder that they work in.
type User struct {
	Dir string // absolute, of the user's own
	// UID and GID are the unprivileged user's. 0 is this process's own user,
	// which must not be root then.
	UID, GID int
	Env      []string // further variables
}

// Check says what is wrong with the user.
func (u User) Check() error {
	switch {
	case !filepath.IsAbs(u.Dir):
		return errors.New("guest: the folder must be an absolute path")
	case os.Geteuid() == 0 && (u.UID <= 0 || u.GID <= 0):
		return errors.New("guest: nothing may run as root; name an unprivileged user")
	case os.Geteuid() != 0 && u.UID != 0 && u.UID != os.Geteuid():
		return errors.New("guest: only root can run programs as another user")
	}
	return nil
}

// Own gives the folder to the user.
func (u User) Own() error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(u.Dir, u.UID, u.GID)
}

// Command is a program of the user's, which ends with this process.
func (u User) Command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=/usr/bin:/bin:/usr/sbin", "HOME=" + u.Dir, "TMPDIR=" + u.Dir, "LANG=C.UTF-8", "PHP_CLI_SERVER_WORKERS=4"}, u.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID)}
	}
	return cmd
}

// Run runs a command to its end.
func Run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		text := strings.TrimSpace(string(out))
		return fmt.Errorf("guest: %s: %w: %s", filepath.Base(cmd.Path), err, text[max(0, len(text)-600):])
	}
	return nil
}

// Write makes a private file that belongs to the user.
func (u User) Write(ctx context.Context, path, content string) error {
	cmd := u.Command(ctx, u.Dir, "dd", "of="+path, "status=none")
	cmd.Stdin = strings.NewReader(content)
	if err := Run(cmd); err != nil {
		return err
	}
	return Run(u.Command(ctx, u.Dir, "chmod", "600", path))
}

// Program is a server that runs.
type Program struct {
	Addr string
	cmd  *exec.Cmd
	done chan struct{} // closed when its first process has been waited for
}

// FreeAddr is a loopback address that nobody listens on.
func FreeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("guest: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// Serve starts a server that will listen at the address and waits until ready
// succeeds. What it prints goes to a file of its name in the user's folder.
func (u User) Serve(ctx context.Context, cmd *exec.Cmd, addr string, ready func(context.Context) error) (*Program, error) {
	name := filepath.Base(cmd.Path) + ".log"
	out, err := os.Create(filepath.Join(u.Dir, name))
	if err != nil {
		return nil, fmt.Errorf("guest: %w", err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("guest: %w", err)
	}
	p := &Program{Addr: addr, cmd: cmd, done: make(chan struct{})}
	go func() {
		cmd.Wait()
		close(p.done)
	}()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	retry := time.NewTicker(50 * time.Millisecond)
	defer retry.Stop()
	for {
		if err = ready(ctx); err == nil {
			return p, nil
		}
		select {
		case <-retry.C:
		case <-p.done:
			return nil, fmt.Errorf("guest: the server ended at once, see %s", name)
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("guest: not ready, see %s: %w", name, err), p.Close())
		}
	}
}

// Answers reports whether somebody listens at the address.
func Answers(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// Close ends the server and every process of its group.
func (p *Program) Close() error {
	// The group lives while any worker does, also after its leader has gone.
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		return fmt.Errorf("guest: %w", err)
	}
	<-p.done
	// Workers hold the listener too and end when the kernel gets to it.
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if !Answers(p.Addr) {
			return nil
		}
	}
	return errors.New("guest: the server survived its end")
}

// Direct sends requests for the public name to the server at the address, as a
// TLS proxy does.
type Direct struct{ Addr string }

func (d Direct) RoundTrip(r *http.Request) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.Host = r.URL.Host
	out.URL.Scheme, out.URL.Host = "http", d.Addr
	out.Header.Set("X-Forwarded-Proto", "https")
	return http.DefaultTransport.RoundTrip(out)
}
