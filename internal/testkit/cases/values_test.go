package cases_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/testkit/cases"
)

// A field that cannot be written to keeps what it holds, however it says so,
// and also when it becomes one only as the focus comes.
func TestCase10LockedFieldsKeepTheirValue(t *testing.T) {
	c := shared.Case(t)
	v := c.Open(`<title>Locked</title><input aria-label=Read readonly value=keep><input aria-label=Off disabled value=keep><textarea aria-label=Area readonly>keep</textarea>
		<fieldset disabled><select aria-label=OffPick><option>keep<option>other</select></fieldset><input aria-label=Says aria-readonly=true value=keep><input aria-label=SaysOff aria-disabled=true value=keep>
		<input type=date aria-label=Day readonly value=2031-01-01><input aria-label=Later value=keep onfocus="this.readOnly = true"><input aria-label=LaterOff value=keep onfocus="this.disabled = true">
		<div contenteditable=false role=textbox tabindex=0 aria-label=Still>keep</div>
		<button onclick="tell([...document.querySelectorAll('input,textarea,select')].map((e) => e.value) + ' ' + document.querySelector('[role=textbox]').textContent)">Report</button>
		<script>for (const type of ['beforeinput', 'input', 'change']) addEventListener(type, (e) => tell(type + ' ' + e.target.getAttribute('aria-label')), true)</script>`)
	for name, code := range map[string]fault.Code{
		"Read": fault.ActionNotAllowed, "Area": fault.ActionNotAllowed, "Says": fault.ActionNotAllowed, "Day": fault.ActionNotAllowed, "Later": fault.PageChanged, "Still": fault.ActionNotAllowed,
		"Off": fault.ElementNotFound, "SaysOff": fault.ElementNotFound,
	} {
		c.Refused(v, code, action.Type, name, map[bool]string{true: "2031-02-02", false: "changed"}[name == "Day"])
	}
	if _, err := c.Try(v, action.Type, "LaterOff", "changed"); err == nil {
		t.Error("LaterOff was reported as filled")
	}
	v = c.Read(observe.Query{})
	c.Refused(v, fault.ElementNotFound, action.Select, "OffPick", "other")
	c.Must(v, action.Click, "Report")
	c.Only("keep,keep,keep,keep,keep,keep,2031-01-01,keep,keep keep")
}

// Typing replaces what is there, in the field that it is for. A page that moves
// the focus elsewhere gets the text neither there nor reported as done.
func TestCase11ReplacesInItsOwnField(t *testing.T) {
	c := shared.Case(t)
	v := c.Open(`<title>Sticky</title><form><input aria-label=Mail type=email value="old@x.example"><input aria-label=Name value="Old name"><textarea aria-label=Note>old
note</textarea><div contenteditable role=textbox aria-label=Rich style="min-height:20px"><p>old <b>rich</b></p></div>
		<input aria-label=Jumps value=old onfocus="other.focus()"><input aria-label=Late value=old onfocus="Promise.resolve().then(() => other.focus())">
		<input id=other aria-label=Other value=untouched></form><button onclick="tell([...document.querySelectorAll('input,textarea')].map((e) => e.value).join('|') + '|' + document.querySelector('[contenteditable]').innerText.trim())">Report</button>
		<script>other.oninput = () => tell('other')</script>`)
	for _, give := range [][2]string{{"Mail", "new@x.example"}, {"Name", "New"}, {"Note", "new\nnote"}, {"Rich", "new rich"}} {
		v = c.Must(v, action.Type, give[0], give[1])
	}
	v = c.Must(v, action.Type, "Name", "") // and can be emptied
	for _, name := range []string{"Jumps", "Late"} {
		if _, err := c.Try(v, action.Type, name, "astray"); err == nil {
			t.Errorf("%s was reported as filled", name)
		}
		v = c.Read(observe.Query{})
	}
	c.Must(v, action.Click, "Report")
	c.Only("new@x.example||new\nnote|old|old|untouched|new rich")
	// A page can move the focus in the middle of the input, as it can to a
	// person; then at least nothing is said to be done.
	v = c.Open(`<title>Grabs</title><input aria-label=Grabbed value=old onbeforeinput="other.focus()"><input id=other aria-label=Other value=untouched>`)
	c.Refused(v, fault.OutcomeUnknown, action.Type, "Grabbed", "astray")
}

