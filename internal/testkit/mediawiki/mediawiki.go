// Package mediawiki runs a real MediaWiki from Debian's packages on SQLite and
// PHP's own server, for tests and the demonstration: a site that nobody wrote
// with this product in mind (GOAL-01). It is meant to stand behind the
// practice site's TLS listener, and it has recorders of its own: page texts and
// revisions from MediaWiki's API, and who MediaWiki itself says was signed in
// on each page it rendered. Nothing of MediaWiki becomes part of this project.
package mediawiki

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/site"
)

// DefaultHost is the public-shaped name unless Config says another.
const DefaultHost = "wiki.practice.example"

// Config says where and as whom MediaWiki runs.
type Config struct {
	Dir   string // empty folder for program, data and logs; the caller removes it after Close
	Cache string // folder in which the package files are kept from run to run
	// UID is the unprivileged user that everything runs as. 0 is this process's
	// own user, which must not be root then.
	UID      int
	Host     string // public-shaped name; empty is DefaultHost
	TwoSteps bool   // the account also needs a time-based one-time code
	Log      *slog.Logger
}

// Wiki is a running MediaWiki.
type Wiki struct {
	Host     string
	User     string
	Password string

	addr   string // of PHP's server
	client *http.Client
	php    *exec.Cmd
	done   chan struct{} // closed when PHP's server has been waited for
	secret []byte        // of the one-time code

	mu      sync.Mutex
	visits  []Visit
	cookies []string // values handed out
}

// ErrMissing says that the machine lacks a program or package.
var ErrMissing = errors.New("mediawiki: missing")

// Start fetches the packages unless the cache has them, installs MediaWiki and
// serves it. It returns ErrMissing, with what to install, where something is
// not there.
func Start(ctx context.Context, c Config) (*Wiki, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := checkPHP(ctx); err != nil {
		return nil, err
	}
	app, err := c.unpack(ctx)
	if err != nil {
		return nil, err
	}
	w := &Wiki{Host: c.Host, User: "Mira", Password: "pw-" + random(), done: make(chan struct{})}
	if err := c.install(ctx, app, w); err != nil {
		return nil, err
	}
	if err := w.serve(ctx, c, app); err != nil {
		return nil, err
	}
	if c.TwoSteps {
		if err := w.enrol(ctx); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	c.Log.Info("mediawiki is ready", "host", w.Host)
	return w, nil
}

func (c *Config) check() error {
	if c.Host == "" {
		c.Host = DefaultHost
	}
	if h, err := site.NormalHost(c.Host); err != nil || h != c.Host {
		return fmt.Errorf("mediawiki: %q is not a public-shaped host name", c.Host)
	}
	switch {
	case c.Log == nil:
		return errors.New("mediawiki: no logger")
	case !filepath.IsAbs(c.Dir) || !filepath.IsAbs(c.Cache):
		return errors.New("mediawiki: the folders must be absolute paths")
	case os.Geteuid() == 0 && c.UID <= 0:
		return errors.New("mediawiki: PHP must not run as root; name an unprivileged uid")
	case os.Geteuid() != 0 && c.UID != 0 && c.UID != os.Geteuid():
		return errors.New("mediawiki: only root can run it as another user")
	}
	return nil
}

// command runs a program as the unprivileged user, with nothing of this
// process's environment.
func (c *Config) command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + c.Dir, "TMPDIR=" + c.Dir, "LANG=C.UTF-8", "PHP_CLI_SERVER_WORKERS=4"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(c.UID), Gid: uint32(c.UID)}
	}
	return cmd
}

func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mediawiki: %s: %w: %s", filepath.Base(cmd.Path), err, tail(out))
	}
	return nil
}

func tail(b []byte) string {
	s := strings.TrimSpace(string(b))
	return s[max(0, len(s)-600):]
}

