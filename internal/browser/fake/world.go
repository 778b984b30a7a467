// Package fake is the browser runtime without a browser: a scripted website
// (World), a Page and Launcher that open it, and a Service with profiles,
// leases and sign-ins in memory. It keeps the contract of internal/browser
// (CAP-06, LEASE-04, REL-01) and records every effect, so that a test can
// check what happened rather than what was reported.
package fake

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// Control is one control of a scripted page.
type Control struct {
	Role, Name string
	Disabled   bool
	Field      observe.FieldKind // FieldNone when empty
	Opens      string            // URL that a click on it opens
	SetsCookie string            // name of a cookie that a click on it sets
	Title      string            // tooltip
	Options    []string          // of a select
}

// Doc is a scripted page.
type Doc struct {
	Title, Text string
	Challenge   bool // shows a sign-in challenge
	Controls    []Control
}

// Effect is one input that reached a page.
type Effect struct {
	URL   string
	Kind  action.Kind
	Name  string // of the control
	Value string
}

// World is a scripted web: what exists, and what was done to it. The zero
// World has no pages.
type World struct {
	Now func() time.Time // for constraints; time.Now when nil

	mu       sync.Mutex
	docs     map[string]Doc
	effects  []Effect
	requests []string
	launched int
	live     map[*Page]bool
	onAct    func(context.Context, *Page, action.Action) error
	onLaunch func(browser.Spec) error
	onLoad   func(context.Context, string) error
}

// Put adds or replaces the page at the URL.
func (w *World) Put(url string, d Doc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.docs == nil {
		w.docs = map[string]Doc{}
	}
	w.docs[url] = d
}

// OnAct installs a fault: it runs after all checks and before the effect; an
// error is returned instead of the effect.
func (w *World) OnAct(f func(context.Context, *Page, action.Action) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onAct = f
}

// OnLaunch installs a fault that runs before each launch.
func (w *World) OnLaunch(f func(browser.Spec) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onLaunch = f
}

// OnLoad installs a fault that runs before each navigation.
func (w *World) OnLoad(f func(context.Context, string) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onLoad = f
}

func (w *World) now() time.Time {
	if w.Now != nil {
		return w.Now()
	}
	return time.Now()
}

// Effects is what was done so far.
func (w *World) Effects() []Effect {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.effects)
}

// Requests is every URL that was opened so far.
func (w *World) Requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.requests)
}

// Launched is the number of browsers started so far.
func (w *World) Launched() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.launched
}

// Live lists the browsers that have not been closed.
func (w *World) Live() []*Page {
	w.mu.Lock()
	defer w.mu.Unlock()
	var pages []*Page
	for p := range w.live {
		pages = append(pages, p)
	}
	return pages
}

// Launch starts a fake browser in this world; World is a browser.Launcher.
func (w *World) Launch(ctx context.Context, spec browser.Spec) (browser.Page, error) {
	w.mu.Lock()
	fault := w.onLaunch
	w.mu.Unlock()
	if fault != nil {
		if err := fault(spec); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p := &Page{world: w, spec: spec, done: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.launched++
	if w.live == nil {
		w.live = map[*Page]bool{}
	}
	w.live[p] = true
	return p, nil
}

var _ browser.Launcher = (*World)(nil)
