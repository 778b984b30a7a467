// Package product runs Chaperone as its owner and its agents do: the built
// programs, the command line, an MCP client over stdio, and the sign-in page's
// connection. Tests of the whole product (GATE-01 to GATE-09) are built on it
// and check effects on the practice site's own record.
package product

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/testkit/leak"
	"github.com/chaperone-agents/chaperone/internal/testkit/practice"
)

// BinEnv names the folder of programs that are built already, in processes
// that a test starts of itself.
const BinEnv = "CHAPERONE_PRODUCT_BIN"

// build makes the programs once per test process.
var build = sync.OnceValues(func() (string, error) {
	if bin := os.Getenv(BinEnv); bin != "" {
		return bin, nil
	}
	_, self, _, ok := runtime.Caller(0)
	if !ok {
		return "", errors.New("product: the source is not known")
	}
	root := filepath.Join(filepath.Dir(self), "..", "..", "..")
	bin, err := os.MkdirTemp("", "chaperone-bin-")
	if err != nil {
		return "", err
	}
	// The worker runs as another user and must be able to execute its program.
	if err := os.Chmod(bin, 0o755); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-o", bin+"/", "./cmd/...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.New("product: " + string(out))
	}
	return bin, nil
})

// Clean removes what was built; call it when every test has ended.
func Clean() error {
	if os.Getenv(BinEnv) != "" {
		return nil
	}
	bin, err := build()
	return errors.Join(err, os.RemoveAll(bin))
}

// Bin is the folder of the built programs.
func Bin(t testing.TB) string {
	t.Helper()
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// Person is who runs the programs: the zero Person is the tests' own user with
// the programs as they are built.
type Person struct {
	UID  int    // another user's number, when not 0
	Home string // that user's home folder
	Bin  string // other programs than the built ones, when not empty
}

// command is `chaperone` on the data folder.
func (p Person) command(t testing.TB, data string, args []string) *exec.Cmd {
	t.Helper()
	if p.Bin == "" {
		p.Bin = Bin(t)
	}
	cmd := exec.Command(filepath.Join(p.Bin, "chaperone"), append([]string{"--data", data}, args...)...)
	if p.UID != 0 {
		id := uint32(p.UID)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
		cmd.Env = []string{"HOME=" + p.Home, "PATH=" + os.Getenv("PATH")}
		cmd.Dir = p.Home
	}
	return cmd
}

// Practice starts a practice site that ends with the test.
func Practice(t testing.TB) *practice.Site {
	t.Helper()
	return PracticeWith(t, nil)
}

// PracticeWith is Practice with further host names.
func PracticeWith(t testing.TB, hosts map[string]http.Handler) *practice.Site {
	t.Helper()
	s, err := practice.Start(practice.Config{Hosts: hosts, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// DevFile writes the site's development file, with more YAML lines behind it.
func DevFile(t testing.TB, s *practice.Site, more string) string {
	t.Helper()
	path, err := s.DevFile(t.TempDir())
	if err == nil && more != "" {
		var f *os.File
		if f, err = os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0); err == nil {
			_, err = f.WriteString(more + "\n")
			err = errors.Join(err, f.Close())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Folder makes a data folder with a short path, which ends with the test.
func Folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ch-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "data")
}

// Ready is what `chaperone up --json` prints.
type Ready struct {
	Console   string `json:"console"`
	Ceremony  string `json:"ceremony"`
	LoginCode string `json:"login_code"`
}

// Running is a `chaperone up`.
type Running struct {
	Ready
	t    testing.TB
	Data string
	Log  *Log // what every program wrote to standard error
	cmd  *exec.Cmd
	done chan struct{}
}

// Log collects output; it is safe for concurrent use.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.b.Write(p) }

func (l *Log) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

const (
	startTime = 60 * time.Second
	stopTime  = 45 * time.Second
)

// Up starts `chaperone up` on free ports and waits until it is ready. It ends
// with the test at the latest.
func Up(t testing.TB, data string, args ...string) *Running {
	t.Helper()
	return Person{}.Up(t, data, args...)
}

// Up is Up as the person.
func (p Person) Up(t testing.TB, data string, args ...string) *Running {
	t.Helper()
	r, err := p.TryUp(t, data, args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Log)
	}
	return r
}

// TryUp is Up for a start that may be refused.
func TryUp(t testing.TB, data string, args ...string) (*Running, error) {
	t.Helper()
	return Person{}.TryUp(t, data, args...)
}

// TryUp is Up as the person, for a start that may be refused.
func (p Person) TryUp(t testing.TB, data string, args ...string) (*Running, error) {
	t.Helper()
	r := &Running{t: t, Data: data, Log: &Log{}, done: make(chan struct{})}
	r.cmd = p.command(t, data, append([]string{"up", "--json", "--listen", "127.0.0.1:0"}, args...))
	r.cmd.Stderr = r.Log
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return r, err
	}
	if err := r.cmd.Start(); err != nil {
		return r, err
	}
	t.Cleanup(func() {
		r.Stop()
		if t.Failed() {
			t.Logf("what the programs of %s wrote:\n%s", data, r.Log)
		}
	})
	ready := make(chan error, 1)
	go func() {
		defer close(r.done)
		lines := bufio.NewReader(out)
		line, err := lines.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &r.Ready)
		}
		ready <- err
		io.Copy(io.Discard, lines)
		r.cmd.Wait()
	}()
	select {
	case err = <-ready:
	case <-time.After(startTime):
		err = errors.New("chaperone up was not ready in time")
	}
	if err != nil {
		r.Stop()
		return r, errors.Join(errors.New("chaperone up did not start"), err)
	}
	return r, nil
}

