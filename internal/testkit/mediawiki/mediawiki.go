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
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/testkit/guest"
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
	php    *guest.Program
	secret []byte // of the one-time code

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
	w := &Wiki{Host: c.Host, User: "Mira", Password: "pw-" + random()}
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
	case !filepath.IsAbs(c.Cache):
		return errors.New("mediawiki: the folders must be absolute paths")
	}
	return c.user().Check()
}

// user is who everything runs as.
func (c *Config) user() guest.User { return guest.User{Dir: c.Dir, UID: c.UID, GID: c.UID} }

func (c *Config) command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	return c.user().Command(ctx, dir, name, args...)
}

// install makes the database, the account and the settings.
func (c *Config) install(ctx context.Context, app string, w *Wiki) error {
	data := filepath.Join(c.Dir, "data")
	if err := guest.Run(c.command(ctx, app, "mkdir", "-m", "700", data, filepath.Join(data, "cache"), filepath.Join(app, "images"))); err != nil {
		return err
	}
	// The password is read from a file: a command line is visible to everyone.
	pass := filepath.Join(data, "password")
	if err := c.user().Write(ctx, pass, w.Password); err != nil {
		return err
	}
	if err := guest.Run(c.command(ctx, app, "php", "maintenance/install.php",
		"--dbtype", "sqlite", "--dbpath", data, "--dbname", "wiki", "--server", "https://"+c.Host, "--scriptpath", "",
		"--passfile", pass, "--extensions=OATHAuth,WikiEditor", "--skins=Vector", "Practice wiki", w.User)); err != nil {
		return err
	}
	if err := guest.Run(c.command(ctx, app, "rm", pass)); err != nil {
		return err
	}
	settings, err := os.ReadFile(filepath.Join(app, "LocalSettings.php"))
	if err != nil {
		return fmt.Errorf("mediawiki: %w", err)
	}
	return c.user().Write(ctx, filepath.Join(app, "LocalSettings.php"), string(settings)+fmt.Sprintf(`
$wgCacheDirectory = %q;
$wgArticlePath = "/wiki/$1";
$wgEnableEmail = false;
$wgEnableUploads = true;
$wgPingback = false;
$wgJobRunRate = 0;
`, filepath.Join(data, "cache")))
}

// serve starts PHP's server and waits until MediaWiki answers.
func (w *Wiki) serve(ctx context.Context, c Config, app string) error {
	var err error
	if w.addr, err = guest.FreeAddr(); err != nil {
		return err
	}
	w.client = &http.Client{Timeout: 30 * time.Second, Transport: guest.Direct{Addr: w.addr}}
	php := c.command(context.WithoutCancel(ctx), app, "php", "-S", w.addr)
	w.php, err = c.user().Serve(ctx, php, w.addr, func(ctx context.Context) error {
		_, err := w.Page(ctx, "Main Page")
		return err
	})
	return err
}

// Close ends PHP's server and its workers.
func (w *Wiki) Close() error { return w.php.Close() }

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
