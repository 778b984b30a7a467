package driver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// names lists role and name of every element, in order.
func names(d observe.Document) []string {
	var out []string
	for _, e := range d.Elements {
		s := e.Role + " " + e.Name
		if e.Disabled {
			s += " (disabled)"
		}
		if e.Checked != nil {
			s += fmt.Sprint(" ", *e.Checked)
		}
		out = append(out, s)
	}
	return out
}

func TestObservation(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	t.Run("CAP-05 no value of a field leaves the page", func(t *testing.T) {
		const secret = "sentinel-7f3a"
		d := b.open(t, "/secrets", `<title>Fields</title><label for=u>User <input id=u value=`+secret+`></label>
			<input type=password value=`+secret+` placeholder="Your password"><input autocomplete=new-password value=`+secret+`>
			<input type=hidden role=button value=`+secret+`><textarea aria-labelledby=ta id=ta>`+secret+`</textarea>
			<div contenteditable aria-label=Editor style="min-height:9px"><p>`+secret+`</p></div>
			<div role=textbox tabindex=0>`+secret+`</div><div role=combobox>`+secret+`</div>
			<label>Pick <select><option selected value=`+secret+`>Chosen</select></label>
			<button aria-labelledby="ta sel">x</button><select id=sel><option value=`+secret+`>Other</select>
			<span hidden>`+secret+`</span><p style="display:none">`+secret+`</p><p style="visibility:hidden">`+secret+`</p><p style="opacity:0">`+secret+`</p>
			<p aria-hidden=true>`+secret+`</p><script>/*`+secret+`*/</script><template>`+secret+`</template><!--`+secret+`-->
			<x-y></x-y><script>document.querySelector('x-y').attachShadow({mode:'open'}).innerHTML='<input value=`+secret+`><textarea>`+secret+`</textarea>';
			document.cookie='c=`+secret+`';localStorage.s='`+secret+`'</script>`)
		body, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(body), secret) {
			t.Errorf("a value is in the observation: %s", body)
		}
		if len(d.Elements) < 9 {
			t.Errorf("fields are missing: %v", names(d))
		}
		d, err = b.act(t, d, action.Type, "User", "typed-5d1c")
		if err != nil {
			t.Fatal(err)
		}
		if body, _ := json.Marshal(d); strings.Contains(string(body), "typed-5d1c") {
			t.Error("typed text came back")
		}
	})
	t.Run("NAME-01 order of sources", func(t *testing.T) {
		d := b.open(t, "/names", `<span id=x>By id</span><button aria-labelledby=x aria-label=No>No</button><button aria-label="By label" title=No>No</button>
			<label for=i>By for</label><input id=i title=No placeholder=No><button title="By title">Text</button><input placeholder="By placeholder">
			<button><span><span>Deep <b>text</b></span></span><svg aria-hidden=true></svg></button><a href=#><img alt="Picture" width=9 height=9></a>
			<input type=submit value="Send it"><div role=" Switch x " tabindex=0>On</div><input type=checkbox checked aria-label=C><button aria-disabled=true>D</button>`)
		want := []string{"button By id", "button By label", "textbox By for", "button By title", "textbox By placeholder", "button Deep text",
			"link Picture", "button Send it", "switch On", "checkbox C true", "button D (disabled)"}
		if got := names(d); !slices.Equal(got, want) {
			t.Errorf("got %q\nwant %q", got, want)
		}
		if f := d.Facts[find(t, d, "By title")]; f.Text != "Text" {
			t.Errorf("visible text %q", f.Text)
		}
	})
	t.Run("OBS-03 OBS-04 hidden controls take no slot", func(t *testing.T) {
		d := b.open(t, "/many", strings.Repeat(`<button style="display:none">H</button>`, 300)+
			`<div style="display:contents" role=button>Contents</div>`+strings.Repeat(`<button>V</button>`, 300))
		if len(d.Elements) != 256 || !d.MoreElements || d.Elements[0].Name != "Contents" {
			t.Errorf("%d elements, more %v, first %q", len(d.Elements), d.MoreElements, d.Elements[0].Name)
		}
	})
	t.Run("OBS-02 bounded candidates", func(t *testing.T) {
		d := b.open(t, "/crowd", strings.Repeat(`<i role=button></i>`, 4097)+`<button>Late</button>`)
		if len(d.Elements) != 0 || !d.MoreElements {
			t.Errorf("%v more %v", names(d), d.MoreElements)
		}
	})
	t.Run("2.3 dialog first, inert behind it", func(t *testing.T) {
		d := b.open(t, "/modal", `<button>Behind</button><dialog id=g aria-label="Sure?"><button>Yes</button></dialog><script>g.showModal()</script>`)
		if got := names(d); !slices.Equal(got, []string{"button Yes", "button Behind (disabled)"}) {
			t.Errorf("%q", got)
		}
		if c := d.Facts[find(t, d, "Yes")].Context; c != "Sure?" {
			t.Errorf("context %q", c)
		}
	})
	t.Run("2.3 shadow roots and slots", func(t *testing.T) {
		d := b.open(t, "/shadow", `<x-menu><button>Slotted</button></x-menu><script>document.querySelector('x-menu').attachShadow({mode:'open'}).innerHTML='<p>Before</p><slot></slot><button>After</button>'</script>`)
		if got := names(d); !slices.Equal(got, []string{"button Slotted", "button After"}) || d.Text != "Before\nSlottedAfter" {
			t.Errorf("%q %q", got, d.Text)
		}
	})
	t.Run("pagejs does not believe the page", func(t *testing.T) {
		d := b.open(t, "/liar", `<form id=f><input name=tagName aria-label=A><input name=nodeType><input name=firstChild><input name=nextSibling><input name=parentNode>
			<input name=getAttribute><input name=shadowRoot><input name=checkVisibility><input name=namespaceURI><button>Inside</button></form><img name=title><img name=activeElement><form name=getElementById></form>
			<script>for(const P of [Node,Element,Document,HTMLElement,HTMLInputElement]) for(const n of Object.getOwnPropertyNames(P.prototype)) try{Object.defineProperty(P.prototype,n,{get(){throw 1},configurable:true})}catch{}
			JSON.stringify=()=>'"x"';Array.prototype.map=()=>{throw 2};WeakRef=null;Promise.resolve=()=>{throw 3};getComputedStyle=()=>({display:'none'})</script>`)
		find(t, d, "A")
		find(t, d, "Inside")
		if _, err := b.act(t, d, action.Type, "A", "fine"); err != nil {
			t.Error(err)
		}
	})
	t.Run("BND-01 text is bounded and whole", func(t *testing.T) {
		d := b.open(t, "/long", `<p>`+strings.Repeat("wörter ", 60000)+`</p><p>\ud800</p>`)
		if !d.TextTruncated || len(d.Text) > observe.MaxText || len(d.Text) < observe.MaxText-8 {
			t.Errorf("%d bytes, truncated %v", len(d.Text), d.TextTruncated)
		}
	})
}

