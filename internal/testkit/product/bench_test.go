package product_test

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/devmode"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/egress"
	"github.com/chaperone-agents/chaperone/internal/browser/worker"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/testkit/practice"
	"github.com/chaperone-agents/chaperone/internal/testkit/product"
)

// times collects durations and reports them.
type times []time.Duration

func (t *times) add(since time.Time) { *t = append(*t, time.Since(since)) }

func (t times) median() time.Duration {
	s := slices.Sorted(slices.Values(t))
	return s[len(s)/2]
}

func (t times) String() string {
	return fmt.Sprintf("median %.2f ms, min %.2f, max %.2f, n %d", ms(t.median()), ms(slices.Min(t)), ms(slices.Max(t)), len(t))
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// BenchmarkToolCall compares, in turns within one run, a whole tool call (MCP
// client, stdio bridge, policy, store, audit, isolated service, worker) with
// the same call made directly to a worker of this process. The difference is
// what Chaperone costs; the bound is 5 ms at the median.
func BenchmarkToolCall(b *testing.B) {
	s := product.Practice(b)
	dev := product.DevFile(b, s, "")
	agent := product.NewAgent(b, product.Folder(b), "--ephemeral", "--dev", dev, "--origin", desk)
	mode, err := devmode.Load(dev)
	if err != nil {
		b.Fatal(err)
	}
	// Other users than the product's workers have: both run at once.
	launcher, err := worker.NewLauncher(worker.Config{
		Binary: product.Bin(b) + "/chaperone-worker", UIDBase: 62000, Dev: mode,
		Audit: func(egress.Decision) error { return nil }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	origins, err := site.ParseOrigins([]string{desk})
	if err != nil {
		b.Fatal(err)
	}
	page, err := launcher.Launch(b.Context(), browser.Spec{Tenant: "bench", Origins: origins})
	if err != nil {
		b.Fatal(err)
	}
	defer page.Close()
	where := practice.URL(practice.Desk, "/signin")
	u, err := site.ParseURL(where)
	if err != nil {
		b.Fatal(err)
	}
	direct, err := page.Navigate(b.Context(), u)
	if err != nil {
		b.Fatal(err)
	}
	whole := agent.Open(where)
	const rounds = 60
	var observeWhole, observeDirect, scrollWhole, scrollDirect times
	delta := 10
	for range rounds {
		at := time.Now()
		if direct, err = page.Observe(b.Context(), observe.Query{}); err != nil {
			b.Fatal(err)
		}
		observeDirect.add(at)
		at = time.Now()
		whole = agent.Call("browser.observe", struct{}{})
		observeWhole.add(at)
		at = time.Now()
		if direct, err = page.Act(b.Context(), action.Action{Kind: action.Scroll, ExpectedRevision: direct.Revision, Ref: direct.Elements[0].Ref, DeltaY: &delta}, nil); err != nil {
			b.Fatal(err)
		}
		scrollDirect.add(at)
		at = time.Now()
		if whole = agent.Act(whole, "scroll", "User name", map[string]any{"delta_y": delta}); whole.Code != "" {
			b.Fatal(whole)
		}
		scrollWhole.add(at)
		delta = -delta
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(observeWhole.median()-observeDirect.median()), "observe-overhead-ms")
	b.ReportMetric(ms(scrollWhole.median()-scrollDirect.median()), "scroll-overhead-ms")
	b.Logf("observe, whole call:  %s", observeWhole)
	b.Logf("observe, worker only: %s", observeDirect)
	b.Logf("scroll, whole call:   %s", scrollWhole)
	b.Logf("scroll, worker only:  %s", scrollDirect)
}

// BenchmarkLife prints what a session costs outside its calls: start, lease
// with a headed browser, seal, restore.
func BenchmarkLife(b *testing.B) {
	s := product.Practice(b)
	dev := product.DevFile(b, s, "")
	data := product.Folder(b)
	at := time.Now()
	r := product.Up(b, data, "--dev", dev, "--approval-wait", "0s")
	first := time.Since(at)
	var created struct{ ID string }
	r.Must(&created, "profile", "create", "--origin", desk, "--json")
	r.SignIn(s, created.ID)
	r.Stop()
	at = time.Now()
	product.Up(b, data, "--dev", dev, "--approval-wait", "0s")
	again := time.Since(at)
	var connect, lease, call, seal times
	for range 5 {
		at = time.Now()
		agent := product.NewAgent(b, data, "--profile", created.ID)
		connect.add(at)
		at = time.Now()
		agent.Open(tickets)
		lease.add(at)
		at = time.Now()
		agent.Open(tickets)
		call.add(at)
		at = time.Now()
		agent.Close()
		seal.add(at)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(again), "up-to-ready-ms")
	b.ReportMetric(ms(lease.median()-call.median()), "lease-headed-ms")
	b.ReportMetric(ms(seal.median()), "seal-and-close-ms")
	b.Logf("up to ready: first start %.0f ms (keyring, database), later %.0f ms (both programs, one worker tried)", ms(first), ms(again))
	b.Logf("agent session over stdio:            %s", connect)
	b.Logf("first call (Xvfb, headed Chromium, restore of cookies and localStorage, page): %s", lease)
	b.Logf("same call on the lease (page, settling): %s", call)
	b.Logf("end (capture, seal, close browser):  %s", seal)
}
