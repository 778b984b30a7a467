package driver_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/browser/driver"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/testkit/chromiumtest"
)

const host = "wiki.example"

// bench is one browser and one site for many pages.
type bench struct {
	*chromiumtest.Site
	page *driver.Page
}

func newBench(t testing.TB, change func(*driver.Config)) *bench {
	s := chromiumtest.NewSite(t, host, "other.example", "login.example")
	s.Handle(host+"/effect", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	c := config(t, s, "https://"+host, "https://login.example")
	if change != nil {
		change(&c)
	}
	return &bench{Site: s, page: launch(t, c)}
}

// open serves the body at a path of its own and navigates there.
func (b *bench) open(t testing.TB, path, body string) observe.Document {
	t.Helper()
	b.Page(host+path, body)
	d, err := b.page.Navigate(t.Context(), parse(t, "https://"+host+path))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func find(t testing.TB, d observe.Document, name string) string {
	t.Helper()
	for _, e := range d.Elements {
		if e.Name == name {
			return e.Ref
		}
	}
	t.Fatalf("no element %q in %+v", name, d.Elements)
	return ""
}

func (b *bench) act(t testing.TB, d observe.Document, kind action.Kind, name string, value ...string) (observe.Document, error) {
	t.Helper()
	return b.page.Act(t.Context(), request(t, d, kind, name, value...), nil)
}

// request is an act on the element with the name.
func request(t testing.TB, d observe.Document, kind action.Kind, name string, value ...string) action.Action {
	t.Helper()
	a := action.Action{Kind: kind, ExpectedRevision: d.Revision, Ref: find(t, d, name)}
	switch kind {
	case action.Type, action.Select:
		a.Value = &value[0]
	case action.Press:
		a.Key = &value[0]
	case action.Scroll:
		dy := 400
		a.DeltaY = &dy
	}
	return a
}

// effects are the words that pages reported to the site, as they arrived.
// Words said at once may arrive in any order.
func (b *bench) effects() string {
	var out []string
	for _, r := range b.Requests(host) {
		if r.Path == "/effect" {
			out = append(out, r.Query)
		}
	}
	return strings.Join(out, " ")
}

const say = `<script>const say = (w) => fetch('/effect?' + encodeURIComponent(w));</script>`

func refused(t testing.TB, err error, code fault.Code) {
	t.Helper()
	if !fault.Is(err, code) {
		t.Errorf("error = %v, want %s", err, code)
	}
}

// eventually polls an independent observer.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("timed out: %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func TestActs(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	t.Run("CAP-06 a handle never slides to a neighbour", func(t *testing.T) {
		d := b.open(t, "/slide", say+`<div id=l><button onclick="say('one')">One</button><button onclick="say('two')">Two</button></div>
			<button onclick="const n=document.createElement('button');n.textContent='New';n.onclick=()=>say('new');l.prepend(n)">Add</button>`)
		d2, err := b.act(t, d, action.Click, "Add")
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.act(t, d, action.Click, "Two")
		refused(t, err, fault.PageChanged)
		if _, err = b.act(t, d2, action.Click, "Two"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "two", func() bool { return b.effects() == "two" })
	})
	t.Run("OBS-01 a replaced node is gone, a renamed one changed", func(t *testing.T) {
		d := b.changed(t, "replaced", `<button id=a onclick="say('bad')">A</button><button id=b onclick="say('bad')">B</button>`, "a.replaceWith(a.cloneNode(true)); b.textContent='Pay'")
		before := b.effects()
		_, err := b.act(t, d, action.Click, "A")
		refused(t, err, fault.ElementNotFound)
		_, err = b.act(t, d, action.Click, "B")
		refused(t, err, fault.PageChanged)
		if b.effects() != before {
			t.Error("a refused act had an effect")
		}
	})
	t.Run("CAP-06 a reference ends with its document", func(t *testing.T) {
		b.Page(host+"/next", say+`<button onclick="say('wrong')">Go</button>`)
		d := b.open(t, "/first", `<a href=/next>Go</a>`)
		next, err := b.act(t, d, action.Click, "Go")
		if err != nil || !strings.HasSuffix(next.URL, "/next") {
			t.Fatal(next.URL, err)
		}
		_, err = b.act(t, d, action.Click, "Go")
		refused(t, err, fault.PageChanged)
	})
	t.Run("CLK-01 a cover is refused", func(t *testing.T) {
		d := b.open(t, "/cover", say+`<button onclick="say('under')">Under</button><div style="position:fixed;inset:0;background:#eee" onclick="say('cover')">We use cookies</div>`)
		_, err := b.act(t, d, action.Click, "Under")
		refused(t, err, fault.ElementNotFound)
		if strings.Contains(b.effects(), "under") || strings.Contains(b.effects(), "cover") {
			t.Error("a refused click arrived")
		}
	})
	t.Run("CLK-01 a label and a shadow root are no cover", func(t *testing.T) {
		d := b.open(t, "/label", say+`<label style="position:relative;display:inline-block;width:80px;height:30px">
			<input type=checkbox aria-label=Box style="opacity:0;position:absolute;inset:0" onchange="say('box')"><span style="position:absolute;inset:0;background:red"></span></label>
			<x-host></x-host><script>const r=document.querySelector('x-host').attachShadow({mode:'open'});
			r.innerHTML='<button><span>Deep</span></button>';r.firstChild.onclick=(e)=>{if(e.isTrusted)say('deep')}</script>`)
		d, err := b.act(t, d, action.Check, "Box")
		if err != nil {
			t.Fatal(err)
		}
		if d, err = b.act(t, d, action.Check, "Box"); err != nil { // already there: no second change
			t.Fatal(err)
		}
		if _, err = b.act(t, d, action.Click, "Deep"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "box and deep", func() bool { return strings.Contains(b.effects(), "box") && strings.Contains(b.effects(), "deep") })
		if n := strings.Count(b.effects(), "box"); n != 1 {
			t.Errorf("%d changes of the box", n)
		}
	})
	t.Run("2.4 typing replaces, and is read back", func(t *testing.T) {
		d := b.open(t, "/type", say+`<input aria-label=Mail value="old@x.example" oninput="say('m='+event.target.value+event.isTrusted)">
			<textarea aria-label=Note>old</textarea><div contenteditable aria-label=Rich style="min-height:20px">old rich</div>
			<input aria-label=Locked readonly value=keep><input aria-label=Off disabled value=keep>
			<input aria-label=Rewrites oninput="this.value='x'"><input aria-label=Short maxlength=3>
			<select aria-label=Pick onchange="say('p='+this.value)"><option value=a>Alpha<option value=b>Beta<option>Twin<option value=t2>Twin</select>`)
		var err error
		for _, f := range []struct{ name, text string }{{"Mail", "new@x.example"}, {"Note", "line 1\nline 2"}, {"Rich", "new rich"}} {
			if d, err = b.act(t, d, action.Type, f.name, f.text); err != nil {
				t.Fatal(f.name, err)
			}
		}
		if _, err = b.act(t, d, action.Select, "Pick", "Beta"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "typed", func() bool {
			return strings.Contains(b.effects(), "m%3Dnew%40x.exampletrue") && strings.Contains(b.effects(), "p%3Db")
		})
		for _, c := range []struct {
			kind        action.Kind
			name, value string
			code        fault.Code
		}{
			{action.Type, "Locked", "x", fault.ActionNotAllowed}, {action.Type, "Off", "x", fault.ElementNotFound},
			{action.Type, "Short", "long", fault.ActionNotAllowed}, {action.Type, "Mail", "a\nb", fault.ActionNotAllowed},
			{action.Select, "Pick", "Gamma", fault.ActionNotAllowed}, {action.Select, "Mail", "x", fault.ActionNotAllowed},
			{action.Check, "Mail", "", fault.ActionNotAllowed}, {action.Type, "Rewrites", "abc", fault.OutcomeUnknown},
		} {
			if d, err = b.page.Observe(t.Context(), observe.Query{}); err != nil {
				t.Fatal(err)
			}
			_, err = b.act(t, d, c.kind, c.name, c.value)
			if !fault.Is(err, c.code) {
				t.Errorf("%s %s: %v, want %s", c.kind, c.name, err, c.code)
			}
		}
	})
	t.Run("DENY-03 credentials are the owner's", func(t *testing.T) {
		boxes := strings.Repeat(`<input maxlength=1 inputmode=numeric aria-label=Digit>`, 6)
		d := b.open(t, "/login", say+`<form oninput="say('leak')"><input type=password aria-label=Password><input aria-label=New autocomplete="section-a new-password">
			<input aria-label=Code autocomplete=one-time-code><input aria-label=Masked style="-webkit-text-security:disc"><div>`+boxes+`</div></form>`)
		for _, name := range []string{"Password", "New", "Code", "Masked", "Digit"} {
			_, err := b.act(t, d, action.Type, name, "1")
			refused(t, err, fault.ActionNotAllowed)
			_, err = b.act(t, d, action.Press, name, "Space")
			refused(t, err, fault.ActionNotAllowed)
			if f := d.Facts[find(t, d, name)]; !f.FieldKind.Credential() {
				t.Errorf("%s: kind %s", name, f.FieldKind)
			}
		}
		if strings.Contains(b.effects(), "leak") {
			t.Error("text reached a credential field")
		}
	})
	t.Run("NAVC-01 dialogs are dismissed", func(t *testing.T) {
		d := b.open(t, "/dialog", say+`<button onclick="say('confirm='+confirm('Sure?'))">Delete</button><script>alert('at load')</script>`)
		if _, err := b.act(t, d, action.Click, "Delete"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "dismissed", func() bool { return strings.Contains(b.effects(), "confirm%3Dfalse") })
	})
	t.Run("NAVC-01 a page that asks not to be left is kept", func(t *testing.T) {
		d := b.open(t, "/sticky", `<title>Sticky</title><button>Touch</button><a href=/next>Away</a><script>onbeforeunload=(e)=>{e.preventDefault();return 'no'}</script>`)
		_, err := b.act(t, d, action.Click, "Touch")
		if err != nil {
			t.Fatal(err)
		}
		before := b.Count(host, "/next")
		_, err = b.page.Navigate(t.Context(), parse(t, "https://"+host+"/next"))
		refused(t, err, fault.NavigationCancelled)
		if d, err = b.page.Observe(t.Context(), observe.Query{}); err != nil || d.Title != "Sticky" {
			t.Fatal(d.Title, err)
		}
		_, err = b.act(t, d, action.Click, "Away")
		refused(t, err, fault.NavigationCancelled)
		if b.Count(host, "/next") != before {
			t.Error("the other page was asked for")
		}
		if d, err = b.page.Observe(t.Context(), observe.Query{}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.Handle(host+"/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://other.example/landing", http.StatusFound)
	})
	b.Handle(host+"/file", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Disposition", "attachment; filename=x.bin")
		_, _ = w.Write([]byte("data"))
	})
	b.Handle(host+"/missing", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("<title>Not here</title><p>404"))
	})
	b.Down("login.example")
	for _, p := range []string{"/pop", "/named"} {
		b.Page(host+p, "popup")
	}
	t.Run("EPH-02 refused addresses keep the page", func(t *testing.T) {
		b.open(t, "/home", "<title>Home</title>")
		for _, c := range []struct {
			url  string
			code fault.Code
		}{
			{"https://other.example/", fault.URLDisallowed}, {"https://wiki.example/away", fault.URLDisallowed},
			{"https://login.example/", fault.SiteUnreachable}, {"https://wiki.example/file", fault.SiteUnreachable},
		} {
			_, err := b.page.Navigate(t.Context(), parse(t, c.url))
			refused(t, err, c.code)
			d, err := b.page.Observe(t.Context(), observe.Query{})
			if err != nil || d.Title != "Home" {
				t.Errorf("after %s: %q, %v", c.url, d.Title, err)
			}
		}
		d, err := b.page.Navigate(t.Context(), parse(t, "https://wiki.example/missing"))
		if err != nil || d.Title != "Not here" {
			t.Errorf("an error page is a page: %v %v", d, err)
		}
		if n := len(b.Requests("other.example")); n != 0 {
			t.Errorf("%d requests reached the other origin", n)
		}
		for _, c := range b.Connects() {
			if strings.HasPrefix(c, "other.example") {
				t.Error("a connection was made for a refused address")
			}
		}
	})
	t.Run("EPH-02 a click cannot leave either", func(t *testing.T) {
		d := b.open(t, "/out", `<title>Out</title><a href="https://other.example/x">Direct</a><a href=/away>Redirect</a>
			<a href="mailto:a@b.example">Mail</a><form action="https://other.example/post" method=post><button>Send</button></form>`)
		for name, code := range map[string]fault.Code{"Direct": fault.URLDisallowed, "Redirect": fault.OutcomeUnknown, "Mail": fault.ActionNotAllowed, "Send": fault.URLDisallowed} {
			_, err := b.act(t, d, action.Click, name)
			if !fault.Is(err, code) {
				t.Errorf("%s: %v, want %s", name, err, code)
			}
			if d, err = b.page.Observe(t.Context(), observe.Query{}); err != nil || d.Title != "Out" {
				t.Fatal(d.Title, err)
			}
		}
		if n := len(b.Requests("other.example")); n != 0 {
			t.Errorf("%d requests reached the other origin", n)
		}
	})
	t.Run("EPH-02 a page that opens and then leads off is the result", func(t *testing.T) {
		b.Page(host+"/leads", `<title>Leads</title><script>setTimeout(()=>location='https://other.example/z',50)</script>`)
		d := b.open(t, "/to-leads", `<a href=/leads>Go</a>`)
		if d, err := b.act(t, d, action.Click, "Go"); err != nil || d.Title != "Leads" {
			t.Errorf("%q %v", d.Title, err)
		}
		if n := len(b.Requests("other.example")); n != 0 {
			t.Errorf("%d requests reached the other origin", n)
		}
	})
	t.Run("POP-01 no popup ever loads", func(t *testing.T) {
		d := b.open(t, "/opener", `<title>Opener</title><a href=/pop target=_blank>Blank</a><a href=/named target=win>Named</a>
			<button onclick="window.open('/pop')">Script</button><form action=/pop target=_blank><button>Form</button></form>
			<button onclick="const w=window.open('');if(w){const i=new w.Image();i.src='/pop?img'}">Written</button>`)
		for _, name := range []string{"Blank", "Named", "Script", "Form", "Written"} {
			var err error
			if d, err = b.act(t, d, action.Click, name); err != nil || d.Title != "Opener" {
				t.Fatalf("%s: %q %v", name, d.Title, err)
			}
		}
		// The opener must still live: a popup closed while paused would have frozen it.
		if _, err := b.page.Navigate(t.Context(), parse(t, "https://wiki.example/home")); err != nil {
			t.Fatal(err)
		}
		if n := b.Count(host, "/named") + b.Count(host, "/pop"); n != 0 {
			t.Errorf("%d popup requests reached the site", n)
		}
	})
	t.Run("DENY-01 EPH-01 permissions and service workers", func(t *testing.T) {
		b.Handle(host+"/sw.js", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/javascript") })
		d := b.open(t, "/powers", `<pre id=o></pre><script>(async()=>{
			const out={sw:'ran'};
			try{await navigator.serviceWorker.register('/sw.js')}catch(e){out.sw='denied'}
			for(const name of ['geolocation','notifications','camera','microphone','clipboard-read']) out[name]=(await navigator.permissions.query({name})).state;
			o.textContent=JSON.stringify(out)})()</script>`)
		var got map[string]string
		if err := json.Unmarshal([]byte(d.Text), &got); err != nil {
			t.Fatal(d.Text, err)
		}
		for what, state := range got {
			if state != "denied" {
				t.Errorf("%s: %s", what, state)
			}
		}
		if b.Count(host, "/sw.js") != 0 {
			t.Error("the service worker was fetched")
		}
	})
	t.Run("EPH-02 resources are public HTTPS", func(t *testing.T) {
		b.open(t, "/res", `<img src="http://plain.example/x"><img src="https://127.0.0.1/x"><img src="https://other.example:8443/x"><iframe src="https://other.example/frame"></iframe>`)
		for _, c := range b.Connects() {
			if !strings.HasSuffix(c, ".example:443") { // plain.example was asked for over HTTPS
				t.Errorf("the proxy was asked for %s", c)
			}
		}
		if b.Count("other.example", "/frame") != 1 {
			t.Error("a public frame did not load")
		}
	})
}
