package browserd_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chaperone-agents/chaperone/internal/app/browserd"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/browser/servicetest"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
)

// READY-01, READY-04, SWEEP-02: text during a challenge, then a page without
// one on an allowed origin with a session, seen twice, is a sign-in; it is
// sealed and closed before anybody hears of it.
func TestSignIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		c, v := r.connect()
		if !r.page().Spec().Headed {
			t.Error("the browser is headless (HEAD-01)")
		}
		if m, err := r.page().Capture(t.Context()); err != nil || m.Cookies[0].Value != "earlier" {
			t.Errorf("the last seal was not restored: %v, %v", m, err)
		}
		time.Sleep(1100 * time.Millisecond)
		if s := r.status(c); s != "needs_user" {
			t.Errorf("status %s, want needs_user (CER-07)", s)
		}
		if st, _ := v.State(); st.Phase != browserd.Attention || st.Origin != "https://desk.practice.example" || st.Wanting != browserd.WantChallenge {
			t.Errorf("the owner sees %+v", st)
		}
		r.input(v, click)
		r.input(v, password)
		page := r.page()
		r.input(v, enter)
		time.Sleep(2500 * time.Millisecond)
		if s := r.status(c); s != "authentication_required" {
			t.Errorf("status %s before the second look", s)
		}
		r.untouched()
		time.Sleep(2 * time.Second)
		if s := r.status(c); s != "ready" {
			t.Errorf("status %s", s)
		}
		got, n := r.vault.holds(r.profile)
		if n != 1 || got == earlier {
			t.Errorf("sealed %d times", n)
		}
		if len(r.world.Live()) != 0 {
			t.Error("the browser is still open")
		}
		if st, _ := v.State(); st.Phase != browserd.Done {
			t.Errorf("the owner sees %+v", st)
		}
		if in := page.Inputs(); len(in) != 3 || in[1].Text != password.Text {
			t.Errorf("%d events arrived", len(in))
		}
		r.acquire("run")
		if m, err := r.page().Capture(t.Context()); err != nil || m.Cookies[0].Value == "earlier" {
			t.Errorf("the lease has the old session: %v, %v", m, err)
		}
		if l := r.log.String(); strings.Contains(l, "planted-password") || strings.Contains(l, v.Next().Reveal()) {
			t.Error("the log has typed text or a capability (CER-02, SURF-02)")
		}
	})
}

// READY-01, READY-02: each piece of evidence is necessary.
func TestNotReady(t *testing.T) {
	open := fake.Doc{Title: "Account"}
	for _, c := range []struct {
		name string
		act  func(*rig, *browserd.Viewer)
	}{
		{"nothing was typed", func(r *rig, v *browserd.Viewer) { r.input(v, click); r.input(v, enter) }},
		{"saved state signs in already", func(r *rig, v *browserd.Viewer) { r.world.Put(servicetest.SignIn, open) }},
		{"text outside a challenge", func(r *rig, v *browserd.Viewer) {
			r.world.Put(servicetest.SignIn, open)
			r.input(v, password)
		}},
		{"the challenge is still there", func(r *rig, v *browserd.Viewer) { r.input(v, password) }},
		{"no session is kept", func(r *rig, v *browserd.Viewer) {
			r.input(v, password)
			if err := r.page().Restore(r.Context(), browser.Material{}); err != nil {
				r.Fatal(err)
			}
			r.world.Put(servicetest.SignIn, open)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				s, v := r.connect()
				time.Sleep(time.Second)
				c.act(r, v)
				for range 20 {
					time.Sleep(10 * time.Second)
					v.Check()
					if got := r.status(s); got != "needs_user" && got != "authentication_required" {
						t.Fatalf("status %s", got)
					}
				}
				time.Sleep(2 * time.Minute)
				if got := r.status(s); got != "expired" {
					t.Errorf("status %s", got)
				}
				r.untouched()
				if len(r.world.Live()) != 0 {
					t.Error("the browser is still open (READY-04)")
				}
			})
		})
	}
}

