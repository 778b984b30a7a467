package tasks

import (
	"context"
	"errors"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/grant"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// OnePage is a browser.Service with one page that exists already: what a
// broker needs to drive it, and nothing of profiles.
type OnePage struct {
	browser.Service // the rest of the port is not there
	Page            browser.Page
}

// Acquire returns a fresh lease of the page.
func (o OnePage) Acquire(_ context.Context, _ lease.Key, _ bool, deadline time.Time) (browser.Lease, error) {
	return browser.Lease{Ref: ident.Token(32), ExpiresAt: deadline, Sequence: 1}, nil
}

// CloseLease keeps the page.
func (OnePage) CloseLease(context.Context, string) error { return nil }

// Do carries out what the permit is for.
func (o OnePage) Do(ctx context.Context, held lease.Held, permit grant.Permit, r action.Request) (observe.Document, error) {
	if !held.Valid() || !permit.For(r.Digest) {
		return observe.Document{}, errors.New("tasks: a call without a lease or a permit")
	}
	switch r.Tool {
	case action.Navigate:
		return o.Page.Navigate(ctx, r.URL)
	case action.Observe:
		return o.Page.Observe(ctx, r.Query)
	case action.Act:
		return o.Page.Act(ctx, r.Action, nil)
	}
	return observe.Document{}, errors.New("tasks: no such tool")
}
