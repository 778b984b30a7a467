package driver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// factsOf are the facts of the element with the name.
func factsOf(t testing.TB, d observe.Document, name string) observe.Facts {
	t.Helper()
	return d.Facts[find(t, d, name)]
}

// attach is a script that gives the element with the id a closed shadow root.
func attach(id, html string) string {
	text, err := json.Marshal(html)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`<script>document.getElementById(%q).attachShadow({mode:'closed'}).innerHTML=%s</script>`, id, text)
}

// FACT-02: one kind for everything that an act treats differently.
func TestFieldKinds(t *testing.T) {
	b := newBench(t, nil)
	var body strings.Builder
	want := map[string]observe.FieldKind{}
	for i, x := range []struct {
		html string
		kind observe.FieldKind
	}{
		{`<textarea aria-label=%s></textarea>`, observe.FieldMultiline},
		{`<div contenteditable role=textbox aria-label=%s>x</div>`, observe.FieldEditable},
		{`<select aria-label=%s><option>a</select>`, observe.FieldSelect},
		{`<input type=checkbox aria-label=%s>`, observe.FieldChoice},
		{`<input type=radio aria-label=%s>`, observe.FieldChoice},
		{`<div role=checkbox tabindex=0 aria-label=%s>x</div>`, observe.FieldCustomChoice},
		{`<div role=radio tabindex=0 aria-label=%s>x</div>`, observe.FieldCustomChoice},
		{`<div role=option tabindex=0 aria-label=%s>x</div>`, observe.FieldCustomChoice},
		{`<div role=menuitemradio tabindex=0 aria-label=%s>x</div>`, observe.FieldCustomChoice},
		{`<button aria-label=%s>x</button>`, observe.FieldNone},
		{`<input type=submit aria-label=%s>`, observe.FieldNone},
		{`<input aria-label=%s>`, observe.FieldText},
		{`<input type=search aria-label=%s>`, observe.FieldSearch},
		{`<input type=email aria-label=%s>`, observe.FieldEmail},
		{`<input type=tel aria-label=%s>`, observe.FieldTelephone},
		{`<input type=url aria-label=%s>`, observe.FieldURL},
		{`<input type=number aria-label=%s>`, observe.FieldNumber},
		{`<input type=datetime-local aria-label=%s>`, observe.FieldDate},
		{`<input type=file aria-label=%s>`, observe.FieldFile},
		{`<input type=password aria-label=%s>`, observe.FieldPassword},
		{`<input type=color aria-label=%s>`, observe.FieldOther},
		{`<input autocomplete="shipping street-address" aria-label=%s>`, observe.FieldIdentity},
		{`<input autocomplete="section-a billing cc-number" aria-label=%s>`, observe.FieldPayment},
		{`<textarea autocomplete="one-time-code" aria-label=%s></textarea>`, observe.FieldOneTimeCode},
		{`<input autocomplete="off" aria-label=%s>`, observe.FieldText},
		{`<input autocomplete="language" aria-label=%s>`, observe.FieldOther},
	} {
		name := fmt.Sprint("e", i)
		fmt.Fprintf(&body, x.html+"\n", name)
		want[name] = x.kind
	}
	d := b.open(t, "/kinds", body.String())
	for name, kind := range want {
		if got := factsOf(t, d, name).FieldKind; got != kind {
			t.Errorf("%s is %s, want %s", name, got, kind)
		}
	}
}

