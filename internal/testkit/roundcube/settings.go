package roundcube

import (
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/chaperone-agents/chaperone/internal/testkit/guest"
)

// write makes the folders and settings of both programs.
func (m *Mail) write(ctx context.Context, imap string) error {
	run := func(name string, args ...string) error {
		return guest.Run(m.user.Command(ctx, m.user.Dir, name, args...))
	}
	if err := run("mkdir", "-p", "-m", "700", "run", "settings", "temp", "mail/new", "mail/cur", "mail/tmp"); err != nil {
		return err
	}
	if err := run("cp", debian+"/defaults.inc.php", debian+"/mimetypes.php", "settings"); err != nil {
		return err
	}
	err := m.user.Write(ctx, m.at("dovecot.conf"), strings.NewReplacer(
		"DIR", m.user.Dir, "USER", m.name, "GROUP", m.group, "UID", fmt.Sprint(m.user.UID), "GID", fmt.Sprint(m.user.GID), "PASSWORD", m.password, "PORT", port(imap),
	).Replace(dovecotConf))
	if err != nil {
		return err
	}
	return m.user.Write(ctx, m.at("settings/config.inc.php"), strings.NewReplacer(
		"DIR", m.user.Dir, "IMAP", imap, "SMTP", m.smtp.addr(), "KEY", random(12),
	).Replace(roundcubeConf))
}

// Everything of Dovecot runs as one user, who may not change root.
const dovecotConf = `base_dir = DIR/run
state_dir = DIR/run
log_path = DIR/imap.log
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
default_internal_user = USER
default_internal_group = GROUP
default_login_user = USER
first_valid_uid = 1
mail_location = maildir:DIR/mail
passdb {
  driver = static
  args = password=PASSWORD
}
userdb {
  driver = static
  args = uid=UID gid=GID home=DIR
}
namespace inbox {
  inbox = yes
  mailbox Trash {
    auto = subscribe
    special_use = \Trash
  }
  mailbox Sent {
    auto = subscribe
    special_use = \Sent
  }
  mailbox Drafts {
    auto = subscribe
    special_use = \Drafts
  }
}
service anvil {
  chroot =
}
service imap-login {
  chroot =
  inet_listener imap {
    port = PORT
  }
  inet_listener imaps {
    port = 0
  }
}
`

const roundcubeConf = `<?php
$config['db_dsnw'] = 'sqlite:///DIR/temp/roundcube.db?mode=0600';
$config['imap_host'] = 'IMAP';
$config['smtp_host'] = 'SMTP';
$config['smtp_user'] = '';
$config['smtp_pass'] = '';
$config['des_key'] = 'KEY';
$config['temp_dir'] = 'DIR/temp';
$config['log_driver'] = 'stdout';
$config['plugins'] = [];
$config['skin'] = 'elastic';
$config['language'] = 'en_US';
$config['enable_spellcheck'] = false;
$config['use_https'] = true;
`

var token = regexp.MustCompile(`name="_token" value="([^"]*)"`)

// signIn signs a client in with the password.
func (m *Mail) signIn(ctx context.Context) error {
	c, err := newClient(m.php.Addr)
	if err != nil {
		return err
	}
	const form = "https://" + Host + "/?_task=login"
	page, err := fetch(ctx, c, form, nil)
	if err != nil {
		return err
	}
	t := token.FindStringSubmatch(page)
	if t == nil {
		return fmt.Errorf("roundcube: no sign-in form: %.300s", page)
	}
	page, err = fetch(ctx, c, form, url.Values{
		"_token": {html.UnescapeString(t[1])}, "_task": {"login"}, "_action": {"login"}, "_user": {Address}, "_pass": {m.password},
	})
	if err == nil && !strings.Contains(page, Address) {
		err = fmt.Errorf("roundcube: the owner cannot sign in: %.300s", page)
	}
	m.client = c
	return err
}

// fetch gets an address, or posts a form to it.
func fetch(ctx context.Context, c *http.Client, u string, form url.Values) (string, error) {
	method := http.MethodPost
	if form == nil {
		method = http.MethodGet
	}
	q, err := http.NewRequestWithContext(ctx, method, u, strings.NewReader(form.Encode()))
	if err != nil {
		return "", fmt.Errorf("roundcube: %w", err)
	}
	if form != nil {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r, err := c.Do(q)
	if err != nil {
		return "", fmt.Errorf("roundcube: %w", err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(io.LimitReader(r.Body, 8<<20))
	return string(body), err
}
