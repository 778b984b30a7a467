package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// host is the public-shaped name of the generated pages.
const host = "see.practice.example"

// page is one page shape. An answer that shows it whole contains mark.
type page struct {
	name string
	body string
	mark string
}

func (p page) url() string { return "https://" + host + "/" + p.name }

// pages are in the order in which they are measured: the heaviest is last,
// because memory is read after it.
func pages() []page {
	return []page{
		{"form", form(), "Send the order"},
		{"article", article(200), "How water"},
		{"shadow", shadow(200), "Pick 1"},
		{"ticking", ticking(), "Pause the clock"},
		{"late", late(), "Order Toner"},
		{"table", table(1000), "Open 1"},
		{"dense", cards(1000, 11, 2), "Act 1"},
		{"huge", cards(2000, 26, 3), "Act 1"},
	}
}

func pageHandler(did http.Handler) http.Handler {
	m := http.NewServeMux()
	m.Handle("POST /did", did)
	for _, p := range slices.Concat(pages(), actPages()) {
		whole := "<!doctype html><html lang=en><meta charset=utf-8><title>Seeing: " + p.name + "</title>" +
			`<link rel=icon href="data:,"><body><main><h1>Seeing: ` + p.name + "</h1>" + p.body + "</main></body></html>"
		m.HandleFunc("GET /"+p.name, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, whole)
		})
	}
	m.HandleFunc("GET /stock", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(600 * time.Millisecond):
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `["Paper","Toner","Badge"]`)
		case <-r.Context().Done():
		}
	})
	return m
}

func form() string {
	return `<form><label>Name <input name=name></label><label>Street <input name=street></label>` +
		`<label>Town <input name=town></label><label>Telephone <input type=tel name=tel></label>` +
		`<label>Country <select name=country><option>Iceland<option>Norway<option>Peru</select></label>` +
		`<label><input type=checkbox name=gift> It is a present</label>` +
		`<fieldset><legend>Delivery</legend><label><input type=radio name=how> By post</label><label><input type=radio name=how> By hand</label></fieldset>` +
		`<label>Remarks <textarea name=remarks></textarea></label><button>Send the order</button></form>`
}

var sentences = []string{
	"Rivers carry more than water: sand, leaves and the warmth of the plain travel with them to the sea.",
	"Whoever follows the bank for a day meets mills that no longer turn and bridges that outlived their roads.",
	"In spring the meadows stand under water, and the villages on the dykes look like ships at anchor.",
	"Measuring stations report the level every quarter of an hour, and yet every flood begins with a surprise.",
}

func article(paragraphs int) string {
	var b strings.Builder
	b.WriteString("<article>")
	for i := range paragraphs {
		if i%20 == 0 {
			fmt.Fprintf(&b, `<h2>How water finds its way, part %d</h2><p><a href="#part-%d">Link to this part</a></p>`, i/20+1, i/20+1)
		}
		fmt.Fprintf(&b, "<p>%d. %s <em>%s</em> %s</p>", i+1, sentences[i%4], sentences[(i+1)%4], sentences[(i+2)%4])
	}
	return b.String() + "</article>"
}

func table(rows int) string {
	var b strings.Builder
	b.WriteString("<table><thead><tr><th>No.<th>Title<th>From<th>State<th>Town<th>Hours<th>Due<th>Do</tr></thead><tbody>")
	for i := 1; i <= rows; i++ {
		fmt.Fprintf(&b, `<tr><td>%d<td><a href="#open-%d">Open %d</a><td><a href="#person-%d">Person %d</a><td>waiting<td>Town %d<td>%d<td>day %d<td><button>Close %d</button></tr>`,
			i, i, i, i, i%40, i%17, i%9, i%30, i)
	}
	return b.String() + "</tbody></table>"
}

// cards are n blocks of so many elements, of which some take a click.
func cards(n, elements, interactive int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, `<section class="card c%d"><div><h3>Card %d</h3>`, i%7, i)
		for k := range interactive {
			if k%2 == 0 {
				fmt.Fprintf(&b, `<button>Act %d on %d</button>`, k+1, i)
			} else {
				fmt.Fprintf(&b, `<a href="#card-%d-%d">Read %d of %d</a>`, i, k, k+1, i)
			}
		}
		b.WriteString("<div>")
		for k := range elements - interactive - 4 {
			fmt.Fprintf(&b, "<span>fact %d</span>", k)
		}
		b.WriteString("</div></div></section>")
	}
	return b.String()
}

// shadow is n components, each an open shadow tree with slotted content.
func shadow(n int) string {
	return fmt.Sprintf(`<div id=room></div><script>
customElements.define("x-item", class extends HTMLElement {
  connectedCallback() {
    const root = this.attachShadow({mode: "open"});
    root.innerHTML = "<style>:host{display:block}</style><div><slot></slot><label>Count <input></label><button>Pick " + this.dataset.n + "</button></div>";
  }
});
for (let i = 1; i <= %d; i++) {
  const e = document.createElement("x-item");
  e.dataset.n = i;
  e.textContent = "Item " + i;
  document.getElementById("room").append(e);
}
</script>`, n)
}

func ticking() string {
	return form() + `<p>Now: <span id=now>0</span></p><button>Pause the clock</button><ul id=log></ul><script>
let n = 0;
setInterval(() => {
  document.getElementById("now").textContent = ++n;
  const li = document.createElement("li");
  li.textContent = "tick " + n;
  document.getElementById("log").prepend(li);
  if (n > 20) document.getElementById("log").lastChild.remove();
}, 50);
</script>`
}

func late() string {
	return `<p role=status id=state>Loading</p><ul id=stock></ul><script>
addEventListener("load", () => fetch("/stock").then((r) => r.json()).then((all) => {
  document.getElementById("state").textContent = "Complete";
  for (const name of all) {
    const li = document.createElement("li"), b = document.createElement("button");
    b.textContent = "Order " + name;
    li.append(b);
    document.getElementById("stock").append(li);
  }
}));
</script>`
}
