package mediawiki

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// throughHandler sends every request to the handler.
type throughHandler struct{ h http.Handler }

func (t throughHandler) RoundTrip(r *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	t.h.ServeHTTP(rec, r)
	resp := rec.Result()
	resp.Request = r
	return resp, nil
}

// The whole flow that the demonstration drives with a browser: sign-in with
// password and code, source editor, save, revisions. Every claim is read from
// MediaWiki's API.
func TestSignInEditAndRecord(t *testing.T) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} { // PHP's user must get there
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	uid := 0
	if os.Geteuid() == 0 {
		uid = 61778
	}
	w, err := Start(t.Context(), Config{Dir: dir, Cache: filepath.Join(cache, "chaperone-testkit"), UID: uid, TwoSteps: true, Log: slog.New(slog.DiscardHandler)})
	if errors.Is(err, ErrMissing) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	t.Cleanup(func() {
		if !closed {
			w.Close()
		}
	})

	before, err := w.Page(t.Context(), "Main Page")
	if err != nil || !before.Exists || len(before.Revisions) != 1 {
		t.Fatalf("page %+v: %v", before, err)
	}
	if p, err := w.Page(t.Context(), "No such page"); err != nil || p.Exists || len(p.Revisions) != 0 {
		t.Fatalf("absent page %+v: %v", p, err)
	}

	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Transport: throughHandler{w.Handler()}, Jar: jar}
	fetch := func(u string) string {
		t.Helper()
		_, page, err := get(t.Context(), c, u)
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	submit := func(u string, form url.Values, more ...string) string {
		t.Helper()
		for i := 0; i < len(more); i += 2 {
			form.Set(more[i], more[i+1])
		}
		_, page, err := post(t.Context(), c, u, form)
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	lastUser := func() string {
		v := w.Visits()
		return v[len(v)-1].User
	}

	page := submit(w.SignInURL(), hidden(fetch(w.SignInURL())), "wpName", w.User, "wpPassword", w.Password)
	if lastUser() != "" {
		t.Fatal("the password alone was enough")
	}
	submit(w.SignInURL(), hidden(page), "OATHToken", w.Code(time.Now()))
	fetch(w.PageURL("Main Page"))
	if got := w.Visits()[len(w.Visits())-1]; got.User != w.User || got.Title != "Main_Page" {
		t.Fatalf("last visit %+v", got)
	}

	for _, cookie := range jar.Cookies(&url.URL{Scheme: "https", Host: w.Host, Path: "/"}) {
		if len(cookie.Value) >= 16 && !slices.Contains(w.Secrets(), cookie.Value) {
			t.Errorf("the cookie %s is not among the secrets", cookie.Name)
		}
	}
	if len(w.Secrets()) < 2 {
		t.Error("no cookie among the secrets")
	}

	form := hidden(fetch(w.EditURL("Main Page")))
	submit("https://"+w.Host+"/index.php?title=Main_Page&action=submit", form, "wpTextbox1", "Written by the test.", "wpSummary", "a remark", "wpSave", "Save")
	after, err := w.Page(t.Context(), "Main Page")
	if err != nil || after.Text != "Written by the test." || len(after.Revisions) != 2 {
		t.Fatalf("page %+v: %v", after, err)
	}
	if r := after.Revisions[0]; r.User != w.User || r.Comment != "a remark" || r.ID <= before.Revisions[0].ID {
		t.Fatalf("revision %+v", r)
	}

	// Nothing of it is left running.
	closed = true
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if conn, err := net.DialTimeout("tcp", w.addr, time.Second); err == nil {
		conn.Close()
		t.Fatal("PHP's server still answers after Close")
	}
}

// RFC 6238, appendix B (the last six of its eight digits).
func TestCode(t *testing.T) {
	w := &Wiki{secret: []byte("12345678901234567890")}
	for at, want := range map[int64]string{59: "287082", 1111111109: "081804", 20000000000: "353130"} {
		if got := w.Code(time.Unix(at, 0)); got != want {
			t.Errorf("code at %d is %s, want %s", at, got, want)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for name, c := range map[string]Config{
		"no logger":     {Dir: "/x", Cache: "/x", UID: os.Geteuid()},
		"relative":      {Dir: "x", Cache: "/x", UID: os.Geteuid(), Log: log},
		"local name":    {Dir: "/x", Cache: "/x", UID: os.Geteuid(), Log: log, Host: "localhost"},
		"somebody else": {Dir: "/x", Cache: "/x", UID: -1, Log: log},
	} {
		if w, err := Start(context.Background(), c); err == nil || errors.Is(err, ErrMissing) {
			t.Errorf("%s: %v %v", name, w, err)
		}
	}
}
