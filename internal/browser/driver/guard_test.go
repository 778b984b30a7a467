package driver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// changed is what was observed of a page that has since done the change.
func (b *bench) changed(t *testing.T, name, body, change string) observe.Document {
	t.Helper()
	script, run := b.later(t, name, change)
	d := b.open(t, "/"+name, body+script)
	run()
	return d
}

// unharmed fails when the page reported the word.
func (b *bench) unharmed(t *testing.T, word string) {
	t.Helper()
	b.settled(t)
	if strings.Contains(b.effects(), word) {
		t.Errorf("%q happened", word)
	}
}

// settled waits until the page has reported all that it had to.
func (b *bench) settled(t *testing.T) {
	t.Helper()
	word := fmt.Sprint("end", len(b.Requests(host)))
	b.open(t, "/"+word, say+`<script>say('`+word+`')</script>`)
	eventually(t, word, func() bool { return strings.Contains(b.effects(), word) })
}

// CLK-01, CLK-03: a click reaches the control that was approved, or nothing.
func TestClicksReachTheirControl(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for _, h := range []string{"login.example", "other.example"} {
		b.Handle(h+"/effect", func(http.ResponseWriter, *http.Request) {})
	}
	b.Page("login.example/danger", `<body style="margin:0"><button style="width:300px;height:100px" onclick="fetch('/effect?danger')">Danger</button>`)
	t.Run("not a frame inside it", func(t *testing.T) {
		for i, frame := range []string{`<iframe width=300 height=100 src="https://login.example/danger"></iframe>`, `<object type="text/html" width=300 height=100 data="https://login.example/danger"></object>`,
			`<embed type="text/html" width=300 height=100 src="https://login.example/danger">`} {
			d := b.open(t, fmt.Sprint("/draft", i), say+`<div role=button tabindex=0 aria-label="Save draft" style="display:inline-block;line-height:0">`+frame+`</div>`)
			_, err := b.act(t, d, action.Click, "Save draft")
			refused(t, err, fault.ElementNotFound)
			b.settled(t)
			if b.Count("login.example", "/effect") != 0 {
				t.Errorf("the frame's button was pressed: %s", frame)
			}
		}
	})
	t.Run("not a control inside it", func(t *testing.T) {
		d := b.open(t, "/group", say+`<div role=group tabindex=0 aria-label="Comment by Ann" style="position:relative;width:300px;height:100px" onclick="say('group')">
			<button style="position:absolute;left:100px;top:30px;width:100px;height:40px" onclick="event.stopPropagation();say('delete')">Delete</button></div>
			<div role=group tabindex=0 aria-label=Full style="width:200px;height:50px"><button style="width:100%;height:100%" onclick="say('delete')">Drop</button></div>`)
		_, err := b.act(t, d, action.Click, "Full")
		refused(t, err, fault.ElementNotFound)
		if _, err = b.act(t, d, action.Click, "Comment by Ann"); err != nil {
			t.Error(err)
		}
		eventually(t, "the group itself", func() bool { return strings.Contains(b.effects(), "group") })
		b.unharmed(t, "delete")
	})
	t.Run("not a control over it in the same label", func(t *testing.T) {
		d := b.open(t, "/pay", say+`<label style="position:relative;display:inline-block;width:90px;height:30px"><input type=checkbox aria-label=Agree>
			<button style="position:absolute;inset:0;opacity:0" onclick="say('pay')">Pay</button></label>`)
		_, err := b.act(t, d, action.Check, "Agree")
		refused(t, err, fault.ElementNotFound)
		_, err = b.act(t, d, action.Click, "Agree")
		refused(t, err, fault.ElementNotFound)
		b.unharmed(t, "pay")
	})
	t.Run("not a control that comes under the mouse", func(t *testing.T) {
		d := b.open(t, "/jump", say+`<div role=group tabindex=0 aria-label=Card style="position:relative;width:300px;height:100px"><button id=j style="position:absolute;inset:0;display:none" onclick="say('jumped')">Jump</button></div>
			<script>document.querySelector('[role=group]').onmousemove = () => setTimeout(() => j.style.display = 'block')</script>`)
		if _, err := b.act(t, d, action.Click, "Card"); err == nil {
			t.Error("a click on another control was reported as done")
		}
		b.unharmed(t, "jumped")
	})
	const closed = `const close = (host, html) => { const r = host.attachShadow({mode: 'closed'}); r.innerHTML = html; return r; };`
	t.Run("not a control in a closed root that came later", func(t *testing.T) {
		d := b.changed(t, "veil", `<div role=button tabindex=0 aria-label=Save style="display:inline-block;line-height:0"><x-late style="display:block;width:200px;height:60px"></x-late></div>`,
			closed+`close(document.querySelector('x-late'), '<button style="width:200px;height:60px"></button>').firstChild.onclick = () => say('veiled')`)
		_, err := b.act(t, d, action.Click, "Save")
		refused(t, err, fault.ElementNotFound)
		b.unharmed(t, "veiled")
	})
	t.Run("not a control that shows its content through a closed root", func(t *testing.T) {
		d := b.open(t, "/slot", say+`<div role=group tabindex=0 aria-label=Entry style="display:inline-block"><x-slot>content</x-slot></div><script>`+closed+`
			close(document.querySelector('x-slot'), '<button style="width:200px;height:60px"><slot></slot></button>').firstChild.onclick = () => say('slotted')</script>`)
		_, err := b.act(t, d, action.Click, "Entry")
		refused(t, err, fault.ElementNotFound)
		b.unharmed(t, "slotted")
	})
	t.Run("a click that nothing saw is not known to have worked", func(t *testing.T) {
		d := b.open(t, "/eat", say+`<script>for (const type of ['pointerdown','mousedown','pointerup','mouseup','click']) addEventListener(type, (e) => { e.stopImmediatePropagation(); if (type === 'click') say('eaten'); }, true)</script><button>Eat</button>`)
		_, err := b.act(t, d, action.Click, "Eat")
		refused(t, err, fault.OutcomeUnknown)
		eventually(t, "eaten", func() bool { return strings.Contains(b.effects(), "eaten") })
	})
	t.Run("DENY-04 nothing of a frame off the origins, by any kind of act", func(t *testing.T) {
		b.Page("other.example/form", `<body onclick="fetch('/effect?click')" oninput="fetch('/effect?input')" onkeydown="fetch('/effect?key')" onscroll="fetch('/effect?scroll')"><button>Push</button><input aria-label=Words><input type=date aria-label=Day>
			<select aria-label=Pick><option>A<option>B</select><input type=checkbox aria-label=Tick><div style="height:3000px"></div><script>onscroll=()=>fetch('/effect?scroll')</script>`)
		d := b.showing(t, b.open(t, "/outer", `<iframe width=600 height=300 src="https://other.example/form"></iframe>`), "Push", "Words", "Day", "Pick", "Tick")
		for _, c := range []struct {
			kind        action.Kind
			name, value string
		}{{action.Click, "Push", ""}, {action.Type, "Words", "x"}, {action.Type, "Day", "2026-01-02"}, {action.Select, "Pick", "B"}, {action.Check, "Tick", ""}, {action.Press, "Words", "Enter"}, {action.Scroll, "Push", ""}} {
			_, err := b.act(t, d, c.kind, c.name, c.value)
			if !fault.Is(err, fault.ActionNotAllowed) {
				t.Errorf("%s %s: %v", c.kind, c.name, err)
			}
		}
		b.settled(t)
		if n := b.Count("other.example", "/effect"); n != 0 {
			t.Errorf("%d acts arrived", n)
		}
	})
}

