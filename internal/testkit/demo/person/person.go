// Package person is somebody at a browser: an ordinary headless Chromium of its
// own, with real mouse and key events, for the owner's part in the
// demonstration and for looking at pages in tests (SURF-01, SURF-02, CER-05). It
// shares nothing with the product but the protocol client, and it is no agent:
// it sees what a person sees and clicks where a person clicks.
package person

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/target"

	"github.com/chaperone-agents/chaperone/internal/base/devmode"
	"github.com/chaperone-agents/chaperone/internal/browser/cdp"
)

// ErrMissing says that there is no Chromium.
var ErrMissing = errors.New("person: no Chromium")

// Config says whose browser it is.
type Config struct {
	Chromium string // path of the binary; empty looks in the usual places
	// UID is the unprivileged user that Chromium runs as. 0 is this process's
	// own user, which must not be root then: Chromium's sandbox stays on.
	UID           int
	Width, Height int             // of the page, in CSS pixels
	Dark          bool            // prefers a dark page
	Dev           *devmode.Config // names and authority of a practice site, or nil
}

// Person is a running browser with any number of tabs.
type Person struct {
	config Config
	cmd    *exec.Cmd
	conn   *cdp.Conn
	home   string
	files  []*os.File
	stderr *tail
	done   chan struct{} // closed when the browser has been waited for
	known  []target.ID   // tabs that are attached
	front  target.ID     // the tab that is looked at
}

// places are where Debian, Fedora and Chrome's own packages put the binary
// itself; the scripts in front of it read files of the machine.
var places = []string{"/usr/lib/chromium/chromium", "/usr/lib64/chromium-browser/chromium-browser", "/opt/google/chrome/chrome"}

// Launch starts the browser. It returns ErrMissing if there is none.
func Launch(ctx context.Context, c Config) (*Person, error) {
	if c.Chromium == "" {
		i := slices.IndexFunc(places, func(p string) bool { _, err := os.Stat(p); return err == nil })
		if i < 0 {
			return nil, ErrMissing
		}
		c.Chromium = places[i]
	}
	if c.Width <= 0 || c.Height <= 0 {
		return nil, errors.New("person: the page needs a width and a height")
	}
	if (os.Geteuid() == 0) != (c.UID > 0) {
		return nil, errors.New("person: root names an unprivileged uid, and nobody else does")
	}
	p := &Person{config: c, stderr: &tail{}, done: make(chan struct{})}
	if err := p.start(); err != nil {
		return nil, err
	}
	if _, err := cdp.Call(ctx, p.conn.Root(), target.GetTargets, target.GetTargetsParams{}); err != nil {
		return nil, errors.Join(fmt.Errorf("person: the browser does not answer: %w: %s", err, p.stderr), p.Close())
	}
	return p, nil
}

func (p *Person) start() error {
	home, err := os.MkdirTemp("", "person-")
	if err != nil {
		return fmt.Errorf("person: %w", err)
	}
	p.home = home
	if p.config.UID > 0 {
		if err := os.Chown(home, p.config.UID, p.config.UID); err != nil {
			return errors.Join(fmt.Errorf("person: %w", err), os.RemoveAll(home))
		}
	}
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("person: %w", err)
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("person: %w", err)
	}
	args, err := p.switches()
	if err != nil {
		return err
	}
	p.cmd = exec.Command(p.config.Chromium, args...)
	p.cmd.Dir = home
	p.cmd.Env = []string{"HOME=" + home, "TMPDIR=" + home, "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "TZ=UTC"}
	p.cmd.Stderr = p.stderr
	p.cmd.ExtraFiles = []*os.File{inRead, outWrite} // descriptors 3 and 4
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if p.config.UID > 0 {
		p.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(p.config.UID), Gid: uint32(p.config.UID)}
	}
	err = p.cmd.Start()
	inRead.Close()
	outWrite.Close()
	if err != nil {
		inWrite.Close()
		outRead.Close()
		return errors.Join(fmt.Errorf("person: %w", err), os.RemoveAll(home))
	}
	p.files = []*os.File{inWrite, outRead}
	p.conn = cdp.New(outRead, inWrite)
	go func() {
		p.cmd.Wait()
		close(p.done)
	}()
	return nil
}

