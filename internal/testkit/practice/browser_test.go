package practice_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/devmode"
	"github.com/chaperone-agents/chaperone/internal/testkit/demo/person"
	"github.com/chaperone-agents/chaperone/internal/testkit/practice"
)

// visitor is a person at a real Chromium in front of the site.
func visitor(t *testing.T, s *practice.Site, width, height int) *person.Tab {
	t.Helper()
	path, err := s.DevFile(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dev, err := devmode.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	c := person.Config{Width: width, Height: height, Dev: dev}
	if os.Geteuid() == 0 {
		c.UID = 61779
	}
	p, err := person.Launch(t.Context(), c)
	if errors.Is(err, person.ErrMissing) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	tab, err := p.NewTab(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A person signs in, saves a ticket and joins the embedded chat: cookie,
// localStorage and partitioned cookie are all real ones (STORE-05, cases 54, 56).
func TestPersonSignsInAndWorks(t *testing.T) {
	s := start(t, practice.Config{})
	tab := visitor(t, s, 1280, 800)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	desk := func(p string) string { return practice.URL(practice.Desk, p) }
	must(t, tab.Open(ctx, desk("/")))
	a, _ := s.Account("mira")
	must(t, tab.Fill(ctx, person.CSS("#username"), "mira"))
	must(t, tab.Press(ctx, "Tab"))
	must(t, tab.Type(ctx, a.Password))
	must(t, tab.Press(ctx, "Enter"))
	must(t, tab.Wait(ctx, `document.querySelector("#code")`))
	must(t, tab.Fill(ctx, person.CSS("#code"), s.Code("mira")))
	must(t, tab.Click(ctx, person.Button("Sign in")))
	must(t, tab.Wait(ctx, `document.querySelector("#device")?.textContent === "remembered"`))
	if len(s.Effects(practice.DeviceKnown)) != 1 || len(s.Effects(practice.DeviceUnknown)) != 0 {
		t.Fatalf("effects %v", kinds(s))
	}

	mark := s.Mark()
	must(t, tab.Click(ctx, person.Button("New ticket")))
	must(t, tab.Fill(ctx, person.CSS("#title"), "Lamp is out"))
	must(t, tab.Click(ctx, person.Button("Save ticket")))
	if e, err := s.WaitEffect(ctx, practice.TicketCreated, mark); err != nil || e.Detail != "Lamp is out" {
		t.Fatalf("effect %+v: %v", e, err)
	}

	must(t, tab.Open(ctx, practice.URL(practice.Partner, "/")))
	must(t, tab.Open(ctx, desk("/chat")))
	// The frame is another site: a person clicks into it and types.
	must(t, tab.ClickAt(ctx, person.CSS("iframe"), 0.3, 0.55))
	must(t, tab.Type(ctx, "mira"))
	must(t, tab.Press(ctx, "Enter"))
	if _, err := s.WaitEffect(ctx, practice.ChatSeen, 0); err != nil {
		t.Fatalf("the partitioned cookie did not come back inside the desk: %v, %v", err, kinds(s))
	}
	must(t, tab.Open(ctx, practice.URL(practice.Partner, "/")))
	if n := len(s.Effects(practice.PartitionLost)); n != 0 {
		t.Fatal("the partitioned cookie came back outside the desk")
	}
}

// Cases row 1: what the page's own script saw agrees with the title.
func TestProbesTellRealInputFromScripts(t *testing.T) {
	s := start(t, practice.Config{})
	tab := visitor(t, s, 1280, 800)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	must(t, tab.Open(ctx, practice.URL(practice.Desk, "/shapes/reorder")))
	must(t, tab.Click(ctx, person.Button("Insert one before them")))
	must(t, tab.Click(ctx, person.Button("Second")))
	e, err := s.WaitEffect(ctx, practice.Pressed, 0)
	if err != nil || e.Detail != "second" || e.Subject != "/shapes/reorder" {
		t.Fatalf("effect %+v: %v", e, err)
	}
	must(t, tab.Wait(ctx, `document.title === "second"`))
	must(t, tab.Read(ctx, `void document.querySelector("[data-says=third]").click()`, nil))
	if e, err := s.WaitEffect(ctx, practice.Synthetic, 0); err != nil || e.Detail != "third" {
		t.Fatalf("effect %+v: %v", e, err)
	}
}

// The pages are usable on a telephone: nothing but what means ill scrolls
// sideways. With PRACTICE_PICTURES=DIR it also leaves pictures of them.
func TestPagesFitATelephone(t *testing.T) {
	s := start(t, practice.Config{})
	tab := visitor(t, s, 380, 760)
	ctx, cancel := context.WithTimeout(t.Context(), 120*time.Second)
	defer cancel()
	pages := []string{practice.URL(practice.Desk, "/signin"), practice.URL(practice.Bare, "/"), practice.URL(practice.Desk, "/shapes/")}
	for _, u := range s.Shapes() {
		switch {
		case strings.Contains(u, practice.Hostile), strings.Contains(u, "/leave-"), strings.HasSuffix(u, "/alert-load"):
		default:
			pages = append(pages, u)
		}
	}
	for _, u := range pages {
		must(t, tab.Open(ctx, u))
		var wide int
		must(t, tab.Read(ctx, `document.documentElement.scrollWidth - innerWidth`, &wide))
		if wide > 0 {
			t.Errorf("%s is %d pixels too wide", u, wide)
		}
		if dir := os.Getenv("PRACTICE_PICTURES"); dir != "" {
			jpeg, err := tab.Picture(ctx)
			must(t, err)
			must(t, os.WriteFile(filepath.Join(dir, strings.NewReplacer("https://", "", "/", "_").Replace(u)+".jpg"), jpeg, 0o644))
		}
	}
}
