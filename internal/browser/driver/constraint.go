package driver

import (
	"context"
	"errors"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser/pagejs"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/constraint"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// admitted is the part of a constraint that needs no element: that it is one,
// its expiry and where the page is (CONS-02).
func (p *Page) admitted(ctx context.Context, c *constraint.Constraint) error {
	if c == nil {
		return nil
	}
	if err := c.Validate(); err != nil {
		return fault.Wrap(fault.ArgumentsInvalid, "The call could not be read. Nothing was done.", err)
	}
	if !time.Now().Before(c.ExpiresAt) {
		return p.inapplicable(ctx, constraint.Expired)
	}
	p.mu.Lock()
	address := p.doc.url
	p.mu.Unlock()
	if reason := c.Admits(address); reason != "" {
		return p.inapplicable(ctx, reason)
	}
	return nil
}

// covered judges the live element by the constraint (CONS-02, CONS-03). From
// then on every look at the element finds it as it was judged, or refuses.
func (p *Page) covered(ctx context.Context, a action.Action, c *constraint.Constraint, t *aimed) error {
	if c == nil {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, inputBound)
	defer cancel()
	var now pagejs.Assessment
	if err := p.in(bounded, t.world, pagejs.Assess, t.args, &now); err != nil {
		return p.unreadable(err)
	}
	if now.Reason != "" {
		return refusal(now.Reason)
	}
	page, err := site.ParseURL(now.URL)
	if err != nil {
		return p.inapplicable(ctx, constraint.OutsideOrigin)
	}
	reason := c.Refuses(a, constraint.Subject{
		URL: now.URL, Framed: t.world.frame != "", Options: now.Options, Partial: now.Partial,
		Element: observe.Element{Role: now.Role, Name: now.Name, Disabled: now.Disabled},
		Facts:   newTeller(page).facts(now.Entry),
	}, time.Now())
	if reason != "" {
		return p.inapplicable(ctx, reason)
	}
	t.args.Judged, t.until = true, c.ExpiresAt
	return nil
}

// expired reports whether the constraint of the act has expired since.
func (t aimed) expired() bool { return t.args.Judged && !time.Now().Before(t.until) }

// inapplicable refuses before anything is sent. No reference is live any more:
// what the grant does not cover is to be looked at again (CONS-04).
func (p *Page) inapplicable(ctx context.Context, reason constraint.Reason) error {
	p.log.Debug("the grant does not cover the act", "reason", string(reason))
	p.mu.Lock()
	p.revision, p.reading, p.view = "", reading{}, view{}
	p.mu.Unlock()
	return errors.Join(fault.New(fault.GrantNotApplicable, "The grant does not cover this on the page as it is now. Nothing was sent; observe again."), p.forget(ctx))
}
