package hostilesite

// Shape is a page that works against one act. The approved effect tells OK;
// whatever else the page could be brought to do tells another word.
type Shape struct {
	Name   string
	Body   string
	Later  string // runs when the owner has said yes
	Kind   string // "click" when empty
	Target string // name of the control; "Save" when empty
	Value  string // of type, select and press
	Silent bool   // what was approved is not there any more, so nothing may happen
	Done   bool   // nothing is wrong with it, so it has to work
}

// two buttons, one approved and one not, in known places.
const (
	two   = `<style>body{margin:0} #a,#b,#c{position:absolute;left:50px;width:200px;height:50px} #a{top:50px} #b{top:150px} #c{top:250px}</style><button id=a onclick="tell('ok')">Save</button><button id=b onclick="tell('bad')">Delete</button>`
	cover = `b.style.top = '50px'; b.style.zIndex = 9`
	field = `<label>Title <input id=a oninput="tell('ok')"></label><label>Amount <input id=b oninput="tell('bad')"></label>`
	form  = `<form id=f method=post action="/do/$ID/ok"><button id=a>Save</button></form>`
)

// Shapes are all of them.
func Shapes() []Shape {
	var all []Shape
	for _, group := range [][]Shape{labels, pointers, keys, forms, choices, places, documents, endless} {
		all = append(all, group...)
	}
	return all
}

var labels = []Shape{
	{Name: "honest button", Body: two, Done: true},
	{Name: "label swapped", Body: two, Later: `[a.textContent, b.textContent] = [b.textContent, a.textContent]`, Silent: true},
	{Name: "accessible name swapped", Body: two, Later: `a.ariaLabel = 'Delete'; b.ariaLabel = 'Save'`, Silent: true},
	{Name: "places swapped", Body: two, Later: `a.style.top = '150px'; b.style.top = '50px'`},
	{Name: "nodes swapped in the tree", Body: two, Later: `b.after(a)`},
	{Name: "replaced by its copy", Body: two, Later: `const n = a.cloneNode(true); n.onclick = () => tell('bad copy'); a.replaceWith(n)`, Silent: true},
	{Name: "duplicated", Body: two, Later: `const n = a.cloneNode(true); n.id = 'c'; n.onclick = () => tell('bad copy'); a.before(n)`},
	{Name: "duplicated on top", Body: two, Later: `const n = a.cloneNode(true); n.onclick = () => tell('bad copy'); a.after(n)`},
	{Name: "look-alike beside it", Body: two + `<button id=c onclick="tell('bad twin')">Ѕаvе</button>`, Done: true},
	{Name: "turned into its look-alike", Body: two, Later: `a.textContent = 'Ѕаvе'`, Silent: true},
	{Name: "turned around by bidi letters", Body: two, Later: `a.textContent = '\u202eevaS'`, Silent: true},
	{Name: "recycled row", Body: `<ul><li><span id=s>Draft 1</span> <button id=a onclick="tell('ok')">Save</button></li><li><span>Draft 2</span></li></ul>`, Later: `s.textContent = 'Contract with Ann'`, Silent: true},
	{Name: "rows that trade places", Body: `<ul id=l><li>Draft 1 <button onclick="tell('ok')">Save</button></li><li>Draft 2 <button onclick="tell('bad')">Delete</button></li></ul>`,
		Later: `l.append(l.firstElementChild)`},
	{Name: "row of a virtual list", Body: `<div role=list><div role=listitem><b id=s>Ann</b> <button onclick="tell(s.textContent == 'Ann' ? 'ok' : 'bad ' + s.textContent)">Save</button></div></div>`,
		Later: `s.textContent = 'Bob'`, Silent: true},
	{Name: "prototypes of the page", Body: two, Later: `
		for (const of of [Node, Element, HTMLElement, HTMLButtonElement, Document, ShadowRoot, Event, MouseEvent, DOMRect, DOMRectReadOnly, CharacterData, DOMTokenList]) {
			for (const [key, d] of Object.entries(Object.getOwnPropertyDescriptors(of.prototype))) {
				if (!d.configurable || key === 'constructor') continue;
				if (d.get) Object.defineProperty(of.prototype, key, { ...d, get() { return d.get.call(this === a ? b : this === b ? a : this); } });
				else if (typeof d.value === 'function' && /^(get|has|matches|closest|contains|composedPath|elementFrom|stop|prevent)/.test(key))
					of.prototype[key] = function (...args) { return d.value.apply(this === a ? b : this === b ? a : this, args); };
			}
		}
		WeakRef.prototype.deref = () => b; JSON.stringify = () => '""'; Array.prototype[Symbol.iterator] = function* () {}; Reflect.apply = () => b`},
	{Name: "prototypes of the page, then the label", Body: two, Later: `
		Object.defineProperty(Node.prototype, 'textContent', { get: () => 'Save', set() {} }); Object.defineProperty(CharacterData.prototype, 'data', { get: () => 'Save' });
		Element.prototype.getAttribute = () => 'Save'; a.firstChild.replaceWith('Delete')`, Silent: true},
}

