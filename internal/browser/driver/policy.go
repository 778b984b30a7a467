package driver

import (
	"context"
	"mime"
	"net/url"
	"strings"
	"time"

	"github.com/chromedp/cdproto/browser"
	protocdp "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser/cdp"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// onBrowserEvent handles what concerns the whole browser: requests of every
// frame, popup and worker, and new pages.
func (p *Page) onBrowserEvent(e cdp.Event) {
	switch e.Method {
	case fetch.RequestPaused.Method:
		on(p, e, p.onPaused)
	case fetch.AuthRequired.Method:
		on(p, e, func(v fetch.EventAuthRequired) {
			cdp.Send(p.root, fetch.ContinueWithAuth, fetch.ContinueWithAuthParams{
				RequestID:             v.RequestID,
				AuthChallengeResponse: &fetch.AuthChallengeResponse{Response: fetch.AuthChallengeResponseResponseCancelAuth},
			})
		})
	case target.AttachedToTarget.Method:
		on(p, e, p.onAttached)
	case browser.DownloadWillBegin.Method:
		on(p, e, func(v browser.EventDownloadWillBegin) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.notice("download", v.SuggestedFilename)
		})
	case target.DetachedFromTarget.Method:
		on(p, e, func(v target.EventDetachedFromTarget) {
			gone := p.conn.Session(string(v.SessionID))
			gone.Drop()
			if gone == p.session { // the page was closed: there is nothing left to work on
				_ = p.conn.Close()
			}
		})
	}
}

// onAttached takes the first page as ours and ends every other one (POP-01).
func (p *Page) onAttached(v target.EventAttachedToTarget) {
	id := string(v.TargetInfo.TargetID)
	p.mu.Lock()
	first := p.mainID == ""
	if first {
		p.mainID = id
	}
	p.mu.Unlock()
	if first {
		p.attached <- v
		return
	}
	go p.onExtra(p.conn.Session(string(v.SessionID)), v, id) // looked up now: it may be gone soon
}

// popupBound is how long a popup may take to be gone.
const popupBound = 5 * time.Second

// onExtra ends a popup: its requests fail by the rule in decide, then it runs
// on (a page closed while it waits for a debugger freezes its opener), then it
// is closed. If it is not seen to be gone in time, the browser ends (POP-06).
func (p *Page) onExtra(s *cdp.Session, v target.EventAttachedToTarget, id string) {
	ctx, cancel := context.WithTimeout(context.Background(), popupBound)
	defer cancel()
	p.created()
	p.mu.Lock()
	clerk := id == p.clerkID
	if clerk {
		p.clerk = s
		p.notify()
	} else {
		p.popups[id] = true
		p.blocked++
		p.notice("popup", p.asked[id])
		p.notify()
	}
	p.mu.Unlock()
	if v.WaitingForDebugger {
		_, _ = cdp.Call(ctx, s, runtime.RunIfWaitingForDebugger, protocdp.Empty{}) // closing it is what counts
	}
	if clerk {
		return
	}
	_, err := cdp.Call(ctx, p.root, target.CloseTarget, target.CloseTargetParams{TargetID: v.TargetInfo.TargetID})
	select {
	case <-s.Done(): // by us, or by itself
		p.log.Info("popup closed")
	case <-p.conn.Done():
	case <-ctx.Done():
		p.log.Error("popup did not close; ending the browser", "error", err)
		_ = p.conn.Close()
	}
}

// created waits until no page of our own is being made: it has its name only then.
func (p *Page) created() {
	p.creation.Lock()
	defer p.creation.Unlock()
}

// onPaused answers every paused request exactly once. Only a document of an
// unknown frame needs a question to the browser first, which must not hold up
// the others.
func (p *Page) onPaused(v fetch.EventRequestPaused) {
	frame := string(v.FrameID)
	p.mu.Lock()
	known := v.ResourceType != network.ResourceTypeDocument || frame == p.mainID || frame == p.clerkID || p.frames[frame] || p.popups[frame]
	p.mu.Unlock()
	if known {
		p.answer(v)
		return
	}
	go func() {
		p.learn(frame)
		p.answer(v)
	}()
}

