package cases_test

import (
	"fmt"
	"html"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/testkit/cases"
)

// grove grows a random page of controls in boxes, shadow trees and frames, and
// keeps the order in which a person sees them.
type grove struct {
	*rand.Rand
	c      *cases.Case
	left   int // controls to come
	frames int
	served []string // frames that tell when they are there
	names  []string
}

// grow is the markup of a few siblings.
func (g *grove) grow(depth int) string {
	var b strings.Builder
	for range 2 + g.IntN(5) {
		if g.left <= 0 {
			break
		}
		switch kind := g.IntN(10); {
		case depth == 0 || kind < 5:
			for range 1 + g.IntN(9) {
				b.WriteString(g.control())
			}
		case kind == 5:
			b.WriteString("<div>" + g.grow(depth-1) + "</div>")
		case kind == 6 && g.frames < 12:
			g.frames++
			fmt.Fprintf(&b, `<iframe width=300 height=90 srcdoc="%s"></iframe>`, html.EscapeString(g.grow(depth-1)))
		case kind == 7 && g.frames < 12:
			g.frames++
			path := fmt.Sprint("frame", g.frames)
			fmt.Fprintf(&b, `<iframe width=300 height=90 src="%s"></iframe>`, g.c.Serve(cases.Partner, path, "<script>onload = () => tell('"+path+"')</script>"+g.grow(depth-1)))
			g.served = append(g.served, path)
		default:
			mode := []string{"open", "closed"}[g.IntN(2)]
			before := g.grow(depth - 1)
			slotted := g.grow(depth - 1)
			after := g.grow(depth - 1)
			fmt.Fprintf(&b, `<x-box><template shadowrootmode=%s>%s<slot></slot>%s</template>%s</x-box>`, mode, before, after, slotted)
		}
	}
	return b.String()
}

// control is one of several kinds; those that cannot be seen have no name to
// be found by.
func (g *grove) control() string {
	if g.IntN(8) == 0 {
		return `<button hidden>Hidden</button>`
	}
	g.left--
	name := fmt.Sprint("n", len(g.names), strings.Repeat("\u00e9x", g.IntN(12)))
	g.names = append(g.names, name)
	return fmt.Sprintf([]string{`<a href="#x">%s</a>`, `<button>%s</button> `, `<label>%s <input></label>`, `<span role=menuitem tabindex=0>%s</span> `}[g.IntN(4)], name)
}

// follow reads the page to its end, as the answers say. whole is false when one
// of them said that a frame did not answer.
func follow(t *testing.T, c *cases.Case) (names []string, whole bool) {
	t.Helper()
	whole = true
	v := c.Read(observe.Query{})
	for reads := 0; ; reads++ {
		for _, e := range v.Shown() {
			names = append(names, e.Name)
		}
		for _, f := range v.Frames {
			whole = whole && f.Unread == ""
		}
		next := v.Next()
		if next == nil {
			return names, whole
		}
		if reads > 300 {
			t.Fatal("the page has no end")
		}
		v = c.Read(observe.Query{After: next.After, Cursor: next.Cursor})
	}
}

// EXP-05 to EXP-10: whatever a page is made of and however small an answer may
// be, following next_observe shows every control exactly once, in the order of
// the page, while the page does not change.
func TestPagingCoversExactly(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("page ", seed), func(t *testing.T) {
			c := shared.Case(t)
			g := &grove{Rand: rand.New(rand.NewPCG(seed, 41)), c: c, left: 80 + int(seed)*90}
			var body strings.Builder
			for g.left > 0 {
				body.WriteString(g.grow(4))
			}
			c.Budget = []int{0, 3000, 6000, 0}[seed]
			c.Open("<title>Grove</title>" + body.String())
			for _, frame := range g.served {
				c.Await(frame)
			}
			got, whole := []string(nil), false
			for try := 0; !whole && try < 5; try++ { // a busy machine may leave a frame without an answer; that is then said
				got, whole = follow(t, c)
			}
			if !slices.Equal(got, g.names) {
				at := 0
				for at < min(len(got), len(g.names)) && got[at] == g.names[at] {
					at++
				}
				t.Errorf("%d controls, want %d; from %d on %q, want %q", len(got), len(g.names), at,
					got[at:min(at+4, len(got))], g.names[at:min(at+4, len(g.names))])
			}
		})
	}
}

// EXP-07, EXP-08: candidate positions end at 65,536 in each document. A reading
// that comes to that end says so and gives no cursor; a frame behind it counts
// for itself.
func TestPositionsEnd(t *testing.T) {
	c := shared.Case(t)
	inside := c.Serve(cases.Host, "inside", `<button>In the frame</button>`)
	v := c.Open(`<title>Endless</title><iframe width=300 height=90 src="` + inside + `"></iframe><button>First</button><div id=d></div><button>Last</button><script>d.innerHTML = '<i role=button></i>'.repeat(66000)</script>`)
	names := v.Names()
	for reads := 0; v.Coverage.NextCursor != ""; reads++ {
		if reads > 20 {
			t.Fatal("no end")
		}
		v = c.Read(observe.Query{Cursor: v.Coverage.NextCursor})
		names = append(names, v.Names()...)
	}
	if want := []string{"button In the frame", "button First"}; !slices.Equal(names, want) || !v.Coverage.ScanLimitReached || v.Next() != nil {
		t.Errorf("%q %+v", names, v.Coverage)
	}
}
