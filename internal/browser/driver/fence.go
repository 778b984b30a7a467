package driver

import (
	"errors"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"

	"github.com/chaperone-agents/chaperone/internal/rules/constraint"
)

// errFenced: the page wanted to go where the grant does not reach.
var errFenced = errors.New("driver: a document outside the grant was asked for")

// confine keeps documents and pings of every frame inside the constraint until
// the returned function runs (FENCE-01).
func (p *Page) confine(c *constraint.Constraint) (release func()) {
	if c == nil || !c.Fenced() {
		return func() {}
	}
	set := func(to *constraint.Constraint) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.fence = to
	}
	set(c)
	return func() { set(nil) }
}

// fenced reports whether the request is outside the fence, and remembers when
// it would have replaced the page (FENCE-02). It needs p.mu.
func (p *Page) fenced(v fetch.EventRequestPaused) bool {
	document := v.ResourceType == network.ResourceTypeDocument
	if p.fence == nil || !document && v.ResourceType != network.ResourceTypePing || p.fence.Admits(v.Request.URL) == "" {
		return false
	}
	if document && string(v.FrameID) == p.mainID {
		p.nav.requested, p.nav.pending, p.nav.fenced = false, false, true
	}
	return true
}
