package driver

import (
	"context"
	"fmt"

	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	protocdp "github.com/chromedp/cdproto/cdp"

	"github.com/chaperone-agents/chaperone/internal/browser/cdp"
	"github.com/chaperone-agents/chaperone/internal/browser/pagejs"
)

// kit is the page side of one document.
type kit struct {
	object  runtime.RemoteObjectID
	context runtime.ExecutionContextID
}

// world is the isolated world of one document, where its elements have their
// numbers. The main document's has no frame id; its kit is in Page.doc.
type world struct {
	frame   string
	session *cdp.Session
	kit     kit
	parent  *world
	element int // number of the frame's element in the parent's world
	origin  string
	refs    map[int]int // number of an element here -> its number in references
}

// in asks a function of the kit of one document. A document that has gone
// does not come back: whoever asks for it next gets another world.
func (p *Page) in(ctx context.Context, w *world, fn pagejs.Function, argument, answer any) error {
	if w.frame == "" {
		return p.ask(ctx, fn, argument, answer)
	}
	return invoke(ctx, w.session, w.kit.object, fn, argument, answer)
}

// kitOf is the kit of a document, for calls that pass more than text.
func (p *Page) kitOf(w *world) kit {
	if w.frame != "" {
		return w.kit
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.doc.kit
}

// enterFrame is the world of a frame's document as it is now. A document that
// was seen before keeps its world, and with it the numbers of its elements.
func (p *Page) enterFrame(ctx context.Context, frame string, parent *world, element int) (*world, error) {
	p.mu.Lock()
	session := p.inner[frame]
	known := p.doc.worlds[frame]
	p.mu.Unlock()
	if session == nil {
		session = parent.session
	}
	if known != nil && known.session == session && known.parent == parent {
		var ready bool
		if err := p.in(ctx, known, pagejs.Ready, struct{}{}, &ready); err == nil {
			known.element = element
			return known, nil
		} else if ctx.Err() != nil {
			return nil, err
		}
	}
	made, err := install(ctx, session, frame)
	if err != nil {
		return nil, err
	}
	w := &world{frame: frame, session: session, kit: made, parent: parent, element: element, refs: map[int]int{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.doc.worlds == nil {
		p.doc.worlds = map[string]*world{}
	}
	p.doc.worlds[frame] = w
	return w, nil
}

// objectGroup names what is held for one question only.
const objectGroup = "chaperone"

// elements are handles of the elements with these numbers, in the order asked
// for; "" for one that has gone.
func (p *Page) elements(ctx context.Context, w *world, numbers []int) ([]runtime.RemoteObjectID, error) {
	wanted, err := jsonText(numbers)
	if err != nil {
		return nil, err
	}
	list, err := cdp.Call(ctx, w.session, runtime.CallFunctionOn, runtime.CallFunctionOnParams{
		FunctionDeclaration: `function (numbers) { return this.` + string(pagejs.Nodes) + `(JSON.parse(numbers)); }`,
		ObjectID:            p.kitOf(w).object, ObjectGroup: objectGroup, Arguments: []*runtime.CallArgument{{Value: wanted}},
	})
	if err != nil || list.ExceptionDetails != nil || list.Result == nil {
		return nil, fmt.Errorf("driver: elements: %w %s", err, exception(list.ExceptionDetails))
	}
	yes := true
	members, err := cdp.Call(ctx, w.session, runtime.GetProperties, runtime.GetPropertiesParams{ObjectID: list.Result.ObjectID, OwnProperties: &yes})
	if err != nil {
		return nil, err
	}
	out := make([]runtime.RemoteObjectID, len(numbers))
	for _, m := range members.Result {
		var index int
		if _, err := fmt.Sscanf(m.Name, "%d", &index); err == nil && index >= 0 && index < len(out) && m.Value != nil {
			out[index] = m.Value.ObjectID
		}
	}
	return out, nil
}

// describe asks the browser itself about elements, all at once.
func (p *Page) describe(ctx context.Context, w *world, numbers []int) (map[int]*protocdp.Node, error) {
	handles, err := p.elements(ctx, w, numbers)
	if err != nil {
		return nil, err
	}
	defer func() {
		cdp.Send(w.session, runtime.ReleaseObjectGroup, runtime.ReleaseObjectGroupParams{ObjectGroup: objectGroup})
	}()
	waits := map[int]cdp.Wait[dom.DescribeNodeResult]{}
	for i, h := range handles {
		if h != "" {
			waits[numbers[i]] = cdp.Send(w.session, dom.DescribeNode, dom.DescribeNodeParams{ObjectID: h})
		}
	}
	out := map[int]*protocdp.Node{}
	for number, wait := range waits {
		if r, err := wait(ctx); err == nil && r.Node != nil {
			out[number] = r.Node
		} else if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return out, nil
}

// openRoots hands the closed shadow roots among the nodes to the document's
// kit, and says how many there were.
func (p *Page) openRoots(ctx context.Context, w *world, nodes map[int]*protocdp.Node) (int, error) {
	k := p.kitOf(w)
	var waits []cdp.Wait[dom.ResolveNodeResult]
	for _, n := range nodes {
		for _, root := range n.ShadowRoots {
			if root.ShadowRootType == protocdp.ShadowRootTypeClosed {
				waits = append(waits, cdp.Send(w.session, dom.ResolveNode, dom.ResolveNodeParams{
					BackendNodeID: root.BackendNodeID, ExecutionContextID: k.context, ObjectGroup: objectGroup,
				}))
			}
		}
	}
	var roots []*runtime.CallArgument
	for _, wait := range waits {
		if r, err := wait(ctx); err == nil && r.Object != nil {
			roots = append(roots, &runtime.CallArgument{ObjectID: r.Object.ObjectID})
		}
	}
	if len(roots) == 0 {
		return 0, ctx.Err()
	}
	done, err := cdp.Call(ctx, w.session, runtime.CallFunctionOn, runtime.CallFunctionOnParams{
		FunctionDeclaration: `function (...roots) { return this.` + string(pagejs.OpenRoots) + `(roots); }`,
		ObjectID:            k.object, Arguments: roots,
	})
	cdp.Send(w.session, runtime.ReleaseObjectGroup, runtime.ReleaseObjectGroupParams{ObjectGroup: objectGroup})
	if err == nil && done.ExceptionDetails != nil {
		err = fmt.Errorf("driver: open roots: %s", exception(done.ExceptionDetails))
	}
	return len(roots), err
}

// onInner takes up a frame that lives in a process of its own. Its requests are
// judged like all others; only what is needed for settling is followed here.
func (p *Page) onInner(v target.EventAttachedToTarget) {
	s := p.conn.Session(string(v.SessionID))
	if v.TargetInfo == nil || v.TargetInfo.Type != "iframe" {
		return
	}
	p.mu.Lock()
	p.inner[string(v.TargetInfo.TargetID)] = s
	p.mu.Unlock()
	go s.Serve(p.onInnerEvent)
	zero, yes := int64(0), true
	cdp.Send(s, page.Enable, page.EnableParams{})
	cdp.Send(s, page.SetInterceptFileChooserDialog, page.SetInterceptFileChooserDialogParams{Enabled: true, Cancel: &yes})
	cdp.Send(s, target.SetAutoAttach, innerFrames())
	cdp.Send(s, inspector.Enable, protocdp.Empty{})
	cdp.Send(s, network.Enable, network.EnableParams{MaxTotalBufferSize: &zero, MaxResourceBufferSize: &zero, MaxPostDataSize: &zero})
}

// innerFrames attaches to the frames below a session that have a process of
// their own.
func innerFrames() target.SetAutoAttachParams {
	yes := true
	return target.SetAutoAttachParams{AutoAttach: true, Flatten: &yes, Filter: target.Filter{{Type: "iframe"}}}
}

func (p *Page) onInnerEvent(e cdp.Event) {
	switch e.Method {
	case target.AttachedToTarget.Method:
		on(p, e, p.onInner)
	case target.DetachedFromTarget.Method:
		on(p, e, p.onInnerGone)
	case page.WindowOpen.Method:
		on(p, e, p.onWindowOpen)
	case network.RequestWillBeSent.Method, network.ResponseReceived.Method, network.LoadingFinished.Method, network.LoadingFailed.Method:
		p.onNetworkEvent(e)
	}
}

func (p *Page) onInnerGone(v target.EventDetachedFromTarget) {
	gone := p.conn.Session(string(v.SessionID))
	gone.Drop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for frame, s := range p.inner {
		if s == gone {
			delete(p.inner, frame)
		}
	}
}
