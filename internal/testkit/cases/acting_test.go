package cases_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/testkit/cases"
)

// A handle of an earlier reading names nothing any more, whatever has moved
// into its place; one of the newest reading is good for its very node, wherever
// that has moved since, and for no other (CAP-06).
func TestCase01HandlesDoNotSlide(t *testing.T) {
	c := shared.Case(t)
	const three = `<div id=l><button onclick="tell('one')">One</button><button onclick="tell('two')">Two</button><button onclick="tell('three')">Three</button></div>`
	first := c.Open(`<title>List</title>` + three + `<button onclick="const n = document.createElement('button'); n.textContent = 'New'; n.onclick = () => tell('new'); l.prepend(n)">Insert</button>`)
	second := c.Must(first, action.Click, "Insert")
	for _, name := range []string{"One", "Two", "Three"} {
		c.Refused(first, fault.PageChanged, action.Click, name)
		mixed := first // the old number under the new revision is no reference either
		mixed.Revision = second.Revision
		c.Refused(mixed, fault.ElementNotFound, action.Click, name)
	}
	c.Must(second, action.Click, "Two")
	script, run := c.Later(`l.append(l.children[0]); const n = document.createElement('button'); n.textContent = 'Two'; n.onclick = () => tell('double'); l.prepend(n)`)
	v := c.Open(`<title>Moved</title>` + three + script)
	run()
	c.Must(v, action.Click, "One")
	script, run = c.Later(`l.children[1].textContent = 'Delete all'; l.children[1].onclick = () => tell('deleted')`)
	v = c.Open(`<title>Used again</title>` + three + script)
	run()
	c.Refused(v, fault.PageChanged, action.Click, "Two")
	c.Only("two", "one")
}

// A handle ends with its document, however that was left, though a control of
// the same name stands in the same place of the next one (CAP-06).
func TestCase02HandlesEndWithTheirDocument(t *testing.T) {
	c := shared.Case(t)
	const place = `<button style="position:absolute;left:40px;top:80px" onclick="tell('%s')">Order</button>`
	next := c.Serve(cases.Host, "next", `<title>Next</title>`+fmt.Sprintf(place, "wrong")+`<script>tell('there' + location.search)</script>`)
	for _, way := range []string{`<a href="` + next + `">Go on</a>`, `<button onclick="location.replace('` + next + `')">Go on</button>`, `<form action="` + next + `"><button name=by value=form>Go on</button></form>`} {
		old := c.Open(`<title>First</title>` + fmt.Sprintf(place, "old") + way)
		if v := c.Must(old, action.Click, "Go on"); v.Title != "Next" {
			t.Errorf("the click led to %q", v.Title)
		}
		c.Refused(old, fault.PageChanged, action.Click, "Order")
	}
	// The page goes on by itself between the reading and the act.
	script, run := c.Later(`setTimeout(() => location = '` + next + `?itself')`)
	old := c.Open(`<title>First</title>` + fmt.Sprintf(place, "old") + script)
	run()
	c.Await("there?itself")
	c.Refused(old, fault.PageChanged, action.Click, "Order")
	c.Only("there", "there", "there?by=form", "there?itself")
}

// A view that a script draws under another address is still a document of the
// same name; what stood in the old view has left the page.
func TestCase02HandlesEndWithTheirView(t *testing.T) {
	c := shared.Case(t)
	script, run := c.Later(`history.pushState({}, '', '?cart'); view.innerHTML = '<button onclick="tell(\'wrong\')">Order</button>'`)
	v := c.Open(`<title>App</title><main id=view><button onclick="tell('old')">Order</button></main>` + script)
	run()
	if _, err := c.Try(v, action.Click, "Order"); !fault.Is(err, fault.PageChanged) && !fault.Is(err, fault.ElementNotFound) {
		t.Errorf("%v", err)
	}
	c.Only()
}

