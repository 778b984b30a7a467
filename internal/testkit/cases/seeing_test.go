package cases_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/testkit/cases"
)

// The label of a control stands deep inside it, beside a picture that is
// hidden from assistive technology: the picture is left out, the label is not
// (NAME-01).
func TestCase21NameFromDeepInside(t *testing.T) {
	c := shared.Case(t)
	const icon = `<svg aria-hidden="true" width=12 height=12><title>decoration</title><path d="M0 0h9v9z"/></svg>`
	v := c.Open(`<title>Deep</title><button onclick="tell('save')">` + icon + `<span><span>Save</span> <b>the draft</b></span></button>
		<a href="#t" onclick="tell('trip')"><i aria-hidden=true>x</i><span><em><span>Book</span></em></span> a trip</a>
		<div role=button tabindex=0 onclick="tell('out')"><div><div>Log</div><div>out</div></div>` + icon + `</div>
		<x-chip></x-chip><script>const r = document.querySelector('x-chip').attachShadow({ mode: 'open' });
		r.innerHTML = '<button><span><slot></slot></span></button>'; document.querySelector('x-chip').textContent = 'Slotted label';
		r.firstChild.onclick = () => tell('slotted');</script>`)
	for _, name := range []string{"Save the draft", "Book a trip", "Log out", "Slotted label"} {
		v = c.Must(v, action.Click, name)
	}
	c.Only("save", "trip", "out", "slotted")
}

// What takes a click and shows only a picture has no name, and is listed all
// the same, with a word on what it looks like.
func TestCase22ClickableWithoutWords(t *testing.T) {
	c := shared.Case(t)
	const svg = `<svg width=20 height=20><circle cx=10 cy=10 r=8 /></svg>`
	v := c.Open(`<title>Icons</title><p>Drawing</p><div class="icon-trash" style="cursor:pointer;width:24px" onclick="tell('trash')">` + svg + `</div>
		<button class="icon-pen" onclick="tell('pen')">` + svg + `</button><a class="icon-lens" href="#z" onclick="tell('lens')"><i style="display:inline-block;width:9px;height:9px;background:red"></i></a>
		<span class="icon-star" tabindex=0 onclick="tell('star')">` + svg + `</span>`)
	for _, looks := range []string{"trash", "pen", "lens", "star"} {
		var ref string
		for _, e := range v.Elements {
			if e.Name == "" && strings.Contains(v.States[e.Ref].Hint, looks) {
				ref = e.Ref
			}
		}
		if ref == "" {
			t.Fatalf("nothing looks like %s among %+v", looks, v.States)
		}
		var err error
		if v, err = c.TryRef(v, action.Click, ref); err != nil {
			t.Fatal(looks, err)
		}
	}
	c.Only("trash", "pen", "lens", "star")
}

// One thing to click is one control: neither is a card lost because its
// listener is on an outer box, nor does a wrapper stand in for all that it
// holds, nor does everything that inherits its pointer count again (OBS-02).
func TestCase23OneControlPerSurface(t *testing.T) {
	c := shared.Case(t)
	v := c.Open(`<title>Cards</title><style>.p{cursor:pointer}</style>
		<div class=p onclick="tell('card')"><h3>Blue card</h3><p>with <b>two</b> lines</p></div>
		<div class=p id=bare><span>Bare</span> <span>card</span></div>
		<ul><li class=p onclick="event.target.closest('button') || tell('row')"><span>Row text</span> <button onclick="tell('star')">Star</button></li></ul>
		<section class=p><button onclick="tell('first')">First</button><button onclick="tell('second')">Second</button></section>
		<label class=p><input type=checkbox onchange="tell('box')"> <span>Wide box</span></label>
		<script>bare.addEventListener('click', () => tell('bare'));</script>`)
	want := map[string]int{"Blue card with two lines": 1, "Bare card": 1, "Star": 1, "First": 1, "Second": 1, "Wide box": 1}
	got := map[string]int{}
	for _, e := range v.Elements {
		got[e.Name]++
	}
	rows := 0
	for name, n := range got {
		if strings.HasPrefix(name, "Row text") {
			rows += n
		} else if n != want[name] {
			t.Errorf("%d controls %q", n, name)
		}
	}
	if rows != 1 || len(got) != 7 {
		t.Errorf("%q", v.Names())
	}
	for _, name := range []string{"Blue card with two lines", "Bare card", "Star", "First", "Second"} {
		v = c.Must(v, action.Click, name)
	}
	c.Must(v, action.Check, "Wide box")
	c.Only("card", "bare", "star", "first", "second", "box")
}

