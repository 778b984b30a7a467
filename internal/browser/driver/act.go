package driver

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser/pagejs"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/constraint"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

const (
	trialBound = 2 * time.Second // how long an element may take to become usable (CLK-01)
	trialPause = 50 * time.Millisecond
	inputBound = 5 * time.Second // how long an input may take to be handled (CLK-02)
)

// Act sends one input to an element of the newest observation. Besides what
// browser.Page says, it returns NavigationCancelled when the page asked not to
// be left, and URLDisallowed when the input led straight to an address off the
// origins: the input was sent, the address was not opened.
func (p *Page) Act(ctx context.Context, a action.Action, c *constraint.Constraint) (observe.Document, error) {
	leave, err := p.enter(ctx)
	if err != nil {
		return observe.Document{}, err
	}
	defer leave()
	if err := a.Validate(); err != nil {
		return observe.Document{}, err
	}
	if err := p.gate(ctx); err != nil {
		return observe.Document{}, p.ended(err)
	}
	if err := p.admitted(ctx, c); err != nil {
		return observe.Document{}, p.ended(err)
	}
	t, err := p.find(ctx, a)
	if err == nil {
		err = p.covered(ctx, a, c, &t)
	}
	if err != nil {
		return observe.Document{}, p.ended(err)
	}
	defer p.confine(c)()
	if !t.found.Done {
		if sent, err := p.dispatch(ctx, a, t); err != nil {
			if !sent {
				return observe.Document{}, p.ended(err)
			}
			return observe.Document{}, unknown(err)
		}
	}
	return p.aftermath(ctx, t)
}

// aimed is an element that was found ready for the act.
type aimed struct {
	world *world
	args  pagejs.TargetArgs
	found pagejs.Target
	until time.Time // when the constraint expires; under one only
	spent *laps     // for the log
}

// find does every check that needs no input: revision, reference, live node,
// visibility, kind, cover. What may pass by itself is tried again until
// trialBound. Nothing is sent.
func (p *Page) find(ctx context.Context, a action.Action) (aimed, error) {
	w, number, err := p.referred(a.ExpectedRevision, a.Ref)
	if err != nil {
		return aimed{}, err
	}
	t := aimed{world: w, spent: &laps{last: time.Now()}, args: pagejs.TargetArgs{Revision: a.ExpectedRevision, Index: number, Kind: string(a.Kind)}}
	switch a.Kind {
	case action.Press:
		t.args.Key = *a.Key
	case action.Type:
		t.args.Text = *a.Value
	case action.Select:
		t.args.Value = *a.Value
	}
	deadline := time.Now().Add(trialBound)
	for {
		t.found = pagejs.Target{}
		if err := p.locate(ctx, &t); err != nil {
			return aimed{}, p.unreadable(err)
		}
		if t.found.Reason == "" {
			t.spent.end("find")
			return t, nil
		}
		if !t.found.Passing || time.Now().Add(trialPause).After(deadline) {
			return aimed{}, refusal(t.found.Reason)
		}
		select {
		case <-time.After(trialPause):
		case <-ctx.Done():
			return aimed{}, refusal(t.found.Reason)
		}
	}
}

// referred is the document of the element that the newest observation showed
// under the reference, and its number there.
func (p *Page) referred(expected, ref string) (*world, int, error) {
	p.mu.Lock()
	revision, shown := p.revision, p.view
	p.mu.Unlock()
	if revision == "" || expected != revision {
		return nil, 0, refusal(pagejs.Stale)
	}
	if rest, ok := strings.CutPrefix(ref, revision+":"); ok && (rest == "focus" || strings.HasPrefix(rest, "region:")) {
		return nil, 0, fault.New(fault.RegionNotActionable, "That is a region, which is for reading. Nothing was sent; use the ref of an element.")
	}
	n, ok := refNumber(ref, revision)
	at, known := shown.targets[n]
	if !ok || !known {
		return nil, 0, refusal(pagejs.Unknown)
	}
	for w := at.world; w.frame != ""; w = w.parent {
		if o, err := site.ParseOrigin(w.origin); err != nil || !p.config.Origins.Has(o) {
			return nil, 0, fault.New(fault.ActionNotAllowed, "The element is in a frame whose origin is not one of this profile. Nothing was sent.")
		}
	}
	return at.world, at.number, nil
}

// locate asks for the point at which the element can be met. A point in a frame
// is followed outwards: every document around it must show the frame there.
func (p *Page) locate(ctx context.Context, t *aimed) error {
	bounded, cancel := context.WithTimeout(ctx, inputBound)
	defer cancel()
	if err := p.in(bounded, t.world, pagejs.Locate, t.args, &t.found); err != nil || t.found.Reason != "" || t.found.Done {
		return err
	}
	return p.outwards(bounded, t.world, &t.found, nil)
}

// outwards turns a point of a frame's document into one of the main document.
// With types it arms the documents on the way.
func (p *Page) outwards(ctx context.Context, w *world, at *pagejs.Target, types []string) error {
	for ; w.frame != "" && at.Reason == ""; w = w.parent {
		args := pagejs.ThroughArgs{Number: w.element, X: at.X, Y: at.Y, Types: types}
		*at = pagejs.Target{}
		if err := p.in(ctx, w.parent, pagejs.Through, args, at); err != nil {
			return err
		}
	}
	return nil
}

// unreadable is a question that failed before anything was sent.
func (p *Page) unreadable(err error) error {
	if errors.Is(err, errMoved) {
		return refusal(pagejs.Stale)
	}
	if p.conn.Err() != nil {
		return err
	}
	return fault.Wrap(fault.ElementNotFound, "The page did not answer in time. Nothing was sent; observe again.", err)
}