// modelled is a page whose state is not in its fields: a field that is drawn
// again from the state, and one whose property is watched; an editor that takes
// every change over itself; a button that the state enables.
const modelled = `<title>Composer</title><input id=f aria-label=Subject><input id=d type=date aria-label=Day><select id=s aria-label=To><option value="">Nobody<option value=all>Everybody</select>
	<div id=e contenteditable role=textbox aria-label=Message style="min-height:40px;white-space:pre-wrap"></div><button id=post disabled onclick="tell('posted ' + JSON.stringify(model))">Post</button><script>
	const model = { subject: '', day: '', to: '', message: '' };
	const draw = () => { f.value = model.subject; e.textContent = model.message; post.disabled = !Object.values(model).every(Boolean); };
	const watch = (el, name) => { // as frameworks do, to tell their own changes from a person's
		const own = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(el), 'value'); let known = el.value;
		Object.defineProperty(el, 'value', { get() { return own.get.call(this); }, set(to) { known = String(to); own.set.call(this, to); } });
		for (const type of ['input', 'change']) el.addEventListener(type, (ev) => { const now = own.get.call(el); if (now === known) return; known = now; model[name] = now; draw(); });
	};
	watch(f, 'subject'); watch(d, 'day'); s.onchange = () => { model.to = s.value; draw(); };
	e.addEventListener('beforeinput', (ev) => { ev.preventDefault(); if (!ev.isTrusted) return;
		const [range] = ev.getTargetRanges(), chosen = getSelection().toString();
		if (ev.inputType === 'insertText') model.message = (range.collapsed && !chosen ? model.message : '') + ev.data;
		if (ev.inputType === 'insertParagraph' || ev.inputType === 'insertLineBreak') model.message += '\n';
		if (ev.inputType.startsWith('delete')) model.message = '';
		setTimeout(() => { draw(); getSelection().selectAllChildren(e); getSelection().collapseToEnd(); }); });
</script>`

// What is put in reaches the page's own state, not only its screen: the button
// that the state enables becomes usable, and what is sent is what was given.
func TestCase13TheStateOfThePage(t *testing.T) {
	c := shared.Case(t)
	v := c.Open(modelled)
	c.Refused(v, fault.ElementNotFound, action.Click, "Post")
	v = c.Must(v, action.Type, "Subject", "Tour on 3 May")
	v = c.Must(v, action.Type, "Day", "2031-05-03")
	v = c.Must(v, action.Select, "To", "Everybody")
	v = c.Must(v, action.Type, "Message", "Draft")
	v = c.Must(v, action.Type, "Message", "Meet at the pier")
	c.Must(v, action.Click, "Post")
	c.Only(`posted {"subject":"Tour on 3 May","day":"2031-05-03","to":"all","message":"Meet at the pier"}`)
}

// An editor or a field that goes back to its own state did not take the text,
// and nobody says that it did, whenever that happens.
func TestCase13GoingBackIsNoSuccess(t *testing.T) {
	for name, when := range map[string]string{"at once": `back()`, "later": `setTimeout(back, 40)`, "after frames": `requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(back)))`} {
		for _, field := range []string{`<input id=x aria-label=Text value=mine>`, `<div id=x contenteditable role=textbox aria-label=Text style="min-height:20px">mine</div>`} {
			t.Run(name, func(t *testing.T) {
				c := shared.Case(t)
				v := c.Open(`<title>Back</title>` + field + `<button id=post disabled onclick="tell('posted')">Post</button><script>const back = () => { 'value' in x ? x.value = 'mine' : x.textContent = 'mine'; tell('back'); }; let once = true; x.oninput = () => { if (once) { once = false; ` + when + `; } }</script>`)
				after, err := c.Try(v, action.Type, "Text", "yours")
				c.Await("back")
				if err == nil {
					t.Errorf("reported as done: %+v", after.States)
				} else if !fault.Is(err, fault.OutcomeUnknown) {
					t.Error(err)
				}
				c.Only("back")
			})
		}
	}
}