// Pictures that only a tooltip or a description tells apart (NAME-01).
func TestCase25NameFromTooltip(t *testing.T) {
	c := shared.Case(t)
	v := c.Open(`<title>Pluses</title><button title="Add a guest" onclick="tell('guest')">` + plus + `</button><button title="Add a room" onclick="tell('room')">` + plus + `</button>
		<div class=p style="cursor:pointer;width:20px" title="Add a bed" onclick="tell('bed')">` + plus + `</div>
		<button aria-describedby=d onclick="tell('cot')">` + plus + `</button><p id=d role=tooltip hidden>Add a cot</p>
		<input title="typed-in-value" value="typed-in-value"><input title="Nights" value=3>`)
	for _, name := range []string{"Add a room", "Add a bed", "Add a guest"} {
		v = c.Must(v, action.Click, name)
	}
	cot := slices.IndexFunc(v.Elements, func(e observe.Element) bool { return strings.Contains(v.States[e.Ref].Hint, `described "Add a cot"`) })
	if cot < 0 {
		t.Fatalf("the described button cannot be told apart: %q %s", v.Names(), v.Answer)
	}
	if _, err := c.TryRef(v, action.Click, v.Elements[cot].Ref); err != nil {
		t.Error(err)
	}
	c.Find(v, "Nights")
	if strings.Contains(v.Answer, "typed-in-value") { // a tooltip that repeats an entry
		t.Errorf("an entry is a name: %s", v.Answer)
	}
	c.Only("room", "bed", "guest", "cot")
}

const plus = `<svg width=16 height=16><path d="M8 2v12M2 8h12" stroke="red"/></svg>`

// A picture without a description beside a field for what it shows is listed,
// so that nobody takes the form for one without a riddle.
func TestCase26PictureWithoutWords(t *testing.T) {
	c := shared.Case(t)
	picture := c.Handle(cases.Host, "riddle.svg", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/svg+xml")
		fmt.Fprint(w, `<svg xmlns="http://www.w3.org/2000/svg" width="120" height="40"><rect width="120" height="40"/></svg>`)
	})
	v := c.Open(`<title>Riddle</title><form onsubmit="return false"><img src="` + picture + `" width=120 height=40><label>Letters <input oninput="tell('typed')"></label></form>`)
	found := false
	for _, e := range v.Elements {
		found = found || e.Role == "img"
	}
	if !found {
		t.Errorf("the picture is not listed: %q", v.Names())
	}
	c.Must(v, action.Type, "Letters", "abc")
	c.Only("typed")
}

// What a person cannot use is not offered as usable, and an act on it is
// refused (OBS-03, CLK-01).
func TestCase28NotUsableIsSaid(t *testing.T) {
	c := shared.Case(t)
	v := c.Open(`<title>Off</title><div inert><button onclick="tell('inert')">Inert</button></div><div style="height:0;overflow:hidden"><button onclick="tell('clipped')">Clipped</button></div>
		<button onclick="tell('free'); d.showModal()">Free</button><dialog id=d><button onclick="tell('inside')">Inside</button></dialog>`)
	for name, why := range map[string]string{"Inert": "inert", "Clipped": "offscreen_clipped", "Free": ""} {
		if got := v.States[c.Find(v, name).Ref].Blocked; got != why {
			t.Errorf("%s is blocked by %q, want %q", name, got, why)
		}
	}
	c.Refused(v, fault.ElementNotFound, action.Click, "Inert")
	c.Refused(v, fault.ElementNotFound, action.Click, "Clipped")
	v = c.Must(v, action.Click, "Free")
	if v.Elements[0].Name != "Inside" || v.States[c.Find(v, "Free").Ref].Blocked != "behind_dialog" {
		t.Errorf("%q %+v", v.Names(), v.States)
	}
	c.Refused(v, fault.ElementNotFound, action.Click, "Free")
	c.Must(v, action.Click, "Inside")
	c.Only("free", "inside")
}

