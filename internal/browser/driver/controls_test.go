package driver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/browser/driver"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// 1.9.0: what takes a click or the focus is listed, once.
func TestControls(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	const icon = `<svg width=20 height=20 class="icon icon-trash"><path d="M0 0h20v20H0z"/></svg>`
	for i, c := range []struct{ what, body, want string }{
		{"an icon in a box with the pointer cursor", `<div style="cursor:pointer;width:24px">` + icon + `</div>`, "generic "},
		{"a shape with the pointer cursor", `<svg width=50 height=50><circle r=20 cx=25 cy=25 style="cursor:pointer"></circle><circle r=3></circle></svg>`, "generic "},
		{"a card is one surface", `<div style="cursor:pointer" onclick="1"><!-- note --><h3>Title</h3><p>Words <b>bold</b></p></div>`, "generic Title Words bold"},
		{"a card with a control of its own", `<div style="cursor:pointer"><h3>Title</h3><button>Like</button></div>`, "generic Title Like|button Like"},
		{"a wrapper of one control", `<ul><li style="cursor:pointer"><!-- note --><a href=#>Item</a></li></ul>`, "link Item"},
		{"a wrapper of handlers", `<section style="cursor:pointer"><div onclick="1">One</div><div onclick="1">Two</div></section>`, "generic One|generic Two"},
		{"a label around a hidden box", `<label style="cursor:pointer"><input type=checkbox checked style="display:none"><span>Agree</span></label>`, "checkbox Agree true"},
		{"a label around a box", `<label style="cursor:pointer"><input type=checkbox><span style="cursor:pointer">Agree</span></label>`, "checkbox Agree false"},
		{"a host whose shadow has the control", `<x-b style="cursor:pointer;display:inline-block">Go</x-b><script>document.querySelector('x-b').attachShadow({mode:'open'}).innerHTML='<button style="cursor:pointer"><slot></slot></button>'</script>`, "button Go"},
		{"summary, tabindex, editor", `<details><summary>More</summary>x</details><div tabindex=0 aria-label=Tab></div><div tabindex=0>Tab <b>two</b></div><div tabindex=-1>no</div><div contenteditable aria-label=Ed>x</div>`,
			"button More|generic Tab two|textbox Ed"},
		{"parts of the page are no controls", `<main role=main><nav role=navigation><a href=#>A</a></nav><ul role=listbox><li role=option>O</li></ul><div role=heading>H</div></main>`, "link A|option O"},
		{"a picture to be read in a form", `<form><img width=90 height=30 src="/code-picture.png"><input aria-label=Code></form><img width=90 height=30>`, "img |textbox Code"},
	} {
		if got := strings.Join(names(b.open(t, fmt.Sprint("/c", i), c.body)), "|"); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
	t.Run("a nameless one has a hint, and takes the click", func(t *testing.T) {
		d := b.open(t, "/hint", say+`<p>Order 17 <span style="cursor:pointer" onclick="say('bin')">`+icon+`</span></p>`)
		e := d.Elements[0]
		if h := d.States[e.Ref].Hint; !strings.Contains(h, "svg") || !strings.Contains(h, "trash") || !strings.Contains(h, "Order 17") || !strings.Contains(h, "top left") {
			t.Errorf("hint %q", h)
		}
		if _, err := b.act(t, d, action.Click, ""); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the click", func() bool { return b.effects() == "bin" })
	})
}

// The contract before 1.9.0 keeps its candidates.
func TestSpecifiedCandidates(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *driver.Config) { c.Specified = true })
	d := b.open(t, "/spec", `<main role=main><div style="cursor:pointer">No</div><summary>No</summary><div tabindex=0>No</div><a>A</a><button>B</button><iframe srcdoc="<button>No</button>"></iframe></main>`)
	if got := names(d); !slices.Equal(got, []string{"main ", "link A", "button B"}) || len(d.Frames) != 0 {
		t.Errorf("%q %v", got, d.Frames)
	}
}