// The text of an editor is looked for where an editor has it, so one act writes
// it once: whatever it is built of, and in whatever tree it stands.
func TestCase14EditorsAreWrittenToOnce(t *testing.T) {
	c := shared.Case(t)
	const count = `<script>addEventListener('beforeinput', (e) => { if (e.inputType === 'insertText' && e.isTrusted) tell('insert ' + e.data); }, true); const say = (el) => tell('now ' + el.innerText.replace(/\u200b|\u00a0/g, ' ').trim())</script>`
	framed := c.Serve(cases.Host, "framed", count+`<div id=x contenteditable role=textbox aria-label=Framed><p><br></p></div><button onclick="say(x)">Say Framed</button>`)
	for name, page := range map[string]string{
		"Empty":     `<div id=x contenteditable role=textbox aria-label=Empty style="min-height:20px"></div>`,
		"Paragraph": `<div id=x contenteditable role=textbox aria-label=Paragraph><p><br></p></div>`,
		"Spans":     `<div id=x contenteditable role=textbox aria-label=Spans><div><span data-text=true>old</span><span>&#8203;</span></div></div>`,
		"Plain":     `<div id=x contenteditable=plaintext-only aria-label=Plain style="min-height:20px">old&nbsp;</div>`,
		"Shadowed":  `<x-e></x-e><script>const r = document.querySelector('x-e').attachShadow({ mode: 'open' }); r.innerHTML = '<div contenteditable role=textbox aria-label=Shadowed><p>old</p></div>'; x = r.firstChild;</script>`,
		"Framed":    `<iframe width=400 height=150 src="` + framed + `"></iframe>`,
	} {
		v := c.Open(`<title>Editor</title>` + count + page + map[bool]string{true: `<button onclick="say(x)">Say ` + name + `</button>`}[name != "Framed"])
		for try := 0; !slices.Contains(v.Names(), "textbox "+name) && try < 20; try++ {
			v = c.Read(observe.Query{})
		}
		text := "Hello, " + name + "!"
		v = c.Must(v, action.Type, name, text)
		c.Must(v, action.Click, "Say "+name)
		c.Await("now " + text)
		if n := strings.Count(strings.Join(c.Told(), "\n"), "insert "+text); n != 1 {
			t.Errorf("%s was written %d times: %q", name, n, c.Told())
		}
	}
}

// A text box stays one whatever its role says, and takes text; a role makes no
// native list of it.
func TestCase15ComboboxThatTakesText(t *testing.T) {
	c := shared.Case(t)
	v := c.Open(`<title>Search</title><form onsubmit="event.preventDefault(); tell(new FormData(this).get('q'))"><input name=q role=combobox aria-label=Find aria-expanded=false><input name=r role=listbox aria-label=Odd oninput="tell('odd ' + value)">
		<div role=combobox contenteditable aria-label=Rich style="min-height:20px" oninput="tell('rich ' + this.innerText)"></div><div role=combobox tabindex=0 aria-label=Closed>Pick one</div><button>Go</button></form>`)
	v = c.Must(v, action.Type, "Find", "blue shoes")
	v = c.Must(v, action.Press, "Find", "Enter")
	v = c.Must(v, action.Type, "Odd", "x")
	v = c.Must(v, action.Type, "Rich", "y")
	for _, name := range []string{"Find", "Odd", "Rich", "Closed"} {
		c.Refused(v, fault.ActionNotAllowed, action.Select, name, "blue shoes")
	}
	c.Refused(v, fault.ActionNotAllowed, action.Type, "Closed", "z")
	c.Only("blue shoes", "odd x", "rich y")
}