// SWEEP-02: one positive look is not enough, and events between the two begin
// them anew.
func TestTwoLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		c, v := r.connect()
		r.input(v, password)
		challenge := fake.Doc{Title: "Code", Challenge: true}
		r.world.Put(servicetest.SignIn, fake.Doc{Title: "One moment"})
		time.Sleep(1500 * time.Millisecond) // the first look is positive
		r.world.Put(servicetest.SignIn, challenge)
		time.Sleep(10 * time.Second)
		if s := r.status(c); s != "needs_user" {
			t.Errorf("status %s after a challenge came back", s)
		}
		r.untouched()
		r.world.Put(servicetest.SignIn, fake.Doc{Title: "Welcome"})
		for range 10 { // the owner is still at it
			time.Sleep(2 * time.Second)
			r.input(v, click)
		}
		if s := r.status(c); s != "authentication_required" {
			t.Errorf("status %s while the owner clicks", s)
		}
		r.untouched()
		time.Sleep(8 * time.Second)
		if s := r.status(c); s != "ready" {
			t.Errorf("status %s", s)
		}
	})
}

// SWEEP-02: a sign-in that nobody asks about is looked at in its last twenty
// seconds.
func TestFinalLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		c, v := r.connect()
		r.input(v, password)
		time.Sleep(4*time.Minute + 30*time.Second)
		r.world.Put(servicetest.SignIn, fake.Doc{Title: "Welcome"})
		time.Sleep(20 * time.Second)
		if s := r.status(c); s != "ready" {
			t.Errorf("status %s", s)
		}
	})
}

// READY-04: a full disk at the seal keeps the earlier one, ends the sign-in,
// and the owner is told that it failed.
func TestFullDiskAtSignIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.vault.set(func(m *memory) { m.sealErr = fault.Wrap(fault.Internal, "Not written.", syscall.ENOSPC) })
		c, v := r.connect()
		r.input(v, password)
		r.input(v, enter)
		time.Sleep(10 * time.Second)
		if s := r.status(c); s != "cancelled" {
			t.Errorf("status %s", s)
		}
		if st, _ := v.State(); st.Phase != browserd.Failed {
			t.Errorf("the owner sees %+v", st)
		}
		r.untouched()
		r.acquire("run")
	})
}

// READY-04: a capture that fails or is empty is no sign-in.
func TestCaptureFailsAtSignIn(t *testing.T) {
	for _, m := range []struct {
		name string
		err  error
	}{{"empty", nil}, {"failed", errors.New("half")}} {
		t.Run(m.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, func(c *browserd.Config) {
					c.Launcher = &deaf{World: c.Launcher.(*fake.World), capture: func(context.Context) (browser.Material, error) { return browser.Material{}, m.err }}
				})
				c, v := r.connect()
				r.input(v, password)
				r.input(v, enter)
				time.Sleep(6 * time.Minute)
				if s := r.status(c); s != "expired" {
					t.Errorf("status %s", s)
				}
				r.untouched()
			})
		})
	}
}

// CER-01, CER-02: a capability opens once; wrong, foreign, repeated and
// expired ones are refused with one and the same answer.
func TestCapability(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		c, capability := r.begin()
		wrong := secret.NewText(strings.Repeat("A", 43))
		texts := map[string]bool{}
		refuse := func(what, id string, with secret.Text) {
			t.Helper()
			_, err := r.Claim(id, with)
			if !fault.Is(err, fault.Forbidden) {
				t.Errorf("%s: %v", what, err)
			}
			texts[fmt.Sprint(err)] = true
		}
		refuse("wrong", c.ID, wrong)
		refuse("empty", c.ID, secret.Text{})
		refuse("unknown sign-in", "5a1ff1ae-2b0e-4b6e-8c54-000000000000", capability)
		var all sync.WaitGroup
		var won, lost int
		var mu sync.Mutex
		for range 8 { // of many at once, one
			all.Go(func() {
				_, err := r.Claim(c.ID, capability)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won++
				} else {
					lost++
				}
			})
		}
		all.Wait()
		if won != 1 || lost != 7 {
			t.Errorf("%d claims won", won)
		}
		refuse("repeated", c.ID, capability)
		if err := r.CancelCeremony(t.Context(), ada, c.ID); err != nil {
			t.Fatal(err)
		}
		next, fresh := r.begin()
		time.Sleep(5 * time.Minute)
		refuse("expired", next.ID, fresh)
		if len(texts) != 1 {
			t.Errorf("the refusals differ: %v", texts)
		}
	})
}