// OBS-01, CAP-06: whatever the owner was shown must still be so.
func TestActsOnlyOnWhatWasShown(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for _, c := range []struct{ name, path, body, change string }{
		{"address", "was-url", `<button onclick="say('harm')">Go</button>`, `history.pushState(0, '', '?other')`},
		{"dialog", "was-dialog", `<dialog open id=x aria-label="Delete draft"><button onclick="say('harm')">Go</button></dialog>`, `x.ariaLabel = 'Delete account'`},
		{"row", "was-row", `<ul><li><span id=x>Invoice 1</span> <button onclick="say('harm')">Go</button></li></ul>`, `x.textContent = 'Invoice 2'`},
		{"text", "was-text", `<button aria-label=Go onclick="say('harm')"><span id=x>Keep</span></button>`, `x.textContent = 'Drop'`},
		{"field kind", "was-kind", `<input id=x aria-label=Go onclick="say('harm')">`, `x.autocomplete = 'cc-number'`},
		{"link", "was-link", `<a id=x href="/effect?kept">Go</a>`, `x.href = '/effect?harm'`},
		{"form", "was-form", `<form id=x action=/effect><input type=hidden name=kept><button>Go</button></form>`, `x.action = '/effect?harm'; x.method = 'post'`},
		{"form of a button", "was-button", `<form action=/effect><button id=x>Go</button></form>`, `x.formAction = '/effect?harm'; x.formMethod = 'post'`},
		{"lock", "was-locked", `<input id=x readonly aria-label=Go onclick="say('harm')">`, `x.readOnly = false`},
		{"disabled", "was-disabled", `<button id=x disabled onclick="say('harm')">Go</button>`, `x.disabled = false`},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := b.changed(t, c.path, c.body, c.change)
			_, err := b.act(t, d, action.Click, "Go")
			refused(t, err, fault.PageChanged)
			b.unharmed(t, "harm")
		})
	}
	t.Run("a fragment and a count are no change", func(t *testing.T) {
		d := b.changed(t, "calm", `<ul><li>Post <button id=n>Like 5</button> <time id=s>3 s</time> <button onclick="say('calm')">Go</button></li></ul>`,
			`location.hash = 'x'; n.textContent = 'Like 6'; s.textContent = '9 s'`)
		if _, err := b.act(t, d, action.Click, "Go"); err != nil {
			t.Error(err)
		}
		eventually(t, "clicked", func() bool { return strings.Contains(b.effects(), "calm") })
	})
}

