package browsertest_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/browsertest"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/rules/consequence"
	"github.com/chaperone-agents/chaperone/internal/rules/constraint"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// world shows the fake's world as the contract's site.
type world struct{ *fake.World }

func (w world) Put(url string, d browsertest.Doc) {
	doc := fake.Doc{Title: d.Title, Text: d.Text, Challenge: d.Challenge}
	for _, c := range d.Controls {
		doc.Controls = append(doc.Controls, fake.Control{Role: c.Role, Name: c.Name, Disabled: c.Disabled, Field: c.Field, Opens: c.Opens})
	}
	w.World.Put(url, doc)
}

// Effects leaves out clicks on links, which a site sees as a request.
func (w world) Effects(int) []browsertest.Effect {
	var out []browsertest.Effect
	for _, e := range w.World.Effects() {
		if e.Name != "Next" {
			out = append(out, browsertest.Effect{Kind: e.Kind, Name: e.Name, Value: e.Value})
		}
	}
	return out
}

func (w world) Opened(url string) int {
	n := 0
	for _, r := range w.Requests() {
		if r == url {
			n++
		}
	}
	return n
}

func open(wrap func(browser.Page) browser.Page) browsertest.Open {
	return func(ctx context.Context, origins site.Origins) (browser.Page, browsertest.Site, error) {
		w := &fake.World{}
		p, err := w.Launch(ctx, browser.Spec{Origins: origins})
		if err != nil {
			return nil, nil, err
		}
		return wrap(p), world{w}, nil
	}
}

// The fake that other rooms test with keeps the contract (GATE-01).
func TestFake(t *testing.T) {
	browsertest.Run(t, open(func(p browser.Page) browser.Page { return p }))
}

