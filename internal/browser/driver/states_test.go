package driver_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// state is what is said of an element, as JSON without its name.
func state(t *testing.T, d observe.Document, name string) string {
	t.Helper()
	body, err := json.Marshal(d.States[find(t, d, name)])
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// 1.9.0: what an agent needs to choose.
func TestStates(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	t.Run("fields, choices and what opens", func(t *testing.T) {
		d := b.open(t, "/states", `<input aria-label=Full value=sentinel required><input aria-label=Empty aria-invalid=true readonly><input aria-label=Pass type=password value=sentinel>
			<textarea aria-label=Note></textarea><div contenteditable aria-label=Rich>x</div><button aria-expanded=false>Menu</button><div role=tab tabindex=0 aria-selected=true>Tab</div>
			<button aria-pressed=false>Bold</button><details open><summary>Sum</summary></details>
			<select aria-label=Pick><option value=sentinel>One<option selected>Two<optgroup disabled label=g><option>Three</optgroup></select>
			<select aria-label=Long>`+strings.Repeat("<option>o", 70)+`</select>`)
		for name, want := range map[string]string{
			"Full": `{"required":true,"filled":true}`, "Empty": `{"invalid":true,"filled":false,"readonly":true}`, "Pass": `{"filled":true}`,
			"Note": `{"filled":false,"multiline":true}`, "Rich": `{"filled":true,"multiline":true}`, "Menu": `{"expanded":false}`, "Tab": `{"selected":true}`,
			"Bold": `{"selected":false}`, "Sum": `{"expanded":true}`, "Pick": `{"options":[{"label":"One"},{"label":"Two","selected":true},{"label":"Three","disabled":true}]}`,
		} {
			if got := state(t, d, name); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
		if s := d.States[find(t, d, "Long")]; len(s.Options) != observe.MaxOptions || s.MoreOptions != 6 {
			t.Errorf("%d options and %d more", len(s.Options), s.MoreOptions)
		}
		if body, err := json.Marshal(d); err != nil || strings.Contains(string(body), "sentinel") {
			t.Errorf("a value is in the observation (%v)", err)
		}
	})
	t.Run("why a control cannot be used", func(t *testing.T) {
		d := b.open(t, "/blocked", `<button>Free</button><div inert><button>Inert</button></div><div style="height:0;overflow:hidden"><button>Clipped</button></div>
			<button style="position:absolute;left:-999px">Away</button><div style="position:relative;width:99px;height:30px"><button>Under</button><p style="position:absolute;inset:0;margin:0;background:red">Over</p></div>
			<div style="position:relative;width:200px;height:40px"><button style="width:200px;height:40px">Half</button><p style="position:absolute;left:40px;right:40px;top:0;bottom:0;margin:0;background:red">Mid</p></div>
			<div style="height:60px;overflow:auto"><p style="height:300px">tall</p><button>Scrolled</button></div><p style="height:2000px"></p><button>Below</button>`)
		for name, want := range map[string]string{"Free": "", "Inert": "inert", "Clipped": "offscreen_clipped", "Away": "offscreen_clipped", "Under": "covered", "Half": "", "Scrolled": "", "Below": ""} {
			if got := d.States[find(t, d, name)].Blocked; got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		d = b.open(t, "/blocked-modal", `<button>Behind</button><dialog id=g><button>In</button></dialog><script>g.showModal()</script>`)
		if got := d.States[find(t, d, "Behind")].Blocked; got != "behind_dialog" {
			t.Errorf("%q", got)
		}
	})
	t.Run("CLK-01 a control whose middle is covered is clicked beside it", func(t *testing.T) {
		d := b.open(t, "/half", say+`<div style="position:relative;width:200px;height:40px"><button style="width:200px;height:40px" onclick="say('half')">Half</button><p style="position:absolute;left:40px;right:40px;top:0;bottom:0;margin:0;background:red" onclick="say('mid')">Mid</p></div>`)
		if _, err := b.act(t, d, action.Click, "Half"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the click", func() bool { return b.effects() == "half" })
	})
	t.Run("2.4 a scroll moves the page, and an inner scroller by its ref", func(t *testing.T) {
		const tell = `<script>addEventListener('scroll',(e)=>say((e.target.id||'page')+Math.round((e.target.id?e.target:document.scrollingElement).scrollTop)),true)</script>`
		d := b.open(t, "/scroll", say+tell+`<div id=list tabindex=0 aria-label=List aria-rowcount=500 style="height:200px;overflow:auto"><p style="height:3000px">rows</p></div><button>Outside</button><p style="height:3000px"></p>`)
		if s := d.States[find(t, d, "List")]; !s.Scrolls || s.Rows != 500 {
			t.Errorf("%+v", s)
		}
		d, err := b.act(t, d, action.Scroll, "List")
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the list at 400", func() bool { return strings.Contains(b.effects(), "list400") })
		if _, err = b.act(t, d, action.Scroll, "Outside"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the page at 400", func() bool { return strings.Contains(b.effects(), "page400") })
	})
}

// 1.9.0: what the browser stopped is told once.
func TestNotices(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.Handle(host+"/file.bin", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Disposition", "attachment; filename=x.bin")
		_, _ = w.Write([]byte("data"))
	})
	b.Page(host+"/popup", "popup")
	d := b.open(t, "/notices", `<script>alert('At load \ud800'+'x'.repeat(500))</script><button onclick="confirm('Sure?')">Ask</button><button onclick="window.open('/popup?secret')">Open</button>
		<a href=/file.bin>Get</a><a id=blob download=made.txt>Blob</a><script>blob.href=URL.createObjectURL(new Blob(['x']))</script><iframe title=F srcdoc="<script>alert('inner')</script>"></iframe>`)
	kinds := func(d observe.Document) string {
		var out []string
		for _, n := range d.Notices {
			out = append(out, n.Kind)
			if len([]rune(n.Text)) > 256 {
				t.Errorf("%s: %d characters", n.Kind, len([]rune(n.Text)))
			}
		}
		return strings.Join(out, " ")
	}
	if got := kinds(d); got != "alert alert" || !strings.HasPrefix(d.Notices[0].Text, "At load") || d.Notices[1].Text != "inner" {
		t.Errorf("%q %+v", got, d.Notices)
	}
	for _, c := range []struct{ name, kind, text string }{{"Ask", "confirm", "Sure?"}, {"Open", "popup", "https://" + host + "/popup?secret"}, {"Blob", "download", "made.txt"}} {
		var err error
		if d, err = b.act(t, d, action.Click, c.name); err != nil {
			t.Fatal(c.name, err)
		}
		if got := kinds(d); got != c.kind || d.Notices[0].Text != c.text {
			t.Errorf("%s: %+v", c.name, d.Notices)
		}
	}
	_, err := b.act(t, d, action.Click, "Get")
	refused(t, err, fault.OutcomeUnknown)
	if d, err = b.page.Observe(t.Context(), observe.Query{}); err != nil || kinds(d) != "download" {
		t.Errorf("%v %+v", err, d.Notices)
	}
	if d, err = b.page.Observe(t.Context(), observe.Query{}); err != nil || len(d.Notices) != 0 {
		t.Errorf("told twice: %v %+v", err, d.Notices)
	}
}

// CAPT-01, BND-01: pages that lie, grow and go.
func TestHostilePages(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	within := func(t *testing.T, what string, limit time.Duration, f func()) {
		t.Helper()
		done := make(chan struct{})
		go func() { defer close(done); f() }()
		select {
		case <-done:
		case <-time.After(limit):
			t.Fatalf("%s hung", what)
		}
	}
	t.Run("names", func(t *testing.T) {
		d := b.open(t, "/big-names", `<body><button id=a></button><button id=b aria-labelledby=c></button><p id=c></p><button id=e>&#x202e;gnol</button><button id=f></button>
			<script>a.setAttribute('aria-label','n'.repeat(1<<20));c.textContent='😀'.repeat(1<<19);f.textContent='a\ud800b';c.id='c'</script>`)
		for _, e := range d.Elements {
			if n := len([]rune(e.Name)); n > observe.MaxName || n == 0 {
				t.Errorf("a name of %d characters", n)
			}
		}
		find(t, d, "\u202egnol")
		find(t, d, "a\ufffdb")
	})
	t.Run("100,000 elements, and a tree 1,500 deep", func(t *testing.T) {
		within(t, "reading", time.Minute, func() {
			d := b.open(t, "/crowded", `<body><script>let h='<button>First</button>';for(let i=0;i<16000;i++)h+='<p><i>a</i><b>c</b><u>d</u></p>';document.body.innerHTML=h+'<button>Last</button>';
				let at=document.body;for(let i=0;i<1500;i++)at=at.appendChild(document.createElement('div'))</script>`)
			if got := strings.Join(names(d), ","); got != "button First,button Last" || !d.TextTruncated {
				t.Errorf("%s, truncated %v", got, d.TextTruncated)
			}
		})
	})
	t.Run("a page that leaves while it is read", func(t *testing.T) {
		b.Page(host+"/hop", `<title>Hop</title><script>setTimeout(()=>location.replace('/hop?'+Math.random()),30)</script>`+strings.Repeat("<button>x</button>", 300))
		within(t, "reading", 2*time.Minute, func() {
			d, err := b.page.Navigate(t.Context(), parse(t, "https://"+host+"/hop"))
			if err == nil && d.Title != "Hop" {
				t.Errorf("title %q", d.Title)
			}
			for range 2 {
				d, err := b.page.Observe(t.Context(), observe.Query{})
				if err == nil && len(d.Elements) > 0 && !strings.HasPrefix(d.Elements[0].Ref, d.Revision) {
					t.Error("a reference of another revision")
				}
			}
		})
	})
	t.Run("frames without end", func(t *testing.T) {
		b.Page(host+"/nest", `<button>N</button><iframe src="/nest?1"></iframe><iframe src="/nest?2"></iframe>`)
		within(t, "reading", 2*time.Minute, func() {
			d := b.open(t, "/nests", `<iframe title=R src=/nest></iframe>`+strings.Repeat(`<iframe srcdoc="<button>S</button>" width=20 height=20></iframe>`, 80))
			// On a slow machine the first readings come too early to see all or too late for any.
			eventually(t, "some are read, and the others declared", func() bool {
				if len(d.Frames) > observe.MaxFrames {
					t.Fatal(len(d.Frames))
				}
				read := slices.ContainsFunc(d.Frames, func(f observe.Frame) bool { return f.Unread == "" })
				if read && slices.Contains(d.Unread, "frames") {
					return true
				}
				d = b.again(t)
				return false
			})
		})
	})
}
