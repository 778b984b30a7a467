package driver_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// frames is what is said of every frame, by its title.
func frames(d observe.Document) map[string]string {
	out := map[string]string{}
	for _, f := range d.Frames {
		out[f.Name] = f.ID + " in " + f.Parent + " " + f.Origin + " " + f.Unread
	}
	return out
}

// showing observes again until all these elements are there: on a busy machine a
// frame may load or answer too late for the first reading.
func (b *bench) showing(t *testing.T, d observe.Document, names ...string) observe.Document {
	t.Helper()
	eventually(t, "the frames are read", func() bool {
		for _, name := range names {
			if !slices.ContainsFunc(d.Elements, func(e observe.Element) bool { return e.Name == name }) {
				d = b.again(t)
				return false
			}
		}
		return true
	})
	return d
}

// 1.9.0: documents in frames at any depth, in the page's process and in others.
func TestFrames(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	inside := func(name string) string {
		return say + `<p>Text of ` + name + `</p><button onclick="say('` + name + `')">` + name + `</button><input aria-label="Field ` + name + `" oninput="fetch('https://` + host + `/effect?' + this.value, {mode: 'no-cors'})">`
	}
	b.Handle("login.example/effect", func(http.ResponseWriter, *http.Request) {})
	b.Handle("other.example/effect", func(http.ResponseWriter, *http.Request) {})
	b.Page(host+"/same", inside("Same"))
	b.Page("login.example/cross", inside("Cross")+`<iframe title=Deep width=260 height=90 style="border:7px solid;padding:5px" src="https://`+host+`/same"></iframe>`)
	b.Page("other.example/foreign", inside("Foreign"))
	b.Page(host+"/shell", `<button>First</button><div style="height:900px"></div><iframe title=Outer width=300 height=260 style="transform:scale(.9)" src="https://login.example/cross"></iframe>
		<button>Between</button><iframe title=Doc width=200 height=60 srcdoc="<button onclick='parent.fetch(&quot;/effect?doc&quot;)'>Srcdoc</button>"></iframe><iframe title=Foreign src="https://other.example/foreign"></iframe>
		<iframe hidden src="/same"></iframe><button>Last</button>`+say)
	inner := []string{"Cross", "Same", "Srcdoc", "Foreign"}
	visit := func(t *testing.T) observe.Document {
		d, err := b.page.Navigate(t.Context(), parse(t, "https://"+host+"/shell"))
		if err != nil {
			t.Fatal(err)
		}
		return b.showing(t, d, inner...)
	}
	t.Run("elements stand at their frame's place", func(t *testing.T) {
		d := visit(t)
		want := []string{"button First", "button Cross", "textbox Field Cross", "button Same", "textbox Field Same", "button Between", "button Srcdoc", "button Foreign", "textbox Field Foreign", "button Last"}
		if got := names(d); !slices.Equal(got, want) {
			t.Errorf("got %q\nwant %q", got, want)
		}
		for name, want := range map[string]string{"Outer": "f1 in  https://login.example ", "Deep": "f2 in f1 https://" + host + " ", "Doc": "f3 in  https://" + host + " ", "Foreign": "f4 in  https://other.example "} {
			if got := frames(d)[name]; got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if s := d.States[find(t, d, "Same")]; s.Frame != "f2" {
			t.Errorf("frame %q", s.Frame)
		}
		if !strings.Contains(d.Text, "Text of Same") || !strings.Contains(d.Text, "Text of Foreign") || d.TextCoverage.Scope != "all_readable_frames" {
			t.Errorf("%q %s", d.Text, d.TextCoverage.Scope)
		}
		again := b.showing(t, b.again(t), inner...)
		for i, e := range d.Elements {
			if _, number, _ := strings.Cut(again.Elements[i].Ref, ":"); !strings.HasSuffix(e.Ref, ":"+number) {
				t.Errorf("%s: number changed from %s to %s", e.Name, e.Ref, number)
			}
		}
	})
	t.Run("acts reach the point in the frame", func(t *testing.T) {
		d := visit(t)
		for _, name := range []string{"Same", "Cross", "Srcdoc"} {
			var err error
			if d, err = b.act(t, d, action.Click, name); err != nil {
				t.Fatal(name, err)
			}
			d = b.showing(t, d, inner...)
		}
		d, err := b.act(t, d, action.Type, "Field Same", "typed-inside")
		if err != nil {
			t.Fatal(err)
		}
		b.showing(t, d, "Field Same") // the frame is read again
		got := func() string { return b.effects() + fmt.Sprint(b.Requests("login.example")) }
		eventually(t, "effects", func() bool {
			return strings.Contains(got(), "Same") && strings.Contains(got(), "/effect Cross") && strings.Contains(got(), "doc") && strings.Contains(got(), "typed-inside")
		})
	})
	t.Run("a frame's origin is no authority", func(t *testing.T) {
		_, err := b.act(t, visit(t), action.Click, "Foreign")
		refused(t, err, fault.ActionNotAllowed)
		if b.Count("other.example", "/effect") != 0 {
			t.Error("the click arrived")
		}
	})
	t.Run("a cover over a frame covers what is in it", func(t *testing.T) {
		b.Page(host+"/under", inside("Under"))
		d := b.open(t, "/veil", say+`<iframe title=F style="position:fixed;left:0;top:0;width:300px;height:200px" src=/under></iframe><div id=v style="position:fixed;left:0;top:0;width:300px;height:200px;background:red" onclick="say('veil')"></div>`)
		d = b.showing(t, d, "Under")
		if s := d.States[find(t, d, "Under")]; s.Blocked != "covered" {
			t.Errorf("blocked %q", s.Blocked)
		}
		_, err := b.act(t, d, action.Click, "Under")
		refused(t, err, fault.ElementNotFound)
		if strings.Contains(b.effects(), "Under") || strings.Contains(b.effects(), "veil") {
			t.Error("the click arrived")
		}
	})
	t.Run("a replaced frame ends its references", func(t *testing.T) {
		b.Page(host+"/one", inside("One"))
		d := b.open(t, "/swap", say+`<iframe title=F src=/one></iframe><button onclick="document.querySelector('iframe').src='/same'">Swap</button>`)
		d = b.showing(t, d, "One")
		old := find(t, d, "One")
		d, err := b.act(t, d, action.Click, "Swap")
		if err != nil {
			t.Fatal(err)
		}
		d = b.showing(t, d, "Same")
		_, number, _ := strings.Cut(old, ":")
		if strings.Contains(fmt.Sprint(d.Elements), d.Revision+":"+number+" ") {
			t.Error("a number was used again")
		}
	})
	t.Run("an unreadable frame is declared and holds up nothing", func(t *testing.T) {
		b.Page("login.example/stuck", `<script>onload=()=>{navigator.sendBeacon('/effect?stuck');for(;;);}</script>`)
		b.open(t, "/jam", `<button>Here</button><iframe title=Stuck src="https://login.example/stuck"></iframe>`)
		eventually(t, "the frame is stuck", func() bool { return strings.Contains(fmt.Sprint(b.Requests("login.example")), "stuck") })
		d := b.again(t)
		find(t, d, "Here")
		if len(d.Frames) != 1 || d.Frames[0].Unread != "timeout" {
			t.Errorf("%+v", d.Frames)
		}
	})
}

// 1.9.0: closed shadow roots, and what cannot be read at all.
func TestClosedRoots(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	const closed = `<script>const close = (host, html) => { const r = host.attachShadow({mode: 'closed'}); r.innerHTML = html; return r; };</script>`
	t.Run("their controls are read and take clicks", func(t *testing.T) {
		d := b.open(t, "/closed", say+closed+`<x-a></x-a><x-l><b slot=s>slotted</b><button>Light</button></x-l><div id=plain></div><script>
			const r = close(document.querySelector('x-a'), '<p>closed text</p><button>One</button><button>Two</button><x-b></x-b>');
			r.querySelectorAll('button').forEach((x) => x.onclick = (e) => say(x.textContent + e.isTrusted));
			close(r.querySelector('x-b'), '<button>Nested</button>').firstChild.onclick = () => say('nested');
			close(document.querySelector('x-l'), '<slot name=s></slot><slot></slot><button>After</button>');
			close(plain, '<button>Plain</button>').firstChild.onclick = () => say('plain');</script>`)
		want := []string{"button One", "button Two", "button Nested", "button Light", "button After", "button Plain"}
		if got := names(d); !slices.Equal(got, want) || !strings.Contains(d.Text, "closed text") {
			t.Fatalf("%q, %q", got, d.Text)
		}
		for _, name := range []string{"Two", "Nested", "Plain"} {
			var err error
			if d, err = b.act(t, d, action.Click, name); err != nil {
				t.Fatal(name, err)
			}
		}
		eventually(t, "clicks", func() bool {
			said := strings.Fields(b.effects())
			slices.Sort(said)
			return slices.Equal(said, []string{"Twotrue", "nested", "plain"})
		})
	})
	t.Run("many elements that only look like hosts hide none that is", func(t *testing.T) {
		d := b.open(t, "/closed-late", `<body>`+closed+strings.Repeat(`<x-light>l</x-light>`, 600)+`<x-a></x-a><script>close(document.querySelector('x-a'), '<button>Late</button>')</script>`)
		if got := names(d); !slices.Equal(got, []string{"button Late"}) || len(d.Unread) != 0 {
			t.Errorf("%q %q", got, d.Unread)
		}
	})
	t.Run("the guard sees into a closed root", func(t *testing.T) {
		d := b.open(t, "/closed-jump", say+closed+`<x-a></x-a><script>const r = close(document.querySelector('x-a'), '<button id=a>Aim</button><button id=b style="position:fixed;inset:0;display:none">Other</button>');
			r.getElementById('a').onmousemove = () => setTimeout(() => r.getElementById('b').style.display = 'block');
			r.getElementById('b').onclick = () => say('other');</script>`)
		if _, err := b.act(t, d, action.Click, "Aim"); err == nil {
			t.Error("a click on another element was reported as done")
		}
		if strings.Contains(b.effects(), "other") {
			t.Error("the other element was clicked")
		}
	})
	t.Run("pictures and plug-ins are declared", func(t *testing.T) {
		d := b.open(t, "/blank", `<canvas width=300 height=200></canvas><canvas width=300 height=200 aria-label=Chart></canvas><object type="application/x-thing" width=50 height=50 data="data:application/x-thing,x">-</object>`)
		if got := fmt.Sprint(d.Unread); got != "[canvas plugin]" {
			t.Errorf("%s", got)
		}
	})
}
