package driver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/browser/driver"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/testkit/chromiumtest"
)

// BenchmarkObserve reads pages of about 1,000 and 10,000 nodes.
func BenchmarkObserve(b *testing.B) {
	s := newBench(b, nil)
	for _, nodes := range []int{1000, 10000} {
		rows := strings.Repeat(`<tr><td>cell <b>one</b></td><td><a href="#">link</a></td><td><button>go</button></td></tr>`, nodes/12)
		s.open(b, fmt.Sprint("/n", nodes), "<table>"+rows+"</table>")
		b.Run(fmt.Sprint("nodes=", nodes), func(b *testing.B) {
			for b.Loop() {
				if _, err := s.page.Observe(b.Context(), observe.Query{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkClick is a whole act: checks, input, 300 ms of settling (SETL-01),
// observation.
func BenchmarkClick(b *testing.B) {
	s := newBench(b, nil)
	d := s.open(b, "/click", `<button>Go</button>`)
	for b.Loop() {
		var err error
		if d, err = s.act(b, d, action.Click, "Go"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLaunch(b *testing.B) {
	for _, headed := range []bool{false, true} {
		b.Run(fmt.Sprint("headed=", headed), func(b *testing.B) {
			s := chromiumtest.NewSite(b, host)
			for b.Loop() {
				c := config(b, s, "https://"+host)
				c.Headed = headed
				p, err := driver.Launch(b.Context(), c)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := p.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