// install makes the database, the account and the settings.
func (c *Config) install(ctx context.Context, app string, w *Wiki) error {
	data := filepath.Join(c.Dir, "data")
	if err := run(c.command(ctx, app, "mkdir", "-m", "700", data, filepath.Join(data, "cache"), filepath.Join(app, "images"))); err != nil {
		return err
	}
	// The password is read from a file: a command line is visible to everyone.
	pass := filepath.Join(data, "password")
	if err := c.write(ctx, pass, w.Password); err != nil {
		return err
	}
	if err := run(c.command(ctx, app, "php", "maintenance/install.php",
		"--dbtype", "sqlite", "--dbpath", data, "--dbname", "wiki", "--server", "https://"+c.Host, "--scriptpath", "",
		"--passfile", pass, "--extensions=OATHAuth,WikiEditor", "--skins=Vector", "Practice wiki", w.User)); err != nil {
		return err
	}
	if err := run(c.command(ctx, app, "rm", pass)); err != nil {
		return err
	}
	settings, err := os.ReadFile(filepath.Join(app, "LocalSettings.php"))
	if err != nil {
		return fmt.Errorf("mediawiki: %w", err)
	}
	return c.write(ctx, filepath.Join(app, "LocalSettings.php"), string(settings)+fmt.Sprintf(`
$wgCacheDirectory = %q;
$wgArticlePath = "/wiki/$1";
$wgEnableEmail = false;
$wgPingback = false;
$wgJobRunRate = 0;
`, filepath.Join(data, "cache")))
}

// write makes a private file that belongs to the unprivileged user.
func (c *Config) write(ctx context.Context, path, content string) error {
	cmd := c.command(ctx, c.Dir, "dd", "of="+path, "status=none")
	cmd.Stdin = strings.NewReader(content)
	if err := run(cmd); err != nil {
		return err
	}
	return run(c.command(ctx, c.Dir, "chmod", "600", path))
}

// serve starts PHP's server and waits until MediaWiki answers.
func (w *Wiki) serve(ctx context.Context, c Config, app string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("mediawiki: %w", err)
	}
	w.addr = l.Addr().String()
	l.Close() // PHP cannot take a listener over
	w.client = &http.Client{Timeout: 30 * time.Second, Transport: direct{w.addr}}
	logFile, err := os.Create(filepath.Join(c.Dir, "php.log"))
	if err != nil {
		return fmt.Errorf("mediawiki: %w", err)
	}
	defer logFile.Close()
	w.php = c.command(context.WithoutCancel(ctx), app, "php", "-S", w.addr)
	w.php.Stdout, w.php.Stderr = logFile, logFile
	if err := w.php.Start(); err != nil {
		return fmt.Errorf("mediawiki: %w", err)
	}
	go func() {
		w.php.Wait()
		close(w.done)
	}()
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	retry := time.NewTicker(50 * time.Millisecond)
	defer retry.Stop()
	for {
		if _, err = w.Page(ctx, "Main Page"); err == nil {
			return nil
		}
		select {
		case <-retry.C:
		case <-w.done:
			return fmt.Errorf("mediawiki: PHP's server ended at once, see %s", logFile.Name())
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("mediawiki: not ready: %w", err), w.Close())
		}
	}
}

// Close ends PHP's server and its workers.
func (w *Wiki) Close() error {
	// The group lives while any worker does, also after its leader has gone.
	if err := syscall.Kill(-w.php.Process.Pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		return fmt.Errorf("mediawiki: %w", err)
	}
	<-w.done
	// The workers hold the listener too and end when the kernel gets to it.
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		conn, err := net.DialTimeout("tcp", w.addr, time.Second)
		if err != nil {
			return nil
		}
		conn.Close()
	}
	return errors.New("mediawiki: PHP's server survived its end")
}

// PageURL is the address of a page as a reader sees it.
func (w *Wiki) PageURL(title string) string {
	return "https://" + w.Host + "/wiki/" + strings.ReplaceAll(title, " ", "_")
}

// EditURL is the address of a page's source editor.
func (w *Wiki) EditURL(title string) string {
	return "https://" + w.Host + "/index.php?title=" + strings.ReplaceAll(title, " ", "_") + "&action=edit"
}

// SignInURL is where the owner signs in.
func (w *Wiki) SignInURL() string {
	return "https://" + w.Host + "/index.php?title=Special:UserLogin"
}

func random() string {
	b := make([]byte, 12)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
