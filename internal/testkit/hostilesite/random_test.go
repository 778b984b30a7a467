package hostilesite_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaperone-agents/chaperone/internal/testkit/hostilesite"
)

// control is one control of a random page, and what may be done to it.
type control struct {
	html string // with the control's number as %[1]d and its effect as %[2]s
	kind string
	more map[string]any
}

var controls = []control{
	{`<button id=c%[1]d onclick="tell('%[2]s')">Control %[1]d</button>`, "click", nil},
	{`<div role=button tabindex=0 id=c%[1]d onclick="tell('%[2]s')">Control %[1]d</div>`, "click", nil},
	{`<a id=c%[1]d href="/do/$ID/%[2]s">Control %[1]d</a>`, "click", nil},
	{`<form method=post action="/do/$ID/%[2]s"><button id=c%[1]d>Control %[1]d</button></form>`, "click", nil},
	{`<label>Control %[1]d<input type=checkbox id=c%[1]d onchange="tell('%[2]s')"></label>`, "check", nil},
	{`<input type=radio id=c%[1]d onchange="tell('%[2]s')"><label for=c%[1]d>Control %[1]d</label>`, "check", nil},
	{`<label>Control %[1]d <input id=c%[1]d value=old oninput="tell('%[2]s')"></label>`, "type", map[string]any{"value": "new"}},
	{`<textarea id=c%[1]d aria-label="Control %[1]d" oninput="tell('%[2]s')"></textarea>`, "type", map[string]any{"value": "new"}},
	{`<select id=c%[1]d aria-label="Control %[1]d" onchange="tell('%[2]s')"><option>A<option>B<option>C</select>`, "select", map[string]any{"value": "B"}},
	{`<form action="/do/$ID/%[2]s"><input id=c%[1]d aria-label="Control %[1]d"></form>`, "press", map[string]any{"key": "Enter"}},
	{`<button id=c%[1]d onclick="tell('%[2]s')">Control %[1]d</button>`, "press", map[string]any{"key": "Space"}},
}

// places is where a control may be; the script puts it there.
var places = []string{
	`<div>%s</div>`,
	`<ul><li>Row <span>%s</span></li></ul>`,
	`<dialog open style="position:static">%s</dialog>`,
	`<x-open>%s</x-open>`,
	`<x-shut>%s</x-shut>`,
	`<iframe style="width:400px;height:90px"></iframe><template>%s</template>`,
}

// settle moves what was written into roots and frames, and keeps all controls
// under their names.
const settle = `<script>
const all = new Map();
const keep = (root) => { for (const el of root.querySelectorAll('[id^=c]')) all.set(el.id, el); };
for (const [tag, mode] of [['x-open', 'open'], ['x-shut', 'closed']]) for (const host of document.querySelectorAll(tag)) {
  const inside = [...host.childNodes]; const root = host.attachShadow({ mode }); root.append(...inside); keep(root);
}
for (const frame of document.querySelectorAll('iframe')) {
  const d = frame.contentDocument; d.defaultView.tell = tell;
  d.body.innerHTML = frame.nextSibling.innerHTML; keep(d);
}
keep(document);
const bounds = (el) => { let { left, top, width, height } = el.getBoundingClientRect(); const f = el.ownerDocument.defaultView.frameElement;
  if (f) { const o = f.getBoundingClientRect(); left += o.left + f.clientLeft; top += o.top + f.clientTop; } return { left, top, width, height }; };
const onto = (el, at) => { const r = bounds(at); const f = el.ownerDocument.defaultView.frameElement;
  (f ?? el).style.cssText = 'position:fixed;margin:0;z-index:999;left:' + r.left + 'px;top:' + r.top + 'px;width:' + Math.max(r.width, 30) + 'px;height:' + Math.max(r.height, 20) + 'px'; };
</script>`

// change is what a page does between the owner's yes and the act, to the
// approved control x and another one, y.
type change struct {
	js     string
	silent bool // x is not what was approved any more
}

// named is an element's own name, wherever it is written.
const named = `const say = (el, name) => { el.ariaLabel = name; const l = el.labels?.[0]; if (l) for (const n of l.childNodes) if (n.nodeType === 3) n.data = name;
  if (el.tagName === 'BUTTON' || el.tagName === 'A' || el.tagName === 'DIV') el.textContent = name; };`

