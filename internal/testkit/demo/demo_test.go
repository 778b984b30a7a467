package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/testkit/demo/person"
	"github.com/chaperone-agents/chaperone/internal/testkit/product"
)

// tell runs the demonstration on the practice site and returns its page.
func tell(t *testing.T, bin string) (ok bool, page string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	ok, err := run(ctx, options{practice: true, out: out, bin: bin})
	if errors.Is(err, person.ErrMissing) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(out, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	return ok, string(b)
}

// GATE-01: the owner at the real pages, the agent over MCP, effects read from
// the site's own record.
func TestTheMainJob(t *testing.T) {
	ok, page := tell(t, product.Bin(t))
	if !ok || !strings.Contains(page, "12 of 12 steps succeeded") {
		t.Fatal("the main job failed; its output is above")
	}
	if strings.Contains(page, "<script") || strings.Contains(page, `src="http`) || strings.Contains(page, "<link") {
		t.Error("the page needs something else than itself")
	}
	if n := strings.Count(page, "data:image/jpeg;base64,"); n < 12 {
		t.Errorf("only %d pictures", n)
	}
}

// The demonstration must be able to fail: with programs that do not work, it
// says so on its page and in its status.
func TestBrokenProgramsAreReported(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "chaperone"), []byte("#!/bin/sh\necho '<b>broken</b>' >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	ok, page := tell(t, bin)
	if ok || !strings.Contains(page, "0 of 1 steps succeeded") || !strings.Contains(page, "chaperone up did not start") {
		t.Fatal("programs that cannot start were not reported")
	}
	if strings.Contains(page, "<b>broken") {
		t.Error("what a program wrote is markup on the page")
	}
}

func TestDiffer(t *testing.T) {
	for _, c := range []struct {
		a, b []int
		want int
	}{
		{nil, nil, 0},
		{[]int{10, 20}, []int{12, 18}, 0}, // compression noise
		{[]int{10, 20}, []int{10, 200}, 1},
		{[]int{200}, []int{10}, 1},
		{[]int{1, 2, 3}, []int{1}, 2}, // another size
	} {
		if got := differ(c.a, c.b); got != c.want {
			t.Errorf("differ(%v, %v) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestFindSaysWhatThereIs(t *testing.T) {
	a := answer{Elements: []element{{"r:1", "button", "Save ticket"}, {"r:2", "link", "Back"}}}
	if ref, err := a.find("Save"); err != nil || ref != "r:1" {
		t.Errorf("found %q: %v", ref, err)
	}
	if _, err := a.find("Delete"); err == nil || !strings.Contains(err.Error(), "link Back") {
		t.Errorf("error %v", err)
	}
}
