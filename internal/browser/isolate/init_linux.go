package isolate

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Limits of one worker; tmpfs pages count as memory.
const (
	tmpSize  = "size=1g" // home, profile and displays
	shmSize  = "size=1g" // pictures between Chromium's processes
	maxFiles = 8192      // open files of a process
	maxTasks = 2048      // processes and threads; a headed browser has about 180
	oomScore = "500"     // when memory ends, a browser goes before a service
	procName = "chaperone-worker\x00"
)

// Init is the first process of the namespaces. It returns the exit status,
// when the server has ended; when the service ends, it ends the process itself.
func Init(show []string) int {
	unix.Close(binaryFD)
	unix.CloseOnExec(lifeFD)
	life, err := inherited(lifeFD)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	server, listener, err := prepare(show)
	if err != nil {
		life.Write([]byte(err.Error()))
		return 1
	}
	if _, _, err := life.WriteMsgUnix([]byte(readyWord), unix.UnixRights(listener), nil); err != nil {
		return 1
	}
	unix.Close(listener)
	go func() {
		// Nothing is ever sent: this returns when the service has gone.
		life.Read(make([]byte, 1))
		os.Exit(0)
	}()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return 1
		case pid == server:
			return status.ExitStatus()
		}
	}
}

// prepare makes the namespaces a home, gives every privilege up and starts the
// server. It returns the server's process and the listening socket.
func prepare(show []string) (server, listener int, err error) {
	if os.Getpid() != 1 {
		return 0, 0, fmt.Errorf("init is not the first process of a namespace")
	}
	Rename()
	if err := loopbackUp(); err != nil {
		return 0, 0, fmt.Errorf("loopback: %w", err)
	}
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return 0, 0, fmt.Errorf("listen: %w", err)
	}
	defer l.Close()
	if err := unix.Sethostname([]byte("browser")); err != nil {
		return 0, 0, fmt.Errorf("host name: %w", err)
	}
	if err := newRoot(show); err != nil {
		return 0, 0, err
	}
	if err := limits(); err != nil {
		return 0, 0, err
	}
	if err := newKeyring(); err != nil {
		return 0, 0, err
	}
	if err := drop(); err != nil {
		return 0, 0, err
	}
	f, err := l.File()
	if err != nil {
		return 0, 0, fmt.Errorf("listener: %w", err)
	}
	defer f.Close()
	if listener, err = unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return 0, 0, fmt.Errorf("listener: %w", err)
	}
	server, err = syscall.ForkExec("/proc/self/exe", []string{os.Args[0], VerbServe}, &syscall.ProcAttr{
		Dir: "/", Env: os.Environ(), Files: []uintptr{0, 1, 2, pipeFD},
	})
	if err != nil {
		return 0, 0, fmt.Errorf("server: %w", err)
	}
	unix.Close(pipeFD)
	return server, listener, nil
}

// Rename gives the process its name in listings; it was executed by file
// descriptor and would be called after a number.
func Rename() {
	unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(unsafe.StringData(procName))), 0, 0, 0)
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, r); err != nil {
		return err
	}
	r.SetUint16(r.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}

func limits() error {
	for resource, limit := range map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: maxFiles, unix.RLIMIT_NPROC: maxTasks} {
		var now unix.Rlimit
		if err := unix.Getrlimit(resource, &now); err != nil {
			return fmt.Errorf("limits: %w", err)
		}
		limit = min(limit, now.Max)
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("limits: %w", err)
		}
	}
	// A preference, not a wall: some systems do not let it be changed.
	os.WriteFile("/proc/self/oom_score_adj", []byte(oomScore), 0)
	return nil
}

// newKeyring gives what this goroutine starts an empty kernel keyring instead
// of that of the user's session, which no namespace hides. Where there are no
// keyrings, or a container forbids their calls, there is nothing to leave.
func newKeyring() error {
	runtime.LockOSThread() // keyrings are a thread's
	switch _, _, e := syscall.Syscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0); e {
	case 0, unix.ENOSYS, unix.EPERM:
		return nil
	default:
		return fmt.Errorf("keyring: %w", e)
	}
}

// drop gives up every capability, and the means to regain one, in all threads
// of this process and so in all its children. Then it closes its memory to
// other processes of the same uid.
func drop() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if _, _, e := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0); e != 0 {
		return fmt.Errorf("ambient capabilities: %w", e)
	}
	if _, _, e := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&none[0])), 0); e != 0 {
		return fmt.Errorf("capabilities: %w", e)
	}
	if _, _, e := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); e != 0 {
		return fmt.Errorf("no new privileges: %w", e)
	}
	return Seal()
}

// Seal keeps other processes of the same uid, such as a browser that was taken
// over, from reading or steering this one.
func Seal() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("isolate: closing the process's memory: %w", err)
	}
	return nil
}