// A native list is chosen from as a whole. Its options are no controls while it
// is closed; a click that opens it wedges nothing.
func TestCase17NativeSelect(t *testing.T) {
	c := shared.Case(t)
	v := c.Open(`<title>List</title><select aria-label=Size onchange="tell('size ' + value)"><option value=s>Small<option value=m>Medium<optgroup label=More><option value=l>Large<option value=x disabled>Huge</optgroup><optgroup label=None disabled><option value=n>Never</optgroup></select>
		<select aria-label=Twins onchange="tell('twin ' + value)"><option value=0>-<option value=1>Same<option value=2>Same</select>
		<select aria-label=Many multiple onchange="tell('many ' + [...selectedOptions].map((o) => o.value))"><option value=a selected>A<option value=b>B<option value=c>C</select>
		<label>Framework <select onchange="this.value = 'p'; tell('framework')"><option value=p>P<option value=q>Q</select></label><button onclick="tell('next')">Next</button>`)
	for _, name := range v.Names() {
		if strings.Contains(name, "Medium") || strings.Contains(name, "option") {
			t.Errorf("%q is offered", name)
		}
	}
	v = c.Must(v, action.Select, "Size", "m")
	v = c.Must(v, action.Select, "Size", "Large")
	v = c.Must(v, action.Select, "Size", "Large") // it is: nothing changes
	v = c.Must(v, action.Select, "Twins", "2")
	v = c.Must(v, action.Select, "Many", "C")
	c.Refused(v, fault.ActionNotAllowed, action.Select, "Twins", "Same")
	for _, name := range []string{"Huge", "Never", "Medium-ish", ""} {
		c.Refused(v, fault.ActionNotAllowed, action.Select, "Size", name)
	}
	c.Refused(v, fault.OutcomeUnknown, action.Select, "Framework", "q")
	v = c.Must(c.Read(observe.Query{}), action.Click, "Size")
	v = c.Must(v, action.Select, "Size", "Small")
	c.Must(v, action.Click, "Next")
	c.Only("size m", "size l", "twin 2", "many c", "framework", "size s", "next")
}

// Options that exist only while their list is open are read after it is opened,
// used, and gone once it is closed.
func TestCase18OptionsDrawnOnOpening(t *testing.T) {
	for _, root := range []string{"document.body", "document.querySelector('x-host').attachShadow({ mode: 'open' })"} {
		c := shared.Case(t)
		v := c.Open(fmt.Sprintf(`<title>Drawn</title><button id=b role=combobox aria-controls=absent aria-expanded=false aria-label=Colour onkeydown="event.key === 'Escape' && shut()">Pick</button><x-host></x-host><script>
			const root = %s; let list; const shut = () => { list?.remove(); list = null; b.setAttribute('aria-expanded', 'false'); };
			b.onclick = () => { if (list) return shut(); b.setAttribute('aria-expanded', 'true'); setTimeout(() => {
				list = document.createElement('ul'); list.id = 'absent'; list.role = 'listbox'; root.append(list);
				for (const name of ['Red', 'Green']) { const o = document.createElement('li'); o.role = 'option'; o.tabIndex = -1; o.textContent = name; o.onclick = () => { tell(name); shut(); }; list.append(o); } }, 60); };</script>`, root))
		v = c.Must(v, action.Click, "Colour")
		for try := 0; !slices.Contains(v.Names(), "option Green") && try < 20; try++ {
			v = c.Read(observe.Query{})
		}
		v = c.Must(v, action.Click, "Green")
		if slices.Contains(v.Names(), "option Green") {
			t.Errorf("the closed list is offered: %q", v.Names())
		}
		v = c.Must(v, action.Click, "Colour")
		for try := 0; !slices.Contains(v.Names(), "option Red") && try < 20; try++ {
			v = c.Read(observe.Query{})
		}
		if v = c.Must(v, action.Press, "Colour", "Escape"); slices.Contains(v.Names(), "option Red") {
			t.Errorf("the closed list is offered: %q", v.Names())
		}
		c.Only("Green")
	}
}