// A refusal names the true reason: a node that was drawn anew has left the
// page, and neither a navigation nor a cover that has gone is blamed.
func TestCase04TheTrueReason(t *testing.T) {
	c := shared.Case(t)
	script, run := c.Later(`r.innerHTML = r.innerHTML; d.remove()`)
	v := c.Open(`<title>Timer</title><div id=r><button onclick="tell('act')">Refresh</button></div>
		<div id=d role=dialog style="position:fixed;left:300px;top:0;width:200px;height:100px;background:#fff"><button onclick="tell('dialog')">Accept</button></div>` + script)
	run()
	for _, name := range []string{"Refresh", "Accept"} {
		_, err := c.Try(v, action.Click, name)
		said := fault.Public(err).Public
		if !fault.Is(err, fault.ElementNotFound) || !strings.Contains(said, "left the page") || !strings.Contains(said, "observe again") || strings.Contains(said, "cover") || strings.Contains(said, "navigat") {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.Must(c.Read(observe.Query{}), action.Click, "Refresh")
	c.Only("act")
}

// A dialog that was open in between ends the handles of before it; the same
// node is used under a reading that shows it, and while the dialog is open not
// at all.
func TestCase05AfterADialog(t *testing.T) {
	c := shared.Case(t)
	before := c.Open(`<title>Team</title><button onclick="d.showModal()">Invite</button><button onclick="tell('leave')">Leave the team</button>
		<dialog id=d><label>Address <input></label><button onclick="d.close()">Close</button></dialog>`)
	open := c.Must(before, action.Click, "Invite")
	for _, e := range open.Elements {
		if e.Name == "Leave the team" && open.States[e.Ref].Blocked == "" {
			t.Error("a control behind the dialog is offered as usable")
		}
	}
	c.Refused(before, fault.PageChanged, action.Click, "Leave the team")
	after := c.Must(open, action.Click, "Close")
	c.Refused(before, fault.PageChanged, action.Click, "Leave the team")
	c.Refused(open, fault.PageChanged, action.Click, "Close")
	c.Must(after, action.Click, "Leave the team")
	c.Only("leave")
}

// A click into a frame lands where the frame stands in the window: down the
// page, scrolled, bordered, scaled, in a frame in a frame, of another origin.
// What stands at the same offset of the page itself gets nothing.
func TestCase07ClicksIntoFrames(t *testing.T) {
	for _, host := range []string{cases.Host, cases.Partner} {
		t.Run(host, func(t *testing.T) {
			c := shared.Case(t)
			const aim = `<style>body{margin:0}button{position:absolute;left:20px;width:70px;height:24px}</style><button style="top:10px" onclick="tell('above')">Above</button>
				<button style="top:40px" onclick="const b = this.getBoundingClientRect(); tell('%[1]s ' + (event.isTrusted && event.clientX >= b.left && event.clientX <= b.right && event.clientY >= b.top && event.clientY <= b.bottom))">%[1]s</button>
				<button style="top:70px" onclick="tell('below')">Below</button>`
			leaf := c.Serve(host, "leaf", fmt.Sprintf(aim, "Nested"))
			frame := func(name, style string) string {
				return `<iframe width=240 height=120 style="` + style + `" src="` + c.Serve(host, strings.ToLower(name), fmt.Sprintf(aim, name)) + `"></iframe><br>`
			}
			middle := c.Serve(cases.Host, "middle", `<div style="height:37px"></div><iframe width=240 height=120 src="`+leaf+`"></iframe>`)
			v := c.Open(`<title>Offsets</title><style>body{margin:0}</style><div onclick="tell('page')" style="height:300px;background:#eee">page</div>` +
				frame("Plain", "") + frame("Bordered", "border:13px solid;padding:11px 7px") + frame("Scaled", "transform:scale(.7) translate(60px,20px)") +
				`<div style="height:1500px" onclick="tell('page')"></div>` + frame("Far", "margin-left:400px") + `<iframe width=300 height=200 src="` + middle + `"></iframe><div style="height:600px"></div>`)
			names := []string{"Plain", "Far", "Bordered", "Nested", "Scaled"}
			var words []string
			for _, name := range names {
				for try := 0; !slices.Contains(v.Names(), "button "+name) && try < 20; try++ { // a frame may load late
					v = c.Read(observe.Query{})
				}
				v = c.Must(v, action.Click, name)
				words = append(words, name+" true")
			}
			c.Only(words...)
		})
	}
}

// One call is one act on one element. An act whose field is missing is an error
// and takes nothing else with it; there is no form of a call that holds more.
func TestCase08NothingFollowsAnError(t *testing.T) {
	c := shared.Case(t)
	script, run := c.Later(`m.remove()`)
	v := c.Open(`<title>Form</title><form onsubmit="event.preventDefault(); tell('sent')"><input id=m aria-label=Amount><input aria-label=Note oninput="tell('note')"><button>Send</button></form>` + script)
	run()
	c.Refused(v, fault.ElementNotFound, action.Type, "Amount", "12")
	if _, err := c.TryRef(v, action.Type, v.Revision+":77", "12"); !fault.Is(err, fault.ElementNotFound) {
		t.Errorf("%v", err)
	}
	one := `{"kind":"click","expected_revision":"` + v.Revision + `","ref":"` + c.Find(v, "Send").Ref + `"}`
	for _, batch := range []string{`[` + one + `]`, `{"actions":[` + one + `]}`, one + one, one[:len(one)-1] + `,"then":` + one + `}`} {
		if _, err := action.PrepareFor(contract.Newest, action.Act, json.RawMessage(batch)); !fault.Is(err, fault.ArgumentsInvalid) {
			t.Errorf("%s: %v", batch, err)
		}
	}
	c.Only()
}

// What arrives is what was given, to the last character, or the act is an
// error. Nothing is made up, trimmed, completed or corrected.
func TestCase09ValuesArriveExactly(t *testing.T) {
	c := shared.Case(t)
	v := c.Open(`<title>Values</title><form autocomplete=on><input aria-label=Line name=name list=l><textarea aria-label=Lines></textarea><input type=number aria-label=Number><input type=date aria-label=Date>
		<input type=email aria-label=Mail name=email><input type=search aria-label=Search></form><datalist id=l><option>completed</datalist>
		<script>let last; addEventListener('input', (e) => { // once for each line of a text
			const now = e.target.getAttribute('aria-label') + '=' + JSON.stringify(e.target.value); if (now !== last) tell(last = now); })</script>`)
	var words []string
	for _, give := range [][2]string{
		{"Line", "0042-AB/7f"}, {"Line", "comp"}, {"Line", "  two  spaces  "}, {"Line", `"q" 'q' <b>&amp; %7B{{x}}${y}\n`}, {"Line", "teh adress"}, {"Line", "Zo\u0308e \u202babc\u202c 👩‍👩‍👧 ｆｕｌｌ"},
		{"Lines", "one\n\n  three\n"}, {"Lines", strings.Repeat("9", 400)}, {"Number", "007"}, {"Number", "1e3"}, {"Date", "2031-02-28"}, {"Mail", "a.b+c@x.example"}, {"Search", "x y"},
	} {
		v = c.Must(v, action.Type, give[0], give[1])
		value, err := json.Marshal(give[1])
		if err != nil {
			t.Fatal(err)
		}
		words = append(words, give[0]+"="+strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(value)))
	}
	c.Refused(v, fault.ActionNotAllowed, action.Type, "Line", "two\nlines")
	c.Refused(v, fault.ActionNotAllowed, action.Type, "Date", "2031-02-29")
	c.Only(words...)
}

// A field that makes something else of what is typed, at once or a little
// later, is never reported as filled with it.
func TestCase09ChangedValuesAreNoSuccess(t *testing.T) {
	c := shared.Case(t)
	for name, handler := range map[string]string{
		"Upper": `this.value = this.value.toUpperCase()`, "Masked": `this.value = this.value.replace(/\D/g, '')`, "Emptied": `this.value = ''`, "Made up": `this.value = '123456'`,
	} {
		v := c.Open(`<title>Field</title><input aria-label=Code oninput="` + handler + `; tell('` + name + ` ' + this.value)">`)
		c.Refused(v, fault.OutcomeUnknown, action.Type, "Code", "ab-12x")
	}
	v := c.Open(`<title>Number</title><input type=number aria-label=Code oninput="tell('number ' + this.value)">`)
	c.Refused(v, fault.OutcomeUnknown, action.Type, "Code", "twelve")
	for _, word := range []string{"Upper AB-12X", "Masked 12", "Emptied ", "Made up 123456"} {
		c.Await(word)
	}
	for _, word := range c.Told() {
		if strings.Contains(word, "ab-12x") || strings.HasPrefix(word, "number t") {
			t.Errorf("%q", word)
		}
	}
}
