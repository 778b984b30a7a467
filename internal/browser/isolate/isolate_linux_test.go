package isolate_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/browser/isolate"
)

// testUID is what workers run as when the tests run as root.
const testUID = 67890

// program builds the test's worker program once. It is built without cgo, as
// the real one is: giving up privileges in all threads needs that.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "isolate-test")
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, "inside")
	cmd := exec.Command("go", "build", "-o", out, "./testdata/inside")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, b)
	}
	return out, nil
})

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "as-service" {
		asService(os.Args[2:])
		return
	}
	code := m.Run()
	if path, err := program(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

func config(t testing.TB) isolate.Config {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return isolate.Config{Binary: path, UID: chosenUID(), Log: slog.New(slog.DiscardHandler)}
}

func chosenUID() int {
	if os.Getuid() == 0 {
		return testUID
	}
	return 0
}

// start starts a worker and returns a function that gives it orders.
func start(t testing.TB, cfg isolate.Config) (*isolate.Worker, func(string) string) {
	t.Helper()
	w, err := isolate.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, w) })
	return w, orders(t, w.Pipe)
}

func orders(t testing.TB, pipe *net.UnixConn) func(string) string {
	r := bufio.NewReader(pipe)
	return func(order string) string {
		t.Helper()
		pipe.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprintln(pipe, order)
		line, err := r.ReadBytes('\n')
		if err != nil {
			t.Fatalf("%s: %v", order, err)
		}
		var answer string
		if err := json.Unmarshal(line, &answer); err != nil {
			t.Fatalf("%s: %v", order, err)
		}
		return answer
	}
}

func stop(t testing.TB, w *isolate.Worker) {
	w.Kill()
	w.Pipe.Close()
	w.Listener.Close()
	wait(t, w.Done(), "the worker to end")
}

func wait(t testing.TB, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("still waiting for " + what)
	}
}

// inside lists the processes of the machine whose pid namespace is ns, except
// dead ones that somebody else's process 1 has yet to reap.
func inside(ns string) []string {
	var found []string
	links, _ := filepath.Glob("/proc/[0-9]*/ns/pid")
	for _, l := range links {
		stat, _ := os.ReadFile(filepath.Join(filepath.Dir(l), "..", "stat"))
		if to, err := os.Readlink(l); err == nil && to == ns && !strings.Contains(string(stat), ") Z ") {
			found = append(found, l)
		}
	}
	return found
}

// gone fails unless the namespace gets empty.
func gone(t testing.TB, ns string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		left := inside(ns)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("processes survive: %v", left)
		}
		<-time.After(10 * time.Millisecond)
	}
}

func namespace(t testing.TB, pid int) string {
	t.Helper()
	ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	if err != nil {
		t.Fatal(err)
	}
	if self, _ := os.Readlink("/proc/self/ns/pid"); self == ns {
		t.Fatal("the worker has no pid namespace of its own")
	}
	return ns
}

