package worker_test

import (
	"context"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/devmode"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/browsertest"
	"github.com/chaperone-agents/chaperone/internal/browser/worker"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/testkit/practice"
)

// contractSite serves the contract's pages over TLS; its pages report what
// reaches their controls.
type contractSite struct {
	mu      sync.Mutex
	docs    map[string]browsertest.Doc
	opened  map[string]int
	effects []browsertest.Effect
}

var _ browsertest.Site = (*contractSite)(nil)

func (s *contractSite) Put(url string, d browsertest.Doc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.docs[url] = d
}

func (s *contractSite) Opened(url string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened[url]
}

func (s *contractSite) Effects(n int) []browsertest.Effect {
	<-time.After(100 * time.Millisecond) // also what must not come gets a moment to come
	for deadline := time.Now().Add(time.Minute); ; {
		s.mu.Lock()
		got := slices.Clone(s.effects)
		s.mu.Unlock()
		if len(got) >= n || time.Now().After(deadline) {
			return got
		}
		<-time.After(10 * time.Millisecond)
	}
}

const reports = `<script>
const say = (kind, name, value) => fetch('/effect?' + new URLSearchParams({kind, name, value}), {keepalive: true});
for (const b of document.querySelectorAll('button')) b.onclick = () => say('click', b.textContent, '');
for (const i of document.querySelectorAll('input')) {
  i.onchange = async () => {
    if (i.type !== 'file') return;
    const sum = new Uint8Array(await crypto.subtle.digest('SHA-256', await i.files[0].arrayBuffer()));
    say('upload', i.ariaLabel, [...sum].map((b) => b.toString(16).padStart(2, '0')).join(''));
  };
  if (i.type === 'file') continue;
  let soon;
  i.oninput = () => { clearTimeout(soon); soon = setTimeout(() => say('type', i.ariaLabel, i.value), 100); };
}
</script>`

func (s *contractSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/effect" {
		q := r.URL.Query()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.effects = append(s.effects, browsertest.Effect{Kind: action.Kind(q.Get("kind")), Name: q.Get("name"), Value: q.Get("value")})
		return
	}
	url := "https://" + r.Host + r.URL.Path
	s.mu.Lock()
	s.opened[url]++
	d, ok := s.docs[url]
	s.mu.Unlock()
	if !ok {
		panic(http.ErrAbortHandler) // no answer at all
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, "<!doctype html><title>%s</title><p>%s</p>", html.EscapeString(d.Title), html.EscapeString(d.Text))
	for _, c := range d.Controls {
		name, disabled := html.EscapeString(c.Name), ""
		if c.Disabled {
			disabled = " disabled"
		}
		switch {
		case c.Role == "button":
			fmt.Fprintf(w, "<p><button%s>%s</button></p>", disabled, name)
		case c.Role == "link":
			fmt.Fprintf(w, "<p><a href=%q>%s</a></p>", c.Opens, name)
		case c.Field == observe.FieldPassword:
			fmt.Fprintf(w, "<p><input type=password aria-label=%q></p>", name)
		case c.Field == observe.FieldFile:
			fmt.Fprintf(w, "<p><input type=file aria-label=%q></p>", name)
		case c.Field == observe.FieldOneTimeCode:
			fmt.Fprintf(w, "<p><input autocomplete=one-time-code aria-label=%q></p>", name)
		default:
			fmt.Fprintf(w, "<p><input aria-label=%q></p>", name)
		}
	}
	io.WriteString(w, reports)
}

// GATE-01: a Chromium behind the worker keeps the contract of browser.Page.
func TestContract(t *testing.T) {
	cfg, _ := config(t)
	browsertest.Run(t, func(ctx context.Context, origins site.Origins) (browser.Page, browsertest.Site, error) {
		s := &contractSite{docs: map[string]browsertest.Doc{}, opened: map[string]int{}}
		hosts := map[string]http.Handler{}
		for _, name := range browsertest.Hosts() {
			hosts[name] = s
		}
		web, err := practice.Start(practice.Config{Hosts: hosts, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return nil, nil, err
		}
		t.Cleanup(func() { web.Close() })
		dev := &devmode.Config{Hosts: map[string]netip.AddrPort{}, CA: web.CA()}
		for _, name := range browsertest.Hosts() {
			dev.Hosts[name] = web.Addr()
		}
		cfg := cfg
		cfg.Dev = dev
		l, err := worker.NewLauncher(cfg)
		if err != nil {
			return nil, nil, err
		}
		p, err := l.Launch(ctx, browser.Spec{Tenant: "contract", Origins: origins})
		return p, s, err
	})
}
