package fake

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/rules/consequence"
	"github.com/chaperone-agents/chaperone/internal/rules/constraint"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// Page is a fake browser.Page in a World.
type Page struct {
	world *World
	spec  browser.Spec
	once  sync.Once
	done  chan struct{}

	mu       sync.Mutex
	url      string
	revision string
	shown    []Control // of the revision
	text     string    // of the revision
	material browser.Material
	inputs   []browser.Input
}

var _ browser.Page = (*Page)(nil)

// Spec is what the browser was launched for.
func (p *Page) Spec() browser.Spec { return p.spec }

// Inputs is what an owner sent through Input.
func (p *Page) Inputs() []browser.Input {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]browser.Input(nil), p.inputs...)
}

// SetCookie gives the page's session a cookie, as a site would.
func (p *Page) SetCookie(name, value string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setCookie(name, value)
}

func (p *Page) setCookie(name, value string) {
	host := p.spec.Origins[0].Host()
	for i, c := range p.material.Cookies {
		if c.Name == name {
			p.material.Cookies[i].Value = value
			return
		}
	}
	p.material.Cookies = append(p.material.Cookies, browser.Cookie{Name: name, Value: value, Domain: host, Path: "/", Expires: -1, HTTPOnly: true, Secure: true})
}

// Crash ends the browser as if it had been killed.
func (p *Page) Crash() {
	p.once.Do(func() {
		p.world.mu.Lock()
		delete(p.world.live, p)
		p.world.mu.Unlock()
		close(p.done)
	})
}