// Each broken page breaks one rule, and the suite says so.
func TestBrokenPagesAreCaught(t *testing.T) {
	for _, b := range []struct {
		name, caught string
		wrap         func(browser.Page) browser.Page
	}{
		{"acts on any revision", "GATE-06 a stale revision is refused", func(p browser.Page) browser.Page { return &anyRevision{Page: p} }},
		{"acts twice", "GATE-07 a click happens once", func(p browser.Page) browser.Page { return twice{p} }},
		{"says done and does nothing", "GATE-07 a click happens once", func(p browser.Page) browser.Page { return idle{p} }},
		{"shows what was typed", "CAP-05 what is typed arrives and is not read back", func(p browser.Page) browser.Page { return echoes{p} }},
		{"trims what is typed", "CAP-05 what is typed arrives and is not read back", func(p browser.Page) browser.Page { return trims{p} }},
		{"forgets the partition", "CAP-03 a session goes from one browser to the next", func(p browser.Page) browser.Page { return global{p} }},
		{"forgets storage", "CAP-03 a session goes from one browser to the next", func(p browser.Page) browser.Page { return cookiesOnly{p} }},
		{"always sees a challenge", "READY-01 evidence follows the page", func(p browser.Page) browser.Page { return suspicious{p} }},
		{"keeps its revision", "CAP-04 an observation says what is there", func(p browser.Page) browser.Page { return &frozen{Page: p} }},
		{"begins the text again", "FOC-04 text goes on where it ended, of the newest revision only", func(p browser.Page) browser.Page { return rewinds{p} }},
		{"reads on of any revision", "FOC-04 text goes on where it ended, of the newest revision only", func(p browser.Page) browser.Page { return &anyText{Page: p} }},
		{"goes on with the element itself", "EXP-06 EXP-11 controls go on behind one of the newest revision", func(p browser.Page) browser.Page { return includes{p} }},
		{"goes on from any revision", "EXP-06 EXP-11 controls go on behind one of the newest revision", func(p browser.Page) browser.Page { return &anyAfter{Page: p} }},
		{"calls every failure unknown", "2.4 a disabled control is refused", func(p browser.Page) browser.Page { return vague{p} }},
		{"ignores the constraint", "CONS-02 what a constraint does not cover is not sent", func(p browser.Page) browser.Page { return unlimited{p} }},
		{"forgets when it expires", "CONS-02 what a constraint does not cover is not sent", func(p browser.Page) browser.Page {
			return widened{p, func(c *constraint.Constraint) { c.ExpiresAt = time.Now().Add(time.Hour) }}
		}},
		{"forgets where it ends", "CONS-02 what a constraint does not cover is not sent", func(p browser.Page) browser.Page {
			return widened{p, func(c *constraint.Constraint) {
				if c.Kind == constraint.Task {
					c.Kind, c.Prefix = constraint.Research, ""
				}
			}}
		}},
		{"forgets the ceiling", "CONS-02 what a constraint does not cover is not sent", func(p browser.Page) browser.Page {
			return widened{p, func(c *constraint.Constraint) {
				if c.Kind == constraint.Standing {
					c.Kind, c.Ceiling, c.MaxText = constraint.Research, consequence.Unknown, constraint.MaxText
				}
			}}
		}},
		{"covers nothing", "CONS-01 what a constraint covers is done", func(p browser.Page) browser.Page {
			return widened{p, func(c *constraint.Constraint) { c.ExpiresAt = time.Now() }}
		}},
		{"keeps its references after a refusal", "CONS-04 a refusal forgets the observation", func(p browser.Page) browser.Page { return &clinging{Page: p} }},
		{"uploads twice", "UPL-03 UPL-04 an image arrives whole, once", func(p browser.Page) browser.Page { return again{p} }},
		{"says that it has uploaded", "UPL-03 UPL-04 an image arrives whole, once", func(p browser.Page) browser.Page { return boasts{p} }},
		{"gives any bytes", "UPL-07 UPL-08 CAP-06 an image that is none, and one for another page, goes nowhere", func(p browser.Page) browser.Page { return unchecked{p} }},
		{"gives to any revision", "UPL-07 UPL-08 CAP-06 an image that is none, and one for another page, goes nowhere", func(p browser.Page) browser.Page { return &anyPage{Page: p} }},
		{"observes for a picture", "VIEW-02 a picture disturbs nothing and is of the newest revision", func(p browser.Page) browser.Page { return looks{p} }},
		{"shows what is old", "VIEW-02 a picture disturbs nothing and is of the newest revision", func(p browser.Page) browser.Page { return &album{Page: p} }},
		{"has no facts", "FACT-01 FACT-05 facts of every element, without addresses", func(p browser.Page) browser.Page { return factless{p} }},
		{"does not end", "REL-02 after the end nothing is done", func(p browser.Page) browser.Page { return immortal{p} }},
		{"streams for ever", "SURF pictures until the end", func(p browser.Page) browser.Page { return endless{p} }},
	} {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			failed := browsertest.Failures(t.Context(), open(b.wrap))
			if !slices.Contains(failed, b.caught) {
				t.Errorf("not caught by %q; failed were %q", b.caught, failed)
			}
		})
	}
}

type anyRevision struct {
	browser.Page
	last observe.Document
}

func (p *anyRevision) Observe(ctx context.Context, _ observe.Query) (d observe.Document, err error) {
	d, err = p.Page.Observe(ctx, observe.Query{})
	p.last = d
	return d, err
}

func (p *anyRevision) Act(ctx context.Context, a action.Action, c *constraint.Constraint) (observe.Document, error) {
	if p.last.Revision != "" {
		a.Ref = p.last.Revision + a.Ref[len(a.ExpectedRevision):]
		a.ExpectedRevision = p.last.Revision
	}
	return p.Page.Act(ctx, a, c)
}

type twice struct{ browser.Page }

func (p twice) Act(ctx context.Context, a action.Action, c *constraint.Constraint) (observe.Document, error) {
	d, err := p.Page.Act(ctx, a, c)
	if err != nil {
		return d, err
	}
	a.Ref, a.ExpectedRevision = d.Revision+a.Ref[len(a.ExpectedRevision):], d.Revision
	if again, err := p.Page.Act(ctx, a, c); err == nil {
		return again, nil
	}
	return d, nil
}

type idle struct{ browser.Page }