func (p *Person) switches() ([]string, error) {
	list := []string{
		"--headless=new", "--remote-debugging-pipe", "--user-data-dir=" + filepath.Join(p.home, "profile"),
		"--no-first-run", "--no-default-browser-check", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--disable-default-apps", "--disable-extensions", "--no-pings", "--password-store=basic",
		"--gaia-url=https://accounts.invalid", "--component-updater=url-source=https://updates.invalid/",
		fmt.Sprintf("--window-size=%d,%d", p.config.Width, p.config.Height),
	}
	if d := p.config.Dev; d != nil {
		var rules []string
		for name, addr := range d.Hosts {
			rules = append(rules, "MAP "+name+":443 "+addr.String())
		}
		slices.Sort(rules)
		list = append(list, "--host-resolver-rules="+strings.Join(rules, ","))
		ca, err := d.Certificate()
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(ca.RawSubjectPublicKeyInfo)
		list = append(list, "--ignore-certificate-errors-spki-list="+base64.StdEncoding.EncodeToString(sum[:]))
	}
	return append(list, "about:blank"), nil
}

// Close ends the browser and removes its home.
func (p *Person) Close() error {
	p.conn.Close()
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		return fmt.Errorf("person: %w", err)
	}
	<-p.done
	for _, f := range p.files {
		f.Close()
	}
	// Helpers of the browser that left its group may write for a moment longer.
	err := os.RemoveAll(p.home)
	for end := time.Now().Add(5 * time.Second); err != nil && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
		err = os.RemoveAll(p.home)
	}
	return err
}

// NewTab opens a tab.
func (p *Person) NewTab(ctx context.Context) (*Tab, error) {
	t, err := cdp.Call(ctx, p.conn.Root(), target.CreateTarget, target.CreateTargetParams{URL: "about:blank"})
	if err != nil {
		return nil, fmt.Errorf("person: %w", err)
	}
	return p.attach(ctx, t.TargetID)
}

// Follow waits for a tab that a page opened, with an address that starts so.
func (p *Person) Follow(ctx context.Context, prefix string) (*Tab, error) {
	var found target.ID
	err := poll(ctx, func() (bool, error) {
		r, err := cdp.Call(ctx, p.conn.Root(), target.GetTargets, target.GetTargetsParams{})
		if err != nil {
			return false, err
		}
		for _, t := range r.TargetInfos {
			if t.Type == "page" && strings.HasPrefix(t.URL, prefix) && !slices.Contains(p.known, t.TargetID) {
				found = t.TargetID
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return nil, fmt.Errorf("person: no tab opened with the address %s…: %w", prefix, err)
	}
	return p.attach(ctx, found)
}

func (p *Person) attach(ctx context.Context, id target.ID) (*Tab, error) {
	flat := true
	a, err := cdp.Call(ctx, p.conn.Root(), target.AttachToTarget, target.AttachToTargetParams{TargetID: id, Flatten: &flat})
	if err != nil {
		return nil, fmt.Errorf("person: %w", err)
	}
	p.known = append(p.known, id)
	t := &Tab{person: p, id: id, session: p.conn.Session(string(a.SessionID))}
	if err := t.Resize(ctx, p.config.Width, p.config.Height); err != nil {
		return nil, err
	}
	// Without this a page in the background believes that nobody looks at it.
	if _, err := cdp.Call(ctx, t.session, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}); err != nil {
		return nil, fmt.Errorf("person: %w", err)
	}
	scheme := "light"
	if p.config.Dark {
		scheme = "dark"
	}
	if _, err := cdp.Call(ctx, t.session, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	}); err != nil {
		return nil, fmt.Errorf("person: %w", err)
	}
	return t, nil
}

// poll repeats ask until it says yes, fails, or ctx ends.
func poll(ctx context.Context, ask func() (bool, error)) error {
	again := time.NewTicker(25 * time.Millisecond)
	defer again.Stop()
	for {
		if yes, err := ask(); yes || err != nil {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tail keeps the last bytes of what a program wrote.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	t.b = t.b[max(0, len(t.b)-2000):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.b))
}
