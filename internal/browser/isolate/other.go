//go:build !linux

package isolate

import (
	"errors"
	"net"
	"syscall"
)

// Supported reports whether this system has namespaces at all.
const Supported = false

func (w *Worker) confine(cfg Config) error {
	if !cfg.Weak {
		return errors.New("isolate: this system has no namespaces; only the weak mode is possible")
	}
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if cfg.UID != 0 {
		w.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(cfg.UID), Gid: uint32(cfg.UID)}
	}
	return nil
}

func pairFDs() (ours, theirs int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	return fds[0], fds[1], err
}

func receiveListener(*net.UnixConn) (net.Listener, error) {
	return nil, errors.New("isolate: this system has no namespaces")
}

func (w *Worker) verify() error { return nil }

// VerifyBrowser has nothing to look at here.
func (w *Worker) VerifyBrowser() error { return nil }

// Init exists only where namespaces do.
func Init([]string) int { return 2 }

// Rename has nothing to do here.
func Rename() {}

// Seal has nothing to do here.
func Seal() error { return nil }

// UsersRunning cannot be known here.
func UsersRunning() (map[int]bool, error) { return nil, nil }
