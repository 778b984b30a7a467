package person

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/testkit/leak"
)

func launch(t *testing.T) *Person {
	t.Helper()
	c := Config{Width: 800, Height: 600}
	if os.Geteuid() == 0 {
		c.UID = 61783
	}
	p, err := Launch(t.Context(), c)
	if errors.Is(err, ErrMissing) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// SURF-02: clicks and keys arrive as a person's do, one event each.
func TestClicksAndKeysAreReal(t *testing.T) {
	p := launch(t)
	defer p.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	tab, err := p.NewTab(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := tab.Show(ctx, `<title>x</title><input id=i><button id=b>Go  on</button><button id=off disabled>Off</button>
		<script>seen = []; for (const k of ["keydown", "input", "click"]) addEventListener(k, (e) => seen.push(k + (e.isTrusted ? "" : "!") + (e.key ?? e.data ?? "")), true)</script>`); err != nil {
		t.Fatal(err)
	}
	if err := tab.Fill(ctx, CSS("#i"), "aß"); err != nil {
		t.Fatal(err)
	}
	if err := tab.Press(ctx, "Tab"); err != nil {
		t.Fatal(err)
	}
	if err := tab.Click(ctx, Button("Go on")); err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := tab.Read(ctx, "seen.filter((s) => s !== 'clickundefined')", &got); err != nil {
		t.Fatal(err)
	}
	want := []string{"click", "keydowna", "inputa", "keydownß", "inputß", "keydownTab", "click"}
	if len(got) != len(want) {
		t.Fatalf("the page saw %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("the page saw %q, want %q", got, want)
		}
	}
	// A person cannot click what is off, not there, or called otherwise.
	for _, e := range []Element{CSS("#off"), CSS("#none"), Button("Go")} {
		short, stop := context.WithTimeout(ctx, 300*time.Millisecond)
		if err := tab.Click(short, e); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("click on %s: %v", e, err)
		}
		stop()
	}
}

func TestCoveredIsNotClicked(t *testing.T) {
	p := launch(t)
	defer p.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	tab, err := p.NewTab(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := tab.Show(ctx, `<button id=under>Under</button><div style="position:fixed;inset:0;background:#ccc"></div>`); err != nil {
		t.Fatal(err)
	}
	short, stop := context.WithTimeout(ctx, 500*time.Millisecond)
	defer stop()
	if err := tab.Click(short, CSS("#under")); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("click on a covered button: %v", err)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	p := launch(t)
	home := p.home
	family, err := leak.Family(p.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	leak.NoProcess(t, 10*time.Second, leak.Any(family, leak.ByMarker(home)))
	if _, err := os.Stat(home); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the home is still there: %v", err)
	}
}

// The sandbox cannot work for root, and nobody else can change users.
func TestUserIsChecked(t *testing.T) {
	c := Config{Chromium: "/bin/true", Width: 1, Height: 1}
	if os.Geteuid() != 0 {
		c.UID = 1
	}
	if p, err := Launch(t.Context(), c); err == nil {
		p.Close()
		t.Fatal("accepted")
	}
	if _, err := Launch(t.Context(), Config{Chromium: "/bin/true"}); err == nil {
		t.Fatal("a page without a size was accepted")
	}
}
