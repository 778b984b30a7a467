// Package roundcube runs a real Roundcube with Dovecot from Debian's packages,
// for tests: a web mailer that nobody wrote with this product in mind
// (GATE-02, CLS-02). Mail lies in a Maildir that tests read as files, and what
// is sent reaches a mail server of the tests' own. It is meant to stand behind
// the practice site's TLS listener. Nothing of either program becomes part of
// this project.
package roundcube

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"time"

	"github.com/chaperone-agents/chaperone/internal/testkit/guest"
)

// Host is the public-shaped name of the web mailer.
const Host = "mail.practice.example"

// Address is the owner's, whose mailbox it is.
const Address = "mira@practice.example"

// Where Debian's packages put Roundcube.
const (
	webFolder = "/var/lib/roundcube/public_html"
	debian    = "/etc/roundcube"
)

// Config says where it runs.
type Config struct {
	Dir string // empty folder for mail, settings and logs; the caller removes it after Close
	Log *slog.Logger
}

// Mail is a running Roundcube with its Dovecot.
type Mail struct {
	user     guest.User
	name     string // of the user
	group    string
	password string
	imap     *guest.Program
	php      *guest.Program
	smtp     *mailServer
	client   *http.Client // signed in
}

// ErrMissing says that the machine lacks a program or package.
var ErrMissing = errors.New("roundcube: missing")

// Start starts a mail server, Dovecot and Roundcube as an unprivileged user,
// and signs in.
func Start(ctx context.Context, c Config) (*Mail, error) {
	if c.Log == nil {
		return nil, errors.New("roundcube: no logger")
	}
	if err := installed(); err != nil {
		return nil, err
	}
	m := &Mail{password: "pw-" + random(8)}
	if err := m.person(c.Dir); err != nil {
		return nil, err
	}
	if err := m.start(ctx); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	c.Log.Info("roundcube is ready", "host", Host)
	return m, nil
}

func installed() error {
	for _, p := range []struct{ program, pkg string }{{"php", "php-cli"}, {"/usr/sbin/dovecot", "dovecot-imapd"}} {
		if _, err := exec.LookPath(p.program); err != nil {
			return fmt.Errorf("%w: the program %s; install the package %s", ErrMissing, p.program, p.pkg)
		}
	}
	if _, err := os.Stat(filepath.Join(webFolder, "index.php")); err != nil {
		return fmt.Errorf("%w: Roundcube; install roundcube-core and roundcube-sqlite3", ErrMissing)
	}
	return nil
}

// person sets who everything runs as: this process's own user, or the one that
// Debian's package makes for what Dovecot trusts least. Dovecot wants a user
// with a name.
func (m *Mail) person(dir string) error {
	var u *user.User
	var err error
	if os.Geteuid() == 0 {
		u, err = user.Lookup("dovenull")
	} else {
		u, err = user.Current()
	}
	if err != nil {
		return fmt.Errorf("%w: a user for Dovecot: %w", ErrMissing, err)
	}
	g, err := user.LookupGroupId(u.Gid)
	if err != nil {
		return fmt.Errorf("%w: a group for Dovecot: %w", ErrMissing, err)
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	m.name, m.group = u.Username, g.Name
	m.user = guest.User{Dir: dir, UID: uid, GID: gid, Env: []string{"ROUNDCUBE_CONFIG_DIR=" + filepath.Join(dir, "settings")}}
	return errors.Join(err1, err2, m.user.Check())
}

func (m *Mail) start(ctx context.Context) error {
	if err := m.user.Own(); err != nil {
		return err
	}
	var err error
	if m.smtp, err = listen(); err != nil {
		return err
	}
	imap, err := guest.FreeAddr()
	if err != nil {
		return err
	}
	web, err := guest.FreeAddr()
	if err != nil {
		return err
	}
	if err := m.write(ctx, imap); err != nil {
		return err
	}
	ready := func(addr string) func(context.Context) error {
		return func(context.Context) error {
			if !guest.Answers(addr) {
				return errors.New("roundcube: nobody listens")
			}
			return nil
		}
	}
	dovecot := m.user.Command(context.WithoutCancel(ctx), m.user.Dir, "/usr/sbin/dovecot", "-F", "-c", m.at("dovecot.conf"))
	if m.imap, err = m.user.Serve(ctx, dovecot, imap, ready(imap)); err != nil {
		return err
	}
	php := m.user.Command(context.WithoutCancel(ctx), m.user.Dir, "php", "-S", web, "-t", webFolder)
	if m.php, err = m.user.Serve(ctx, php, web, ready(web)); err != nil {
		return err
	}
	return m.signIn(ctx)
}

// Close ends every program.
func (m *Mail) Close() error {
	var errs []error
	for _, p := range []*guest.Program{m.php, m.imap} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	if m.smtp != nil {
		errs = append(errs, m.smtp.close())
	}
	return errors.Join(errs...)
}

// Handler is Roundcube behind a single sign-on: whoever asks is the owner.
func (m *Mail) Handler() http.Handler {
	return guest.SignedIn(Host, m.php.Addr, m.client.Jar, nil)
}

func (m *Mail) at(name string) string { return filepath.Join(m.user.Dir, name) }

func random(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

func port(addr string) string {
	_, p, _ := net.SplitHostPort(addr)
	return p
}

func newClient(addr string) (*http.Client, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, fmt.Errorf("roundcube: %w", err)
	}
	return &http.Client{Timeout: time.Minute, Transport: guest.Direct{Addr: addr}, Jar: jar}, nil
}
