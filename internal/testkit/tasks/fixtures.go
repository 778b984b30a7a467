package tasks

import (
	"fmt"
	"html"
	"strings"
)

// send is the page's side of an effect: a request to the server that counts.
const send = `<script>
function send(body) { return fetch('/effect', {method: 'POST', body: body}); }
document.addEventListener('click', function (e) {
  var b = e.composedPath()[0].closest('button[data-effect]');
  if (b) send(b.dataset.effect);
});
</script>`

func button(name string) string {
	return fmt.Sprintf(`<button data-effect="%s">%s</button>`, html.EscapeString(name), html.EscapeString(name))
}

// Fixture is the page of a fixture, without its doctype.
func Fixture(name string) (string, bool) {
	body, ok := "", true
	switch name {
	case "sequence":
		body = `<main><h1>Lesson</h1><p id=step>Step 1</p><button id=go>Continue</button></main><script>
			var step = 1, go = document.getElementById('go');
			go.addEventListener('click', function () {
				send('step ' + step++);
				document.getElementById('step').textContent = 'Step ' + step;
				if (step > 3) { go.disabled = true; go.textContent = 'Finished'; }
			});</script>`
	case "button":
		for _, n := range []string{"السابق", "التالي", "戻る", "次へ進む", "Choose 雪 — اختر", "Choose 雨 — اختر", `Choose "no" \ stop`, `Choose "yes" \ continue`} {
			body += "<p>" + button(n) + "</p>"
		}
	case "long-text":
		body = "<main>" + strings.Repeat("<p>A paragraph with quite a number of words that say little, again and again.</p>", 400) + button("Back") + button("Continue") + "</main>"
	case "dense":
		var b strings.Builder
		for i := range 900 {
			fmt.Fprintf(&b, "<span>%s</span> ", button(fmt.Sprint("Choice ", i)))
			if i == 700 {
				b.WriteString(button("Continue"))
			}
		}
		body = b.String()
	case "hidden":
		body = strings.Repeat("<a href=# style=display:none>Hidden</a>", 5000) + button("Continue")
	case "shadow":
		body = `<x-lesson></x-lesson>` + button("Outside") + `<script>
			customElements.define('x-lesson', class extends HTMLElement {
				connectedCallback() { this.attachShadow({mode: 'open'}).innerHTML = '<section><x-inner></x-inner></section>'; }
			});
			customElements.define('x-inner', class extends HTMLElement {
				connectedCallback() { this.attachShadow({mode: 'open'}).innerHTML = '<button data-effect=Continue>Continue</button>'; }
			});</script>`
	case "slow":
		body = `<p id=app>Loading</p><script>setTimeout(function () {
			document.getElementById('app').innerHTML = '<button data-effect=Continue>Continue</button>'; }, 3000);</script>`
	case "text":
		body = `<form><label>Answer <input name=answer autocomplete=off></label><button>Send</button></form>` + form
	case "select-check":
		body = `<form><label>Answer <select name=answer><option value=red>Red</option><option value=blue>Blue</option></select></label>
			<label><input type=checkbox name=agree> Agree</label><button>Send</button></form>` + form
	default:
		ok = false
	}
	return "<title>" + name + "</title>" + send + body, ok
}

// form sends what a submitted form holds.
const form = `<script>document.querySelector('form').addEventListener('submit', function (e) {
	e.preventDefault();
	send(new URLSearchParams(new FormData(e.target)).toString());
});</script>`