// PID of `chaperone up`.
func (r *Running) PID() int { return r.cmd.Process.Pid }

// Exited is closed when `chaperone up` has ended.
func (r *Running) Exited() <-chan struct{} { return r.done }

// Stop ends it as Ctrl-C does, by force if that takes too long.
func (r *Running) Stop() {
	r.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-r.done:
	case <-time.After(stopTime):
		r.cmd.Process.Kill()
		<-r.done
		r.t.Error("chaperone up did not stop cleanly")
	}
}

// Family is every process of this run, the workers' browsers included.
func (r *Running) Family() leak.Which {
	r.t.Helper()
	which, err := leak.Family(r.PID())
	if err != nil {
		r.t.Fatal(err)
	}
	return which
}

// Child is the process id of a supervised program; 0 if it does not run.
func (r *Running) Child(program string) int {
	r.t.Helper()
	found, err := leak.Alive(r.Family())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, p := range found {
		// Chromium's first process, not one of its helpers.
		if f := strings.Fields(p.Cmdline); len(f) > 0 && filepath.Base(f[0]) == program && !strings.Contains(p.Cmdline, "--type=") {
			return p.PID
		}
	}
	return 0
}

// Result is how a command ended.
type Result struct {
	Out, Err string
	Status   int
}

// Run runs `chaperone` on the data folder.
func Run(t testing.TB, data string, args ...string) Result {
	t.Helper()
	return Person{}.Run(t, data, args...)
}

// Run is Run as the person.
func (p Person) Run(t testing.TB, data string, args ...string) Result {
	t.Helper()
	cmd := p.command(t, data, args)
	slow := time.AfterFunc(90*time.Second, func() { cmd.Process.Kill() })
	defer slow.Stop()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, exit := errors.AsType[*exec.ExitError](err); err != nil && !exit {
		t.Fatal(err)
	}
	return Result{Out: out.String(), Err: errs.String(), Status: cmd.ProcessState.ExitCode()}
}

// Must runs a command that has to succeed and decodes its JSON into v, unless
// v is nil.
func (r *Running) Must(v any, args ...string) {
	r.t.Helper()
	got := Run(r.t, r.Data, args...)
	if got.Status != 0 {
		r.t.Fatalf("chaperone %s: status %d: %s", strings.Join(args, " "), got.Status, got.Err)
	}
	if v == nil {
		return
	}
	if err := json.Unmarshal([]byte(got.Out), v); err != nil {
		r.t.Fatalf("chaperone %s: %v in %s", strings.Join(args, " "), err, got.Out)
	}
}