// FACT-03, FACT-04, FACT-08: every source of a label that does not read as the
// name, whole or marked as cut, through slots and shadow roots.
func TestLabelSources(t *testing.T) {
	b := newBench(t, nil)
	type labels = map[observe.Source]string
	long := strings.Repeat("word ", 60)
	for _, x := range []struct {
		what, html string
		text       string
		labels     labels
		cut        bool
	}{
		{"one reading only", `<button id=e>Go</button>`, "", nil, false},
		{"white space is the layout's", `<button id=e title=" Go  on ">Go<b> on</b></button>`, "", nil, false},
		{"a sign beside the name", `<button id=e aria-label=Go>Go $</button>`, "Go $", nil, false},
		{"an attribute over the text", `<button id=e aria-label=Go><span>Delete</span></button>`, "Delete", nil, false},
		{"a text that readers skip", `<button id=e>Go<span aria-hidden=true> Delete</span></button>`, "", labels{observe.VisibleText: "Go Delete"}, false},
		{"a name within the text", `<button id=e><span aria-label=Go>Delete</span></button>`, "", labels{observe.VisibleText: "Delete"}, false},
		{"a hidden text", `<button id=e>Go<span hidden> Delete</span><i style="visibility:hidden">Drop</i></button>`, "", nil, false},
		{"the tooltip", `<button id=e aria-label=Go title="Delete all">Go</button>`, "", labels{observe.Tooltip: "Delete all"}, false},
		{"every attribute", `<p id=p>Other</p><input id=e aria-label=Go aria-labelledby=p title=Tip placeholder=Hint>`, "",
			labels{observe.AriaLabel: "Go", observe.Tooltip: "Tip", observe.Placeholder: "Hint"}, false},
		{"its label", `<label for=e>Real</label><input id=e aria-label=Go>`, "", labels{observe.Label: "Real"}, false},
		{"a label around it", `<label>Real <input id=e aria-label=Go></label>`, "", labels{observe.Label: "Real"}, false},
		{"pictures", `<button id=e aria-label=Go><img alt=Bin width=9 height=9><img alt=Lid width=9 height=9></button>`, "BinLid", labels{observe.Alternative: "Bin Lid"}, false},
		{"the value of a button", `<button id=e value=delete>Go</button>`, "", labels{observe.Caption: "delete"}, false},
		{"the value of a submit", `<input id=e type=submit aria-label=Go value=Delete>`, "Delete", nil, false},
		{"never a value that was entered", `<input id=e value=secret aria-label=Go><textarea>secret</textarea><div role=textbox tabindex=0 aria-label=Box>secret</div>`, "", nil, false},
		{"nor what is in an editor", `<div id=e role=button tabindex=0 aria-label=Go><div contenteditable>secret</div></div>`, "", nil, false},
		{"a choice that a click changes", `<label id=e>Go<input hidden type=checkbox aria-label="Sell my data"></label>`, "", labels{observe.Label: "Sell my data"}, false},
		{"a choice that is far away", `<div id=e role=button tabindex=0>Go<label for=far></label></div><label for=far>Sell</label><input id=far type=checkbox>`, "", labels{observe.Label: "Sell"}, false},
		{"a shadow root", `<div id=e role=button tabindex=0 aria-label=Go><x-y id=h></x-y></div><script>h.attachShadow({mode:'open'}).innerHTML='<b>Delete</b>'</script>`, "Delete", nil, false},
		{"a closed one", `<div id=e role=button tabindex=0 aria-label=Go><x-y id=h></x-y></div>` + attach("h", "<b>Delete</b>"), "Delete", nil, false},
		{"a slot", `<div id=e role=button tabindex=0 aria-label=Go><x-y id=h>Slotted</x-y></div><script>h.attachShadow({mode:'open'}).innerHTML='<b>Delete <slot></slot></b>'</script>`, "Delete Slotted", nil, false},
		{"a label in its own tree", `<p id=l>Wrong</p><x-y id=h></x-y><script>h.attachShadow({mode:'open'}).innerHTML='<p id=l>Right</p><button id=e aria-labelledby=l>Right</button>'</script>`, "", nil, false},
		{"a long label", `<button id=e aria-label=Go title="` + long + `">Go</button>`, "", labels{observe.Tooltip: strings.TrimSpace(long[:256])}, true},
		{"a long text", `<button id=e aria-label=Go>` + long + `</button>`, strings.TrimSpace(long[:256]), nil, true},
		{"a name that is long and the whole text", `<button id=e>` + long + `</button>`, "", nil, false},
		{"nine pictures", `<button id=e aria-label=Go>` + strings.Repeat(`<img alt=x width=9 height=9>`, 9) + `</button>`, "xxxxxxxxx", labels{observe.Alternative: "x x x x x x x x"}, true},
		{"seventeen choices", `<div id=e role=button tabindex=0>Go` + strings.Repeat(`<input type=checkbox>`, 17) + `</div>`, "", nil, true},
	} {
		t.Run(x.what, func(t *testing.T) {
			d := b.open(t, "/labels/"+strings.ReplaceAll(x.what, " ", "-"), x.html)
			if len(d.Elements) == 0 {
				t.Fatal("no element")
			}
			f := d.Facts[d.Elements[0].Ref]
			if diff := cmp.Diff(labels(x.labels), f.Labels); diff != "" || f.Text != x.text || f.Cut != x.cut {
				t.Errorf("%q: text %q, want %q; cut %v; labels %s", d.Elements[0].Name, f.Text, x.text, f.Cut, diff)
			}
		})
	}
}