// learn finds out whether a frame is a page of its own. Until the browser has
// said that it is not, it counts as a popup.
func (p *Page) learn(frame string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r, err := cdp.Call(ctx, p.root, target.GetTargets, target.GetTargetsParams{Filter: target.Filter{{Type: "page"}}})
	inner := err == nil && frame != ""
	for _, t := range r.TargetInfos {
		if string(t.TargetID) == frame {
			inner = false
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if inner && len(p.frames) < 65536 {
		p.frames[frame] = true
	}
}

// verdict is what happens to a paused request.
type verdict int

const (
	deny  verdict = iota // fails; the page that asked stays
	send                 // goes on
	blank                // is answered with an empty document, without network
)

func (p *Page) answer(v fetch.EventRequestPaused) {
	var verdict verdict
	if p.proves(v) {
		verdict = send
	} else if v.ResponseStatusCode != 0 || v.ResponseErrorReason != "" {
		verdict = p.judgeResponse(v)
		if verdict == send {
			cdp.Send(p.root, fetch.ContinueResponse, fetch.ContinueResponseParams{RequestID: v.RequestID})
			return
		}
	} else {
		verdict = p.judgeRequest(v)
	}
	switch verdict {
	case send:
		cdp.Send(p.root, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: v.RequestID})
	case blank:
		cdp.Send(p.root, fetch.FulfillRequest, fetch.FulfillRequestParams{
			RequestID: v.RequestID, ResponseCode: 200,
			ResponseHeaders: []*fetch.HeaderEntry{{Name: "Content-Type", Value: "text/html"}},
			Body:            []byte("<!doctype html>"),
		})
	default:
		// "Aborted" leaves the page that is shown in place; any other reason
		// would replace it with an error page.
		reason := network.ErrorReasonAborted
		if v.ResourceType != network.ResourceTypeDocument {
			reason = network.ErrorReasonBlockedByClient
		}
		cdp.Send(p.root, fetch.FailRequest, fetch.FailRequestParams{RequestID: v.RequestID, ErrorReason: reason})
	}
}

// judgeRequest is the origin rule (EPH-02): the main frame goes to the allowed
// origins only, at every hop; frames and resources to public HTTPS; popups
// and service workers nowhere.
func (p *Page) judgeRequest(v fetch.EventRequestPaused) verdict {
	if v.Request == nil {
		return deny
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.notify()
	frame := string(v.FrameID)
	isDocument := v.ResourceType == network.ResourceTypeDocument
	switch {
	case isDocument && frame == p.clerkID && frame != "":
		return blank
	case isDocument && p.unknownPage(frame):
		p.popupAsks(frame, v.Request.URL)
		return deny
	case p.fenced(v):
		return deny
	case frame == p.clerkID && frame != "", p.popups[frame], serviceWorker(v.Request):
		return deny
	case isDocument && frame == p.mainID:
		if p.offline {
			return blank
		}
		u, err := site.ParseURL(v.Request.URL + v.Request.URLFragment)
		if err != nil || !p.config.Origins.Has(u.Origin()) {
			p.nav.end(func(n *navigation) { n.refused, n.hop = true, v.RedirectedRequestID != "" })
			return deny
		}
		p.nav.requested, p.nav.pending = false, true
		return send
	case p.offline, !publicResource(v.Request.URL):
		return deny
	}
	return send
}

// unknownPage reports whether a document is asked for by neither the page nor
// a frame of it. It needs p.mu.
func (p *Page) unknownPage(frame string) bool {
	return frame != p.mainID && frame != p.clerkID && !p.frames[frame]
}

// popupAsks keeps the address that a popup was for, which is asked for before
// or after the popup itself is announced. It needs p.mu.
func (p *Page) popupAsks(frame, address string) {
	if len(p.asked) < observe.MaxNotices {
		p.asked[frame] = address
	}
	if !p.popups[frame] {
		return
	}
	for i, n := range p.notices {
		if n.Kind == "popup" && n.Text == "" {
			p.notices[i].Text = clipNotice(address)
			return
		}
	}
	p.notice("popup", address)
}

// judgeResponse decides about the answer to a document request: it must carry
// our policy (POP-03), and a main frame that gets no page keeps the one it has.
func (p *Page) judgeResponse(v fetch.EventRequestPaused) verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.notify()
	ours := v.ResponseErrorReason != "" || sandboxed(v.ResponseHeaders)
	if !ours {
		p.log.Warn("document without the document policy")
	}
	switch {
	case string(v.FrameID) != p.mainID && ours:
		return send
	case string(v.FrameID) != p.mainID:
		return deny
	case v.ResponseErrorReason != "":
		p.nav.end(func(n *navigation) { n.failed = true })
		return deny
	case v.ResponseStatusCode == 204 || v.ResponseStatusCode == 205:
		p.nav.end(func(n *navigation) { n.empty = true })
		return deny
	case attachment(v.ResponseHeaders):
		p.nav.end(func(n *navigation) { n.download = true })
		p.notice("download", v.Request.URL)
		return deny
	case !ours:
		p.nav.end(func(n *navigation) { n.failed = true })
		return deny
	}
	return send
}

func attachment(headers []*fetch.HeaderEntry) bool {
	for _, h := range headers {
		if !strings.EqualFold(h.Name, "Content-Disposition") {
			continue
		}
		kind, _, err := mime.ParseMediaType(h.Value)
		if err != nil {
			kind, _, _ = strings.Cut(h.Value, ";")
		}
		if strings.EqualFold(strings.TrimSpace(kind), "attachment") {
			return true
		}
	}
	return false
}

func serviceWorker(r *network.Request) bool {
	for name := range r.Headers {
		if strings.EqualFold(name, "Service-Worker") {
			return true
		}
	}
	return false
}

// publicResource reports whether a frame or resource may be asked for: public
// HTTPS, or data that the page brought itself. Only the authority is parsed:
// browsers accept paths that stricter parsers refuse.
func publicResource(raw string) bool {
	if strings.HasPrefix(raw, "data:") || strings.HasPrefix(raw, "blob:https://") || raw == "about:blank" || raw == "about:srcdoc" {
		return true
	}
	rest, ok := strings.CutPrefix(raw, "https://")
	if !ok {
		return false
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	u, err := url.Parse("https://" + rest)
	if err != nil || u.User != nil || (u.Port() != "" && u.Port() != "443") {
		return false
	}
	_, err = site.NormalHost(u.Hostname())
	return err == nil
}
