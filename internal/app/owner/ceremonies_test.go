package owner_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
)

// CER-01, CER-02, PSM-08: the record and the new generation come together; the
// capability is in the answer and nowhere else.
func TestBeginRecordsTheSignIn(t *testing.T) {
	h := newHouse(t)
	id := h.create(ana)
	before := h.profile(ana.Scope, id)
	c, err := h.BeginCeremony(t.Context(), ana, id, wiki+"/login?next=%2F")
	if err != nil {
		t.Fatal(err)
	}
	p := h.profile(ana.Scope, id)
	if p.Status != before.Status || p.Generation != before.Generation+1 {
		t.Errorf("profile is %s at generation %d", p.Status, p.Generation)
	}
	if c.ExpiresAt.Sub(h.clock()) > ceremony.Life {
		t.Errorf("it lasts until %s", c.ExpiresAt)
	}
	_, capability, ok := strings.Cut(c.LaunchURL.Reveal(), "#")
	if !ok || len(capability) < 43 {
		t.Fatal("no capability in the fragment")
	}
	if strings.Contains(h.everything(ana.Scope), capability) || strings.Contains(h.log.String(), capability) {
		t.Error("the capability is in the store or the log")
	}
}

// LURL-01, LURL-03: a wrong address starts nothing, is not repeated, and the
// bare-versus-www case is named.
func TestLoginAddressMustBeOnTheProfile(t *testing.T) {
	h := newHouse(t)
	id := h.create(ana, "https://www.shop.example.com", wiki)
	before := h.everything(ana.Scope)
	for address, words := range map[string]string{
		"https://shop.example.com/planted-secret":               "leading www",
		"https://www.wiki.example.org/planted-secret":           "leading www",
		"https://evil.example.net/planted-secret":               "not on one of the profile's websites",
		"https://wiki.example.org.evil.net/planted-secret":      "not on one of the profile's websites",
		"http://wiki.example.org/planted-secret":                "must be an https:// address",
		"https://a:b@wiki.example.org/planted-secret":           "must be an https:// address",
		"https://wiki.example.org:8443/planted-secret":          "must be an https:// address",
		"javascript:planted-secret":                             "must be an https:// address",
		"https://wiki.example.org/" + strings.Repeat("x", 4096): "must be an https:// address",
	} {
		_, err := h.BeginCeremony(t.Context(), ana, id, address)
		want(t, err, fault.MalformedRequest)
		public := fault.Public(err).Public
		if !strings.Contains(public, words) || strings.Contains(public, "planted-secret") {
			t.Errorf("%s: %q", address, public)
		}
	}
	if h.service.count("begin") != 0 || h.everything(ana.Scope) != before {
		t.Error("something was started or stored")
	}
	h.service.begin = fault.New(fault.URLDisallowed, "A redirect to planted-secret was refused.")
	_, err := h.BeginCeremony(t.Context(), ana, id, wiki)
	want(t, err, fault.MalformedRequest)
	if p := fault.Public(err).Public; !strings.Contains(p, "with or without www") || strings.Contains(p, "planted-secret") {
		t.Errorf("redirect: %q", p)
	}
	h.service.begin = fault.New(fault.SiteUnreachable, "planted-secret")
	_, err = h.BeginCeremony(t.Context(), ana, id, wiki)
	want(t, err, fault.ProviderUnavailable)
	if p := fault.Public(err).Public; !strings.Contains(p, "did not answer") || strings.Contains(p, "planted-secret") {
		t.Errorf("unreachable: %q", p)
	}
	h.service.begin = nil
	if h.everything(ana.Scope) != before {
		t.Error("a refused launch left a record")
	}
	if _, err := h.BeginCeremony(t.Context(), ana, id, "https://www.shop.example.com/login"); err != nil {
		t.Errorf("the profile is not usable any more: %v", err)
	}
}

// CER-03: of many that begin at once one starts a browser; the others are told.
func TestOneOpenSignInPerProfile(t *testing.T) {
	h := newHouse(t)
	id, other := h.create(ana), h.create(ana)
	var wg sync.WaitGroup
	var mu sync.Mutex
	codes := map[fault.Code]int{}
	for range 8 {
		wg.Go(func() {
			_, err := h.BeginCeremony(t.Context(), ana, id, "")
			mu.Lock()
			defer mu.Unlock()
			codes[fault.CodeOf(err)]++
		})
	}
	wg.Wait()
	if codes[""] != 1 || codes[fault.Conflict] != 7 || h.service.count("begin") != 1 {
		t.Errorf("answers %v, launches %d", codes, h.service.count("begin"))
	}
	if _, err := h.BeginCeremony(t.Context(), ana, other, ""); err != nil {
		t.Errorf("another profile: %v", err)
	}
	h.pass(ceremony.Life)
	if _, err := h.BeginCeremony(t.Context(), ana, id, ""); err != nil {
		t.Errorf("after its expiry: %v", err)
	}
}

