package driver

import (
	"github.com/chromedp/cdproto/page"

	"github.com/chaperone-agents/chaperone/internal/browser/cdp"
)

// maxDialogs is how many dialogs a page may open between two observations. One
// that does nothing else answers no question any more, and no script of it can
// be stopped meanwhile, so the browser ends.
const maxDialogs = 200

// onDialog dismisses every dialog at once and accepts none (NAVC-01). The
// dialogs of all frames arrive here.
func (p *Page) onDialog(v page.EventJavascriptDialogOpening) {
	p.mu.Lock()
	p.dialogs++
	tooMany := p.dialogs > maxDialogs
	p.mu.Unlock()
	if tooMany {
		p.log.Warn("page opens dialogs without end; ending the browser")
		_ = p.conn.Close()
		return
	}
	cdp.Send(p.session, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: false})
	p.log.Debug("dialog dismissed", "type", string(v.Type))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notice(string(v.Type), v.Message)
	if v.Type == page.DialogTypeBeforeunload {
		p.nav.requested, p.nav.pending, p.nav.kept = false, false, true
		p.notify()
	}
}

// onWindowOpen reports a window that a document of the page asked for. Its
// policy (POP-03) has already refused it; the address tells where it was to go.
func (p *Page) onWindowOpen(v page.EventWindowOpen) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notice("popup", v.URL)
}
