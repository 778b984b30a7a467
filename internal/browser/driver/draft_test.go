package driver_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

func TestDraft(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	const text = "Dear all,\nyours  truly"
	editor := `<main>Post <div contenteditable role=textbox aria-label=Editor style="white-space:pre-wrap;min-height:20px"><b>old</b></div></main><section>Aside</section><input aria-label=Plain>`
	typed := func(t *testing.T, path, body, value string) observe.Document {
		t.Helper()
		d, err := b.act(t, b.open(t, path, body), action.Type, "Editor", value)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	t.Run("DRAFT-01 DRAFT-02 DRAFT-04 while the editor shows exactly that", func(t *testing.T) {
		d := typed(t, "/draft", editor, text)
		if d.Draft != text || strings.Contains(d.Text, "Dear") {
			t.Fatalf("draft %q, text %q", d.Draft, d.Text)
		}
		elsewhere, err := b.page.Observe(t.Context(), observe.Query{Region: &observe.RegionQuery{Ref: regionRef(t, d, "Aside"), Revision: d.Revision}})
		if err != nil || elsewhere.Draft != "" {
			t.Errorf("%q %v", elsewhere.Draft, err)
		}
		if d = b.again(t); d.Draft != text {
			t.Error("a reading elsewhere ended the draft")
		}
		focused, err := b.page.Observe(t.Context(), observe.Query{Region: &observe.RegionQuery{Ref: regionRef(t, d, "Post"), Revision: d.Revision}})
		if err != nil || focused.Draft != text {
			t.Errorf("%q %v", focused.Draft, err)
		}
		if d, err = b.act(t, b.again(t), action.Type, "Plain", "plain-value"); err != nil || d.Draft != text {
			t.Errorf("%q %v", d.Draft, err)
		}
		if body, err := json.Marshal(d); err != nil || strings.Contains(string(body), "plain-value") {
			t.Error("a plain field was echoed")
		}
		if d, err = b.act(t, d, action.Type, "Editor", "second"); err != nil || d.Draft != "second" {
			t.Errorf("%q %v", d.Draft, err)
		}
		if d := b.open(t, "/other", editor); d.Draft != "" {
			t.Error("the draft outlived its document")
		}
	})
	for name, how := range map[string]string{
		"changed": "e.append('!')", "hidden": "e.hidden=true", "gone": "e.remove()", "no editor": "e.contentEditable=false",
		"replaced": "e.replaceWith(e.cloneNode(true))", "masked": "e.style.webkitTextSecurity='disc'",
		"many nodes": "for(let i=0;i<257;i++)e.append(new Text(''))", "inside another": "e.parentNode.contentEditable=true", "spaces": "const n=document.createTreeWalker(e,4).nextNode();n.data=n.data.replace('Dear all','Dear  all')",
	} {
		t.Run("DRAFT-03 DRAFT-04 void for good: "+name, func(t *testing.T) {
			script, change := b.later(t, "draft-"+strings.ReplaceAll(name, " ", "-"), "const e=document.querySelector('[contenteditable]');"+how)
			if d := typed(t, "/void-"+strings.ReplaceAll(name, " ", "-"), editor+script, text); d.Draft != text {
				t.Fatalf("%q", d.Draft)
			}
			change()
			if d := b.again(t); d.Draft != "" {
				t.Errorf("%q", d.Draft)
			}
		})
	}
	t.Run("DRAFT-04 void for good", func(t *testing.T) {
		hide, hidden := b.later(t, "hide", "document.querySelector('[contenteditable]').hidden=true")
		show, shown := b.later(t, "show", "document.querySelector('[contenteditable]').hidden=false")
		typed(t, "/void", editor+hide+show, text)
		hidden()
		b.again(t)
		shown()
		if d := b.again(t); d.Draft != "" {
			t.Errorf("%q", d.Draft)
		}
	})
	t.Run("DRAFT-05 a plain field has no draft", func(t *testing.T) {
		d, err := b.act(t, b.open(t, "/plain-draft", `<textarea aria-label=Area></textarea>`), action.Type, "Area", "plain-value")
		if body, _ := json.Marshal(d); err != nil || strings.Contains(string(body), "plain-value") {
			t.Errorf("%v %s", err, body)
		}
	})
}
