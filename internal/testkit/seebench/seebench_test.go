package main

import (
	"context"
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
		pageHandler(newEffects()).ServeHTTP(w, httptest.NewRequest("GET", "/"+name, nil))
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

// Every page for acts has the controls that the acts name, and both sides find
// them in what they are shown.
func TestActsFindTheirControls(t *testing.T) {
	for _, p := range actPages() {
		for _, want := range []string{">" + buttonName + "</button>", ">" + fieldName + " <input", ">" + selectName + " <select", p.mark} {
			if !strings.Contains(p.body, want) {
				t.Errorf("%s has no %q", p.name, want)
			}
		}
	}
	ours := `{"revision":"r","elements":[{"ref":"r:1","name":"Count on"},{"ref":"r:2","name":"Word of the day"},{"ref":"r:3","name":"Colour"}]}`
	peer := "- generic:\n  - button \"Count on\" [active] [ref=e3]\n  - textbox \"Word of the day\" [ref=e5]: old\n  - combobox \"Colour\" [ref=f1e7]:\n"
	want := map[string][2]string{"click": {"r:1", "e3"}, "type": {"r:2", "e5"}, "select": {"r:3", "f1e7"}}
	for _, one := range actsOf(1) {
		_, args, err := oursAct(one, ours)
		if err != nil || args["ref"] != want[one.kind][0] || args["expected_revision"] != "r" || one.value != "" && args["value"] != one.value {
			t.Errorf("ours, %s: %v, %v", one.kind, args, err)
		}
		if _, args, err = peerAct(one, peer); err != nil || args["target"] != want[one.kind][1] {
			t.Errorf("peer, %s: %v, %v", one.kind, args, err)
		}
		if _, _, err := oursAct(one, `{"revision":"r"}`); err == nil {
			t.Errorf("ours, %s: a control that is not shown", one.kind)
		}
		if _, _, err := peerAct(one, "- generic [ref=e1]"); err == nil {
			t.Errorf("peer, %s: a control that is not shown", one.kind)
		}
	}
	for round := range 3 {
		if actsOf(round)[2].told == actsOf(round + 1)[2].told {
			t.Error("a choice that changes nothing tells nothing")
		}
	}
}

// An effect that is missing, another one, one too many and one of the other
// side are all noticed.
func TestEffectsAreCounted(t *testing.T) {
	e := newEffects()
	tell := func(by, did string) {
		w := httptest.NewRecorder()
		pageHandler(e).ServeHTTP(w, httptest.NewRequest("POST", "/did?"+by, strings.NewReader(did)))
		if w.Code != 204 {
			t.Fatal(w.Code)
		}
	}
	tell("side=0", "click 1")
	if err := e.expect(t.Context(), "side=0", []string{"click 1"}); err != nil {
		t.Error(err)
	}
	if e.expect(t.Context(), "side=0", []string{"click 2"}) == nil {
		t.Error("another effect passed")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if e.expect(ended, "side=1", []string{"click 1"}) == nil {
		t.Error("an effect of the other side passed")
	}
	waited := make(chan error, 1)
	go func() { waited <- e.expect(t.Context(), "side=0", []string{"click 1", "type a"}) }()
	tell("side=0", "type a")
	if err := <-waited; err != nil {
		t.Error(err)
	}
	tell("side=0", "type a")
	if e.expect(t.Context(), "side=0", []string{"click 1", "type a"}) == nil {
		t.Error("one effect too many passed")
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