func (p idle) Act(ctx context.Context, _ action.Action, _ *constraint.Constraint) (observe.Document, error) {
	return p.Page.Observe(ctx, observe.Query{})
}

type echoes struct{ browser.Page }

func (p echoes) Act(ctx context.Context, a action.Action, c *constraint.Constraint) (observe.Document, error) {
	d, err := p.Page.Act(ctx, a, c)
	if a.Value != nil {
		d.Text += *a.Value
	}
	return d, err
}

type trims struct{ browser.Page }

func (p trims) Act(ctx context.Context, a action.Action, c *constraint.Constraint) (observe.Document, error) {
	if a.Value != nil {
		short := (*a.Value)[:1]
		a.Value = &short
	}
	return p.Page.Act(ctx, a, c)
}

type global struct{ browser.Page }

func (p global) Capture(ctx context.Context) (browser.Material, error) {
	m, err := p.Page.Capture(ctx)
	for i := range m.Cookies {
		m.Cookies[i].Partition = nil
	}
	return m, err
}

type cookiesOnly struct{ browser.Page }

func (p cookiesOnly) Restore(ctx context.Context, m browser.Material) error {
	m.Origins = nil
	return p.Page.Restore(ctx, m)
}

type suspicious struct{ browser.Page }

func (p suspicious) Evidence(ctx context.Context) (ceremony.Evidence, error) {
	e, err := p.Page.Evidence(ctx)
	e.ChallengeVisible = true
	return e, err
}

type frozen struct {
	browser.Page
	first string
}

func (p *frozen) Navigate(ctx context.Context, u site.URL) (observe.Document, error) {
	d, err := p.Page.Navigate(ctx, u)
	p.first = d.Revision
	return d, err
}

func (p *frozen) Observe(ctx context.Context, _ observe.Query) (observe.Document, error) {
	d, err := p.Page.Observe(ctx, observe.Query{})
	d.Revision = p.first
	return d, err
}

type includes struct{ browser.Page }

func (p includes) Observe(ctx context.Context, q observe.Query) (observe.Document, error) {
	d, err := p.Page.Observe(ctx, q)
	if err == nil && q.After != "" {
		d.Elements = append(slices.Clone(d.Elements[:1]), d.Elements...)
	}
	return d, err
}

// anyAfter takes a reference of any revision for one of the newest.
type anyAfter struct {
	browser.Page
	newest string
}

func (p *anyAfter) Navigate(ctx context.Context, u site.URL) (observe.Document, error) {
	d, err := p.Page.Navigate(ctx, u)
	p.newest = d.Revision
	return d, err
}

func (p *anyAfter) Observe(ctx context.Context, q observe.Query) (observe.Document, error) {
	if len(q.After) > len(p.newest) {
		q.After = p.newest + q.After[len(p.newest):]
	}
	d, err := p.Page.Observe(ctx, q)
	if err == nil {
		p.newest = d.Revision
	}
	return d, err
}

type vague struct{ browser.Page }

func (p vague) Act(ctx context.Context, a action.Action, c *constraint.Constraint) (observe.Document, error) {
	d, err := p.Page.Act(ctx, a, c)
	if err != nil {
		err = fault.New(fault.OutcomeUnknown, "Something happened.")
	}
	return d, err
}

type unlimited struct{ browser.Page }

func (p unlimited) Act(ctx context.Context, a action.Action, _ *constraint.Constraint) (observe.Document, error) {
	return p.Page.Act(ctx, a, nil)
}

// widened changes what a constraint says.
type widened struct {
	browser.Page
	change func(*constraint.Constraint)
}

func (p widened) Act(ctx context.Context, a action.Action, c *constraint.Constraint) (observe.Document, error) {
	if c != nil {
		c = new(*c)
		p.change(c)
	}
	return p.Page.Act(ctx, a, c)
}

// clinging goes on as if the observation before the refusal still held.
type clinging struct {
	browser.Page
	from, to string
}

