// Package worker starts browsers for the isolated browser service: a worker
// program in namespaces of its own, an egress proxy as its only way out, and a
// pipe to it (ISO-01, EPH-01, EPH-02, PROXY-01). A browser that cannot be
// isolated is not started, unless the configuration accepts that by name.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/devmode"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/egress"
	"github.com/chaperone-agents/chaperone/internal/browser/isolate"
	"github.com/chaperone-agents/chaperone/internal/browser/worker/pipe"
)

// Isolation modes.
const (
	Namespaces = "namespaces" // the default
	Weak       = "weak"       // no namespaces: the worker has the network and the files of its user
)

// Config is what a Launcher needs.
type Config struct {
	Binary    string // the chaperone-worker program
	Isolation string // Namespaces, Weak, or empty for Namespaces
	// UIDBase is the first of 1000 user ids, one for each browser, when the
	// service runs as root; 0 means 61000. They need no account and must be
	// used by nothing else. A service that is not root runs workers as itself.
	UIDBase    int
	RuntimeDir string // Weak only: parent of the homes; empty means the system's temporary folder
	Chromium   string // absolute path; empty means the first of the usual places
	Xvfb       string // absolute path; empty means the first of the usual places
	Dev        *devmode.Config
	Audit      func(egress.Decision) error // of every browser, from many goroutines
	Log        *slog.Logger
}

// Launcher implements browser.Launcher.
type Launcher struct {
	cfg  Config
	uids *uids
}

var _ browser.Launcher = (*Launcher)(nil)

// NewLauncher validates the configuration and tries, with a worker that has no
// browser, that this system can isolate one.
func NewLauncher(cfg Config) (*Launcher, error) {
	switch {
	case cfg.Binary == "" || cfg.Audit == nil || cfg.Log == nil:
		return nil, errors.New("worker: a worker program, an audit function and a logger are needed")
	case cfg.Isolation != "" && cfg.Isolation != Namespaces && cfg.Isolation != Weak:
		return nil, fmt.Errorf("worker: isolation is %q or %q, not %q", Namespaces, Weak, cfg.Isolation)
	case cfg.UIDBase < 0 || (cfg.UIDBase > 0 && cfg.UIDBase < 1000):
		return nil, errors.New("worker: the user ids of browsers begin at 1000 or above")
	}
	if err := program(cfg.Binary); err != nil {
		return nil, fmt.Errorf("worker: worker program: %w", err)
	}
	cfg.Chromium, cfg.Xvfb = find(cfg.Chromium, chromiums()), find(cfg.Xvfb, xvfbs())
	l := &Launcher{cfg: cfg, uids: newUIDs(cfg.UIDBase)}
	if cfg.Isolation == Weak {
		cfg.Log.Warn("weak isolation is configured: browsers have the network and the files of their user")
		return l, nil
	}
	if err := l.try(context.Background()); err != nil {
		return nil, fmt.Errorf("worker: browsers cannot be isolated here (run chaperone doctor, or accept isolation %q by name): %w", Weak, err)
	}
	return l, nil
}

// try starts a worker without a browser and ends it.
func (l *Launcher) try(ctx context.Context) error {
	p, err := l.start(ctx, "probe")
	if err != nil {
		return err
	}
	return p.Close()
}

// Launch starts a worker, its egress and its browser. Its errors are
// fault.ProviderUnavailable.
func (l *Launcher) Launch(ctx context.Context, spec browser.Spec) (browser.Page, error) {
	if spec.Tenant == "" || len(spec.Origins) == 0 {
		return nil, fault.New(fault.Internal, "A browser needs a tenant and at least one origin.")
	}
	if err := program(l.cfg.Chromium); err != nil {
		l.cfg.Log.Error("Chromium cannot be used; run chaperone doctor", "path", l.cfg.Chromium, "error", err)
		return nil, fault.Wrap(fault.ProviderUnavailable, "Chromium is not installed where it is looked for. Run chaperone doctor.", err)
	}
	if err := program(l.cfg.Xvfb); spec.Headed && err != nil {
		l.cfg.Log.Error("Xvfb cannot be used; run chaperone doctor", "path", l.cfg.Xvfb, "error", err)
		return nil, fault.Wrap(fault.ProviderUnavailable, "Xvfb is not installed where it is looked for, and this browser needs a display. Run chaperone doctor.", err)
	}
	p, err := l.start(ctx, spec.Tenant)
	if err != nil {
		l.cfg.Log.Error("worker did not start", "error", err)
		return nil, fault.Wrap(fault.ProviderUnavailable, "The browser could not be isolated, so it was not started. Run chaperone doctor.", err)
	}
	setup := pipe.Setup{
		Origins: spec.Origins, Headed: spec.Headed, Challenges: spec.Challenges, Specified: spec.Specified, Proxy: p.worker.Listener.Addr().String(),
		Home: p.home, Chromium: l.cfg.Chromium, Xvfb: l.cfg.Xvfb,
	}
	if l.cfg.Isolation != Weak {
		setup.PolicyDir = isolate.PolicyDir
	}
	if l.cfg.Dev != nil {
		setup.TrustedCA = l.cfg.Dev.CA
	}
	if err := p.Launch(ctx, setup); err != nil {
		p.Close()
		if !fault.Is(err, fault.ProviderUnavailable) {
			err = fault.Wrap(fault.ProviderUnavailable, "The browser did not start. Run chaperone doctor.", err)
		}
		return nil, err
	}
	if err := p.worker.VerifyBrowser(); err != nil {
		p.Close()
		l.cfg.Log.Error("browser was not isolated", "error", err)
		return nil, fault.Wrap(fault.ProviderUnavailable, "The browser was not isolated as it must be, so it was ended. Run chaperone doctor.", err)
	}
	return p, nil
}

