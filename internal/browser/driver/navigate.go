package driver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/chromedp/cdproto/page"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser/cdp"
	"github.com/chaperone-agents/chaperone/internal/browser/pagejs"
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
	readiness, err := p.settle(ctx)
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
	err := p.until(ctx, func() bool { return p.nav.committed && p.doc.ready })
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

// capture makes one observation. The revision becomes current only when the
// whole of it is valid; on any failure no reference is live (CAPT-01, CAPT-02).
func (p *Page) capture(ctx context.Context, what plan) (observe.Document, error) {
	p.mu.Lock()
	p.revision, p.reading = "", reading{}
	p.mu.Unlock()
	revision := ident.Hex(16)
	args := what.args
	args.Revision, args.Regions, args.Challenges, args.Draft = revision, true, p.config.Challenges, p.draft
	var seen pagejs.Page
	var generation int
	for try := 0; ; try++ {
		p.mu.Lock()
		generation = p.doc.generation
		p.mu.Unlock()
		err := p.ask(ctx, pagejs.Observe, args, &seen)
		if err == nil {
			break
		}
		if !errors.Is(err, errMoved) || try == 3 {
			return observe.Document{}, errors.Join(err, p.forget(ctx))
		}
		if err := p.awaitDocument(ctx, settleBound); err != nil {
			return observe.Document{}, err
		}
		seen = pagejs.Page{}
	}
	switch {
	case seen.Challenged:
		return observe.Document{}, needsUser()
	case seen.Gone:
		return observe.Document{}, fault.New(fault.PageChanged, "The region is no longer there. Observe again.")
	}
	d, next, err := p.document(revision, seen, what)
	if err != nil {
		return observe.Document{}, errors.Join(err, p.forget(ctx))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.doc.generation != generation {
		return observe.Document{}, fault.New(fault.PageChanged, "The page was replaced while it was read. Observe again.").Retry()
	}
	p.revision, p.reading = revision, next
	return d, nil
}

// forget releases every handle; a page that cannot answer has none.
func (p *Page) forget(ctx context.Context) error {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
	}
	var nothing any
	if err := p.ask(ctx, pagejs.Forget, struct{}{}, &nothing); err != nil {
		return fmt.Errorf("releasing handles: %w", err)
	}
	return nil
}

// document checks what the page's world reported and gives it its references.
func (p *Page) document(revision string, seen pagejs.Page, what plan) (observe.Document, reading, error) {
	u, err := site.ParseURL(seen.URL)
	if err != nil || !p.config.Origins.Has(u.Origin()) {
		return observe.Document{}, reading{}, fault.New(fault.URLDisallowed, "No page of an allowed origin is open. Open one with browser.navigate.")
	}
	d := observe.Document{
		URL: u.String(), Title: seen.Title, Revision: revision, MoreElements: seen.More,
		Elements: make([]observe.Element, len(seen.Elements)),
		Facts:    make(map[string]observe.Facts, len(seen.Elements)),
	}
	for i, e := range seen.Elements {
		ref := revision + ":" + strconv.Itoa(i)
		d.Elements[i] = observe.Element{Ref: ref, Role: e.Role, Name: e.Name, Disabled: e.Disabled, Checked: e.Checked}
		d.Facts[ref] = observe.Facts{FieldKind: observe.FieldKind(e.FieldKind), Text: e.Text, Context: e.Context}
	}
	next, err := what.finish(&d, u, seen)
	if err != nil {
		return observe.Document{}, reading{}, err
	}
	p.echo(&d, seen.Draft)
	if _, err := observe.Accept(d, p.config.Origins); err != nil {
		return observe.Document{}, reading{}, err
	}
	return d, next, nil
}