// CER-03: a sign-in that is over at the service is not in the way, and its
// outcome is on record before the next one begins.
func TestAFinishedSignInIsNotInTheWay(t *testing.T) {
	h := newHouse(t)
	id := h.create(ana)
	first, err := h.BeginCeremony(t.Context(), ana, id, "")
	if err != nil {
		t.Fatal(err)
	}
	h.service.Finish(first.ID, ceremony.Ready)
	if _, err := h.BeginCeremony(t.Context(), ana, id, ""); err != nil {
		t.Fatal(err)
	}
	if got := h.profile(ana.Scope, id).Status; got != profile.Ready {
		t.Errorf("the outcome was lost: profile is %s", got)
	}
}

// CER-04: who waits for the profile waits five seconds, who launches thirty.
func TestBeginIsBounded(t *testing.T) {
	h := newHouse(t)
	id := h.create(ana)
	launched := make(chan time.Duration, 1)
	o := h.over(&slow{service: h.service, launched: launched})
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := o.BeginCeremony(t.Context(), ana, id, "")
			if !fault.Is(err, fault.ProviderUnavailable) {
				t.Errorf("a launch that never ends: %v", err)
			}
		})
		synctest.Wait()
		start := time.Now()
		_, err := o.BeginCeremony(t.Context(), ana, id, "")
		if waited := time.Since(start); !fault.Is(err, fault.Conflict) || waited != 5*time.Second {
			t.Errorf("the second one got %v after %s", err, waited)
		}
		wg.Wait()
		if got := <-launched; got != 30*time.Second {
			t.Errorf("the launch had %s", got)
		}
	})
	if n := h.service.count("begin"); n != 0 {
		t.Errorf("%d sign-ins at the service", n)
	}
}

// PSM-10: a revocation that comes while the browser starts wins.
func TestRevokeDuringLaunchWins(t *testing.T) {
	h := newHouse(t)
	id := h.create(ana)
	h.service.opening = func() {
		h.service.opening = nil
		if _, err := h.RevokeProfile(context.Background(), ana, id); err != nil {
			t.Error(err)
		}
	}
	_, err := h.BeginCeremony(t.Context(), ana, id, "")
	want(t, err, fault.InvalidTransition)
	if h.profile(ana.Scope, id).Status != profile.Revoked || h.has(ana.Scope, audit.CeremonyBegun) {
		t.Error("the sign-in was recorded on a revoked profile")
	}
}

// A full disk: the browser that was started for nothing is closed again.
func TestUnrecordedSignInIsCancelled(t *testing.T) {
	h := newHouse(t)
	id := h.create(ana)
	before := h.everything(ana.Scope)
	h.store.failWrite(1)
	_, err := h.BeginCeremony(t.Context(), ana, id, "")
	want(t, err, fault.Internal)
	if s, err := h.service.CeremonyStatus(t.Context(), ana.Scope, h.service.begun[0].ID); err != nil || s != ceremony.Cancelled {
		t.Errorf("at the service it is %s, %v", s, err)
	}
	if h.everything(ana.Scope) != before {
		t.Error("something was stored")
	}
}

// CER-05: agents are out before the browser starts; what they asked is void.
func TestAgentsAreOutBeforeASignIn(t *testing.T) {
	h := newHouse(t)
	id := h.ready(ana)
	s, _ := h.session(ana, id)
	asked := h.ask(s)
	elsewhere, _ := h.session(ana, h.ready(ana))
	kept := h.ask(elsewhere)
	if _, err := h.BeginCeremony(t.Context(), ana, id, ""); err != nil {
		t.Fatal(err)
	}
	closed, begun := slices.Index(h.service.calls, "close "+s.ID), len(h.service.calls)-1
	if closed < 0 || closed > begun || h.service.calls[begun] != "begin" {
		t.Errorf("order: %v", h.service.calls)
	}
	if got := h.approval(asked).Status; got != approval.Cancelled {
		t.Errorf("the question is %s", got)
	}
	if got := h.approval(kept).Status; got != approval.Pending || slices.Contains(h.service.calls, "close "+elsewhere.ID) {
		t.Errorf("another profile's question is %s", got)
	}

	h2 := newHouse(t)
	id = h2.ready(ana)
	h2.session(ana, id)
	h2.leases.err = fault.New(fault.ProviderUnavailable, "gone")
	begins := h2.service.count("begin")
	_, err := h2.BeginCeremony(t.Context(), ana, id, "")
	want(t, err, fault.ProviderUnavailable)
	if h2.service.count("begin") != begins {
		t.Error("it began although an agent was still in")
	}
}

