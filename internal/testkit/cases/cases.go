// Package cases holds pages whose shapes broke other browser tools, and what
// has to happen on each. A case is judged by what reached the website, not by
// what the browser says of itself (GATE-01, OBS-01 to OBS-06, CLK-01). One
// browser serves a whole table of cases; each case has pages of its own.
//
// Some rows are about the border between two rooms, and the other side of it is
// held there: that a refused or failed session is never sealed over a saved one
// (54) by app/browserd's TestFailedCapture and TestFullDiskAtSeal; that an
// address that names an act waits for its owner (61) by rules/policy; that a
// name is resolved once, checked and dialled so, and no other address is (64)
// by browser/egress's TestProxyRules; that every door checks host, origin and
// key (65) by ownerapi's TestDoor, mcpserver, ceremonyweb's TestHostAndOrigin
// and product's TestForeignHostAndOrigin; that planted secrets are on no surface
// of any program (49) by product's TestPlantedSecretsAreNowhere.
package cases

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser/driver"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/rules/projection"
	"github.com/chaperone-agents/chaperone/internal/testkit/chromiumtest"
)

// The websites of the cases. The profile has Host and Partner; a page of
// Stranger may be framed and not visited.
const (
	Host     = "shop.example"
	Partner  = "partner.example"
	Stranger = "stranger.example"
)

// patience is how long anything that must happen is waited for.
const patience = 30 * time.Second

// Group is the browser and the websites that the cases of one test binary
// share. The zero Group is ready; Close it when every test has ended.
type Group struct {
	Challenges bool // pages that ask for their owner are not read, as under a lease

	setup lasting
	site  *chromiumtest.Site
	page  *driver.Page

	mu     sync.Mutex
	told   map[string][]string // by case, in order of arrival
	number int
}

// lasting is a test that lends its helpers to what outlives it.
type lasting struct {
	testing.TB
	undo   []func()
	failed []error
}

func (l *lasting) Cleanup(f func()) { l.undo = append(l.undo, f) }

func (l *lasting) Errorf(format string, args ...any) {
	l.failed = append(l.failed, fmt.Errorf(format, args...))
}

// Close ends the browser and says what it left behind.
func (g *Group) Close() []error {
	if g.page != nil {
		if err := g.page.Close(); err != nil {
			g.setup.failed = append(g.setup.failed, err)
		}
	}
	for _, f := range slices.Backward(g.setup.undo) {
		f()
	}
	return g.setup.failed
}

// Case is one case: its pages, what they told, and the browser.
type Case struct {
	testing.TB
	group  *Group
	id     string
	Page   *driver.Page
	Budget int // bytes of an answer; 0 is the default
}

// Case begins a case in the group's browser, which is started if there is none
// or the last one has died.
func (g *Group) Case(t testing.TB) *Case {
	t.Helper()
	if g.site == nil {
		g.setup.TB = t
		g.told = map[string][]string{}
		g.site = chromiumtest.NewSite(&g.setup, Host, Partner, Stranger)
		for _, host := range []string{Host, Partner, Stranger} {
			g.site.Handle(host+"/told/{case}", g.record)
		}
	}
	if g.page != nil {
		select {
		case <-g.page.Done():
			g.page = nil
		default:
		}
	}
	if g.page == nil {
		g.page = g.launch(t, &g.setup)
	}
	g.number++
	return &Case{TB: t, group: g, id: fmt.Sprint(g.number), Page: g.page}
}

// launch starts a browser on the group's websites in a folder of home's.
func (g *Group) launch(t, home testing.TB) *driver.Page {
	t.Helper()
	origins, err := site.ParseOrigins([]string{"https://" + Host, "https://" + Partner})
	if err != nil {
		t.Fatal(err)
	}
	page, err := driver.Launch(context.WithoutCancel(t.Context()), driver.Config{
		Origins: origins, Proxy: g.site.Proxy, Home: chromiumtest.Home(home), Chromium: chromiumtest.Chromium(t),
		Xvfb: chromiumtest.Xvfb(t), TrustedCA: g.site.CA, Log: slog.New(slog.DiscardHandler), Challenges: g.Challenges,
	})
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func (g *Group) record(w http.ResponseWriter, r *http.Request) {
	word, err := io.ReadAll(io.LimitReader(r.Body, 4096))
	if err != nil {
		http.Error(w, "body", http.StatusBadRequest)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	id := r.PathValue("case")
	g.told[id] = append(g.told[id], string(word))
}

// Told is what the case's pages have told their website so far.
func (c *Case) Told() []string {
	c.group.mu.Lock()
	defer c.group.mu.Unlock()
	return slices.Clone(c.group.told[c.id])
}

// Handle serves a path of the host for this case and returns its address.
func (c *Case) Handle(host, name string, h http.HandlerFunc) string {
	path := "/case/" + c.id + "/" + name
	c.group.site.Handle(host+path, h)
	return "https://" + host + path
}

// Serve serves a page and returns its address. Every page has a function
// tell(word), which is how it says what a person or a program did to it; it
// waits for its answer, so words arrive in the order in which they are said.
func (c *Case) Serve(host, name, body string) string {
	page := `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><script>const tell = (word) => {
		const to = new XMLHttpRequest(); to.open('POST', '/told/` + c.id + `', false); to.send(String(word)); };</script>` + body
	return c.Handle(host, name, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, page)
	})
}