// aftermath settles and observes after an act. Whatever fails now, the input
// may have had its effect (CLK-03).
func (p *Page) aftermath(ctx context.Context, t aimed) (observe.Document, error) {
	defer func() { p.log.Log(ctx, levelTiming, "act", t.spent.parts...) }()
	t.spent.end("send")
	nothingSent := t.found.Done
	readiness, err := p.settle(ctx, t.world)
	t.spent.end("settle")
	p.mu.Lock()
	nav := p.nav
	p.mu.Unlock()
	switch {
	case nothingSent:
	case nav.kept:
		return observe.Document{}, fault.New(fault.NavigationCancelled, "The input was sent. It would have left the page, which asked not to be left and was kept. Observe again.")
	case nav.fenced:
		return observe.Document{}, fault.Wrap(fault.OutcomeUnknown, "The input was sent. It leads to a page that the grant does not cover, which was not opened. Observe again; do not repeat it.", errFenced)
	case nav.refused && !nav.hop:
		return observe.Document{}, fault.New(fault.URLDisallowed, "The input was sent. It leads to an address that is not on an allowed origin, which was not opened; the page is kept. Observe again.")
	case nav.refused, nav.failed, nav.empty, nav.download:
		return observe.Document{}, unknown(errors.New("driver: the navigation did not end in a page"))
	case err == nil && !p.kept(ctx, t):
		return observe.Document{}, unknown(errDiffers)
	}
	if err == nil {
		var d observe.Document
		bounded, cancel := context.WithTimeout(ctx, captureBound)
		defer cancel()
		d, err = p.capture(bounded, plan{})
		t.spent.end("look")
		if err == nil {
			d.Readiness = readiness
			return d, nil
		}
		if fault.Is(err, fault.NeedsUser) && !nothingSent {
			return p.interrupted()
		}
	}
	if nothingSent {
		return observe.Document{}, p.ended(err)
	}
	return observe.Document{}, unknown(err)
}

// kept reports whether the page still holds what the act put in. A document
// that has gone, or does not answer, says nothing against it.
func (p *Page) kept(ctx context.Context, t aimed) bool {
	bounded, cancel := context.WithTimeout(ctx, inputBound)
	defer cancel()
	var yes bool
	err := p.in(bounded, t.world, pagejs.Kept, t.args, &yes)
	return err != nil || yes
}

func unknown(err error) error {
	if fault.Is(err, fault.OutcomeUnknown) {
		return err
	}
	return fault.Wrap(fault.OutcomeUnknown, "The input was or may have been sent, and its result is not known. Do not repeat it; look at the site first.", err)
}

// refusals say, in our words, why nothing was sent.
var refusals = map[pagejs.Reason]struct {
	code fault.Code
	text string
}{
	pagejs.Stale:      {fault.PageChanged, "The page has changed since it was observed."},
	pagejs.Unknown:    {fault.ElementNotFound, "The reference is not of the current observation."},
	pagejs.Gone:       {fault.ElementNotFound, "The element has left the page."},
	pagejs.Changed:    {fault.PageChanged, "The element is not what it was when it was observed."},
	pagejs.Invisible:  {fault.ElementNotFound, "The element is not visible."},
	pagejs.Disabled:   {fault.ElementNotFound, "The element is disabled."},
	pagejs.Inert:      {fault.ElementNotFound, "The element cannot be used while something else, such as a dialog, is open."},
	pagejs.Moving:     {fault.ElementNotFound, "The element does not stop moving."},
	pagejs.NoPointer:  {fault.ElementNotFound, "The element takes no clicks."},
	pagejs.Covered:    {fault.ElementNotFound, "Another element covers it."},
	pagejs.NoFocus:    {fault.ElementNotFound, "The element does not take the focus."},
	pagejs.Credential: {fault.ActionNotAllowed, "The field is for a password or a one-time code; only the owner may fill it."},
	pagejs.NotTypable: {fault.ActionNotAllowed, "The element takes no text."},
	pagejs.NotSelect:  {fault.ActionNotAllowed, "The element is not a native select."},
	pagejs.NotChoice:  {fault.ActionNotAllowed, "The element is not a check box or radio button."},
	pagejs.ReadOnly:   {fault.ActionNotAllowed, "The field is read-only."},
	pagejs.External:   {fault.ActionNotAllowed, "The link opens another program."},
	pagejs.NoFile:     {fault.ActionNotAllowed, "The element asks for no file."},
	pagejs.WrongType:  {fault.ActionNotAllowed, "The file field does not take images of this type."},
	pagejs.File:       {fault.ActionNotAllowed, "The element opens a file dialog."},
	pagejs.OneLine:    {fault.ActionNotAllowed, "The field takes one line only."},
	pagejs.NotADate:   {fault.ActionNotAllowed, "The value is not in the form that this date or time field takes."},
	pagejs.TooLong:    {fault.ActionNotAllowed, "The value is longer than the field takes."},
	pagejs.NoOption:   {fault.ActionNotAllowed, "The select has no such option."},
	pagejs.TwoOptions: {fault.ActionNotAllowed, "Several options have that label; name one by its value."},
}

func refusal(r pagejs.Reason) error {
	known, ok := refusals[r]
	if !ok {
		return fault.New(fault.ActionNotAllowed, "The element cannot be used. Nothing was sent.")
	}
	next := " Nothing was sent; observe again."
	if known.code == fault.ActionNotAllowed {
		next = " Nothing was sent."
	}
	return fault.New(known.code, known.text+next)
}