// A field in a frame in a frame is read, filled and read back, whichever of the
// profile's origins the frames come from; one of another origin is read and
// refused.
func TestCase30FramesInFrames(t *testing.T) {
	c := shared.Case(t)
	field := func(host, word string) string {
		return c.Serve(host, word, `<p>Deep `+word+`</p><label>`+word+` <input oninput="tell('`+word+`=' + this.value)"></label>`)
	}
	middle := c.Serve(cases.Partner, "middle", `<p style="height:90px">Middle</p><iframe width=300 height=120 src="`+field(cases.Partner, "Theirs")+`"></iframe><iframe width=300 height=120 src="`+field(cases.Host, "Ours")+`"></iframe>
		<iframe width=300 height=120 src="`+field(cases.Stranger, "Foreign")+`"></iframe>`)
	v := c.Open(`<title>Nested</title><p style="height:120px">Top</p><iframe width=700 height=500 src="` + middle + `"></iframe>`)
	for _, name := range []string{"Theirs", "Ours", "Foreign"} {
		if v.States[c.Find(v, name).Ref].Frame == "" {
			t.Errorf("%s is not said to be in a frame", name)
		}
	}
	v = c.Must(v, action.Type, "Ours", "one")
	v = c.Must(v, action.Type, "Theirs", "two")
	for _, name := range []string{"Theirs", "Ours"} {
		if filled := v.States[c.Find(v, name).Ref].Filled; filled == nil || !*filled {
			t.Errorf("%s is not said to be filled", name)
		}
	}
	c.Refused(v, fault.ActionNotAllowed, action.Type, "Foreign", "three")
	c.Only("Ours=one", "Theirs=two")
}