// quiet opens a page that comes to rest. Where the machine is so slow that the
// bound expires before, the page is opened again.
func (b *bench) quiet(t *testing.T, path, body string) observe.Document {
	t.Helper()
	b.Page(host+path, body)
	for range 10 {
		d, err := b.page.Navigate(t.Context(), parse(t, "https://"+host+path))
		if err != nil {
			t.Fatal(err)
		}
		if d.Readiness == observe.DOMQuiet {
			return d
		}
	}
	t.Fatalf("%s never comes to rest", path)
	return observe.Document{}
}

// SETL-01 to SETL-06.
func TestSettling(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.Handle(host+"/late", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(600 * time.Millisecond): // longer than the quiet time, within the bound
		}
		_, _ = w.Write([]byte("late"))
	})
	b.Handle(host+"/stream", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	b.Handle(host+"/never", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	t.Run("SETL-04 pending requests are awaited", func(t *testing.T) {
		if d := b.quiet(t, "/drain", `<p id=o>early</p><script>fetch('/late').then(r=>r.text()).then(x=>o.textContent=x)</script>`); d.Text != "late" {
			t.Errorf("%q", d.Text)
		}
	})
	t.Run("SETL-04 an event stream is finished with its headers", func(t *testing.T) {
		b.quiet(t, "/sse", `<script>new EventSource('/stream');fetch('/stream')</script>`)
	})
	t.Run("SETL-02 SETL-05 the bound never fails a call", func(t *testing.T) {
		for path, body := range map[string]string{
			"/hang": `<p>ok</p><script>fetch('/never')</script>`,
			"/busy": `<p id=o>ok</p><script>setInterval(()=>o.dataset.n=Math.random(),50)</script>`,
			"/deep": `<x-y></x-y><script>const r=document.querySelector('x-y').attachShadow({mode:'open'});r.innerHTML='<p>ok</p>';setInterval(()=>r.firstChild.dataset.n=Math.random(),50)</script>`,
		} {
			if d := b.open(t, path, body); d.Readiness != observe.BoundExpired || d.Text != "ok" {
				t.Errorf("%s: %q %s", path, d.Text, d.Readiness)
			}
		}
	})
	t.Run("SETL-01 an act waits for its document", func(t *testing.T) {
		b.Handle(host+"/slow", func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(1500 * time.Millisecond): // longer than the quiet time, to be waited for
			case <-r.Context().Done():
			}
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<title>Slow</title>"))
		})
		for path, body := range map[string]string{
			"/a1": `<a href=/slow>Go</a>`, "/a2": `<form action=/slow><button>Go</button></form>`,
			"/a3": `<button onclick="setTimeout(()=>location='/slow',100)">Go</button>`,
		} {
			d := b.open(t, path, body)
			d, err := b.act(t, d, action.Click, "Go")
			if err != nil || d.Title != "Slow" {
				t.Errorf("%s: %q %v", path, d.Title, err)
			}
		}
	})
	t.Run("SETL-06 observe makes no claim", func(t *testing.T) {
		if d, err := b.page.Observe(t.Context(), observe.Query{}); err != nil || d.Readiness != "" {
			t.Error(d.Readiness, err)
		}
	})
}