// ISO-01, PROXY-02: from inside there is no network but the listener.
func TestNoNetworkButTheListener(t *testing.T) {
	w, order := start(t, config(t))
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	if got := order("dial tcp " + outside.Addr().String()); !strings.Contains(got, "refused") {
		t.Errorf("the service's loopback: %s", got)
	}
	for _, to := range []string{"tcp 10.0.0.1:443", "tcp 1.1.1.1:443", "tcp 169.254.169.254:80", "udp 1.1.1.1:53", "udp 224.0.0.251:5353", "tcp [2606:4700::1111]:443"} {
		if got := order("dial " + to); !strings.Contains(got, "network is unreachable") && !strings.Contains(got, "cannot assign requested address") {
			t.Errorf("%s: %s", to, got)
		}
	}
	abstract, err := net.Listen("unix", "@isolate-test-"+strconv.Itoa(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	if got := order("dial unix @isolate-test-" + strconv.Itoa(os.Getpid())); !strings.Contains(got, "refused") {
		t.Errorf("an abstract socket of the host: %s", got)
	}
	go func() {
		c, err := w.Listener.Accept()
		if err == nil {
			io.WriteString(c, "from outside")
			c.Close()
		}
	}()
	if got := order("dial tcp " + w.Listener.Addr().String()); got != "connected: from outside" {
		t.Errorf("the listener: %s", got)
	}
}

// ISO-01, EPH-01: from inside there is no file of the host's but its programs,
// and nothing to write to but memory.
func TestNoFilesOfTheHost(t *testing.T) {
	data := t.TempDir()
	os.WriteFile(filepath.Join(data, "seal"), []byte("secret"), 0o644)
	for d := data; d != "/tmp" && len(d) > 1; d = filepath.Dir(d) {
		os.Chmod(d, 0o755) // so that only the namespace stands between
	}
	_, order := start(t, config(t))
	if got := order("read " + filepath.Join(data, "seal")); !strings.Contains(got, "no such file") {
		t.Errorf("the data folder: %s", got)
	}
	if got, want := order("list /"), "bin dev etc lib lib64 proc sbin tmp usr var"; strings.Join(without(got, "lib32", "libx32"), " ") != want {
		t.Errorf("the root holds %q, want %q", got, want)
	}
	if got := order("list /tmp"); got != ".X11-unix home" {
		t.Errorf("/tmp holds %q", got)
	}
	if got := order("list /dev"); got != "fd full null random shm stderr stdin stdout urandom zero" {
		t.Errorf("/dev holds %q", got)
	}
	if got := order("read /etc/passwd"); strings.Count(got, "\n") != 1 {
		t.Errorf("accounts: %s", got)
	}
	for _, path := range []string{"/x", "/usr/x", "/etc/x", "/etc/fonts/x", "/var/x", "/dev/x", "/proc/sys/kernel/hostname"} {
		if got := order("write " + path); got == "written" {
			t.Errorf("%s can be written", path)
		}
	}
	for _, path := range []string{isolate.Home + "/x", "/tmp/x", "/dev/shm/x", isolate.PolicyDir + "/x.json"} {
		if got := order("write " + path); got != "written" {
			t.Errorf("%s: %s", path, got)
		}
	}
	if got := order("run cp /bin/true /tmp/true && /tmp/true"); !strings.Contains(got, "ermission denied") {
		t.Errorf("a program in /tmp runs: %s", got)
	}
	for _, path := range []string{isolate.Home + "/x", "/etc/chromium/policies/managed/x.json"} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s was written on the host", path)
		}
	}
}

func without(list string, drop ...string) []string {
	var kept []string
	for f := range strings.FieldsSeq(list) {
		if f != drop[0] && f != drop[1] {
			kept = append(kept, f)
		}
	}
	return kept
}

// EPH-01: nothing of the service's environment; no privilege and no way to one;
// no process of the host, and none of ours that could be read.
func TestNoPrivilege(t *testing.T) {
	t.Setenv("CHAPERONE_TEST_SECRET", "x")
	w, order := start(t, config(t))
	want := "PATH=/usr/bin:/bin\nLANG=C.UTF-8\nHOME=/tmp/home\nTMPDIR=/tmp"
	if got := order("environ"); got != want {
		t.Errorf("environment %q", got)
	}
	if got := order("setuid"); !strings.Contains(got, "not permitted") && !strings.Contains(got, "invalid argument") {
		t.Errorf("setuid: %s", got)
	}
	got := order("run grep -E '^(Cap(Inh|Prm|Eff|Amb)|NoNewPrivs)' /proc/self/status; ls -d /proc/[0-9]* | wc -l; hostname")
	want = "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\n"
	if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "browser\n") {
		t.Errorf("privileges: %s", got)
	}
	if got := order("run mount -t tmpfs x /tmp"); !strings.Contains(got, "exit status") {
		t.Errorf("mount: %s", got)
	}
	if got := order("run cat /proc/1/environ /proc/1/maps"); !strings.Contains(got, "ermission denied") {
		t.Errorf("the first process can be read: %.80s", got)
	}
	// The server cannot stop its first process either.
	order("signal-init")
	if got := order("run echo alive"); got != "alive\n" {
		t.Errorf("after signals to the first process: %s", got)
	}
	if uid := os.Getuid(); uid == 0 {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.PID()))
		if err != nil || !strings.Contains(string(b), fmt.Sprintf("Uid:\t%d\t%[1]d\t%[1]d\t%[1]d\n", testUID)) || !strings.Contains(string(b), "\nGroups:\t \n") {
			t.Errorf("the worker's user or groups: %v\n%s", err, b)
		}
	}
}

