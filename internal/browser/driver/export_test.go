package driver

import (
	"context"
	"encoding/json"
	"testing"

	protocdp "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"

	"github.com/chaperone-agents/chaperone/internal/browser/pagejs"
)

// Names is the name of every node that a page of the corpus labels.
func Names(ctx context.Context, t *testing.T, p *Page) json.RawMessage {
	t.Helper()
	var out json.RawMessage
	if err := p.ask(ctx, pagejs.Names, struct{}{}, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Proven reports whether the document was shown to be unable to change.
func Proven(p *Page) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.doc.proven
}

// Forget breaks the rule of what is at rest: it no longer looks at one of its
// witnesses.
func Forget(p *Page, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.atRest = func(w witness) bool {
		switch what {
		case "counters":
			w.counters = []*performance.Metric{{Name: "ScriptDuration"}, {Name: "V8CompileDuration"}}
		case "tree":
			w.tree = &protocdp.Node{}
		}
		return w.rests()
	}
}

// SETL-01: each thing that a witness can say is enough to wait.
func TestRests(t *testing.T) {
	element := func(name string, attributes ...string) *protocdp.Node {
		return &protocdp.Node{LocalName: name, Attributes: attributes}
	}
	around := func(n *protocdp.Node) *protocdp.Node {
		return &protocdp.Node{LocalName: "p", ChildNodeCount: 1, Children: []*protocdp.Node{n}}
	}
	none := []*performance.Metric{{Name: "Nodes", Value: 9}, {Name: "ScriptDuration"}, {Name: "V8CompileDuration"}}
	for name, c := range map[string]struct {
		w    witness
		want bool
	}{
		"nothing":             {witness{tree: around(element("p", "class", "on", "id", "one")), counters: none}, true},
		"a meta element":      {witness{tree: around(element("meta", "charset", "utf-8")), counters: none}, true},
		"an order to go":      {witness{tree: around(element("p")), counters: none, refresh: true}, false},
		"something pending":   {witness{tree: around(element("p")), counters: none, pending: true}, false},
		"no counters":         {witness{tree: around(element("p"))}, false},
		"half the counters":   {witness{tree: around(element("p")), counters: none[:2]}, false},
		"a script ran":        {witness{tree: around(element("p")), counters: append(none[:2:2], &performance.Metric{Name: "V8CompileDuration", Value: 1e-6})}, false},
		"children left out":   {witness{tree: &protocdp.Node{ChildNodeCount: 1}, counters: none}, false},
		"a script":            {witness{tree: around(element("SCRIPT")), counters: none}, false},
		"a handler":           {witness{tree: around(element("p", "id", "x", "OnClick", "")), counters: none}, false},
		"a frame":             {witness{tree: around(element("iframe")), counters: none}, false},
		"a document in it":    {witness{tree: around(&protocdp.Node{LocalName: "x-y", ContentDocument: element("")}), counters: none}, false},
		"a meta order":        {witness{tree: around(element("meta", "http-equiv", "ReFresh")), counters: none}, false},
		"a handler in a root": {witness{tree: around(&protocdp.Node{LocalName: "p", ShadowRoots: []*protocdp.Node{around(element("p", "onload", "x"))}}), counters: none}, false},
		"a handler not alive": {witness{tree: around(&protocdp.Node{LocalName: "template", TemplateContent: around(element("p", "onload", "x"))}), counters: none}, true},
	} {
		if got := c.w.rests(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Cost is where the time of the newest observation went.
func Cost(p *Page) pagejs.Cost {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cost
}