func (p *clinging) Act(ctx context.Context, a action.Action, c *constraint.Constraint) (observe.Document, error) {
	if p.from != "" && a.ExpectedRevision == p.from {
		a.Ref, a.ExpectedRevision = p.to+a.Ref[len(p.from):], p.to
	}
	d, err := p.Page.Act(ctx, a, c)
	if fault.Is(err, fault.GrantNotApplicable) {
		if now, err := p.Page.Observe(ctx, observe.Query{}); err == nil {
			p.from, p.to = a.ExpectedRevision, now.Revision
		}
	}
	return d, err
}

type factless struct{ browser.Page }

func (p factless) Navigate(ctx context.Context, u site.URL) (observe.Document, error) {
	d, err := p.Page.Navigate(ctx, u)
	d.Facts = nil
	return d, err
}

type immortal struct{ browser.Page }

func (p immortal) Close() error { return nil }

type endless struct{ browser.Page }

func (p endless) Frames(context.Context) (<-chan browser.Frame, error) {
	return p.Page.Frames(context.Background())
}

type rewinds struct{ browser.Page }

func (p rewinds) Observe(ctx context.Context, q observe.Query) (observe.Document, error) {
	if q.Text != nil {
		q.Text = &observe.TextQuery{Revision: q.Text.Revision}
	}
	return p.Page.Observe(ctx, q)
}

type anyText struct {
	browser.Page
	last string
}

func (p *anyText) Navigate(ctx context.Context, u site.URL) (observe.Document, error) {
	d, err := p.Page.Navigate(ctx, u)
	p.last = d.Revision
	return d, err
}

func (p *anyText) Observe(ctx context.Context, q observe.Query) (observe.Document, error) {
	if q.Text != nil {
		q.Text = &observe.TextQuery{Revision: p.last, Offset: q.Text.Offset}
	}
	d, err := p.Page.Observe(ctx, q)
	if err == nil {
		p.last = d.Revision
	}
	return d, err
}

type again struct{ browser.Page }

func (p again) Upload(ctx context.Context, a action.Action, image artifact.Payload) (observe.Document, error) {
	d, err := p.Page.Upload(ctx, a, image)
	if err != nil {
		return d, err
	}
	a.Ref, a.ExpectedRevision = d.Revision+a.Ref[len(a.ExpectedRevision):], d.Revision
	return p.Page.Upload(ctx, a, image)
}

type boasts struct{ browser.Page }

func (p boasts) Upload(ctx context.Context, _ action.Action, _ artifact.Payload) (observe.Document, error) {
	return p.Page.Observe(ctx, observe.Query{})
}

// unchecked makes every payload a good one.
type unchecked struct{ browser.Page }

func (p unchecked) Upload(ctx context.Context, a action.Action, image artifact.Payload) (observe.Document, error) {
	if !image.Valid() {
		image.Data = secret.NewBytes([]byte(onePixel))
		image.SHA256 = artifact.Sum(image.Data.Reveal())
	}
	return p.Page.Upload(ctx, a, image)
}

const onePixel = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00\x3a\x7e\x9b\x55"

type anyPage struct {
	browser.Page
	newest string
}

func (p *anyPage) Navigate(ctx context.Context, u site.URL) (observe.Document, error) {
	d, err := p.Page.Navigate(ctx, u)
	p.newest = d.Revision
	return d, err
}

func (p *anyPage) Upload(ctx context.Context, a action.Action, image artifact.Payload) (observe.Document, error) {
	a.ExpectedRevision = p.newest
	return p.Page.Upload(ctx, a, image)
}

type looks struct{ browser.Page }

func (p looks) Picture(ctx context.Context, revision, ref string) (browser.Picture, error) {
	shown, err := p.Page.Picture(ctx, revision, ref)
	if err == nil {
		_, err = p.Page.Observe(ctx, observe.Query{})
	}
	return shown, err
}

// album shows again what it showed before.
type album struct {
	browser.Page
	last browser.Picture
}

func (p *album) Picture(ctx context.Context, revision, ref string) (browser.Picture, error) {
	if p.last.JPEG != nil {
		return p.last, nil
	}
	var err error
	p.last, err = p.Page.Picture(ctx, revision, ref)
	return p.last, err
}
