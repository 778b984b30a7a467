package isolate

import (
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// namespaces that every worker has of its own.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// Supported reports whether this system has namespaces at all.
const Supported = true

// confine puts the namespaces, the user and the set-up privileges into the
// command. The uid is mapped to itself: a browser that believes it is root
// refuses to run with its own sandbox.
func (w *Worker) confine(cfg Config) error {
	attr := &syscall.SysProcAttr{Setsid: true}
	w.cmd.SysProcAttr = attr
	gid := os.Getgid()
	if cfg.UID != 0 && os.Getuid() == 0 {
		gid = cfg.UID
		attr.Credential = &syscall.Credential{Uid: uint32(cfg.UID), Gid: uint32(cfg.UID)}
		attr.GidMappingsEnableSetgroups = true // to give up root's groups
	}
	if cfg.Weak {
		return nil
	}
	w.cmd.Path = fmt.Sprintf("/proc/self/fd/%d", binaryFD)
	w.cmd.Args = append([]string{w.cmd.Args[0], VerbInit}, cfg.Show...)
	attr.Cloneflags = namespaces
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: w.uid, HostID: w.uid, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	// Over the new namespaces only, and only until Init gives them up.
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN}
	return nil
}

func pairFDs() (ours, theirs int, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	return fds[0], fds[1], err
}

// readyWord precedes the listener; anything else is an error of Init's.
const readyWord = "ready"

// receiveListener reads Init's report: one message, with one listening socket
// if all went well.
func receiveListener(life *net.UnixConn) (net.Listener, error) {
	text, control := make([]byte, 1024), make([]byte, unix.CmsgSpace(8*4))
	n, cn, _, _, err := life.ReadMsgUnix(text, control)
	if err != nil {
		return nil, fmt.Errorf("isolate: the worker did not get ready: %w", err)
	}
	var files []*os.File
	messages, err := unix.ParseSocketControlMessage(control[:cn])
	if err != nil {
		return nil, fmt.Errorf("isolate: the worker's report: %w", err)
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			continue
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "listener"))
		}
	}
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	if got := string(text[:n]); got != readyWord || len(files) != 1 {
		return nil, fmt.Errorf("isolate: the worker could not get ready: %s", strings.ToValidUTF8(got, "?"))
	}
	l, err := net.FileListener(files[0])
	if err != nil {
		return nil, fmt.Errorf("isolate: the worker's listener: %w", err)
	}
	if a, ok := l.Addr().(*net.TCPAddr); !ok || !a.IP.IsLoopback() {
		l.Close()
		return nil, fmt.Errorf("isolate: the worker listens on %s instead of loopback", l.Addr())
	}
	return l, nil
}