var changes = []change{
	{"", false},
	{named + `say(x, 'Control 99')`, true},
	{named + `const n = x.ariaLabel ?? 'Control X'; say(x, 'Swapped'); say(y, n)`, true},
	{`const n = x.cloneNode(true); n.removeAttribute('id'); for (const k of ['onclick', 'oninput', 'onchange']) n[k] = () => tell('bad copy'); x.replaceWith(n)`, true},
	{`const n = x.cloneNode(true); n.removeAttribute('id'); for (const k of ['onclick', 'oninput', 'onchange']) n[k] = () => tell('bad copy'); x.before(n)`, false},
	{`const n = document.createElement('i'); x.before(n); y.before(x); n.replaceWith(y)`, false},
	{`onto(y, x)`, false},
	{`x.disabled = true; x.inert = true`, true},
	{`x.style.display = 'none'`, true},
	{`x.remove()`, true},
	{`document.createElement('iframe').append(x); document.body.append(document.createElement('p'))`, true},
	{`setTimeout(() => onto(y, x), 5)`, false},
	{`for (const k of ['pointerover', 'mousemove']) x.addEventListener(k, () => onto(y, x))`, false},
	{`x.addEventListener('pointerdown', () => onto(y, x))`, false},
	{`x.addEventListener('mousedown', () => onto(y, x)); x.addEventListener('mouseup', () => onto(y, x))`, false},
	{`x.addEventListener('pointerdown', (e) => y.setPointerCapture(e.pointerId))`, false},
	{`x.addEventListener('focus', () => y.focus())`, false},
	{`for (const k of ['keydown', 'beforeinput', 'select']) x.addEventListener(k, () => y.focus())`, false},
	{`setInterval(() => y.focus(), 1)`, false},
	{`let n = 0; const on = () => { if (n++ % 2) onto(y, x); else y.style.cssText = 'position:fixed;left:700px;top:0'; requestAnimationFrame(on); }; on()`, false},
	{`x.animate([{ transform: 'translateX(0)' }, { transform: 'translateX(300px)' }], { duration: 300, iterations: Infinity })`, false},
	{`const n = document.createElement('div'); n.style.cssText = 'position:fixed;inset:0;z-index:9999'; n.onclick = () => tell('bad overlay'); document.body.append(n)`, false},
	{`const n = document.createElement('div'); n.popover = 'manual'; n.style.cssText = 'inset:0;margin:0;width:100%;height:100%'; n.onclick = () => tell('bad popover'); document.body.append(n); n.showPopover()`, false},
	{`x.addEventListener('pointerdown', () => { location = '/bad/$ID'; })`, false},
	{`location = '/bad/$ID'`, false},
	{`for (const k of ['innerText', 'textContent', 'isConnected', 'parentNode', 'labels', 'form']) for (const of of [Node, Element, HTMLElement, HTMLInputElement, HTMLButtonElement]) {
		const d = Object.getOwnPropertyDescriptor(of.prototype, k); if (d?.get) Object.defineProperty(of.prototype, k, { ...d, get() { return d.get.call(this === x && y instanceof this.constructor ? y : this); } }); }`, false},
}

// A random page, a random act on it that the owner approves, a random change of
// the page in between: the approved effect happens at most once, nothing else
// happens, and "done" is never said without it (OBS-01, CLK-03, GUARD-02,
// GUARD-04, GATE-07).
func TestRandomPages(t *testing.T) {
	shared.begin(t)
	l := &lane{bench: &shared}
	defer l.end()
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(2, 5).Draw(r, "controls")
		of, at := rapid.SampledFrom(controls), rapid.SampledFrom(places)
		x := rapid.IntRange(0, n-1).Draw(r, "approved")
		y := (x + rapid.IntRange(1, n-1).Draw(r, "other")) % n
		var body strings.Builder
		var chosen control
		for i := range n {
			c, effect := of.Draw(r, "control"), fmt.Sprint("bad", i)
			if i == x {
				chosen, effect = c, hostilesite.OK
			}
			fmt.Fprintf(&body, at.Draw(r, "place"), fmt.Sprintf(c.html, i, effect))
		}
		body.WriteString(settle)
		c := rapid.SampledFrom(changes).Draw(r, "change")
		later := fmt.Sprintf("const x = all.get('c%d'), y = all.get('c%d'); %s", x, y, c.js)
		answer, id := l.do(t, body.String(), later, chosen.kind, fmt.Sprint("Control ", x), chosen.more)
		if c.js == "" && answer.Code != "" {
			r.Fatalf("an honest page: %s %s", answer.Code, answer.Message)
		}
		if err := l.verdict(t, "random page "+id, id, answer, c.silent); err != nil {
			r.Fatal(err)
		}
	})
}
