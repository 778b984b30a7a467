package driver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/browser/driver"
	"github.com/chaperone-agents/chaperone/internal/browser/pagejs"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/testkit/chromiumtest"
)

// BenchmarkObserve reads pages whole: dense with controls, a long list of
// links, and one with shadow roots. It says where the time in the page went.
func BenchmarkObserve(b *testing.B) {
	s := newBench(b, nil)
	row := `<tr><td>cell <b>one</b></td><td><a href="#">link</a></td><td><button>go</button></td><td><span>x</span></td><td></td></tr>`
	for _, p := range []struct{ name, body string }{
		{"small", "<table>" + strings.Repeat(row, 80) + "</table>"},
		{"dense", "<table>" + strings.Repeat(row, 1000) + "</table>"}, // 11,000 elements, 2,000 controls
		{"links", strings.Repeat(`<a href=#>Link</a> `, 5000)},
		{"icons", `<style>i{cursor:pointer;display:inline-block;width:9px;height:9px}</style>` + strings.Repeat(`<p>Row <i class="icon-edit"></i></p>`, 2000)},
		{"roots", `<script>for(let i=0;i<1000;i++){const x=document.createElement('x-y');x.attachShadow({mode:'open'}).innerHTML='<p><button>B</button></p>';document.documentElement.append(x)}</script>`},
	} {
		s.open(b, "/"+p.name, p.body)
		b.Run(p.name, func(b *testing.B) {
			var last pagejs.Cost
			for b.Loop() {
				if _, err := s.page.Observe(b.Context(), observe.Query{}); err != nil {
					b.Fatal(err)
				}
				last = driver.Cost(s.page)
			}
			b.ReportMetric(last.Survey, "survey-ms")
			b.ReportMetric(last.Select, "select-ms")
			b.ReportMetric(last.Describe, "describe-ms")
			b.ReportMetric(last.Extras, "extras-ms")
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
