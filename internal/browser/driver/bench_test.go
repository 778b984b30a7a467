package driver_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

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

// BenchmarkAct is acts whole and in parts: find is the checks before the input,
// send the input with the checks around it, settle at least the 300 ms of
// SETL-01, look the observation. All in milliseconds, means.
func BenchmarkAct(b *testing.B) {
	spent := &spentOnActs{parts: map[string]time.Duration{}}
	s := newBench(b, func(c *driver.Config) { c.Log = slog.New(spent) })
	card := func(facts int) string {
		return `<section><div><h3>Card</h3><button>Act</button><a href="#a">Read</a><div>` + strings.Repeat("<span>fact</span>", facts) + `</div></div></section>`
	}
	panel := `<p id=o>0</p><button onclick="o.textContent++">Go</button><input aria-label=Word oninput="o.textContent++">
		<select aria-label=Colour onchange="o.textContent++"><option>Grey<option>Red</select>`
	for _, p := range []struct{ name, body string }{
		{"small", ""},
		{"dense", strings.Repeat(card(5), 1000)}, // 11,000 elements, 2,000 controls
		{"huge", strings.Repeat(card(20), 2000)}, // 52,000 elements, 4,000 controls
	} {
		d := s.open(b, "/"+p.name, panel+p.body)
		for _, one := range []struct {
			kind action.Kind
			name string
		}{{action.Click, "Go"}, {action.Type, "Word"}, {action.Select, "Colour"}} {
			b.Run(p.name+"/"+string(one.kind), func(b *testing.B) {
				spent.take()
				n := 0
				for b.Loop() {
					var err error
					if d, err = s.act(b, d, one.kind, one.name, [...]string{"Grey", "Red"}[n%2]); err != nil {
						b.Fatal(err)
					}
					n++
				}
				parts := spent.take()
				if len(parts) != 4 {
					b.Fatalf("an act has the parts %v", parts)
				}
				for part, took := range parts {
					b.ReportMetric(float64(took.Microseconds())/1000/float64(n), part+"-ms")
				}
			})
		}
	}
}

// spentOnActs adds up what the driver's log says of acts.
type spentOnActs struct {
	slog.Handler
	parts map[string]time.Duration
}

func (s *spentOnActs) Enabled(context.Context, slog.Level) bool { return true }

func (s *spentOnActs) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "act" {
		r.Attrs(func(a slog.Attr) bool {
			if a.Value.Kind() == slog.KindDuration {
				s.parts[a.Key] += a.Value.Duration()
			}
			return true
		})
	}
	return nil
}

// take empties the sum.
func (s *spentOnActs) take() map[string]time.Duration {
	out := s.parts
	s.parts = map[string]time.Duration{}
	return out
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
