// Package isolate starts a worker program where it can hurt nobody: in its own
// user, process, network, mount, IPC and host-name namespaces, with a read-only
// root that holds the system's programs and none of the host's data, a network
// that is only loopback, and no privilege (ISO-01, EPH-01). It has both ends:
// Start for the service outside, Init for the first process inside.
//
// Three processes matter. The service calls Start. Init is process 1 of the
// namespaces: it prepares them, gives every privilege up, starts the server
// and reaps orphans. The server, the third, is the same program again; it owns
// the browser and speaks with the service over Pipe. Init ends when the server
// or the service ends, and the kernel then ends everything in the namespaces.
package isolate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// Verbs of the worker program.
const (
	VerbInit  = "init"  // followed by the folders of Config.Show
	VerbServe = "serve" // with the pipe as file 3
)

// Places inside the namespaces.
const (
	Home      = "/tmp/home"                      // private, in memory, gone with the worker
	PolicyDir = "/etc/chromium/policies/managed" // writable; private to this worker
)

// Inherited files.
const (
	pipeFD   = 3 // the connection between service and server
	lifeFD   = 4 // the service's end closes when the service ends
	binaryFD = 5 // the program itself, which the worker's uid may be unable to reach by path
)

// setupTime bounds Start.
const setupTime = 10 * time.Second

// Config says what to start, and how.
type Config struct {
	Binary string // the worker program
	// Weak starts the worker without namespaces. It then has the network and
	// the files of its uid; only a system without namespaces justifies it.
	Weak bool
	// UID runs the worker as this user and group, which needs a service that is
	// root. Zero keeps the service's own, which then must not be root.
	UID  int
	Home string   // Weak only: an existing folder of the uid's
	Show []string // more folders to show read-only inside, such as that of a browser outside /usr
	Log  *slog.Logger
}

// Worker is a started worker program.
type Worker struct {
	// Pipe leads to the server. Whoever takes it closes it.
	Pipe *net.UnixConn
	// Listener accepts what the worker's processes dial as Listener.Addr: it
	// is inside their network namespace, and their only way out.
	Listener net.Listener

	uid  int
	weak bool
	cmd  *exec.Cmd
	life *net.UnixConn
	once sync.Once
	done chan struct{}
}

// Start starts a worker and returns when its namespaces are ready and have
// been verified from outside. ctx bounds the start only.
func Start(ctx context.Context, cfg Config) (*Worker, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	binary, err := os.Open(cfg.Binary)
	if err != nil {
		return nil, fmt.Errorf("isolate: worker program: %w", err)
	}
	defer binary.Close()
	pipe, pipeIn, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer pipeIn.Close()
	life, lifeIn, err := socketPair()
	if err != nil {
		pipe.Close()
		return nil, err
	}
	defer lifeIn.Close()

	w := &Worker{Pipe: pipe, uid: cfg.UID, weak: cfg.Weak, life: life, done: make(chan struct{})}
	if w.uid == 0 {
		w.uid = os.Getuid()
	}
	home := Home
	if cfg.Weak {
		home = cfg.Home
	}
	w.cmd = &exec.Cmd{
		Path:       cfg.Binary,
		Args:       []string{filepath.Base(cfg.Binary), VerbServe},
		Env:        []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "HOME=" + home, "TMPDIR=" + filepath.Dir(home)},
		Dir:        "/",
		Stderr:     &lines{log: cfg.Log},
		ExtraFiles: []*os.File{pipeIn},
		WaitDelay:  2 * time.Second,
	}
	if cfg.Weak {
		w.cmd.Env[3] = "TMPDIR=" + home
	} else {
		w.cmd.ExtraFiles = append(w.cmd.ExtraFiles, lifeIn, binary)
	}
	if err := w.confine(cfg); err != nil {
		pipe.Close()
		life.Close()
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		pipe.Close()
		life.Close()
		return nil, fmt.Errorf("isolate: start: %w", err)
	}
	go func() {
		// The error only repeats that the worker was killed or ended.
		w.cmd.Wait()
		life.Close()
		close(w.done)
	}()
	if err := w.ready(ctx, cfg); err != nil {
		w.Kill()
		<-w.done
		pipe.Close()
		if w.Listener != nil {
			w.Listener.Close()
		}
		return nil, err
	}
	return w, nil
}

func (c Config) check() error {
	switch {
	case c.Binary == "" || c.Log == nil:
		return errors.New("isolate: a worker program and a logger are needed")
	case c.UID < 0 || (c.UID > 0 && os.Getuid() != 0 && c.UID != os.Getuid()):
		return errors.New("isolate: only a service that is root can choose another user")
	case c.UID == 0 && os.Getuid() == 0:
		return errors.New("isolate: a browser never runs as root; configure a range of user ids")
	case c.Weak && c.Home == "":
		return errors.New("isolate: the weak mode needs a home folder")
	}
	return nil
}

// ready waits for the listener and checks the result.
func (w *Worker) ready(ctx context.Context, cfg Config) error {
	if cfg.Weak {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("isolate: listen: %w", err)
		}
		w.Listener = l
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, setupTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { w.life.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	l, err := receiveListener(w.life)
	if err != nil {
		return err
	}
	w.Listener = l
	return w.verify()
}

// PID is the worker's first process, as the service sees it.
func (w *Worker) PID() int { return w.cmd.Process.Pid }

// Done is closed when no process of the worker is left. (In the weak mode:
// when the server has ended.)
func (w *Worker) Done() <-chan struct{} { return w.done }

// Kill ends every process of the worker. It does not wait; see Done.
func (w *Worker) Kill() {
	w.once.Do(func() {
		w.life.Close()
		w.cmd.Process.Kill()
	})
}

// socketPair makes a connection, and its other end for a child.
func socketPair() (*net.UnixConn, *os.File, error) {
	ours, theirs, err := pairFDs()
	if err != nil {
		return nil, nil, fmt.Errorf("isolate: socket pair: %w", err)
	}
	f := os.NewFile(uintptr(ours), "pipe")
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		os.NewFile(uintptr(theirs), "pipe").Close()
		return nil, nil, fmt.Errorf("isolate: socket pair: %w", err)
	}
	return conn.(*net.UnixConn), os.NewFile(uintptr(theirs), "pipe"), nil
}

// Pipe is the server's end of the connection. It is taken once.
func Pipe() (*net.UnixConn, error) { return inherited(pipeFD) }

func inherited(fd uintptr) (*net.UnixConn, error) {
	f := os.NewFile(fd, "pipe")
	if f == nil {
		return nil, errors.New("isolate: this program is started by chaperone-browserd, not by hand")
	}
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, errors.New("isolate: this program is started by chaperone-browserd, not by hand")
	}
	u, ok := conn.(*net.UnixConn)
	if !ok {
		conn.Close()
		return nil, errors.New("isolate: the inherited file is not the pipe")
	}
	return u, nil
}

// lines logs what a worker writes to its standard error: at most 64 KiB in
// all, because a hostile one may write without end.
type lines struct {
	log  *slog.Logger
	used int
}

func (l *lines) Write(b []byte) (int, error) {
	if room := 64<<10 - l.used; room > 0 {
		n := min(len(b), room)
		l.used += n
		l.log.Info("worker", "says", string(b[:n]))
	}
	return len(b), nil
}