// FACT-05 to FACT-10: where a click leads, without its address.
func TestTargets(t *testing.T) {
	b := newBench(t, nil)
	at := func(segment string) *observe.Target { return &observe.Target{SameOrigin: true, Segment: segment} }
	sensitive := func(t *observe.Target) *observe.Target { t.Sensitive = true; return t }
	mixed, outside, opaque := at(""), &observe.Target{Segment: "in"}, observe.Opaque()
	svg := func(inner string) string { return `<svg width=90 height=30>` + inner + `</svg>` }
	for _, x := range []struct {
		what, html string
		link, form *observe.Target
		download   bool
	}{
		{"none", `<button id=e>Go</button>`, nil, nil, false},
		{"a link", `<a id=e href=/in/1>Go</a>`, at("in"), nil, false},
		{"a link to the root", `<a id=e href="/">Go</a>`, mixed, nil, false},
		{"a sensitive segment", `<a id=e href=/in/delete>Go</a>`, sensitive(at("in")), nil, false},
		{"another origin", `<a id=e href=https://other.example/in>Go</a>`, outside, nil, false},
		{"a long segment", `<a id=e href=/` + strings.Repeat("a", 65) + `>Go</a>`, mixed, nil, false},
		{"a link without address", `<a id=e tabindex=0>Go</a>`, nil, nil, false},
		{"a fragment", `<a id=e href=#x>Go</a>`, nil, nil, false},
		{"an empty link", `<a id=e href="">Go</a>`, nil, nil, false},
		{"a fragment under a base", `<base href=https://other.example/in><a id=e href=#x>Go</a>`, outside, nil, false},
		{"an empty link under a base", `<base href=/in/><a id=e href="">Go</a>`, at("in"), nil, false},
		{"a script", `<a id=e href="javascript:void 0">Go</a>`, opaque, nil, false},
		{"plain HTTP", `<a id=e href=http://wiki.example/in>Go</a>`, opaque, nil, false},
		{"another port", `<a id=e href=https://wiki.example:8443/in>Go</a>`, opaque, nil, false},
		{"data", `<a id=e href="data:text/html,x">Go</a>`, opaque, nil, false},
		{"a download", `<a id=e href=/in/x download>Go</a>`, at("in"), nil, true},
		{"a link around it", `<a href=/in/1><button id=e>Go</button></a>`, at("in"), nil, false},
		{"a link in it", `<div id=e role=button tabindex=0>Go <a href=/in/1>x</a></div>`, at("in"), nil, false},
		{"two links in it", `<div id=e role=button tabindex=0>Go <a href=/in/1>x</a><a href=/in/2>y</a></div>`, at("in"), nil, false},
		{"two that differ", `<div id=e role=button tabindex=0>Go <a href=/in/1>x</a><a href=/out/2>y</a></div>`, mixed, nil, false},
		{"one of two elsewhere", `<div id=e role=button tabindex=0>Go <a href=/in/1>x</a><a href=https://other.example/in>y</a></div>`, outside, nil, false},
		{"a link in a shadow root", `<div id=e role=button tabindex=0>Go <x-y id=h></x-y></div><script>h.attachShadow({mode:'open'}).innerHTML='<a href=/in/1>x</a>'</script>`, at("in"), nil, false},
		{"a link in a closed one", `<div id=e role=button tabindex=0>Go <x-y id=h></x-y></div>` + attach("h", "<a href=/in/1>x</a>"), at("in"), nil, false},
		{"a link around a slot", `<x-y id=h><button id=e>Go</button></x-y><script>h.attachShadow({mode:'open'}).innerHTML='<a href=/in/1><slot></slot></a>'</script>`, at("in"), nil, false},
		{"an SVG link", svg(`<a id=e href=/in/1><text y=20>Go</text></a>`), at("in"), nil, false},
		{"an SVG link of old", svg(`<a id=e xlink:href=/in/1><text y=20>Go</text></a>`), at("in"), nil, false},
		{"an SVG link that moves", svg(`<a id=e href=/in/1><set attributeName=href to=/out/1 /><text y=20>Go</text></a>`), mixed, nil, false},
		{"an image map", `<map name=m><area href=/in/1></map><div id=e role=button tabindex=0>Go<img usemap=#m width=9 height=9></div>`, opaque, nil, false},
		{"a document in it", `<div id=e role=button tabindex=0>Go<iframe srcdoc=x></iframe></div>`, opaque, nil, false},
		{"an object in it", `<div id=e role=button tabindex=0>Go<object width=9 height=9></object></div>`, opaque, nil, false},
		{"an icon of the page", svg(`<symbol id=i><path d=M0,0 /></symbol>`) + `<button id=e>Go` + svg(`<use href=#i />`) + `</button>`, nil, nil, false},
		{"an icon of another document", `<button id=e>Go` + svg(`<use href=/i.svg#i />`) + `</button>`, opaque, nil, false},
		{"a copy with a link", svg(`<symbol id=i><a href=/out><path d=M0,0 /></a></symbol>`) + `<button id=e>Go` + svg(`<use href=#i />`) + `</button>`, opaque, nil, false},
		{"a copy of a copy", svg(`<symbol id=i><use href=#j /></symbol>`) + `<button id=e>Go` + svg(`<use href=#i />`) + `</button>`, opaque, nil, false},
		{"a copy with a document", svg(`<symbol id=i><foreignObject><b>x</b></foreignObject></symbol>`) + `<button id=e>Go` + svg(`<use href=#i />`) + `</button>`, opaque, nil, false},
		{"too big", `<div id=e role=button tabindex=0>Go` + strings.Repeat(`<i></i>`, 2049) + `</div>`, opaque, nil, false},
		{"just not too big", `<div id=e role=button tabindex=0>Go` + strings.Repeat(`<i></i>`, 2047) + `</div>`, nil, nil, false},
		{"too deep", strings.Repeat(`<div>`, 256) + `<button id=e>Go</button>`, opaque, nil, false},
		{"too many links", `<div id=e role=button tabindex=0>Go` + func() (s string) {
			for i := range 65 {
				s += fmt.Sprintf(`<a href=/in/%d></a>`, i)
			}
			return s
		}() + `</div>`, opaque, nil, false},

		{"a form", `<form action=/in/1><button id=e>Go</button></form>`, nil, at("in"), false},
		{"its own page", `<form><button id=e>Go</button></form>`, nil, at("targets"), false},
		{"the button's address", `<form action=/out/1><button id=e formaction=/in/1>Go</button></form>`, nil, at("in"), false},
		{"an image's address", `<form action=/out/1><input id=e type=image alt=Go formaction=/in/1></form>`, nil, at("in"), false},
		{"a plain button may send it, too", `<form action=/in/1><button id=e type=button>Go</button></form>`, nil, at("in"), false},
		{"no button at all", `<form action=/in/1><div id=e role=menuitem tabindex=0>Go</div></form>`, nil, at("in"), false},
		{"Enter in a field", `<form action=/out/1><input id=e aria-label=Go><button formaction=/in/1>x</button><button>y</button></form>`, nil, at("in"), false},
		{"Enter in a field alone", `<form action=/in/1><input id=e aria-label=Go></form>`, nil, at("in"), false},
		{"a default button before the form", `<button form=f formaction=/in/1>x</button><form id=f action=/out/1><input id=e aria-label=Go></form>`, nil, at("in"), false},
		{"a form by name", `<form id=f action=/in/1></form><button id=e form=f>Go</button>`, nil, at("in"), false},
		{"a form of a custom element by name", `<form id=f action=/in/1></form><x-y id=e role=button tabindex=0 form=f>Go</x-y>`, nil, at("in"), false},
		{"a form elsewhere", `<form action=https://other.example/in><button id=e>Go</button></form>`, nil, outside, false},
		{"a script as form", `<form action="javascript:void 0"><button id=e>Go</button></form>`, nil, opaque, false},
		{"a form that closes a dialog", `<dialog open><form method=dialog><button id=e>Go</button></form></dialog>`, nil, nil, false},
		{"a button that does", `<form action=/out/1><button id=e formmethod=dialog>Go</button></form>`, nil, nil, false},
		{"a form with a field named action", `<form action=/in/1><input name=action type=hidden><button id=e>Go</button></form>`, nil, at("in"), false},
		{"a submit button in it", `<form action=/in/1 id=f></form><div id=e role=button tabindex=0>Go <button form=f>x</button></div>`, nil, at("in"), false},
		{"a submit button by its label", `<form action=/in/1 id=f></form><label id=e tabindex=0 for=s>Go</label><input id=s type=submit form=f hidden>`, nil, at("in"), false},
		{"a form in a shadow root", `<x-y id=h></x-y><script>h.attachShadow({mode:'open'}).innerHTML='<form action=/out/1><input id=e aria-label=Go><button formaction=/in/1>x</button></form>'</script><button formaction=/out/2>z</button>`, nil, at("in"), false},
		{"a form in a closed one", `<x-y id=h></x-y>` + attach("h", `<form action=/in/1><button id=e>Go</button></form>`), nil, at("in"), false},
		{"a form around a shadow root", `<form action=/in/1><x-y id=h></x-y></form><script>h.attachShadow({mode:'open'}).innerHTML='<button id=e type=button>Go</button>'</script>`, nil, at("in"), false},
	} {
		t.Run(x.what, func(t *testing.T) {
			d := b.open(t, "/targets/"+strings.ReplaceAll(x.what, " ", "-"), x.html)
			for _, e := range d.Elements {
				if !strings.HasPrefix(e.Name, "Go") {
					continue
				}
				f := d.Facts[e.Ref]
				if diff := cmp.Diff([]*observe.Target{x.link, x.form}, []*observe.Target{f.Link, f.Form}); diff != "" || f.Download != x.download {
					t.Errorf("download %v, link and form: %s", f.Download, diff)
				}
				if body, err := json.Marshal(d.Facts); err != nil || strings.Contains(string(body), "://") {
					t.Errorf("an address is in the facts (%v)", err)
				}
				return
			}
			t.Errorf("no element in %+v", d.Elements)
		})
	}
}