// A page that lost its connection comes back with the next capability, once;
// the connection before it is over.
func TestReconnect(t *testing.T) {
	r := newRig(t)
	c, first := r.connect()
	second, err := r.Claim(c.ID, first.Next())
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-first.Replaced():
	default:
		t.Error("the first connection goes on")
	}
	if err := first.Input(t.Context(), password); err == nil {
		t.Error("the first connection can still type")
	}
	if _, err := r.Claim(c.ID, first.Next()); !fault.Is(err, fault.Forbidden) {
		t.Errorf("a repeated reconnection: %v", err)
	}
	r.input(second, password)
	if in := r.page().Inputs(); len(in) != 1 {
		t.Errorf("%d events arrived", len(in))
	}
}

// SURF-02, section 2.1: only the events that exist reach the page.
func TestInputBounds(t *testing.T) {
	r := newRig(t)
	_, v := r.connect()
	for _, in := range []browser.Input{
		{}, {Kind: "scroll"}, {Kind: "click", X: -1}, {Kind: "click", Y: 8193}, {Kind: "click", Text: "a"}, {Kind: "click", Key: "Enter"},
		{Kind: "text"}, {Kind: "text", Text: strings.Repeat("é", 4097)}, {Kind: "text", Text: "a\xff"}, {Kind: "text", Text: "a", X: 1}, {Kind: "text", Text: "a", Key: "Tab"},
		{Kind: "key"}, {Kind: "key", Key: "F12"}, {Kind: "key", Key: "Enter", Y: 1}, {Kind: "key", Key: "Enter", Text: "a"},
	} {
		if err := v.Input(t.Context(), in); !fault.Is(err, fault.MalformedRequest) {
			t.Errorf("%v: %v", in, err)
		}
	}
	for _, in := range []browser.Input{{Kind: "click", X: 8192}, {Kind: "text", Text: strings.Repeat("é", 4096)}, {Kind: "key", Key: "ArrowLeft"}} {
		r.input(v, in)
	}
	if in := r.page().Inputs(); len(in) != 3 {
		t.Errorf("%d events arrived, want 3", len(in))
	}
}

// CER-03, LEASE-09: leases and sign-ins of one profile never overlap, and
// nothing started is left behind, whoever comes first.
func TestSignInAgainstLease(t *testing.T) {
	login := func(r *rig) (browser.Ceremony, error) {
		return r.BeginCeremony(r.Context(), ada, r.profile, r.ref, r.request(action.Navigate, map[string]string{"url": servicetest.SignIn}).URL)
	}
	t.Run("a live lease blocks a sign-in until it is closed", func(t *testing.T) {
		r := newRig(t)
		l := r.acquire("run")
		if _, err := login(r); !fault.Is(err, fault.ProfileUnavailable) {
			t.Errorf("begin: %v", err)
		}
		if err := r.CloseLease(t.Context(), l.Ref); err != nil {
			t.Fatal(err)
		}
		if _, err := login(r); err != nil {
			t.Errorf("begin: %v", err)
		}
	})
	t.Run("together", func(t *testing.T) {
		for range 50 {
			r := newRig(t)
			var all sync.WaitGroup
			var held, begun error
			all.Go(func() { _, held = r.Acquire(t.Context(), r.key("run"), true, time.Now().Add(time.Minute)) })
			all.Go(func() { _, begun = login(r) })
			all.Wait()
			if (held == nil) == (begun == nil) {
				t.Fatalf("acquire: %v; begin: %v", held, begun)
			}
			if n := r.world.Launched(); n != 1 {
				t.Fatalf("%d browsers were started", n)
			}
			r.Shutdown(t.Context())
		}
	})
}