// Children that a component shows through its slots are there, between its own,
// in the order in which a person sees them (EXP-05).
func TestCase31SlottedChildren(t *testing.T) {
	c := shared.Case(t)
	v := c.Open(`<title>Menu</title><x-menu><button slot=end onclick="tell('last')">Last</button><button onclick="tell('one')">One</button><button onclick="tell('two')">Two</button></x-menu>
		<script>const m = document.querySelector('x-menu').attachShadow({ mode: 'open' });
		m.innerHTML = '<button>Own before</button><slot></slot><button>Own between</button><slot name=end></slot><slot name=none><button>Fallback</button></slot>';
		for (const b of m.querySelectorAll('button')) b.onclick = () => tell(b.textContent);</script>`)
	want := []string{"button Own before", "button One", "button Two", "button Own between", "button Last", "button Fallback"}
	if got := v.Names(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, name := range []string{"Two", "Own between", "Last", "Fallback"} {
		v = c.Must(v, action.Click, name)
	}
	c.Only("two", "Own between", "last", "Fallback")
}

// A menu in a shadow tree in a frame, and a consent banner in a shadow tree,
// open or closed, are seen and can be clicked.
func TestCase32ShadowTreesAnywhere(t *testing.T) {
	c := shared.Case(t)
	inner := c.Serve(cases.Partner, "menu", `<x-nav></x-nav><script>const r = document.querySelector('x-nav').attachShadow({ mode: 'open' });
		r.innerHTML = '<nav><ul><li><a href="#r">Reports</a></li></ul></nav>'; r.querySelector('a').onclick = () => tell('reports');</script>`)
	banner := func(id, mode string) string {
		return `<x-` + id + `></x-` + id + `><script>{ const r = document.querySelector('x-` + id + `').attachShadow({ mode: '` + mode + `' });
			r.innerHTML = '<div style="position:fixed;bottom:0;left:0;right:0;background:#ccc">We use cookies <button>Reject ` + id + `</button></div>';
			r.querySelector('button').onclick = () => { tell('` + id + `'); r.host.remove(); }; }</script>`
	}
	v := c.Open(`<title>Trees</title><iframe width=400 height=200 src="` + inner + `"></iframe>` + banner("plain", "open") + banner("sealed", "closed"))
	for _, word := range []string{"We use cookies"} {
		if strings.Count(v.Text, word) < 1 {
			t.Errorf("%q is not in the text %q", word, v.Text)
		}
	}
	v = c.Must(v, action.Click, "Reject sealed")
	v = c.Must(v, action.Click, "Reject plain")
	c.Must(v, action.Click, "Reports")
	c.Only("sealed", "plain", "reports")
}

// A dialog that a script has just put at the end of the page is an ordinary
// part of the next reading, first in it.
func TestCase33DialogOfAMomentAgo(t *testing.T) {
	c := shared.Case(t)
	v := c.Open(`<title>Team</title><button id=add>Add a member</button><button>Elsewhere</button><script>
		add.onclick = () => requestAnimationFrame(() => {
			const d = document.createElement('div');
			d.innerHTML = '<div role=dialog aria-modal=true aria-label="New member" style="position:fixed;inset:80px;background:#fff"><label>Name <input></label><button>Create</button></div>';
			document.body.append(d);
			d.querySelector('button').onclick = () => { tell('created ' + d.querySelector('input').value); d.remove(); };
		});</script>`)
	v = c.Must(v, action.Click, "Add a member")
	if got := v.Names(); len(got) < 2 || got[0] != "textbox Name" || got[1] != "button Create" {
		t.Errorf("the dialog is not first: %q", got)
	}
	v = c.Must(v, action.Type, "Name", "Ada")
	v = c.Must(v, action.Click, "Create")
	if slices.Contains(v.Names(), "textbox Name") {
		t.Errorf("the closed dialog is still listed: %q", v.Names())
	}
	c.Only("created Ada")
}

// However long the page is, what it has just said of a failure is in the
// answer: alerts, live regions, and the messages of wrong fields (TEXT-01).
func TestCase35ErrorsAreNeverCutOff(t *testing.T) {
	c := shared.Case(t)
	filler := strings.Repeat(`<p>`+strings.Repeat("Small print of the terms that nobody reads. ", 8)+`</p>`, 3000)
	v := c.Open(`<title>Join</title><form onsubmit="event.preventDefault(); tell('sent'); no.textContent = 'That name is already taken'; nick.setAttribute('aria-invalid', 'true'); long.textContent = 'At most 12 characters'; polite.textContent = 'Nothing was saved'">
		<label>Nickname <input id=nick aria-describedby=long></label><button>Join</button></form>` + filler +
		`<p role=alert id=no></p><p id=long style="color:red"></p><div aria-live=polite id=polite></div>`)
	v = c.Must(v, action.Click, "Join")
	var answer struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal([]byte(v.Answer), &answer); err != nil {
		t.Fatal(err)
	}
	for _, said := range []string{"That name is already taken", "At most 12 characters", "Nothing was saved"} {
		if !strings.Contains(answer.Text, said) {
			t.Errorf("%q is not in the answer", said)
		}
	}
	c.Only("sent")
}

// A reading of a page of any size is bounded, says that it is cut, and can be
// gone on with until every control has been seen once (EXP-01 to EXP-09).
func TestCase37HugePagesArePaged(t *testing.T) {
	c := shared.Case(t)
	const rows = 500
	v := c.Open(fmt.Sprintf(`<title>Huge</title><table id=t></table><script>
		let html = ''; for (let i = 0; i < %d; i++) html += '<tr><td>' + 'cell '.repeat(20) + i + '<td><a href="#r' + i + '">Row ' + i + '</a><td><x-cell n=' + i + '></x-cell>'; t.innerHTML = html;
		for (const x of document.querySelectorAll('x-cell')) x.attachShadow({ mode: 'open' }).innerHTML = '<button>Edit ' + x.getAttribute('n') + '</button>';
		t.addEventListener('click', (e) => tell(e.composedPath()[0].textContent));</script>`, rows))
	seen := map[string]int{}
	last := ""
	for reads := 0; ; reads++ {
		var answer struct{ Elements []observe.Element }
		if err := json.Unmarshal([]byte(v.Answer), &answer); err != nil {
			t.Fatal(err)
		}
		for _, e := range answer.Elements {
			seen[e.Name]++
			last = e.Name
		}
		next := v.Next()
		if next == nil {
			break
		}
		if reads > 200 {
			t.Fatal("the page has no end")
		}
		v = c.Read(observe.Query{After: next.After, Cursor: next.Cursor})
	}
	for i := range rows {
		for _, name := range []string{fmt.Sprint("Row ", i), fmt.Sprint("Edit ", i)} {
			if seen[name] != 1 {
				t.Fatalf("%q was seen %d times", name, seen[name])
			}
		}
	}
	c.Must(v, action.Click, last)
	c.Only(last)
}