// EXP-05 to EXP-12: windows.
func TestWindows(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	all := func(t *testing.T, d observe.Document, next func(observe.Document) observe.Query) []string {
		var out []string
		for page := 0; ; page++ {
			out = append(out, names(d)...)
			if d.Coverage.NextCursor == "" {
				return out
			}
			if page > 40 {
				t.Fatal("no end")
			}
			var err error
			if d, err = b.page.Observe(t.Context(), next(d)); err != nil {
				t.Fatal(err)
			}
		}
	}
	byCursor := func(d observe.Document) observe.Query { return observe.Query{Cursor: d.Coverage.NextCursor} }
	byRef := func(d observe.Document) observe.Query { return observe.Query{After: d.Elements[len(d.Elements)-1].Ref} }
	const many = `<body><script>let h='';for(let i=0;i<5000;i++)h+='<a href=#>L'+i+'</a> '+(i%3?'':'<b hidden role=button>H</b>');document.body.innerHTML=h</script>`
	var links []string
	for i := range 5000 {
		links = append(links, fmt.Sprint("link L", i))
	}
	t.Run("EXP-07 5,000 links by cursor, no gap and no repeat", func(t *testing.T) {
		d := b.open(t, "/links", many)
		if c := d.Coverage; len(d.Elements) != 256 || c.CandidateOffset != 0 || len(c.NextCursor) != 32 || !d.MoreElements {
			t.Errorf("%d %+v", len(d.Elements), c)
		}
		if got := all(t, d, byCursor); !slices.Equal(got, links) {
			t.Errorf("%d links", len(got))
		}
	})
	t.Run("EXP-06 by the last element, which is left out", func(t *testing.T) {
		d := b.open(t, "/links-after", strings.ReplaceAll(many, "5000", "700"))
		if got := all(t, d, byRef); !slices.Equal(got, links[:700]) {
			t.Errorf("%d links", len(got))
		}
	})
	t.Run("EXP-07 windows without a visible control", func(t *testing.T) {
		d := b.open(t, "/gap", `<button>Early</button>`+strings.Repeat(`<i role=button></i>`, 9000)+`<button>Late</button>`)
		if c := d.Coverage; c.ScannedCandidates != 4096 || !c.ScanLimitReached {
			t.Errorf("%+v", c)
		}
		if got := all(t, d, byCursor); !slices.Equal(got, []string{"button Early", "button Late"}) {
			t.Errorf("%q", got)
		}
	})
	t.Run("frames continue where the window ended", func(t *testing.T) {
		b.Page(host+"/long-frame", strings.ReplaceAll(many, "5000", "600"))
		d := b.showing(t, b.open(t, "/framed", `<button>Before</button><iframe title=F src=/long-frame></iframe><button>After</button>`), "L0")
		want := append(append([]string{"button Before"}, links[:600]...), "button After")
		if got := all(t, d, byCursor); !slices.Equal(got, want) {
			t.Errorf("%d: %q … %q", len(got), got[:3], got[len(got)-3:])
		}
		d = b.showing(t, b.open(t, "/framed-after", `<button>Before</button><iframe title=F src=/long-frame></iframe><button>After</button>`), "L0")
		if got := all(t, d, byRef); !slices.Equal(got, want) {
			t.Errorf("after: %d", len(got))
		}
	})
	t.Run("EXP-06 EXP-11 what has moved or gone is refused", func(t *testing.T) {
		d := b.open(t, "/moves", strings.Repeat(`<button>B</button>`, 300)+`<script>addEventListener('click',()=>document.querySelector('button').remove())</script>`)
		old := d
		d, err := b.act(t, d, action.Click, "B")
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range []observe.Query{byCursor(old), byRef(old), {After: d.Revision + ":99999"}, {After: "x"}, {Cursor: strings.Repeat("0", 32)}} {
			if d, err = b.page.Observe(t.Context(), observe.Query{}); err != nil {
				t.Fatal(err)
			}
			_, err := b.page.Observe(t.Context(), q)
			refused(t, err, fault.PageChanged)
		}
		d = b.changed(t, "shift", `<button>A</button><button>B</button>`, "document.querySelector('button').remove()")
		_, err = b.page.Observe(t.Context(), byRef(d))
		refused(t, err, fault.PageChanged)
		if _, err := b.page.Observe(t.Context(), observe.Query{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("2.3 the open dialog comes first in every window", func(t *testing.T) {
		d := b.open(t, "/dialog-first", strings.Repeat(`<button>B</button>`, 300)+`<dialog id=g>`+strings.Repeat(`<button>D</button>`, 300)+`</dialog>`+`<button>Z</button><script>g.show()</script>`)
		want := append(append(slices.Repeat([]string{"button D"}, 300), slices.Repeat([]string{"button B"}, 300)...), "button Z")
		if got := all(t, d, byCursor); !slices.Equal(got, want) {
			t.Errorf("%d", len(got))
		}
	})
}
