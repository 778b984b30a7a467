package leak

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const planted = "planted-7c1e/9+0a55&b2"

// reports collects what a helper found.
type reports struct{ lines []string }

func (r *reports) Helper() {}
func (r *reports) Errorf(format string, a ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, a...))
}

// Every spelling is found, and the helper never repeats the secret.
func TestSecretsAreFoundInEveryForm(t *testing.T) {
	quoted, err := json.Marshal(planted)
	if err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	fmt.Fprint(z, strings.Repeat("log line\n", 500)+planted)
	z.Close()
	for name, body := range map[string]string{
		"plain":    "before " + planted + " after",
		"json":     string(quoted),
		"base64-0": base64.StdEncoding.EncodeToString([]byte(planted)),
		"base64-1": base64.StdEncoding.EncodeToString([]byte("x" + planted + "tail")),
		"base64-2": base64.URLEncoding.EncodeToString([]byte("xx" + planted)),
		"hex":      fmt.Sprintf("%x", planted),
		"HEX":      fmt.Sprintf("%X", planted),
		"url":      "https://x.example/?q=planted-7c1e%2F9%2B0a55%26b2",
		"utf-16":   strings.Join(strings.Split(planted, ""), "\x00") + "\x00",
		"gzip":     zipped.String(),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "f"), []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
			var r reports
			NoSecret(&r, []string{"another-secret", planted}, dir)
			if len(r.lines) == 0 || !strings.Contains(r.lines[0], "secret 1") {
				t.Fatalf("reports %q", r.lines)
			}
			if strings.Contains(strings.Join(r.lines, ""), planted) {
				t.Fatal("the report repeats the secret")
			}
		})
	}
}

func TestCleanFolderHasNoHits(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("planted-7c1e, but not all of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	NoSecret(t, []string{planted}, dir)
}

func TestFileNamesAndShortSecrets(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "capability-123456.log"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	hits, err := Find(t.Context(), dir, []string{"capability-123456"})
	if err != nil || len(hits) != 1 {
		t.Fatalf("hits %v: %v", hits, err)
	}
	if _, err := Find(t.Context(), dir, []string{"abc"}); err == nil {
		t.Fatal("a secret that is found by chance was accepted")
	}
	if _, err := Find(t.Context(), filepath.Join(dir, "absent"), nil); err == nil {
		t.Fatal("a folder that is not there looks clean")
	}
}

// META-01: what is so far in the log only is found as a row.
func TestDatabaseRows(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(`CREATE TABLE "odd ""name" (id INTEGER, v BLOB)`); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`INSERT INTO "odd ""name" VALUES (1, ?)`, "before "+planted); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "-wal"); err != nil {
		t.Fatal("the database has no log to look into")
	}
	hits, err := Find(t.Context(), dir, []string{planted})
	if err != nil {
		t.Fatal(err)
	}
	var inRows bool
	for _, h := range hits {
		inRows = inRows || strings.Contains(h.Where, `(table odd "name)`)
	}
	if !inRows {
		t.Fatalf("hits %v", hits)
	}
}

// META-01: a value torn over two pages is no string of bytes in the file.
func TestTornValueIsFound(t *testing.T) {
	for shift := range 40 {
		if torn(t, shift) {
			return
		}
	}
	t.Fatal("no length tore the value: the test shows nothing")
}

// torn stores the secret so that it may cross a page and reports whether only
// the rows show it.
func torn(t *testing.T, shift int) bool {
	t.Helper()
	dir := t.TempDir()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	// Overflow pages of 512 bytes hold 508 bytes each, so some of these cross.
	for _, q := range []string{"PRAGMA page_size = 512", "CREATE TABLE t (v TEXT)"} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec("INSERT INTO t VALUES (?)", strings.Repeat("p", 2000+shift*13)+planted+strings.Repeat("q", 2000)); err != nil {
		t.Fatal(err)
	}
	db.Close()
	hits, err := Find(t.Context(), dir, []string{planted})
	if err != nil {
		t.Fatal(err)
	}
	if len(hits) == 0 {
		t.Fatal("the secret was not found at all")
	}
	for _, h := range hits {
		if !strings.Contains(h.Where, "(table t)") {
			return false
		}
	}
	return true
}

// shell starts a shell whose child outlives it, and returns the shell and the
// child's number.
func shell(t *testing.T) (*exec.Cmd, int) {
	t.Helper()
	cmd := exec.Command("sh", "-c", `sleep 300 & echo $!; wait`, "marker-"+filepath.Base(t.TempDir())+t.Name())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Fscan(bufio.NewReader(out), &child); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		syscall.Kill(child, syscall.SIGKILL)
	})
	return cmd, child
}

func pids(t *testing.T, which Which) map[int]bool {
	t.Helper()
	alive, err := Alive(which)
	if err != nil {
		t.Fatal(err)
	}
	out := map[int]bool{}
	for _, p := range alive {
		out[p.PID] = true
	}
	return out
}

// LEASE-09: an orphan is found although its parent is gone, and forgotten only
// when it has ended.
func TestOrphanIsStillFamily(t *testing.T) {
	cmd, child := shell(t)
	family, err := Family(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if got := pids(t, family); !got[cmd.Process.Pid] || !got[child] || len(got) != 2 {
		t.Fatalf("family %v", got)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if got := pids(t, family); got[cmd.Process.Pid] || !got[child] {
		t.Fatalf("after the parent's death %v", got)
	}
	var r reports
	NoProcess(&r, 30*time.Millisecond, family)
	if len(r.lines) != 1 || !strings.Contains(r.lines[0], "sleep 300") {
		t.Fatalf("reports %q", r.lines)
	}
	syscall.Kill(child, syscall.SIGKILL)
	NoProcess(t, 10*time.Second, family)
}

func TestMarkerAndUID(t *testing.T) {
	cmd, child := shell(t)
	if got := pids(t, ByMarker(t.Name())); !got[cmd.Process.Pid] || got[child] {
		t.Fatalf("by marker %v", got)
	}
	if got := pids(t, ByUID(os.Geteuid())); !got[cmd.Process.Pid] || !got[child] || got[os.Getpid()] {
		t.Fatalf("by uid %v", got)
	}
	if got := pids(t, ByMarker("")); len(got) != 0 {
		t.Fatal("an empty marker means every process")
	}
	if got := pids(t, Any(ByMarker("no such thing"), ByMarker(t.Name()))); len(got) != 1 {
		t.Fatalf("any %v", got)
	}
}

// A process that nobody waited for is dead, not alive.
func TestDeadIsNotAlive(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	pid := cmd.Process.Pid
	NoProcess(t, 10*time.Second, func(p Process) bool { return p.PID == pid })
	all, err := Processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.PID == pid && p.Dead {
			return
		}
	}
	t.Fatal("the dead process is not in the list: the test shows nothing")
}

// CER-02: a capability in an environment or on a command line is found.
func TestSecretsOfProcesses(t *testing.T) {
	for _, where := range []string{"environ", "cmdline"} {
		cmd := exec.Command("sleep", "300")
		if where == "environ" {
			cmd.Env = append(os.Environ(), "CAPABILITY="+planted)
		} else {
			cmd.Args = []string{"sleep-" + planted, "300"}
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pid := cmd.Process.Pid
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		for {
			hits, err := FindInProcesses([]string{planted}, func(p Process) bool { return p.PID == pid })
			if err != nil {
				t.Fatal(err)
			}
			if len(hits) == 1 && strings.HasPrefix(hits[0].Where, where) {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("%s: hits %v", where, hits)
			}
		}
		cancel()
		cmd.Process.Kill()
		cmd.Wait()
	}
}
