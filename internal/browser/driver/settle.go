package driver

import (
	"context"
	"errors"
	"time"

	"github.com/chromedp/cdproto/network"

	"github.com/chaperone-agents/chaperone/internal/browser/pagejs"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

const (
	settleBound   = 2 * time.Second        // SETL-02
	settleStill   = 300 * time.Millisecond // SETL-01
	documentBound = 20 * time.Second       // an action that opens a document waits so long for it
	maxDocuments  = 6                      // an operation follows the page through so many of them
	startBound    = 500 * time.Millisecond // a navigation that was asked for starts within this time
)

// errNoDocument: a navigation began and no document came in time.
var errNoDocument = errors.New("driver: no document within the bound")

// settle waits as SETL-01 to SETL-06 say: for the document that the operation
// opens, until it is parsed, until the requests that were open then have
// ended, and until its DOM is still, and that of the frame that was acted in.
// Only the wait for a document can fail. A page at rest costs the quiet time,
// or nothing if it is plain that it cannot do otherwise; one that never rests
// costs the bound, and one that is replaced again and again is left at that.
func (p *Page) settle(ctx context.Context, acted *world) (observe.Readiness, error) {
	last := time.Now().Add(documentBound)
	var generation int
	var deadline time.Time
	for documents := 0; ; {
		if err := p.awaitDocument(ctx, time.Until(last)); err != nil {
			return "", err
		}
		p.mu.Lock()
		if p.doc.generation != generation || deadline.IsZero() {
			generation, deadline = p.doc.generation, time.Now().Add(settleBound)
			documents++
		}
		p.mu.Unlock()
		if time.Now().After(last) || documents > maxDocuments {
			return observe.BoundExpired, nil // it opens one document after another
		}
		moved, readiness, err := p.settleDocument(ctx, acted, generation, deadline)
		if err != nil || !moved {
			return readiness, err
		}
	}
}

// awaitDocument waits while the main frame is on its way to a new document.
func (p *Page) awaitDocument(ctx context.Context, limit time.Duration) error {
	if _, err := p.within(ctx, startBound, func() bool { return !p.nav.requested }); err != nil {
		return err
	}
	arrived, err := p.within(ctx, max(limit, 0), func() bool { return !p.nav.pending })
	if err == nil && !arrived {
		err = errNoDocument
	}
	return err
}

// settleDocument settles one document. moved says that another one has come,
// or is on its way.
func (p *Page) settleDocument(ctx context.Context, acted *world, generation int, deadline time.Time) (moved bool, _ observe.Readiness, _ error) {
	left := func() time.Duration { return max(time.Until(deadline), 0) }
	elsewhere := func() bool { return p.doc.generation != generation || p.nav.pending } // needs p.mu
	gone := func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return elsewhere()
	}

	parsed, err := p.awaitParsed(ctx, generation, left())
	if err != nil || gone() {
		return gone(), "", err
	}
	if !parsed {
		return false, observe.BoundExpired, nil
	}
	// The answer to a question comes after the events that were queued before
	// it, so requests that the parser has just begun are in the set (SETL-06).
	var yes bool
	if err := p.bounded(ctx, left(), pagejs.Ready, struct{}{}, &yes); err != nil {
		return p.endOfWait(ctx, gone)
	}
	p.mu.Lock()
	set := make([]network.RequestID, 0, len(p.requests.open))
	for id := range p.requests.open {
		set = append(set, id)
	}
	overflow, opened := p.requests.overflow, p.nav.committed
	p.mu.Unlock()
	if !overflow {
		drained, err := p.within(ctx, left(), func() bool {
			if elsewhere() {
				return true
			}
			for _, id := range set {
				if p.requests.open[id] {
					return false
				}
			}
			return true
		})
		if err != nil || gone() {
			return gone(), "", err
		}
		if !drained {
			return false, observe.BoundExpired, nil
		}
	}
	still := false
	if left() < settleStill {
		return false, observe.BoundExpired, nil
	}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // a new document ends the wait at once
		if p.until(waiting, elsewhere) == nil {
			stop()
		}
	}()
	proven := make(chan struct{})
	if opened {
		go func() {
			if p.unscripted(waiting, elsewhere) {
				close(proven)
				stop()
			}
		}()
	}
	quiet := pagejs.QuietArgs{StillMs: settleStill.Milliseconds(), BoundMs: left().Milliseconds()}
	inner := make(chan bool, 1)
	go func() {
		calm := true
		if acted != nil && acted.frame != "" {
			if err := p.in(waiting, acted, pagejs.Quiet, quiet, &calm); err != nil {
				calm = true // the frame's document has gone
			}
		}
		inner <- calm
	}()
	err = p.ask(waiting, pagejs.Quiet, quiet, &still)
	select {
	case <-proven:
		return false, observe.DOMQuiet, nil
	default:
	}
	if err == nil {
		still = <-inner && still
	}
	if err != nil || gone() {
		return p.endOfWait(ctx, gone)
	}
	if !still || overflow {
		return false, observe.BoundExpired, nil
	}
	return false, observe.DOMQuiet, nil
}

// awaitParsed waits until the document is parsed: its event has come, or, for
// a document that was there before, it says so itself.
func (p *Page) awaitParsed(ctx context.Context, generation int, limit time.Duration) (bool, error) {
	return p.within(ctx, limit, func() bool {
		return p.doc.ready || p.doc.generation != generation || p.nav.pending
	})
}

// endOfWait sorts out a wait that broke off: a new document, the end of the
// call or of the browser, or a page that did not answer in time.
func (p *Page) endOfWait(ctx context.Context, gone func() bool) (bool, observe.Readiness, error) {
	switch {
	case ctx.Err() != nil:
		return false, "", ctx.Err()
	case p.conn.Err() != nil:
		return false, "", p.conn.Err()
	case gone():
		return true, "", nil
	}
	return false, observe.BoundExpired, nil
}

// bounded is ask with a time limit.
func (p *Page) bounded(ctx context.Context, limit time.Duration, fn pagejs.Function, argument, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return p.ask(ctx, fn, argument, answer)
}
