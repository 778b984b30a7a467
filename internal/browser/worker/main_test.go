package worker_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/devmode"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/egress"
	"github.com/chaperone-agents/chaperone/internal/browser/worker"
	"github.com/chaperone-agents/chaperone/internal/testkit/chromiumtest"
	"github.com/chaperone-agents/chaperone/internal/testkit/leak"
	"github.com/chaperone-agents/chaperone/internal/testkit/practice"
)

const (
	wiki  = "wiki.practice.example"
	other = "other.practice.example"

	// uidBase of the tests; each test binary has a range of its own.
	uidBase = 70_000
)

// built is the worker program, built once; without cgo, as `make build` does.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "worker-test")
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, "chaperone-worker")
	cmd := exec.Command("go", "build", "-o", out, "github.com/chaperone-agents/chaperone/cmd/chaperone-worker")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, b)
	}
	return out, os.Chmod(out, 0o755)
})

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "as-service" {
		asService(os.Args[2])
		return
	}
	if len(os.Args) > 3 && os.Args[1] == "as-bench" {
		if err := asBench(os.Args[2], os.Args[3]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if path, err := built(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// audit collects decisions.
type audit struct {
	mu  sync.Mutex
	all []egress.Decision
}

func (a *audit) add(d egress.Decision) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, d)
	return nil
}

// of lists the decisions about a host.
func (a *audit) of(host string) []egress.Decision {
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []egress.Decision
	for _, d := range a.all {
		if d.Host == host {
			found = append(found, d)
		}
	}
	return found
}

// web is a small site of two hosts; slow answers only after the test ends, and
// says so when it is asked.
type web struct {
	*practice.Site
	asked chan struct{}
}

func newWeb(t testing.TB) *web {
	t.Helper()
	w := &web{asked: make(chan struct{}, 8)}
	ctx := t.Context()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		io.WriteString(rw, `<!doctype html><title>Wiki</title><h1>Hello</h1><form action=/saved method=post><button>Save</button></form>
			<form action=/slow><button>Wait</button></form>`)
	})
	mux.HandleFunc("/saved", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		rw.Header().Add("Set-Cookie", "saved=yes; Secure; HttpOnly; Path=/")
		io.WriteString(rw, `<!doctype html><title>Saved</title>`)
	})
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) {
		w.asked <- struct{}{}
		select {
		case <-ctx.Done():
		case <-r.Context().Done():
		}
	})
	s, err := practice.Start(practice.Config{Hosts: map[string]http.Handler{wiki: mux, other: mux}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	w.Site = s
	return w
}

// dev maps the wiki, and only it, to the site.
func (w *web) dev() *devmode.Config {
	return &devmode.Config{Hosts: map[string]netip.AddrPort{wiki: w.Addr()}, CA: w.CA()}
}

func config(t testing.TB) (worker.Config, *audit) {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	a := &audit{}
	return worker.Config{
		Binary: path, UIDBase: uidBase + 1000*(os.Getpid()%100), Chromium: chromiumtest.Chromium(t), Xvfb: chromiumtest.Xvfb(t),
		Audit: a.add, Log: slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: slog.LevelInfo})),
	}, a
}

type testLog struct{ t testing.TB }

func (w testLog) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

func launcher(t testing.TB, cfg worker.Config) *worker.Launcher {
	t.Helper()
	l, err := worker.NewLauncher(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func spec(t testing.TB, headed bool) browser.Spec {
	t.Helper()
	origins, err := site.ParseOrigins([]string{"https://" + wiki})
	if err != nil {
		t.Fatal(err)
	}
	return browser.Spec{Tenant: "tenant-1", Origins: origins, Headed: headed}
}

func launch(t testing.TB, l *worker.Launcher, headed bool) browser.Page {
	t.Helper()
	p, err := l.Launch(t.Context(), spec(t, headed))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func parse(t testing.TB, s string) site.URL {
	t.Helper()
	u, err := site.ParseURL(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// asService is a browser service in a process of its own: it launches one
// browser, says so, and waits to be killed.
func asService(binary string) {
	l, err := worker.NewLauncher(worker.Config{
		Binary: binary, UIDBase: uidBase - 1000, Audit: func(egress.Decision) error { return nil }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	origins, _ := site.ParseOrigins([]string{"https://" + wiki})
	if _, err := l.Launch(context.Background(), browser.Spec{Tenant: "t", Origins: origins, Headed: true}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("launched")
	select {}
}

// family lists the living processes that descend from pid, itself left out.
func family(t testing.TB, pid int) []leak.Process {
	t.Helper()
	all, err := leak.Processes()
	if err != nil {
		t.Fatal(err)
	}
	var below []leak.Process
	in := map[int]bool{pid: true}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if in[p.Parent] && !in[p.PID] && !p.Dead {
				in[p.PID], grown = true, true
				below = append(below, p)
			}
		}
	}
	return below
}

// these means exactly the processes of the list, also after they lost their
// parents.
func these(list []leak.Process) leak.Which {
	return func(p leak.Process) bool {
		return slices.ContainsFunc(list, func(q leak.Process) bool { return p.PID == q.PID && p.Started == q.Started })
	}
}

// browserOf is the main process of the only Chromium below pid.
func browserOf(t testing.TB, pid int) leak.Process {
	t.Helper()
	var found []leak.Process
	for _, p := range family(t, pid) {
		if strings.Contains(p.Cmdline, "--remote-debugging-pipe") && !strings.Contains(p.Cmdline, "--type=") {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d browsers, want one: %v", len(found), found)
	}
	return found[0]
}

// field is one line of a process's status file.
func field(t testing.TB, pid int, name string) string {
	t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if n, v, _ := strings.Cut(line, ":"); n == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func within(t testing.TB, d time.Duration, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(d):
		t.Fatal("still waiting for " + what)
	}
}