// Whoever ends a sign-in, its browser is gone and there is one outcome.
func TestEndsOfASignIn(t *testing.T) {
	for _, c := range []struct {
		name, status string
		phase        browserd.Phase
		end          func(*rig, browser.Ceremony, *browserd.Viewer)
	}{
		{"its owner's page", "cancelled", browserd.Cancelled, func(_ *rig, _ browser.Ceremony, v *browserd.Viewer) { v.Cancel() }},
		{"the console", "cancelled", browserd.Cancelled, func(r *rig, c browser.Ceremony, _ *browserd.Viewer) { r.CancelCeremony(r.Context(), ada, c.ID) }},
		{"revoke", "cancelled", browserd.Cancelled, func(r *rig, _ browser.Ceremony, _ *browserd.Viewer) {
			if err := r.Revoke(r.Context(), ada, r.profile, r.ref); err != nil {
				r.Error(err)
			}
		}},
		{"a crash", "cancelled", browserd.Failed, func(r *rig, _ browser.Ceremony, _ *browserd.Viewer) { r.page().Crash(); synctest.Wait() }},
		{"time", "expired", browserd.Expired, func(*rig, browser.Ceremony, *browserd.Viewer) { time.Sleep(5*time.Minute + time.Second) }},
		{"shutdown", "cancelled", browserd.Cancelled, func(r *rig, _ browser.Ceremony, _ *browserd.Viewer) { r.Shutdown(r.Context()) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				s, v := r.connect()
				r.input(v, password)
				r.input(v, enter) // a look would find a sign-in; none has happened yet
				c.end(r, s, v)
				if c.name != "time" {
					r.untouched()
				}
				if n := len(r.world.Live()); n != 0 {
					t.Errorf("%d browsers are left", n)
				}
				want := c.status
				if c.name == "time" {
					want = "ready" // it had been, long before
				}
				if got := r.status(s); got != want {
					t.Errorf("status %s, want %s", got, want)
				}
				if st, _ := v.State(); want != "ready" && st.Phase != c.phase {
					t.Errorf("the owner sees %s", st.Phase)
				}
				if err := v.Input(t.Context(), password); err == nil {
					t.Error("an ended sign-in takes text")
				}
			})
		})
	}
}

// CER-01: an unreachable login page starts no sign-in and leaves nothing.
func TestLoginPageIsDown(t *testing.T) {
	r := newRig(t)
	r.world.OnLoad(func(context.Context, string) error { return fault.New(fault.SiteUnreachable, "It is down.") })
	_, err := r.BeginCeremony(t.Context(), ada, r.profile, r.ref, r.request(action.Navigate, map[string]string{"url": servicetest.SignIn}).URL)
	if !fault.Is(err, fault.SiteUnreachable) || len(r.world.Live()) != 0 {
		t.Errorf("%v, %d browsers are left", err, len(r.world.Live()))
	}
	r.world.OnLoad(func(context.Context, string) error { return fault.New(fault.NeedsUser, "It asks to sign in.") })
	if _, err := r.BeginCeremony(t.Context(), ada, r.profile, r.ref, r.request(action.Navigate, map[string]string{"url": servicetest.SignIn}).URL); err != nil {
		t.Errorf("a page that asks to sign in: %v", err)
	}
}

// SWEEP-03: an outcome is known for a day and not longer.
func TestOutcomesAreKeptADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		c, _ := r.begin()
		if err := r.CancelCeremony(t.Context(), ada, c.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(23*time.Hour + 59*time.Minute)
		if s := r.status(c); s != "cancelled" {
			t.Errorf("status %s", s)
		}
		time.Sleep(2 * time.Minute)
		if _, err := r.CeremonyStatus(t.Context(), ada, c.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("after a day: %v", err)
		}
	})
}
