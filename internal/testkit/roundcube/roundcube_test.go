package roundcube

import (
	"errors"
	"log/slog"
	"net"
	"net/smtp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"net/http/httptest"

	"github.com/chaperone-agents/chaperone/internal/testkit/guest"
)

// What lies in the Maildir is what Roundcube shows, and nothing of it is left
// running.
func TestInboxAndEnd(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} { // another user must get there
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Start(t.Context(), Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if errors.Is(err, ErrMissing) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	t.Cleanup(func() {
		if !closed {
			m.Close()
		}
	})
	if err := m.Deliver(t.Context(), "desk@partner.example", "A test of the inbox", "Good morning."); err != nil {
		t.Fatal(err)
	}
	if in, err := m.Folder(""); err != nil || len(in) != 1 || !strings.Contains(in[0], "Good morning.") {
		t.Fatalf("inbox %q: %v", in, err)
	}

	front := m.Handler()
	visit := func(u string) *httptest.ResponseRecorder {
		r := httptest.NewRecorder()
		front.ServeHTTP(r, httptest.NewRequest("GET", "https://"+Host+u, nil))
		return r
	}
	shown := visit("/?_task=mail&_action=show&_uid=1&_mbox=INBOX")
	if !strings.Contains(shown.Body.String(), "Good morning.") || shown.Header().Get("Set-Cookie") != "" {
		t.Errorf("the mail is shown as %d, %v: %.600s", shown.Code, shown.Header(), shown.Body)
	}

	if err := smtp.SendMail(m.smtp.addr(), nil, "a@b.example", []string{"c@d.example", "e@f.example"}, []byte("Subject: x\r\n\r\n.dot\r\n")); err != nil {
		t.Fatal(err)
	}
	if got := m.Sent(); len(got) != 1 || got[0].From != "a@b.example" || len(got[0].To) != 2 || got[0].Text != "Subject: x\n\n.dot\n" {
		t.Errorf("sent %+v", got)
	}
	// A mail that does not come whole does not count, and holds nothing up.
	if _, err := net.DialTimeout("tcp", m.smtp.addr(), time.Second); err != nil {
		t.Fatal(err)
	}

	closed = true
	addrs := []string{m.php.Addr, m.imap.Addr, m.smtp.addr()}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if guest.Answers(a) {
			t.Errorf("%s still answers", a)
		}
	}
}
