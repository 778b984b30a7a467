// Package hostilesite is a website that works against whoever acts on it: its
// pages change between the look and the act, while the mouse is on its way and
// under the finger. Its tests run them against the real programs, with an owner
// who says yes to exactly what is asked, and believe the site's own record only
// (OBS-01, CAP-06, CLK-01 to CLK-03, GUARD-01 to GUARD-04, NAVC-01, POP-01,
// SER-01, REL-01, DENY-03, DENY-04, GATE-01, GATE-07).
//
// The random pages of the tests are checked a fixed small number of times;
// RAPID_CHECKS=500 or -rapid.checks=500 asks for more.
package hostilesite

import (
	"crypto/rand"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chaperone-agents/chaperone/internal/testkit/practice"
)

// The names of the site.
const (
	Host      = "hostile-site.example" // where agents may act
	Framed    = "framed-site.example"  // may be shown in a frame; nothing may happen on it
	Forbidden = "forbidden.example"    // only acts lead there; nothing may ever connect
)

// Site is the website and its record. A page is known by its number.
type Site struct {
	*practice.Site
	canary string

	mu      sync.Mutex
	pages   map[string]string
	gates   map[string]chan struct{}
	told    map[string][]string
	changed chan struct{} // closed and replaced by every word
}

// badPage takes every input, none of which is approved.
const badPage = `<!doctype html><title>Bad</title><body style="margin:0"><button style="width:100vw;height:100vh" autofocus>Delete</button><script>
for (const kind of ['click', 'keydown', 'input']) addEventListener(kind, () => {
  const to = new XMLHttpRequest(); to.open('POST', location.origin + '/told/%s', false); to.send('bad ' + kind); }, true);</script>`

// Start serves the site until Close.
func Start() (*Site, error) {
	s := &Site{canary: "canary-" + rand.Text(), pages: map[string]string{}, gates: map[string]chan struct{}{},
		told: map[string][]string{}, changed: make(chan struct{})}
	m := http.NewServeMux()
	m.HandleFunc("GET /page/{id}", s.page)
	m.HandleFunc("POST /told/{id}", func(_ http.ResponseWriter, r *http.Request) {
		word, err := io.ReadAll(io.LimitReader(r.Body, 4096))
		if err != nil {
			word = []byte(".broken")
		}
		s.record(r.PathValue("id"), string(word))
	})
	m.HandleFunc("/do/{id}/{word}", func(w http.ResponseWriter, r *http.Request) {
		s.record(r.PathValue("id"), r.PathValue("word"))
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!doctype html><title>Done</title><h1>Done</h1>")
	})
	m.HandleFunc("GET /gate/{id}", func(_ http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		gate := s.gates[r.PathValue("id")]
		s.mu.Unlock()
		select {
		case <-gate:
		case <-r.Context().Done():
		}
	})
	m.HandleFunc("GET /bad/{id}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, badPage, r.PathValue("id"))
	})
	forbidden := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { s.record(Forbidden, r.Method) })
	var err error
	s.Site, err = practice.Start(practice.Config{Hosts: map[string]http.Handler{Host: m, Framed: m, Forbidden: forbidden}, Log: slog.New(slog.DiscardHandler)})
	return s, err
}

// Secrets are what no answer, log or file may hold: the site's cookie, which is
// also in hidden fields and in storage.
func (s *Site) Secrets() []string { return []string{s.canary} }

// Page serves a page and returns its number and address. Its scripts have
// tell(word), which returns when the site has written the word down, ID and HOST
// (in the body as $ID and $HOST). The script later runs when Change is called.
func (s *Site) Page(body, later string) (id, address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id = fmt.Sprint(len(s.pages) + 1)
	var b strings.Builder
	fmt.Fprintf(&b, `<!doctype html><meta charset=utf-8><link rel=icon href="data:,"><title>Page %s</title><script>
const tell = (word) => { const to = new XMLHttpRequest(); to.open('POST', location.origin + '/told/%s', false); to.send(String(word)); };
window.tell = tell;
localStorage.setItem('secret', '%s');</script><input type=hidden value="%s">`, id, id, s.canary, html.EscapeString(s.canary))
	b.WriteString(strings.NewReplacer("$ID", id, "$HOST", "https://"+Host, "$FRAMED", "https://"+Framed, "$FORBIDDEN", "https://"+Forbidden).Replace(body))
	if later != "" {
		s.gates[id] = make(chan struct{})
		later = strings.NewReplacer("$ID", id, "$HOST", "https://"+Host, "$FRAMED", "https://"+Framed, "$FORBIDDEN", "https://"+Forbidden).Replace(later)
		fmt.Fprintf(&b, `<script>setTimeout(() => fetch('/gate/%s').then(() => { try { %s; tell('.changed'); } catch (e) { tell('.failed ' + e); } }), 1)</script>`, id, later)
	}
	s.pages[id] = b.String()
	return id, practice.URL(Host, "/page/"+id)
}

func (s *Site) page(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	body, ok := s.pages[r.PathValue("id")]
	s.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: "sid", Value: s.canary, Path: "/", Secure: true, HttpOnly: true, MaxAge: 3600})
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, body)
}

func (s *Site) record(id, word string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told[id] = append(s.told[id], word)
	close(s.changed)
	s.changed = make(chan struct{})
}

// Change lets the page run its later script and waits until it has.
func (s *Site) Change(id string, patience time.Duration) error {
	s.mu.Lock()
	close(s.gates[id])
	s.mu.Unlock()
	if !s.Await(id, patience, func(words []string) bool { return len(words) > 0 && slices.Contains(words, ".changed") }) {
		return fmt.Errorf("page %s did not change; it told %q", id, s.words(id))
	}
	return nil
}

// Effects are what happened through the page, in order.
func (s *Site) Effects(id string) []string {
	return slices.DeleteFunc(s.words(id), func(w string) bool { return strings.HasPrefix(w, ".") })
}

func (s *Site) words(id string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.told[id])
}

// Await waits until the page's words pass and reports whether they did.
func (s *Site) Await(id string, patience time.Duration, pass func(words []string) bool) bool {
	deadline := time.After(patience)
	for {
		s.mu.Lock()
		words, changed := slices.Clone(s.told[id]), s.changed
		s.mu.Unlock()
		if pass(words) {
			return true
		}
		select {
		case <-changed:
		case <-deadline:
			return false
		}
	}
}