// ISO-01: orphans are reaped, and when the worker is killed, or its server
// ends, nothing of it is left.
func TestNothingSurvivesTheWorker(t *testing.T) {
	const orphans = "run for i in 1 2 3; do (setsid sleep 300 >/dev/null 2>&1 &) ; (setsid true &) ; done"
	for name, end := range map[string]func(*isolate.Worker){
		"killed":        func(w *isolate.Worker) { w.Kill() },
		"SIGKILL":       func(w *isolate.Worker) { syscall.Kill(w.PID(), syscall.SIGKILL) },
		"server's end":  func(w *isolate.Worker) { w.Pipe.Close() },
		"server's kill": func(w *isolate.Worker) { fmt.Fprintln(w.Pipe, "run kill -9 $PPID") },
	} {
		t.Run(name, func(t *testing.T) {
			w, order := start(t, config(t))
			ns := namespace(t, w.PID())
			order(orphans)
			for deadline := time.Now().Add(5 * time.Second); ; {
				states := order("run cat /proc/[0-9]*/stat | cut -d' ' -f2,3")
				if !strings.Contains(states, ") Z") && strings.Count(states, "(sleep)") == 3 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("zombies, or too few orphans:\n%s", states)
				}
			}
			if n := len(inside(ns)); n < 5 {
				t.Fatalf("%d processes: the test would prove nothing", n)
			}
			end(w)
			gone(t, ns)
			wait(t, w.Done(), "Done")
		})
	}
}

// asService is the service of the next test, in a process of its own.
func asService(args []string) {
	uid, _ := strconv.Atoi(args[1])
	w, err := isolate.Start(context.Background(), isolate.Config{Binary: args[0], UID: uid, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	if args[2] == "stop" {
		fmt.Fprintln(w.Pipe, "stop")
	}
	fmt.Println(w.PID())
	select {}
}

// ISO-01: when the service is killed, also if a browser has frozen the server,
// no process of a worker survives. The last two cases are a service that is
// not root: nothing here needs root.
func TestNothingSurvivesTheService(t *testing.T) {
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"serve", "stop", "serve unprivileged", "stop unprivileged"} {
		t.Run(mode, func(t *testing.T) {
			verb, unprivileged, _ := strings.Cut(mode, " ")
			cmd := exec.Command("/proc/self/exe", "as-service", path, strconv.Itoa(chosenUID()), verb)
			if unprivileged != "" {
				if os.Getuid() != 0 {
					return // the other two cases were that already
				}
				os.Chmod(filepath.Dir(path), 0o755)
				cmd.Args[3] = "0"
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: testUID + 1, Gid: testUID + 1}}
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Process.Kill()
			line, _ := bufio.NewReader(out).ReadString('\n')
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil {
				t.Fatalf("the service says %q", line)
			}
			ns := namespace(t, pid)
			if len(inside(ns)) < 2 {
				t.Fatal("the test would prove nothing")
			}
			cmd.Process.Kill()
			cmd.Wait()
			gone(t, ns)
		})
	}
}

// ISO-01: what cannot be isolated is not started.
func TestStartRefuses(t *testing.T) {
	good := config(t)
	for name, change := range map[string]func(*isolate.Config){
		"no program":    func(c *isolate.Config) { c.Binary = "" },
		"missing":       func(c *isolate.Config) { c.Binary = "/nonexistent" },
		"not a worker":  func(c *isolate.Config) { c.Binary = "/bin/true" },
		"hidden folder": func(c *isolate.Config) { c.Show = []string{"/tmp"} },
		"relative":      func(c *isolate.Config) { c.Show = []string{"/usr/../etc"} },
		"weak homeless": func(c *isolate.Config) { c.Weak = true },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good
			change(&cfg)
			if w, err := isolate.Start(t.Context(), cfg); err == nil {
				stop(t, w)
				t.Error("started")
			}
		})
	}
	if os.Getuid() == 0 {
		good.UID = 0
		if w, err := isolate.Start(t.Context(), good); err == nil {
			stop(t, w)
			t.Error("a worker ran as root")
		}
	}
}

func BenchmarkStart(b *testing.B) {
	cfg := config(b)
	for b.Loop() {
		w, err := isolate.Start(b.Context(), cfg)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		stop(b, w)
		b.StartTimer()
	}
}
