package approval

import (
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/consequence"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// CLS-02, section 2.7: the owner is told what an act may lead to, by every
// source there is, and by the element that was observed and not by what the
// agent says of it (row 58 of the cases).
func TestConsequence(t *testing.T) {
	choice := observe.State{Options: []observe.Option{{Label: "Keep"}, {Label: "Delete  all"}}}
	type facts = observe.Facts
	for name, x := range map[string]struct {
		act     action.Action
		element observe.Element
		facts   facts
		state   observe.State
		want    consequence.Consequence
	}{
		"the name":             {act(action.Click), observe.Element{Role: "button", Name: "Pay now"}, facts{}, observe.State{}, consequence.Payment},
		"the visible text":     {act(action.Click), observe.Element{Role: "button", Name: "Next"}, facts{Text: "Delete account"}, observe.State{}, consequence.SecurityChange},
		"another label":        {act(action.Click), observe.Element{Role: "button", Name: "Next"}, facts{Labels: map[observe.Source]string{observe.Tooltip: "Buy"}}, observe.State{}, consequence.Purchase},
		"the dialog":           {act(action.Click), observe.Element{Role: "button", Name: "Continue"}, facts{Context: "Publish this post?"}, observe.State{}, consequence.Publication},
		"a link's path":        {act(action.Click), observe.Element{Role: "link", Name: "Continue"}, facts{Link: &observe.Target{SameOrigin: true, Segment: "checkout", Sensitive: true}}, observe.State{}, consequence.Payment},
		"a hidden path":        {act(action.Click), observe.Element{Role: "button", Name: "Continue"}, facts{Form: &observe.Target{SameOrigin: true, Segment: "a", Sensitive: true}}, observe.State{}, consequence.Unknown},
		"an unknown target":    {act(action.Click), observe.Element{Role: "button", Name: "Continue"}, facts{Link: observe.Opaque()}, observe.State{}, consequence.Unknown},
		"a cut label":          {act(action.Click), observe.Element{Role: "button", Name: "Continue"}, facts{Cut: true}, observe.State{}, consequence.Unknown},
		"a download":           {act(action.Click), observe.Element{Role: "link", Name: "Next"}, facts{Download: true}, observe.State{}, consequence.FileTransfer},
		"the field":            {typed(action.Type, "x"), observe.Element{Role: "textbox", Name: "Next"}, facts{FieldKind: observe.FieldPayment}, observe.State{}, consequence.Payment},
		"a named option":       {typed(action.Select, "Keep"), observe.Element{Role: "combobox", Name: "What"}, facts{FieldKind: observe.FieldSelect}, choice, consequence.Unknown},
		"a sensitive option":   {typed(action.Select, "Delete all"), observe.Element{Role: "combobox", Name: "What"}, facts{FieldKind: observe.FieldSelect}, choice, consequence.Destructive},
		"an option by value":   {typed(action.Select, "2"), observe.Element{Role: "combobox", Name: "What"}, facts{FieldKind: observe.FieldSelect}, choice, consequence.Destructive},
		"routine":              {act(action.Click), observe.Element{Role: "button", Name: "Next"}, facts{}, observe.State{}, consequence.Routine},
		"what says nothing":    {act(action.Click), observe.Element{Role: "button", Name: "Gizmo"}, facts{}, observe.State{}, consequence.Unknown},
		"another look-alike":   {act(action.Click), observe.Element{Role: "button", Name: "P\u0430y"}, facts{}, observe.State{}, consequence.Payment},
		"ticking what is sold": {act(action.Check), observe.Element{Role: "checkbox", Name: "Add insurance to my order"}, facts{FieldKind: observe.FieldChoice}, observe.State{}, consequence.Purchase},
	} {
		if x.facts.FieldKind == "" {
			x.facts.FieldKind = observe.FieldNone
		}
		v, _ := Describe(x.act, rawWith(t, x.element, x.facts, x.state))
		if v.Consequence != x.want {
			t.Errorf("%s: %q, want %q", name, v.Consequence, x.want)
		}
	}
}

func rawWith(t *testing.T, e observe.Element, f observe.Facts, s observe.State) observe.Raw {
	t.Helper()
	e.Ref = "r1:0"
	u, err := site.ParseURL("https://wiki.example.org/edit/page")
	if err != nil {
		t.Fatal(err)
	}
	d := observe.Document{URL: u.String(), Revision: "r1", Elements: []observe.Element{e}, Facts: map[string]observe.Facts{"r1:0": f}}
	if !s.Empty() {
		d.States = map[string]observe.State{"r1:0": s}
	}
	r, err := observe.Accept(d, site.Origins{u.Origin()})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Section 2.7: checked and refused.
func TestCheckedAndRefused(t *testing.T) {
	v, _ := Describe(act(action.Check), raw(t, observe.Element{Role: "checkbox", Name: "Me"}, observe.Facts{FieldKind: observe.FieldChoice}))
	if !v.Checked || v.Refused {
		t.Errorf("%+v", v)
	}
	for kind, want := range map[observe.FieldKind]bool{observe.FieldPassword: true, observe.FieldOneTimeCode: true, observe.FieldPayment: false, observe.FieldText: false} {
		if v, _ := Describe(typed(action.Type, "x"), raw(t, observe.Element{Role: "textbox"}, observe.Facts{FieldKind: kind})); v.Refused != want {
			t.Errorf("%s: refused %v", kind, v.Refused)
		}
	}
}

// Row 61 of the cases: the owner is told where an address leads, by its path
// and without its query.
func TestDescribeOpen(t *testing.T) {
	u, err := site.ParseURL("https://shop.example.org/cart/checkout?token=abc#x")
	if err != nil {
		t.Fatal(err)
	}
	v, summary := DescribeOpen(u)
	if v != (View{View: "browser.navigate.v1", Described: true, Kind: "navigate", PageOrigin: "https://shop.example.org", PagePath: "/cart/checkout", Consequence: consequence.Payment}) ||
		summary != "Open shop.example.org/cart/checkout" {
		t.Errorf("%+v, %q", v, summary)
	}
}

// UPL-05: what the owner is shown of an upload, described or not.
func TestDescribeUpload(t *testing.T) {
	i := artifact.Image{ID: "3f0c1f9e-6a34-4b57-9a52-0d6c0c1f2a3b", Type: artifact.WebP, Size: 9, Width: 2, Height: 3, SHA256: "ab"}
	on := raw(t, observe.Element{Role: "textbox", Name: "Photo"}, observe.Facts{FieldKind: observe.FieldFile})
	v, summary := DescribeUpload(act(action.Attach), i, on)
	if v.View != "browser.upload.v1" || v.Kind != "upload" || !v.Described || v.Consequence != consequence.FileTransfer || v.ElementName != "Photo" ||
		*v.Image != (Image{ID: i.ID, Type: "image/webp", Size: 9, Width: 2, Height: 3, SHA256: "ab"}) {
		t.Errorf("%+v %+v", v, v.Image)
	}
	if summary != "Give an image to a textbox on wiki.example.org/edit/page" {
		t.Errorf("summary %q", summary)
	}
	lost := act(action.Attach)
	lost.Ref = "r1:9"
	v, summary = DescribeUpload(lost, i, on)
	if v.Described || v.ElementName != "" || v.Image == nil || summary != "Give an image to an element that can no longer be described" {
		t.Errorf("%+v, %q", v, summary)
	}
}
