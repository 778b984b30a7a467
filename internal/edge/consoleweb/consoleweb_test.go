package consoleweb_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/edge/consoleweb"
	"github.com/chaperone-agents/chaperone/internal/edge/httpx"
	"github.com/chaperone-agents/chaperone/web/console"
)

const host = "127.0.0.1:8787"

func get(t *testing.T, method, path string, edit func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	h := consoleweb.New(consoleweb.Config{Guard: httpx.Guard{Hosts: []string{host}, Origins: []string{"http://" + host}}})
	r := httptest.NewRequest(method, "http://"+host+path, nil)
	if edit != nil {
		edit(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Every answer, also a refusal, has the whole policy; every file its type.
func TestPolicy(t *testing.T) {
	types := map[string]string{".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
	paths := map[string]int{"/": 200, "/nothing": 404, "/../go.mod": 404, "/console.go": 404, "//": 404}
	fs.WalkDir(console.Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths["/"+name] = 200
		}
		return err
	})
	if len(paths) < 12 {
		t.Fatalf("only %d paths", len(paths))
	}
	for name, status := range paths {
		w := get(t, "GET", name, nil)
		if w.Code != status {
			t.Errorf("%s: %d", name, w.Code)
		}
		csp := w.Header().Get("Content-Security-Policy")
		for _, part := range []string{
			"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self'",
			"base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'", "trusted-types 'none'",
		} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: no %s in %q", name, part, csp)
			}
		}
		if strings.Contains(csp, "unsafe") || w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %v", name, w.Header())
		}
		if ext := path.Ext(name); status == 200 && ext != "" && !strings.HasPrefix(w.Header().Get("Content-Type"), types[ext]) {
			t.Errorf("%s: %s", name, w.Header().Get("Content-Type"))
		}
	}
}

func TestGuardAndMethods(t *testing.T) {
	if w := get(t, "GET", "/", func(r *http.Request) { r.Host = "rebound.example.org" }); w.Code != 421 {
		t.Errorf("foreign host: %d", w.Code)
	}
	if w := get(t, "POST", "/", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example.org") }); w.Code != 403 {
		t.Errorf("foreign origin: %d", w.Code)
	}
	if w := get(t, "POST", "/", nil); w.Code != 404 {
		t.Errorf("post: %d", w.Code)
	}
	if got, want := consoleweb.ApprovalURL("http://"+host, "x"), "http://"+host+"/#/approvals/x"; got != want {
		t.Errorf("approval address: %s", got)
	}
}

// VIEW-02: no page takes markup, and none has code or style outside its files.
func TestPagesTakeNoMarkup(t *testing.T) {
	markup := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|setHTML|\beval\b|new Function|srcdoc|https?://[a-z]`)
	inline := regexp.MustCompile(`<script(?:[^>]*)>[^<]+</script>|<style|\sstyle=|\son[a-z]+=|javascript:`)
	allowed := strings.NewReplacer("https://wiki.example.org", "", "http://www.w3.org/2000/svg", "")
	fs.WalkDir(console.Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := fs.ReadFile(console.Files(), name)
		if err != nil {
			return err
		}
		text := allowed.Replace(string(body))
		if found := markup.FindString(text); found != "" {
			t.Errorf("%s has %q", name, found)
		}
		if found := inline.FindString(text); found != "" && path.Ext(name) == ".html" {
			t.Errorf("%s has %q", name, found)
		}
		return nil
	})
	for _, bad := range []string{`x.innerHTML = y`, `eval(x)`, `fetch("https://elsewhere")`} {
		if !markup.MatchString(bad) {
			t.Errorf("the check would miss %q", bad)
		}
	}
	if !inline.MatchString(`<p onclick="x()">`) || !inline.MatchString(`<script>x</script>`) {
		t.Error("the check would miss inline code")
	}
}
