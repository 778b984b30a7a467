package driver

import (
	"context"
	"encoding/json"
	"strings"

	protocdp "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/runtime"

	"github.com/chaperone-agents/chaperone/internal/browser/cdp"
)

// maxProof is how many elements a document may have to be looked through;
// reading more of them would take as long as the wait that it can save.
const maxProof = 1500

// complete answers with the document if it has been loaded with everything in
// it and is small enough to be looked through. An address that points into the
// page may make the browser itself open a part of it. Members are taken from
// the prototypes, because a document's own can be names of its elements.
const complete = `function (most) {
  const own = (name) => Object.getOwnPropertyDescriptor(Document.prototype, name).get.call(document);
  const count = Document.prototype.getElementsByTagName.call(document, '*').length;
  return own('readyState') === 'complete' && own('contentType') === 'text/html' && !location.hash && count <= most ? document : null;
}`

// witness is what the browser itself says of a document.
type witness struct {
	tree     *protocdp.Node        // everything that is there, closed shadow roots included
	counters []*performance.Metric // of what has run in it, read after the tree
	refresh  bool                  // its answer ordered to go elsewhere after a time
	pending  bool                  // a request, a navigation, or a frame in another process
}

// rests is the rule: no script has run, nothing that is there can run one or
// replace the document by itself, and nothing is on its way.
func (w witness) rests() bool {
	return !w.refresh && !w.pending && neverRan(w.counters) && inactive(w.tree)
}

// unscripted reports whether nothing can change the document that this
// operation opened, so that there is no quiet to wait for (SETL-01). Whatever
// is in doubt is a no. docs/decisions/0009-settling.md has the argument.
func (p *Page) unscripted(ctx context.Context, elsewhere func() bool) bool {
	if p.until(ctx, func() bool { return p.doc.loaded || elsewhere() }) != nil {
		return false
	}
	most, err := json.Marshal(maxProof)
	if err != nil {
		return false
	}
	const group = "chaperone-proof"
	handle, err := cdp.Call(ctx, p.session, runtime.CallFunctionOn, runtime.CallFunctionOnParams{
		FunctionDeclaration: complete, ObjectID: p.kitOf(p.main).object, ObjectGroup: group, Arguments: []*runtime.CallArgument{{Value: most}},
	})
	if err != nil || handle.ExceptionDetails != nil || handle.Result == nil || handle.Result.ObjectID == "" {
		return false
	}
	yes, whole := true, int64(-1)
	tree := cdp.Send(p.session, dom.DescribeNode, dom.DescribeNodeParams{ObjectID: handle.Result.ObjectID, Depth: &whole, Pierce: &yes})
	counters := cdp.Send(p.session, performance.GetMetrics, protocdp.Empty{})
	cdp.Send(p.session, runtime.ReleaseObjectGroup, runtime.ReleaseObjectGroupParams{ObjectGroup: group})
	seen, err := tree(ctx)
	if err != nil || seen.Node == nil {
		return false
	}
	ran, err := counters(ctx)
	if err != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w := witness{tree: seen.Node, counters: ran.Metrics, refresh: p.refresh}
	w.pending = p.nav.requested || len(p.requests.open) > 0 || p.requests.overflow || len(p.inner) > 0
	if elsewhere() || !p.atRest(w) {
		return false
	}
	p.doc.proven = true
	return true
}

// neverRan reports whether no script was compiled or run in the document.
func neverRan(counters []*performance.Metric) bool {
	zero := 0
	for _, m := range counters {
		if m.Name == "ScriptDuration" || m.Name == "V8CompileDuration" {
			if m.Value != 0 {
				return false
			}
			zero++
		}
	}
	return zero == 2
}

// inactive reports whether nothing below the node can run a script or replace
// the document by itself. What is in a template is not alive.
func inactive(n *protocdp.Node) bool {
	switch strings.ToLower(n.LocalName) {
	case "script", "iframe", "frame", "object", "embed", "fencedframe", "portal":
		return false
	}
	if n.ContentDocument != nil || n.ChildNodeCount > int64(len(n.Children)) {
		return false
	}
	for i, a := range n.Attributes {
		name := i%2 == 0
		if name && strings.HasPrefix(strings.ToLower(a), "on") || !name && strings.EqualFold(n.LocalName, "meta") && strings.Contains(strings.ToLower(a), "refresh") {
			return false
		}
	}
	for _, below := range [][]*protocdp.Node{n.Children, n.ShadowRoots} {
		for _, c := range below {
			if !inactive(c) {
				return false
			}
		}
	}
	return true
}