func (p *Page) Restore(ctx context.Context, m browser.Material) error {
	if err := p.gone(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.material = copied(m)
	return nil
}

func (p *Page) Navigate(ctx context.Context, u site.URL) (observe.Document, error) {
	if err := p.gone(ctx); err != nil {
		return observe.Document{}, err
	}
	if !p.spec.Origins.Has(u.Origin()) {
		return observe.Document{}, fault.New(fault.URLDisallowed, "That origin is not one this session may open. Nothing was requested.")
	}
	p.world.mu.Lock()
	_, ok := p.world.docs[u.String()]
	onLoad := p.world.onLoad
	p.world.requests = append(p.world.requests, u.String())
	p.world.mu.Unlock()
	if onLoad != nil {
		if err := onLoad(ctx, u.String()); err != nil {
			return observe.Document{}, err
		}
	}
	if !ok {
		return observe.Document{}, fault.New(fault.SiteUnreachable, "The site did not answer. The page is as it was.")
	}
	p.mu.Lock()
	p.url = u.String()
	p.mu.Unlock()
	return p.observe(observe.DOMQuiet)
}

func (p *Page) Observe(ctx context.Context, q observe.Query) (observe.Document, error) {
	if q.Text != nil {
		return p.readOn(ctx, *q.Text)
	}
	if q.Region != nil || q.Extract != nil {
		return observe.Document{}, fault.New(fault.ActionNotAllowed, "This browser reads pages, their controls and their text only. Nothing was read.")
	}
	if err := p.gone(ctx); err != nil {
		return observe.Document{}, err
	}
	if q.After != "" || q.Cursor != "" {
		return p.controlsAfter(q.After)
	}
	return p.observe("")
}

// controlsAfter reads the controls behind one of the newest revision. Nothing
// is ever left out here, so there is no other place to go on from.
func (p *Page) controlsAfter(ref string) (observe.Document, error) {
	p.mu.Lock()
	n := -1
	for i := range p.shown {
		if ref == fmt.Sprintf("%s:%d", p.revision, i) {
			n = i
		}
	}
	p.mu.Unlock()
	if n < 0 {
		return observe.Document{}, fault.New(fault.PageChanged, "That is not of the newest observation. Nothing was read; observe again.")
	}
	d, err := p.observe("")
	if err != nil || n >= len(d.Elements) {
		return d, err
	}
	for _, e := range d.Elements[:n+1] {
		delete(d.Facts, e.Ref)
	}
	d.Elements = d.Elements[n+1:]
	d.Coverage = &observe.Coverage{CandidateOffset: n, ScannedCandidates: len(d.Elements) + 1}
	return d, nil
}

// readOn reads the text of the newest revision from an offset on.
func (p *Page) readOn(ctx context.Context, q observe.TextQuery) (observe.Document, error) {
	if err := p.gone(ctx); err != nil {
		return observe.Document{}, err
	}
	p.mu.Lock()
	revision, before := p.revision, p.text
	p.mu.Unlock()
	if revision == "" || q.Revision != revision {
		return observe.Document{}, fault.New(fault.PageChanged, "That is not of the newest observation. Nothing was read; observe again.")
	}
	if q.Offset < 0 || q.Offset > len(before) {
		return observe.Document{}, fault.New(fault.ArgumentsInvalid, "The text has no such offset. Nothing was read.")
	}
	d, err := p.observe("")
	if err != nil {
		return observe.Document{}, err
	}
	if d.Text != before {
		return observe.Document{}, fault.New(fault.PageChanged, "The text has changed since it was read. Observe again.")
	}
	d.Text = d.Text[q.Offset:]
	return d, nil
}

func (p *Page) observe(readiness observe.Readiness) (observe.Document, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.world.mu.Lock()
	doc, ok := p.world.docs[p.url]
	p.world.mu.Unlock()
	if !ok {
		return observe.Document{}, fault.New(fault.ActionNotAllowed, "No page is open. Navigate first.")
	}
	if p.spec.Challenges && doc.Challenge {
		p.revision, p.shown = "", nil
		return observe.Document{}, fault.New(fault.NeedsUser, "The page asks for its owner. Nothing was read or sent.")
	}
	p.revision, p.shown, p.text = ident.Hex(16), doc.Controls, doc.Text
	d := observe.Document{URL: p.url, Title: doc.Title, Text: doc.Text, Revision: p.revision, Readiness: readiness, Facts: map[string]observe.Facts{}}
	d.Coverage = &observe.Coverage{ScannedCandidates: len(doc.Controls)}
	for i, c := range doc.Controls {
		ref := fmt.Sprintf("%s:%d", p.revision, i)
		d.Elements = append(d.Elements, observe.Element{Ref: ref, Role: c.Role, Name: c.Name, Disabled: c.Disabled})
		d.Facts[ref] = facts(c, p.url)
	}
	return d, nil
}

func (p *Page) Act(ctx context.Context, a action.Action, limit *constraint.Constraint) (observe.Document, error) {
	if err := p.gone(ctx); err != nil {
		return observe.Document{}, err
	}
	c, err := p.target(a)
	if err != nil {
		return observe.Document{}, err
	}
	if limit != nil {
		if err := p.covered(a, c, *limit); err != nil {
			return observe.Document{}, err
		}
	}
	value := ""
	if a.Value != nil {
		value = *a.Value
	}
	return p.effect(ctx, a, c, value)
}

// effect carries out what passed every check.
func (p *Page) effect(ctx context.Context, a action.Action, c Control, value string) (observe.Document, error) {
	p.world.mu.Lock()
	onAct := p.world.onAct
	p.world.mu.Unlock()
	if onAct != nil {
		if err := onAct(ctx, p, a); err != nil {
			return observe.Document{}, err
		}
	}
	p.world.mu.Lock()
	p.world.effects = append(p.world.effects, Effect{URL: p.url, Kind: a.Kind, Name: c.Name, Value: value})
	p.world.mu.Unlock()
	p.mu.Lock()
	if a.Kind == action.Click && c.Opens != "" {
		p.url = c.Opens
	}
	if a.Kind == action.Click && c.SetsCookie != "" {
		p.setCookie(c.SetsCookie, ident.Hex(8))
	}
	p.mu.Unlock()
	select {
	case <-p.done:
		return observe.Document{}, fault.New(fault.OutcomeUnknown, "The browser ended after the input was sent. It is not known what happened.")
	default:
	}
	d, err := p.observe(observe.DOMQuiet)
	if fault.Is(err, fault.NeedsUser) { // the input was sent (CHAL-01)
		p.mu.Lock()
		defer p.mu.Unlock()
		return observe.Document{URL: p.url, Revision: ident.Hex(16), Elements: []observe.Element{}, Interruption: observe.NeedsUser}, nil
	}
	return d, err
}

// covered applies a constraint to the control (CONS-02).
func (p *Page) covered(a action.Action, c Control, limit constraint.Constraint) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := constraint.Subject{
		URL: p.url, Element: observe.Element{Role: c.Role, Name: c.Name, Disabled: c.Disabled}, Facts: facts(c, p.url), Options: c.Options,
	}
	if limit.Refuses(a, s, p.world.now()) == "" {
		return nil
	}
	p.revision, p.shown = "", nil
	return fault.New(fault.GrantNotApplicable, "The grant does not cover this. Nothing was sent; observe again.")
}