// DENY-03, CLK-03: what a page does when a field gets the focus.
func TestFocusChangesNothingUnseen(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	t.Run("a field that becomes a password field gets nothing", func(t *testing.T) {
		const mask = ` onfocus="this.type='password'" oninput="say('leak')" onchange="say('leak')" onkeydown="say('leak')"`
		d := b.open(t, "/masks", say+`<input aria-label=Words`+mask+`><input aria-label=Keys`+mask+`><input type=date aria-label=Day`+mask+`>`)
		for _, c := range []struct {
			kind        action.Kind
			name, value string
		}{{action.Type, "Words", "leaked"}, {action.Press, "Keys", "Space"}, {action.Type, "Day", "2026-01-02"}} {
			_, err := b.act(t, d, c.kind, c.name, c.value)
			if !fault.Is(err, fault.ActionNotAllowed) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		b.unharmed(t, "leak")
	})
	t.Run("nor when it becomes one at the last moment", func(t *testing.T) {
		d := b.open(t, "/late-mask", say+`<input id=x value=old aria-label=Words oninput="say('leak')"><script>addEventListener('beforeinput', () => x.type = 'password', true)</script>`)
		if _, err := b.act(t, d, action.Type, "Words", "leaked"); err == nil {
			t.Error("reported as done")
		}
		b.unharmed(t, "leak")
	})
	t.Run("options that change are not chosen from", func(t *testing.T) {
		const options = `<option value=a>Free<option value=b>Basic<option value=c>Premium</select>`
		d := b.open(t, "/options", say+`<select aria-label=Relabels onfocus="this.options[1].text='Premium'" onchange="say('chosen')">`+options+`
			<select aria-label=Moves onfocus="this.options[1].value='c';this.options[2].value='b'" onchange="say('chosen')">`+options+`
			<select aria-label=Swaps onfocus="this.append(this.options[1])" onchange="say('chosen')">`+options)
		for _, name := range []string{"Relabels", "Moves", "Swaps"} {
			_, err := b.act(t, d, action.Select, name, "b")
			if !fault.Is(err, fault.PageChanged) {
				t.Errorf("%s: %v", name, err)
			}
		}
		b.unharmed(t, "chosen")
	})
	t.Run("nothing was sent is true of a slow focus handler", func(t *testing.T) {
		const slow = `{ const end = performance.now() + 6500; while (performance.now() < end); }`
		d := b.open(t, "/slow-focus", say+`<input type=date aria-label=Day onfocus="`+slow+`" onchange="say('dated')"><input type=date aria-label=Later onchange="`+slow+` say('late')">`)
		_, err := b.act(t, d, action.Type, "Day", "2026-01-02")
		refused(t, err, fault.ElementNotFound)
		if d, err = b.page.Observe(t.Context(), observe.Query{}); err != nil {
			t.Fatal(err)
		}
		_, err = b.act(t, d, action.Type, "Later", "2026-01-02")
		refused(t, err, fault.OutcomeUnknown)
		eventually(t, "the value that was set", func() bool { return strings.Contains(b.effects(), "late") })
		b.unharmed(t, "dated")
	})
}