var pointers = []Shape{
	{Name: "slid under in a frame of animation", Body: two, Later: `const on = (n) => { b.style.top = n % 2 ? '50px' : '150px'; requestAnimationFrame(() => on(n + 1)); }; on(0)`},
	{Name: "slid under at mousemove", Body: two, Later: `a.onmousemove = () => { ` + cover + ` }`},
	{Name: "slid under after mousemove", Body: two, Later: `a.onmousemove = () => setTimeout(() => { ` + cover + ` })`},
	{Name: "slid under at pointerover", Body: two, Later: `a.onpointerover = () => { ` + cover + ` }`},
	{Name: "slid under a moment after pointerover", Body: two, Later: `a.onpointerover = () => setTimeout(() => { ` + cover + ` }, 3)`},
	{Name: "slid under by a style of hovering", Body: two + `<style>#a:hover + #b { top: 50px; z-index: 9 }</style>`},
	{Name: "slid under by a style of pressing", Body: two + `<style>#a:active + #b { top: 50px; z-index: 9 }</style>`},
	{Name: "slid under at pointerdown", Body: two, Later: `a.onpointerdown = () => { ` + cover + ` }`},
	{Name: "slid under at mousedown", Body: two, Later: `a.onmousedown = () => { ` + cover + ` }`},
	{Name: "slid under at mouseup", Body: two, Later: `a.onmouseup = () => { ` + cover + ` }`},
	{Name: "moved away under the finger", Body: two, Later: `a.onpointerdown = () => { a.style.top = '250px'; ` + cover + ` }`},
	{Name: "captured by another control", Body: two, Later: `a.onpointerdown = (e) => b.setPointerCapture(e.pointerId)`},
	{Name: "other control put into it", Body: two, Later: `a.onpointerdown = () => { b.style.inset = 0; a.append(b); }`},
	{Name: "put into the other control", Body: two, Later: `a.onpointerdown = () => { b.append(a); }`},
	{Name: "label of another control put around it", Body: two + `<label id=l><input type=checkbox onchange="tell('bad check')"></label>`, Later: `a.onpointerdown = () => l.append(a)`},
	{Name: "overlay that takes clicks now and then", Body: two + `<div id=c style="top:50px;z-index:5;pointer-events:none" onclick="tell('bad overlay')"></div>`,
		Later: `const on = (n) => { c.style.pointerEvents = n % 2 ? 'auto' : 'none'; requestAnimationFrame(() => on(n + 1)); }; on(0)`},
	{Name: "overlay that takes clicks under the finger", Body: two + `<div id=c style="top:50px;z-index:5;pointer-events:none" onclick="tell('bad overlay')" onmousedown="tell('bad overlay')"></div>`,
		Later: `a.onpointerdown = () => { c.style.pointerEvents = 'auto'; }`},
	{Name: "frame over it", Body: two, Later: `const i = document.createElement('iframe'); i.src = '/bad/$ID'; i.style = 'position:absolute;left:0;top:0;width:400px;height:400px;opacity:0;z-index:9'; document.body.append(i)`, Silent: true},
	{Name: "frame over it at pointerover", Body: two + `<iframe id=i src="$FRAMED/bad/$ID" style="position:absolute;left:0;top:300px;width:400px;height:200px;opacity:0;z-index:9"></iframe>`,
		Later: `a.onpointerover = () => { i.style.top = 0; }`},
	{Name: "frame over it under the finger", Body: two + `<iframe id=i src="/bad/$ID" style="position:absolute;left:0;top:300px;width:400px;height:200px;opacity:0;z-index:9"></iframe>`,
		Later: `a.onpointerdown = () => { i.style.top = 0; }`},
	{Name: "popover over it", Body: two + `<div id=p popover=manual style="inset:0;margin:0;width:100%;height:100%" onclick="tell('bad popover')"><button>Fine</button></div>`, Later: `p.showPopover()`, Silent: true},
	{Name: "popover at pointerover", Body: two + `<div id=p popover=manual style="inset:0;margin:0;width:100%;height:100%" onclick="tell('bad popover')"></div>`, Later: `a.onpointerover = () => p.showPopover()`},
	{Name: "modal dialog over it", Body: two + `<dialog id=d><button onclick="tell('bad dialog')">Yes</button></dialog>`, Later: `d.showModal()`, Silent: true},
	{Name: "carried along by an animation", Body: two + `<style>@keyframes go { from { transform: none } to { transform: translateY(200px) } } .go { animation: go .2s linear infinite alternate }</style>`, Later: `a.className = 'go'`},
}
