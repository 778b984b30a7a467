package driver

import (
	"context"
	"errors"
	"time"

	"github.com/chromedp/cdproto/page"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser/cdp"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// navigateBound is the time to a parsed document (section 2.4).
const navigateBound = 30 * time.Second

// captureBound is the time that one reading of a page may take.
const captureBound = 20 * time.Second

// Navigate opens the URL, waits until the page settles, and observes it. It
// returns URLDisallowed when the address or a redirect is off the origins,
// SiteUnreachable when no page came, NavigationCancelled when the open page
// asked to be kept; in each of these the page that was open stays.
func (p *Page) Navigate(ctx context.Context, u site.URL) (observe.Document, error) {
	leave, err := p.enter(ctx)
	if err != nil {
		return observe.Document{}, err
	}
	defer leave()
	if !p.config.Origins.Has(u.Origin()) {
		return observe.Document{}, fault.New(fault.URLDisallowed, "The address is not on an allowed origin. Nothing was sent.")
	}
	ctx, cancel := context.WithTimeout(ctx, navigateBound+settleBound+captureBound)
	defer cancel()
	if err := p.open(ctx, u.String()); err != nil {
		return observe.Document{}, p.ended(err)
	}
	readiness, err := p.settle(ctx, nil)
	if err != nil {
		return observe.Document{}, p.ended(unreachable(err))
	}
	d, err := p.capture(ctx, plan{})
	if err != nil {
		return observe.Document{}, p.ended(err)
	}
	d.Readiness = readiness
	return d, nil
}

// open loads an address in the main frame up to a parsed document.
func (p *Page) open(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, navigateBound)
	defer cancel()
	p.mu.Lock()
	p.nav = navigation{}
	p.revision = ""
	before := p.doc.generation
	p.mu.Unlock()

	type outcome struct {
		result page.NavigateResult
		err    error
	}
	answered := make(chan outcome, 1)
	send := cdp.Send(p.session, page.Navigate, page.NavigateParams{URL: address})
	go func() {
		r, err := send(ctx)
		answered <- outcome{r, err}
	}()
	kept := make(chan struct{})
	go func() {
		if p.until(ctx, func() bool { return p.nav.kept }) == nil {
			close(kept)
		}
	}()
	var o outcome
	select {
	case o = <-answered:
	case <-kept:
	}
	p.mu.Lock()
	nav := p.nav
	p.mu.Unlock()
	switch {
	case nav.kept:
		return fault.New(fault.NavigationCancelled, "The open page asked not to be left, and was kept. The new address was not opened.")
	case nav.refused && nav.hop:
		return fault.New(fault.URLDisallowed, "The site redirected to an address that is not on an allowed origin. That address was not opened; the page that was open is kept.")
	case nav.refused:
		return fault.New(fault.URLDisallowed, "The address is not on an allowed origin. It was not opened.")
	case nav.download, o.result.IsDownload:
		return fault.New(fault.SiteUnreachable, "The address is a file to download, and downloads are denied. The page that was open is kept.")
	case nav.empty:
		return fault.New(fault.SiteUnreachable, "The site answered without a page. The page that was open is kept.")
	case o.err != nil:
		return unreachable(o.err)
	case o.result.ErrorText != "":
		return unreachable(errors.New(o.result.ErrorText))
	case o.result.LoaderID == "": // same document, another fragment
		return nil
	}
	err := p.until(ctx, func() bool {
		return p.nav.committed && (p.doc.ready || p.doc.generation > before+maxDocuments) // one that is never parsed, because the next has come
	})
	return unreachable(err)
}

func unreachable(err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.SiteUnreachable, "The site could not be reached, or sent no page in time. Try again later.", err).Retry()
}

// ended turns the error of an operation that sent no input into what the
// caller sees; the end of the browser explains every error.
func (p *Page) ended(err error) error {
	if p.conn.Err() != nil {
		return fault.Wrap(fault.ProviderUnavailable, "The browser has ended.", errors.Join(err, p.conn.Err()))
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	return fault.Wrap(fault.ProviderUnavailable, "The page could not be read. Observe again.", err).Retry()
}

// Observe reads the page as it is. It makes no claim that the page is settled
// (SETL-06).
func (p *Page) Observe(ctx context.Context, q observe.Query) (observe.Document, error) {
	leave, err := p.enter(ctx)
	if err != nil {
		return observe.Document{}, err
	}
	defer leave()
	what, err := p.plan(q)
	if err != nil {
		return observe.Document{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, captureBound)
	defer cancel()
	d, err := p.capture(ctx, what)
	if err != nil {
		return observe.Document{}, p.ended(err)
	}
	return d, nil
}