// Later is a script that the page runs when run is called, which returns when
// it has: a change between a reading and an act.
func (c *Case) Later(js string) (script string, run func()) {
	released := make(chan struct{})
	word := fmt.Sprint("later ", time.Now().UnixNano())
	address := c.Handle(Host, strings.ReplaceAll(word, " ", "/"), func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream") // which no page is waited for because of
		_ = http.NewResponseController(w).Flush()
		select {
		case <-released:
			_, _ = io.WriteString(w, "data: now\n\n")
		case <-r.Context().Done():
		}
	})
	path := strings.TrimPrefix(address, "https://"+Host)
	return `<script>{ const stream = new EventSource('` + path + `'); stream.onmessage = () => { stream.close(); ` + js + `; tell('` + word + `'); }; }</script>`, func() {
		c.Helper()
		close(released)
		c.Await(word)
	}
}

// View is one reading of a page: what the browser's side knows, and the answer
// that an agent of the newest contract gets.
type View struct {
	observe.Document
	Answer string // JSON
	shown  projection.View
}

// Open serves the body as the case's page and goes there.
func (c *Case) Open(body string) View {
	c.Helper()
	return c.Visit(c.Serve(Host, fmt.Sprint("page", time.Now().UnixNano()), body))
}

// Visit goes to an address.
func (c *Case) Visit(address string) View {
	c.Helper()
	u, err := site.ParseURL(address)
	if err != nil {
		c.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	d, err := c.Page.Navigate(ctx, u)
	return c.view(d, err, observe.Query{})
}

// Read observes the page.
func (c *Case) Read(q observe.Query) View {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	d, err := c.Page.Observe(ctx, q)
	return c.view(d, err, q)
}

// view holds the reading to the validation and the budget of every answer.
func (c *Case) view(d observe.Document, err error, q observe.Query) View {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
	v := View{Document: d}
	origins, err := site.ParseOrigins([]string{"https://" + Host, "https://" + Partner})
	if err != nil {
		c.Fatal(err)
	}
	raw, err := observe.Accept(d, origins)
	if err != nil {
		c.Fatal(err)
	}
	v.shown, _, err = projection.Project(raw, projection.Options{Version: contract.V190, Query: q, Budget: c.Budget})
	if err != nil {
		c.Fatal(err)
	}
	body, err := json.Marshal(v.shown)
	if err != nil {
		c.Fatal(err)
	}
	if v.Answer = string(body); len(v.Answer) > cmp.Or(c.Budget, projection.Budget(contract.V190)) {
		c.Errorf("an answer of %d bytes", len(v.Answer))
	}
	return v
}

// Next is the request for what the answer left out, or nil at the end.
func (v View) Next() *projection.NextObserve {
	if v.shown.Window == nil {
		return nil
	}
	return v.shown.NextObserve
}

// Shown are the controls that are in the answer, in order; Elements are those
// that the browser's side knows.
func (v View) Shown() []projection.Element { return v.shown.Elements }

// Names are those of the controls of the reading, in order, each with its role.
func (v View) Names() (out []string) {
	for _, e := range v.Elements {
		out = append(out, e.Role+" "+e.Name)
	}
	return out
}

// Find is the only control with the name.
func (c *Case) Find(v View, name string) observe.Element {
	c.Helper()
	var found []observe.Element
	for _, e := range v.Elements {
		if e.Name == name {
			found = append(found, e)
		}
	}
	if len(found) != 1 {
		c.Fatalf("%d controls %q among %q", len(found), name, v.Names())
	}
	return found[0]
}

// Try acts on the only control with the name.
func (c *Case) Try(v View, kind action.Kind, name string, value ...string) (View, error) {
	c.Helper()
	return c.TryRef(v, kind, c.Find(v, name).Ref, value...)
}

// TryRef acts on a control. An error of the act is returned; the view is then
// empty.
func (c *Case) TryRef(v View, kind action.Kind, ref string, value ...string) (View, error) {
	c.Helper()
	a := action.Action{Kind: kind, ExpectedRevision: v.Revision, Ref: ref}
	switch kind {
	case action.Type, action.Select:
		a.Value = &value[0]
	case action.Press:
		a.Key = &value[0]
	case action.Scroll:
		a.DeltaY = new(400)
	}
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	d, err := c.Page.Act(ctx, a, nil)
	if err != nil {
		return View{}, err
	}
	return c.view(d, nil, observe.Query{}), nil
}

// Must acts on the only control with the name, which has to work.
func (c *Case) Must(v View, kind action.Kind, name string, value ...string) View {
	c.Helper()
	after, err := c.Try(v, kind, name, value...)
	if err != nil {
		c.Fatalf("%s %q: %v", kind, name, err)
	}
	return after
}

// Refused acts on the only control with the name, which has to be refused with
// the code before anything is sent.
func (c *Case) Refused(v View, code fault.Code, kind action.Kind, name string, value ...string) {
	c.Helper()
	if _, err := c.Try(v, kind, name, value...); !fault.Is(err, code) {
		c.Errorf("%s %q: %v, want %s", kind, name, err, code)
	}
}

// Await waits until the page has told the word.
func (c *Case) Await(word string) {
	c.Helper()
	for deadline := time.Now().Add(patience); !slices.Contains(c.Told(), word); {
		if time.Now().After(deadline) {
			c.Fatalf("%q was not told, only %q", word, c.Told())
		}
		<-time.After(10 * time.Millisecond)
	}
}

// Only ends the case: it leaves the page, waits until everything that was told
// has arrived, and wants exactly the words, in that order.
func (c *Case) Only(words ...string) {
	c.Helper()
	for _, word := range words {
		c.Await(word)
	}
	c.Visit(c.Serve(Host, "end", `<title>End</title><script>tell('end')</script>`))
	c.Await("end")
	got := slices.DeleteFunc(c.Told(), func(word string) bool { return word == "end" || strings.HasPrefix(word, "later ") })
	if !slices.Equal(got, words) {
		c.Errorf("the page told %q, want %q", got, words)
	}
}
