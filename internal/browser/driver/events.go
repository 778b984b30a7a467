package driver

import (
	"net/url"
	"strings"

	protocdp "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"github.com/chaperone-agents/chaperone/internal/browser/cdp"
)

// on decodes an event and hands it over. An event that cannot be decoded is
// one we cannot judge: the browser ends.
func on[E any](p *Page, e cdp.Event, handle func(E)) {
	var v E
	if err := e.Decode(&v); err != nil {
		p.log.Error("browser event cannot be read", "method", e.Method, "error", err)
		_ = p.conn.Close()
		return
	}
	handle(v)
}

// onPageEvent follows the page. It runs on the session's own goroutine and
// never waits for the page.
func (p *Page) onPageEvent(e cdp.Event) {
	switch e.Method {
	case page.FrameNavigated.Method:
		on(p, e, p.onNavigated)
	case page.NavigatedWithinDocument.Method:
		on(p, e, func(v page.EventNavigatedWithinDocument) {
			p.update(string(v.FrameID), func() {
				p.doc.url = v.URL
				p.nav.requested = false
			})
		})
	case page.FrameRequestedNavigation.Method:
		on(p, e, func(v page.EventFrameRequestedNavigation) {
			if v.Disposition == page.ClientNavigationDispositionCurrentTab {
				p.update(string(v.FrameID), func() { p.nav.requested = true })
			}
		})
	case page.FrameStoppedLoading.Method:
		on(p, e, func(v page.EventFrameStoppedLoading) {
			p.update(string(v.FrameID), func() { p.nav.requested, p.nav.pending = false, false })
		})
	case page.DomContentEventFired.Method:
		p.mu.Lock()
		p.doc.ready = true
		p.notify()
		p.mu.Unlock()
	case page.LoadEventFired.Method:
		p.mu.Lock()
		p.doc.loaded = true
		p.notify()
		p.mu.Unlock()
	case page.JavascriptDialogOpening.Method:
		on(p, e, p.onDialog)
	case page.WindowOpen.Method:
		on(p, e, p.onWindowOpen)
	case page.FileChooserOpened.Method:
		on(p, e, p.onChooser)
	case page.ScreencastFrame.Method:
		on(p, e, p.onFrame)
	case inspector.TargetCrashed.Method:
		// A crashed page answers nothing and its state is lost: the browser ends.
		p.log.Warn("page crashed")
		p.session.Drop()
		_ = p.conn.Close()
	case target.AttachedToTarget.Method:
		on(p, e, p.onInner)
	case target.DetachedFromTarget.Method:
		on(p, e, p.onInnerGone)
	default:
		p.onNetworkEvent(e)
	}
}

// onNetworkEvent follows the requests of the page and its frames.
func (p *Page) onNetworkEvent(e cdp.Event) {
	switch e.Method {
	case network.RequestWillBeSent.Method:
		on(p, e, func(v network.EventRequestWillBeSent) { p.onRequest(v) })
	case network.ResponseReceived.Method:
		on(p, e, func(v network.EventResponseReceived) {
			if v.Response != nil && strings.HasPrefix(v.Response.MimeType, "text/event-stream") {
				p.onFinished(v.RequestID)
			}
			if v.Response != nil && v.Type == network.ResourceTypeDocument {
				p.update(string(v.FrameID), func() { p.refresh = refreshes(v.Response.Headers) })
			}
		})
	case network.LoadingFinished.Method:
		on(p, e, func(v network.EventLoadingFinished) { p.onFinished(v.RequestID) })
	case network.LoadingFailed.Method:
		on(p, e, func(v network.EventLoadingFailed) { p.onFinished(v.RequestID) })
	}
}

// refreshes reports whether an answer orders to go elsewhere by itself.
func refreshes(h network.Headers) bool {
	for name := range h {
		if strings.EqualFold(name, "Refresh") {
			return true
		}
	}
	return false
}

// update changes the state if the event is about the main frame.
func (p *Page) update(frame string, change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if frame == p.mainID {
		change()
		p.notify()
	}
}

func (p *Page) onNavigated(v page.EventFrameNavigated) {
	if v.Frame == nil {
		return
	}
	p.update(string(v.Frame.ID), func() {
		p.doc = document{generation: p.doc.generation + 1, url: v.Frame.URL + v.Frame.URLFragment}
		p.nav.requested, p.nav.pending, p.nav.committed = false, false, true
		p.revision = ""
		p.requests.reset()
		if u, err := url.Parse(v.Frame.URL); err == nil && u.Scheme == "https" && len(p.visited) < 1024 {
			p.visited["https://"+u.Host] = true
		}
	})
}

// maxTracked bounds the requests that are followed; SETL-05 says what happens
// above it.
const maxTracked = 256

// requests are the finite requests of the current document that have not
// ended (SETL-04).
type requests struct {
	open     map[network.RequestID]bool
	overflow bool
}

// reset forgets the requests of the document before.
func (r *requests) reset() { *r = requests{} }

func (p *Page) onRequest(v network.EventRequestWillBeSent) {
	switch v.Type {
	case network.ResourceTypeDocument, network.ResourceTypeScript, network.ResourceTypeStylesheet,
		network.ResourceTypeFetch, network.ResourceTypeXHR:
	default:
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if v.Type == network.ResourceTypeDocument && v.FrameID == protocdp.FrameID(p.mainID) {
		return // the document itself is followed by its own events
	}
	if p.requests.open == nil {
		p.requests.open = map[network.RequestID]bool{}
	}
	if len(p.requests.open) >= maxTracked {
		p.requests.overflow = true
		return
	}
	p.requests.open[v.RequestID] = true
}

func (p *Page) onFinished(id network.RequestID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.requests.open[id] {
		delete(p.requests.open, id)
		p.notify()
	}
}