// facts are those of a control of the page at the address.
func facts(c Control, page string) observe.Facts {
	f := observe.Facts{FieldKind: field(c)}
	if c.Title != "" {
		f.Labels = map[observe.Source]string{observe.Tooltip: c.Title}
	}
	if c.Opens == "" {
		return f
	}
	f.Link = observe.Opaque()
	to, err := site.ParseURL(c.Opens)
	from, errFrom := site.ParseURL(page)
	if err == nil && errFrom == nil {
		first, _, _ := strings.Cut(strings.TrimPrefix(to.Path(), "/"), "/")
		f.Link = &observe.Target{SameOrigin: to.Origin() == from.Origin(), Segment: first, Sensitive: consequence.SensitivePath(to.Path())}
	}
	return f
}

// target applies the checks that precede every input (CAP-06).
func (p *Page) target(a action.Action) (Control, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.world.mu.Lock()
	asked := p.spec.Challenges && p.world.docs[p.url].Challenge
	p.world.mu.Unlock()
	if asked {
		p.revision, p.shown = "", nil
		return Control{}, fault.New(fault.NeedsUser, "The page asks for its owner. Nothing was read or sent.")
	}
	if a.ExpectedRevision != p.revision {
		return Control{}, fault.New(fault.PageChanged, "The page was observed again since that revision. Nothing was sent; use the newest observation.")
	}
	var index int
	if _, err := fmt.Sscanf(a.Ref, p.revision+":%d", &index); err != nil || index < 0 || index >= len(p.shown) {
		return Control{}, fault.New(fault.ElementNotFound, "That revision has no such element. Nothing was sent.")
	}
	p.world.mu.Lock()
	now := p.world.docs[p.url].Controls
	p.world.mu.Unlock()
	c := p.shown[index]
	if index >= len(now) || now[index].Role != c.Role || now[index].Name != c.Name {
		return Control{}, fault.New(fault.PageChanged, "The element is no longer what was observed. Nothing was sent; observe again.")
	}
	if c.Disabled {
		return Control{}, fault.New(fault.ElementNotFound, "The element is disabled. Nothing was sent.")
	}
	if a.Kind == action.Type && field(c).Credential() {
		return Control{}, fault.New(fault.ActionNotAllowed, "Agents may not type into password or code fields. Nothing was sent.")
	}
	return c, nil
}

func (p *Page) Capture(ctx context.Context) (browser.Material, error) {
	if err := p.gone(ctx); err != nil {
		return browser.Material{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return copied(p.material), nil
}

// copied keeps two owners of a session from sharing its cookies.
func copied(m browser.Material) browser.Material {
	m.Cookies = slices.Clone(m.Cookies)
	return m
}

func (p *Page) Evidence(ctx context.Context) (ceremony.Evidence, error) {
	if err := p.gone(ctx); err != nil {
		return ceremony.Evidence{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.world.mu.Lock()
	doc := p.world.docs[p.url]
	p.world.mu.Unlock()
	u, err := site.ParseURL(p.url)
	return ceremony.Evidence{
		ChallengeVisible: doc.Challenge,
		OnAllowedOrigin:  err == nil && p.spec.Origins.Has(u.Origin()),
		StoragePresent:   !p.material.Empty(),
		Origin:           u.Origin().String(),
	}, nil
}

// Frames yields one small picture and then waits for ctx or the end.
func (p *Page) Frames(ctx context.Context) (<-chan browser.Frame, error) {
	if err := p.gone(ctx); err != nil {
		return nil, err
	}
	frames := make(chan browser.Frame, 1)
	frames <- browser.Frame{JPEG: []byte{0xff, 0xd8, 0xff, 0xd9}, Width: 1280, Height: 800}
	go func() {
		defer close(frames)
		select {
		case <-ctx.Done():
		case <-p.done:
		}
	}()
	return frames, nil
}

// Input records the event; Enter on a page with a challenge follows the first
// control that opens another page, as submitting a form would.
func (p *Page) Input(ctx context.Context, in browser.Input) error {
	if err := p.gone(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inputs = append(p.inputs, in)
	if in.Kind != "key" || in.Key != "Enter" {
		return nil
	}
	p.world.mu.Lock()
	doc := p.world.docs[p.url]
	p.world.mu.Unlock()
	for _, c := range doc.Controls {
		if c.SetsCookie != "" {
			p.setCookie(c.SetsCookie, ident.Hex(8))
		}
		if c.Opens != "" {
			p.url = c.Opens
			return nil
		}
	}
	return nil
}

func (p *Page) Done() <-chan struct{} { return p.done }

func (p *Page) Close() error {
	p.Crash()
	return nil
}

func (p *Page) gone(ctx context.Context) error {
	select {
	case <-p.done:
		return fault.New(fault.ProviderUnavailable, "The browser has ended. Nothing was sent.").Retry()
	default:
		return ctx.Err()
	}
}

func field(c Control) observe.FieldKind {
	if c.Field == "" {
		return observe.FieldNone
	}
	return c.Field
}
