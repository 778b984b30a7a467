package worker_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/egress"
	"github.com/chaperone-agents/chaperone/internal/browser/worker"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/testkit/leak"
)

// click is an act on the button with the name.
func click(t testing.TB, d observe.Document, name string) action.Action {
	t.Helper()
	for _, e := range d.Elements {
		if e.Name == name {
			return action.Action{Kind: action.Click, ExpectedRevision: d.Revision, Ref: e.Ref}
		}
	}
	t.Fatalf("no %q among %v", name, d.Elements)
	return action.Action{}
}

// EPH-01, EPH-02, PROXY-01: a browser behind the worker works, everything that
// leaves goes through the egress and is audited, and what the page asks of
// other names does not leave.
func TestBrowserThroughWorker(t *testing.T) {
	for _, headed := range []bool{false, true} {
		t.Run(fmt.Sprintf("headed=%v", headed), func(t *testing.T) {
			w := newWeb(t)
			cfg, audit := config(t)
			cfg.Dev = w.dev()
			p := launch(t, launcher(t, cfg), headed)
			d, err := p.Navigate(t.Context(), parse(t, "https://"+wiki+"/"))
			if err != nil {
				t.Fatal(err)
			}
			if d.Title != "Wiki" {
				t.Errorf("title %q", d.Title)
			}
			if d, err = p.Act(t.Context(), click(t, d, "Save"), nil); err != nil || d.Title != "Saved" {
				t.Errorf("act: %q, %v", d.Title, err)
			}
			if n := len(w.Requests(wiki)); n < 2 {
				t.Errorf("the site saw %d requests", n)
			}
			m, err := p.Capture(t.Context())
			if err != nil || len(m.Cookies) != 1 || m.Cookies[0].Value != "yes" {
				t.Errorf("capture: %v, %v", m, err)
			}
			if ds := audit.of(wiki); len(ds) == 0 || ds[0].Reason != egress.Allowed || ds[0].Tenant != "tenant-1" || ds[0].Port != 443 {
				t.Errorf("decisions about the site: %v", ds)
			}
			if _, err := p.Navigate(t.Context(), parse(t, "https://"+other+"/")); !fault.Is(err, fault.URLDisallowed) {
				t.Errorf("another origin: %v", err)
			}
			if c := w.Connections(other); len(c) != 0 {
				t.Errorf("the other site saw %v", c)
			}
		})
	}
}

// ISO-01: two browsers share nothing with the service and nothing with each
// other: user, process, network, mount and IPC namespaces, and Chromium's own
// sandbox is on. Everything is read from outside.
func TestBrowsersAreIsolated(t *testing.T) {
	cfg, _ := config(t)
	l := launcher(t, cfg)
	a := launch(t, l, false)
	first := browserOf(t, os.Getpid()).PID
	launch(t, l, true)
	var second int
	for _, p := range family(t, os.Getpid()) {
		if strings.Contains(p.Cmdline, "--remote-debugging-pipe") && !strings.Contains(p.Cmdline, "--type=") && p.PID != first {
			second = p.PID
		}
	}
	for _, ns := range []string{"user", "pid", "net", "mnt", "ipc", "uts"} {
		seen := map[string]bool{}
		for _, pid := range []int{os.Getpid(), first, second} {
			link, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, ns))
			if err != nil || seen[link] {
				t.Errorf("namespace %s of %d is %s: shared, or %v", ns, pid, link, err)
			}
			seen[link] = true
		}
	}
	if os.Getuid() == 0 && (field(t, first, "Uid") == field(t, second, "Uid") || strings.HasPrefix(field(t, first, "Uid"), "0")) {
		t.Errorf("users: %q and %q", field(t, first, "Uid"), field(t, second, "Uid"))
	}
	renderers := 0
	for _, p := range family(t, first) {
		if strings.Contains(p.Cmdline, "--type=renderer") {
			renderers++
			if field(t, p.PID, "Seccomp") != "2" {
				t.Errorf("renderer %d has no system-call filter", p.PID)
			}
		}
	}
	if renderers == 0 {
		t.Error("no renderer: the test proves nothing")
	}
	for _, p := range family(t, os.Getpid()) {
		if strings.Contains(p.Cmdline, "no-"+"sandbox") {
			t.Errorf("a browser runs without its sandbox: %s", p.Cmdline)
		}
		if field(t, p.PID, "NoNewPrivs") != "1" || strings.Trim(field(t, p.PID, "CapAmb"), "0") != "" {
			t.Errorf("%d can gain privileges", p.PID)
		}
	}
	// The network of the browser holds loopback and one listener, the egress.
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/dev", first))
	if err != nil || strings.Count(string(b), ":") != 1 || !strings.Contains(string(b), "lo:") {
		t.Errorf("interfaces: %s, %v", b, err)
	}
	root, err := filepath.Glob(fmt.Sprintf("/proc/%d/ro*t/*", first))
	if err != nil || len(root) == 0 || strings.Contains(strings.Join(root, " "), "/home") {
		t.Errorf("root: %v, %v", root, err)
	}
	// The end of one is not the end of the other.
	a.Close()
	leak.NoProcess(t, 30*time.Second, func(p leak.Process) bool { return p.PID == first })
	if all, err := leak.Alive(func(p leak.Process) bool { return p.PID == second }); err != nil || len(all) != 1 {
		t.Errorf("the other browser: %v, %v", all, err)
	}
}