// PSM-06, PSM-08, READY-04: only the service's outcome makes a profile ready,
// and every one advances the generation.
func TestOutcomesMoveTheProfile(t *testing.T) {
	h := newHouse(t)
	id := h.create(ana)
	c, _ := h.BeginCeremony(t.Context(), ana, id, "")
	h.service.Finish(c.ID, ceremony.NeedsUser)
	if got, err := h.Ceremony(t.Context(), ana, c.ID); err != nil || got.Status != ceremony.NeedsUser {
		t.Fatalf("%s, %v", got.Status, err)
	}
	if got := h.profile(ana.Scope, id).Status; got != profile.AuthenticationRequired {
		t.Errorf("a waiting sign-in made the profile %s", got)
	}
	generation := h.profile(ana.Scope, id).Generation
	h.service.Finish(c.ID, ceremony.Ready)
	for range 2 { // asking again changes nothing
		if got, err := h.Ceremony(t.Context(), ana, c.ID); err != nil || got.Status != ceremony.Ready {
			t.Fatalf("%s, %v", got.Status, err)
		}
	}
	p := h.profile(ana.Scope, id)
	if p.Status != profile.Ready || p.Generation != generation+1 {
		t.Errorf("%s, generation %d after %d", p.Status, p.Generation, generation)
	}
	h.signIn(ana, id) // once more, while it is ready
	if got := h.profile(ana.Scope, id); got.Status != profile.Ready || got.Generation != p.Generation+2 {
		t.Errorf("%s, generation %d after %d", got.Status, got.Generation, p.Generation)
	}
}

// CER-06: expiry, cancellation and a service that forgot never make it ready.
func TestUnsuccessfulOutcomesChangeNothing(t *testing.T) {
	for name, end := range map[string]func(h *house, c string) ceremony.Status{
		"expired": func(h *house, _ string) ceremony.Status { h.pass(ceremony.Life); return ceremony.Expired },
		"cancelled": func(h *house, c string) ceremony.Status {
			if _, err := h.CancelCeremony(h.t.Context(), ana, c); err != nil {
				h.t.Error(err)
			}
			return ceremony.Cancelled
		},
		"forgotten": func(h *house, _ string) ceremony.Status {
			h.service.Service = newHouse(h.t).service.Service // as after its restart
			return ceremony.Expired
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			id := h.create(ana)
			c, err := h.BeginCeremony(t.Context(), ana, id, "")
			if err != nil {
				t.Fatal(err)
			}
			p := h.profile(ana.Scope, id)
			outcome := end(h, c.ID)
			if err := h.Upkeep(t.Context()); err != nil { // nobody asks; the sweep finds it
				t.Fatal(err)
			}
			got, err := h.ceremonyRecord(c.ID)
			if err != nil || got.Status != outcome {
				t.Errorf("recorded %s, %v", got.Status, err)
			}
			if now := h.profile(ana.Scope, id); now.Status != p.Status || now.Generation != p.Generation {
				t.Errorf("the profile moved to %s, generation %d", now.Status, now.Generation)
			}
		})
	}
}

// CER-06: a cancel that comes after success does not undo it, and one that the
// service never heard is not claimed.
func TestCancelTellsTheTruth(t *testing.T) {
	h := newHouse(t)
	id := h.create(ana)
	c, _ := h.BeginCeremony(t.Context(), ana, id, "")
	h.service.Fail(fault.New(fault.ProviderUnavailable, "gone"))
	_, err := h.CancelCeremony(t.Context(), ana, c.ID)
	want(t, err, fault.ProviderUnavailable)
	_, err = h.Ceremony(t.Context(), ana, c.ID)
	want(t, err, fault.ProviderUnavailable)
	if got, err := h.ceremonyRecord(c.ID); err != nil || got.Status.Terminal() {
		t.Errorf("recorded %s, %v", got.Status, err)
	}
	// The fake has cancelled it before it failed to answer; a real one may have finished it.
	h.service.Fail(nil)
	h.service.Finish(c.ID, ceremony.Ready)
	if got, err := h.CancelCeremony(t.Context(), ana, c.ID); err != nil || got.Status != ceremony.Ready {
		t.Errorf("%s, %v", got.Status, err)
	}
	if got := h.profile(ana.Scope, id).Status; got != profile.Ready {
		t.Errorf("profile is %s", got)
	}
}