// FACT-05: the name of the dialog, cut at its bound.
func TestDialogFacts(t *testing.T) {
	b := newBench(t, nil)
	d := b.open(t, "/dialog", `<div role=dialog aria-label="`+strings.Repeat("d", 200)+`"><button>Go</button></div>`)
	if f := factsOf(t, d, "Go"); f.Context != strings.Repeat("d", 128) {
		t.Errorf("%q", f.Context)
	}
}

// OBS-01, issue of the right target: a click that was approved is refused when
// what it leads to, or what labels it, is another thing meanwhile.
func TestTargetsMustStay(t *testing.T) {
	b := newBench(t, nil)
	for _, c := range []struct{ name, path, body, change string }{
		{"a link in it", "in-link", `<div role=button tabindex=0 onclick="say('harm')">Go <a id=x href=/in/1></a></div>`, `x.href = '/effect?harm'`},
		{"the base", "base", `<a href="effect?harm">Go</a>`, `const n = document.createElement('base'); n.href = '/other/'; document.head.append(n)`},
		{"the default button", "default", `<form action=/in><input aria-label=Go onclick="say('harm')"><button id=x>s</button></form>`, `x.formAction = '/effect?harm'`},
		{"a choice behind it", "choice", `<input type=checkbox hidden id=y aria-label="News" onchange="say('harm')"><input type=checkbox hidden id=z aria-label="Sell" onchange="say('harm')"><label id=x for=y>Go</label>`, `x.htmlFor = 'z'`},
		{"a tooltip", "tip", `<button id=x aria-label=Go title=Keep onclick="say('harm')">Go</button>`, `x.title = 'Drop'`},
		{"a text that readers skip", "skipped", `<button onclick="say('harm')">Go <i id=x aria-hidden=true>on</i></button>`, `x.textContent = 'away'`},
		{"a download", "download", `<a id=x href="/effect?harm">Go</a>`, `x.download = 'x'`},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := b.changed(t, "must-"+c.path, c.body, c.change)
			_, err := b.act(t, d, action.Click, "Go")
			refused(t, err, fault.PageChanged)
			b.unharmed(t, "harm")
		})
	}
}
