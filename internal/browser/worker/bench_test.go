package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/devmode"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/driver"
	"github.com/chaperone-agents/chaperone/internal/browser/egress"
	"github.com/chaperone-agents/chaperone/internal/browser/worker"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/testkit/practice"
)

// BenchmarkLaunch is from nothing to a verified browser with a blank page.
func BenchmarkLaunch(b *testing.B) {
	for _, headed := range []bool{false, true} {
		b.Run(fmt.Sprintf("headed=%v", headed), func(b *testing.B) {
			cfg, _ := config(b)
			l := launcher(b, cfg)
			for b.Loop() {
				p, err := l.Launch(b.Context(), spec(b, headed))
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				p.Close()
				b.StartTimer()
			}
		})
	}
}

// BenchmarkObserve compares, in one run and in turns, an observation through
// the worker with the same call on the driver itself.
func BenchmarkObserve(b *testing.B) {
	cfg, _ := config(b)
	cmd := exec.Command("/proc/self/exe", "as-bench", cfg.Binary, cfg.Chromium)
	if os.Getuid() == 0 { // the driver itself does not run as root
		os.Chmod(cfg.Binary[:strings.LastIndex(cfg.Binary, "/")], 0o755)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uidBase - 2000, Gid: uidBase - 2000}}
	}
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	var medians map[string]float64
	if err := json.Unmarshal(out, &medians); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	b.ReportMetric(0, "ns/op")
	for name, ms := range medians {
		b.ReportMetric(ms, name+"-ms")
	}
}

// asBench measures and prints medians as JSON.
func asBench(binary, chromium string) error {
	var page strings.Builder
	page.WriteString("<!doctype html><title>List</title>")
	for i := range 100 {
		fmt.Fprintf(&page, "<p>Line %d of a list, with some words. <a href=/%d>Entry %d</a></p>", i, i, i)
	}
	s, err := practice.Start(practice.Config{Log: slog.New(slog.DiscardHandler), Hosts: map[string]http.Handler{
		wiki: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, page.String())
		}),
	}})
	if err != nil {
		return err
	}
	defer s.Close()
	ctx := context.Background()
	dev := &devmode.Config{Hosts: map[string]netip.AddrPort{wiki: s.Addr()}, CA: s.CA()}
	log := slog.New(slog.DiscardHandler)
	audit := func(egress.Decision) error { return nil }
	origins, err := site.ParseOrigins([]string{"https://" + wiki})
	if err != nil {
		return err
	}

	proxy, err := egress.New(egress.Config{Tenant: "t", Dev: dev, Audit: audit, Log: log})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go proxy.Serve(ctx, l)
	home, err := os.MkdirTemp("/tmp", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	direct, err := driver.Launch(ctx, driver.Config{Origins: origins, Proxy: l.Addr().String(), Home: home, Chromium: chromium, TrustedCA: dev.CA, Log: log})
	if err != nil {
		return err
	}
	defer direct.Close()
	launcher, err := worker.NewLauncher(worker.Config{Binary: binary, Chromium: chromium, Dev: dev, Audit: audit, Log: log})
	if err != nil {
		return err
	}
	through, err := launcher.Launch(ctx, browser.Spec{Tenant: "t", Origins: origins})
	if err != nil {
		return err
	}
	defer through.Close()

	u, err := site.ParseURL("https://" + wiki + "/")
	if err != nil {
		return err
	}
	pages := []browser.Page{direct, through}
	times := make([][]float64, len(pages))
	for _, p := range pages {
		if _, err := p.Navigate(ctx, u); err != nil {
			return err
		}
	}
	for range 100 {
		for i, p := range pages {
			begin := time.Now()
			if _, err := p.Observe(ctx, observe.Query{}); err != nil {
				return err
			}
			times[i] = append(times[i], float64(time.Since(begin).Microseconds())/1000)
		}
	}
	median := func(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }
	a, b := median(times[0]), median(times[1])
	return json.NewEncoder(os.Stdout).Encode(map[string]float64{"driver": a, "worker": b, "difference": b - a})
}
