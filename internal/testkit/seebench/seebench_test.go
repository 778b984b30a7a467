package main

import (
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/testkit/leak"
)

// The pages are as large as their targets say.
func TestPageSizes(t *testing.T) {
	tag, control := regexp.MustCompile(`<[a-z]`), regexp.MustCompile(`<(a|button|input|select|textarea)[ >]`)
	for name, want := range map[string]struct{ elements, controls int }{
		"table": {12_000, 3_000}, "dense": {11_000, 2_000}, "huge": {52_000, 6_000}, "article": {200, 10},
	} {
		w := httptest.NewRecorder()
		pageHandler().ServeHTTP(w, httptest.NewRequest("GET", "/"+name, nil))
		body, err := io.ReadAll(w.Result().Body)
		if err != nil || w.Code != 200 {
			t.Fatal(w.Code, err)
		}
		if n := len(tag.FindAll(body, -1)); n < want.elements || n > want.elements+500 {
			t.Errorf("%s has %d elements instead of %d", name, n, want.elements)
		}
		if n := len(control.FindAll(body, -1)); n != want.controls {
			t.Errorf("%s has %d controls instead of %d", name, n, want.controls)
		}
	}
	for _, p := range pages() {
		if p.name != "shadow" && p.name != "late" && !strings.Contains(p.body, p.mark) {
			t.Errorf("%s does not contain its own mark", p.name)
		}
	}
}

func TestMedianAndTarget(t *testing.T) {
	ours, peer := spread{3e6, 1e6, 2e6}, spread{20e6, 40e6, 30e6}
	if ours.median() != 2*time.Millisecond || peer.String() != "30 (20-40)" {
		t.Errorf("%v, %v", ours.median(), peer)
	}
	for target, want := range map[float64]string{10: "15.0\t10 x\tyes", 16: "15.0\t16 x\tno", 0: "15.0\t\t"} {
		var b strings.Builder
		row(&b, "p", "w", ours, peer, target)
		if !strings.HasSuffix(b.String(), want) {
			t.Errorf("target %g: %q", target, b.String())
		}
	}
}

// Memory counts the children too.
func TestMemory(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 60 & echo; wait")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	family, err := leak.Family(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		left, err := leak.Alive(family)
		if err != nil {
			t.Error(err)
		}
		for _, p := range left {
			if child, err := os.FindProcess(p.PID); err == nil {
				child.Kill()
			}
		}
	}()
	bytes, n, err := memory(family)
	if err != nil || n != 2 || bytes < 1<<16 || bytes > 1<<30 {
		t.Errorf("%d bytes in %d processes, error %v", bytes, n, err)
	}
	if _, _, err := memory(func(leak.Process) bool { return false }); err == nil {
		t.Error("no process has memory")
	}
}