// start starts a worker and its egress, and no browser yet.
func (l *Launcher) start(ctx context.Context, tenant string) (_ *page, err error) {
	out, err := egress.New(egress.Config{Tenant: tenant, Dev: l.cfg.Dev, Audit: l.cfg.Audit, Log: l.cfg.Log})
	if err != nil {
		return nil, err
	}
	uid, err := l.uids.take()
	if err != nil {
		return nil, err
	}
	p := &page{home: isolate.Home, done: make(chan struct{}), release: func() { l.uids.free(uid) }}
	if l.cfg.Isolation == Weak {
		if p.home, err = weakHome(l.cfg.RuntimeDir, uid); err != nil {
			p.release()
			return nil, err
		}
		p.release = func() { os.RemoveAll(p.home); l.uids.free(uid) }
	}
	p.worker, err = isolate.Start(ctx, isolate.Config{
		Binary: l.cfg.Binary, Weak: l.cfg.Isolation == Weak, UID: uid, Home: p.home,
		Show: outsideSystem(l.cfg.Chromium, l.cfg.Xvfb), Log: l.cfg.Log,
	})
	if err != nil {
		p.release()
		return nil, err
	}
	p.Client = pipe.NewClient(p.worker.Pipe)
	serving, stop := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := out.Serve(serving, p.worker.Listener); err != nil {
			l.cfg.Log.Error("egress ended", "error", err)
			p.Client.Close() // a browser without a way out is of no use
		}
	}()
	go p.reap(func() { stop(); <-served })
	return p, nil
}

// page is a browser.Page whose end is the end of everything it consists of.
type page struct {
	*pipe.Client
	worker  *isolate.Worker
	home    string
	release func()
	done    chan struct{}
}

// weakEnd is how long a worker without namespaces may take to end its browser.
const weakEnd = 5 * time.Second

// reap waits for the first sign of the end and then ends everything: whatever
// broke, half a browser is never left.
func (p *page) reap(stopEgress func()) {
	select {
	case <-p.Lost():
	case <-p.worker.Done():
	}
	p.Client.Close()
	if p.home != isolate.Home {
		// Only the server can find its browser's processes here.
		select {
		case <-p.worker.Done():
		case <-time.After(weakEnd):
		}
	}
	p.worker.Kill()
	<-p.worker.Done()
	stopEgress()
	p.release()
	close(p.done)
}

// Done is closed when no process of the browser is left.
func (p *page) Done() <-chan struct{} { return p.done }

// Close ends the browser and waits until nothing of it is left.
func (p *page) Close() error {
	p.Client.Close()
	<-p.done
	return nil
}

// maxHome leaves room for the sockets that Chromium makes below its home.
const maxHome = 56

func weakHome(parent string, uid int) (string, error) {
	home, err := os.MkdirTemp(parent, "ch")
	if err != nil {
		return "", fmt.Errorf("worker: home: %w", err)
	}
	if len(home) > maxHome {
		os.RemoveAll(home)
		return "", fmt.Errorf("worker: home: the path %s is over %d bytes; configure a shorter runtime folder", home, maxHome)
	}
	if uid != 0 {
		err = os.Chown(home, uid, uid)
	}
	if err != nil {
		os.RemoveAll(home)
		return "", fmt.Errorf("worker: home: %w", err)
	}
	return home, nil
}

// outsideSystem lists the folders of programs that are not among the system's,
// which a worker sees anyway.
func outsideSystem(programs ...string) []string {
	var dirs []string
	for _, p := range programs {
		if p != "" && !strings.HasPrefix(p, "/usr/") && !strings.HasPrefix(p, "/bin/") {
			dirs = append(dirs, filepath.Dir(p))
		}
	}
	return dirs
}

// uids gives each browser a user id that no other process on the machine has.
type uids struct {
	mu   sync.Mutex
	base int // 0: everything runs as the service's own user
	used map[int]bool
}

const uidCount = 1000

func newUIDs(base int) *uids {
	if os.Getuid() != 0 {
		base = 0
	} else if base == 0 {
		base = 61000
	}
	return &uids{base: base, used: map[int]bool{}}
}

func (u *uids) take() (int, error) {
	if u.base == 0 {
		return 0, nil
	}
	elsewhere, err := isolate.UsersRunning()
	if err != nil {
		return 0, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for id := u.base; id < u.base+uidCount; id++ {
		if !u.used[id] && !elsewhere[id] {
			u.used[id] = true
			return id, nil
		}
	}
	return 0, fmt.Errorf("worker: all user ids from %d to %d are in use", u.base, u.base+uidCount-1)
}

func (u *uids) free(id int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.used, id)
}