// REL-01: a Chromium that is killed during an act leaves an unknown outcome, a
// closed Done and no process; so does a worker.
func TestKilledDuringAnAct(t *testing.T) {
	for name, victim := range map[string]func(t *testing.T) int{
		"Chromium": func(t *testing.T) int { return browserOf(t, os.Getpid()).PID },
		"server": func(t *testing.T) int {
			return browserOf(t, os.Getpid()).Parent
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWeb(t)
			cfg, _ := config(t)
			cfg.Dev = w.dev()
			p := launch(t, launcher(t, cfg), false)
			d, err := p.Navigate(t.Context(), parse(t, "https://"+wiki+"/"))
			if err != nil {
				t.Fatal(err)
			}
			pid := victim(t)
			all := family(t, os.Getpid())
			go func() {
				<-w.asked
				syscall.Kill(pid, syscall.SIGKILL)
			}()
			if _, err := p.Act(t.Context(), click(t, d, "Wait"), nil); !fault.Is(err, fault.OutcomeUnknown) {
				t.Errorf("act: %v", err)
			}
			within(t, time.Minute, p.Done(), "Done")
			leak.NoProcess(t, 30*time.Second, these(all))
			if _, err := p.Observe(t.Context(), observe.Query{}); !fault.Is(err, fault.ProviderUnavailable) {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// ISO-01: a killed service leaves no process of any browser.
func TestKilledService(t *testing.T) {
	cfg, _ := config(t)
	cmd := exec.Command("/proc/self/exe", "as-service", cfg.Binary)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "launched\n" {
		t.Fatalf("the service says %q", line)
	}
	browserOf(t, cmd.Process.Pid)
	all := family(t, cmd.Process.Pid)
	cmd.Process.Kill()
	cmd.Wait()
	leak.NoProcess(t, 30*time.Second, these(all))
}

// ISO-01: the weak mode exists only by name; it works, and cleans up too.
func TestWeakMode(t *testing.T) {
	w := newWeb(t)
	cfg, _ := config(t)
	cfg.Dev = w.dev()
	cfg.Isolation = worker.Weak
	cfg.RuntimeDir = openTemp(t)
	os.Chmod(filepath.Dir(cfg.Binary), 0o755)
	p := launch(t, launcher(t, cfg), true)
	if d, err := p.Navigate(t.Context(), parse(t, "https://"+wiki+"/")); err != nil || d.Title != "Wiki" {
		t.Errorf("navigate: %q, %v", d.Title, err)
	}
	all := family(t, os.Getpid())
	p.Close()
	leak.NoProcess(t, 30*time.Second, these(all))
	if left, err := os.ReadDir(cfg.RuntimeDir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// openTemp is a temporary folder that every user can reach.
func openTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "chaperone-weak-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// HEAD-01, EPH-01: what is missing is said, and nothing is started instead.
func TestMissingPrograms(t *testing.T) {
	cfg, _ := config(t)
	cfg.Xvfb = "/nonexistent/Xvfb"
	l := launcher(t, cfg)
	if _, err := l.Launch(t.Context(), spec(t, true)); !fault.Is(err, fault.ProviderUnavailable) || !strings.Contains(err.Error(), "Xvfb") {
		t.Errorf("without Xvfb: %v", err)
	}
	cfg.Chromium = "/nonexistent/chromium"
	l = launcher(t, cfg)
	if _, err := l.Launch(t.Context(), spec(t, false)); !fault.Is(err, fault.ProviderUnavailable) || !strings.Contains(err.Error(), "Chromium") {
		t.Errorf("without Chromium: %v", err)
	}
	cfg.Chromium = "/bin/true" // a program, but not a browser
	l = launcher(t, cfg)
	if _, err := l.Launch(t.Context(), spec(t, false)); !fault.Is(err, fault.ProviderUnavailable) {
		t.Errorf("with another program: %v", err)
	}
	if below := family(t, os.Getpid()); len(below) != 0 {
		t.Errorf("processes were left: %v", below)
	}
}

func TestConfigIsValidated(t *testing.T) {
	good, _ := config(t)
	for name, change := range map[string]func(*worker.Config){
		"no program":        func(c *worker.Config) { c.Binary = "" },
		"missing program":   func(c *worker.Config) { c.Binary = "/nonexistent" },
		"not a worker":      func(c *worker.Config) { c.Binary = "/bin/true" },
		"unknown isolation": func(c *worker.Config) { c.Isolation = "none" },
		"users of accounts": func(c *worker.Config) { c.UIDBase = 10 },
		"no audit":          func(c *worker.Config) { c.Audit = nil },
		"no log":            func(c *worker.Config) { c.Log = nil },
	} {
		cfg := good
		change(&cfg)
		if _, err := worker.NewLauncher(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := launcher(t, good).Launch(t.Context(), browser.Spec{}); err == nil {
		t.Error("a browser for nobody was started")
	}
}

// Probe finds this machine able, and says what is wrong with another.
func TestProbe(t *testing.T) {
	cfg, _ := config(t)
	for _, c := range worker.Probe(t.Context(), cfg) {
		if !c.OK || c.Mend != "" || c.Found == "" {
			t.Errorf("%+v", c)
		}
	}
	cfg.Chromium, cfg.Xvfb, cfg.Binary = "/nonexistent/c", "/nonexistent/x", "/bin/true"
	bad := map[string]bool{}
	for _, c := range worker.Probe(t.Context(), cfg) {
		if bad[c.Name] = !c.OK; bad[c.Name] && (c.Mend == "" || c.Found == "") {
			t.Errorf("%+v says too little", c)
		}
	}
	for _, name := range []string{"chromium", "xvfb", "namespaces"} {
		if !bad[name] {
			t.Errorf("%s was found well", name)
		}
	}
}

// The audit line is not a service of its own: nothing listens for it, and no
// socket of the service is reachable from a browser.
func TestServiceLoopbackIsOutOfReach(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg, _ := config(t)
	launch(t, launcher(t, cfg), false)
	pid := browserOf(t, os.Getpid()).PID
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
	if err != nil {
		t.Fatal(err)
	}
	port := fmt.Sprintf(":%04X ", l.Addr().(*net.TCPAddr).Port)
	if strings.Contains(string(b), port) || strings.Count(string(b), " 0A ") != 1 {
		t.Errorf("listeners in the browser's network:\n%s", b)
	}
}
