package owner_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/app/owner"
	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/rules/device"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// POL-02: a question is answered once, with its audit entry, and who waits wakes.
func TestAnswersCountOnce(t *testing.T) {
	h := newHouse(t)
	s, _ := h.session(ana, h.ready(ana))
	asked := h.ask(s)
	woken := make(chan error, 1)
	go func() {
		woken <- h.hub.Wait(context.Background(), ana.Scope, func() (bool, error) {
			var a approval.Approval
			err := h.store.Store.View(context.Background(), ana.Scope, func(tx store.Tx) (err error) { a, err = tx.Approval(asked.ID); return err })
			return a.Status == approval.Approved, err
		})
	}()
	var wg sync.WaitGroup
	var mu sync.Mutex
	codes := map[fault.Code]int{}
	for range 8 {
		wg.Go(func() {
			_, err := h.Resolve(t.Context(), ana, asked.ID, approval.ApproveOnce, "")
			mu.Lock()
			defer mu.Unlock()
			codes[fault.CodeOf(err)]++
		})
	}
	wg.Wait()
	if codes[""] != 1 || codes[fault.Conflict] != 7 {
		t.Errorf("answers: %v", codes)
	}
	if err := <-woken; err != nil {
		t.Error(err)
	}
	_, err := h.Resolve(t.Context(), ana, asked.ID, approval.Deny, "")
	want(t, err, fault.Conflict)
	resolved := 0
	for _, k := range h.trail(ana.Scope) {
		if k == audit.ApprovalResolved {
			resolved++
		}
	}
	if got := h.approval(asked); resolved != 1 || got.Status != approval.Approved || got.DecidedBy != ana.Device {
		t.Errorf("%d audit entries; %+v", resolved, got)
	}
}

// POL-02, PSM-07: nothing is approved that could not happen any more.
func TestOnlyLiveQuestionsAreApproved(t *testing.T) {
	for name, spoil := range map[string]func(h *house, a approval.Approval){
		"expired":        func(h *house, _ approval.Approval) { h.pass(approval.Life) },
		"session ended":  func(h *house, a approval.Approval) { h.must(h.endBehind(a.SessionID)) },
		"signed in anew": func(h *house, a approval.Approval) { h.moveGeneration(a.ProfileID) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			s, _ := h.session(ana, h.ready(ana))
			asked := h.ask(s)
			spoil(h, asked)
			_, err := h.Resolve(t.Context(), ana, asked.ID, approval.ApproveOnce, "")
			want(t, err, fault.Conflict)
			if got := h.approval(asked).Status; got != approval.Pending {
				t.Errorf("stored as %s", got)
			}
		})
	}
	h := newHouse(t)
	s, _ := h.session(ana, h.ready(ana))
	asked := h.ask(s)
	for _, bad := range []struct{ decision, reason string }{{"approve_for_task", ""}, {"", ""}, {"deny", strings.Repeat("x", 501)}} {
		_, err := h.Resolve(t.Context(), ana, asked.ID, approval.Decision(bad.decision), bad.reason)
		want(t, err, fault.MalformedRequest)
	}
	if a, err := h.Resolve(t.Context(), ana, asked.ID, approval.Deny, "not today"); err != nil || a.Reason != "not today" {
		t.Errorf("%+v, %v", a, err)
	}
}

// An expired question is listed as such at once, and recorded by upkeep once.
func TestExpiryIsRecorded(t *testing.T) {
	h := newHouse(t)
	s, _ := h.session(ana, h.ready(ana))
	asked := h.ask(s)
	h.pass(approval.Life)
	if list, err := h.Approvals(t.Context(), ana, approval.Pending, 50); err != nil || len(list) != 0 {
		t.Errorf("still pending: %v, %v", list, err)
	}
	if list, err := h.Approvals(t.Context(), ana, approval.Expired, 50); err != nil || len(list) != 1 {
		t.Errorf("not listed as expired: %v, %v", list, err)
	}
	h.must(h.Upkeep(t.Context()))
	n := len(h.trail(ana.Scope))
	h.must(h.Upkeep(t.Context()))
	if got := h.approval(asked).Status; got != approval.Expired || len(h.trail(ana.Scope)) != n {
		t.Errorf("%s, and upkeep repeats itself", got)
	}
}

// BIND-01, TOOL-07: a session is bound to one ready profile; its credential is
// the agent's and no owner's.
func TestSessionsAreBoundToReadyProfiles(t *testing.T) {
	h := newHouse(t)
	waiting := h.create(ana)
	_, _, err := h.CreateSession(t.Context(), ana, owner.NewSession{ProfileID: waiting})
	want(t, err, fault.Conflict)
	for _, n := range []owner.NewSession{
		{}, {ProfileID: waiting, Origins: []string{wiki}}, {ProfileID: waiting, Headed: true}, {Origins: []string{"http://x.example.org"}},
		{Name: strings.Repeat("x", 81), Origins: []string{wiki}},
	} {
		_, _, err := h.CreateSession(t.Context(), ana, n)
		want(t, err, fault.MalformedRequest)
	}
	foreign := h.ready(ben)
	_, _, err = h.CreateSession(t.Context(), ana, owner.NewSession{ProfileID: foreign})
	want(t, err, fault.NotFound)
	if list, err := h.Sessions(t.Context(), ana); err != nil || len(list) != 0 {
		t.Fatalf("sessions: %v, %v", list, err)
	}

	id := h.ready(ana)
	s, credential := h.session(ana, id)
	by, err := h.access.Authenticate(t.Context(), credential)
	if err != nil || by.Role != caller.Agent || by.Session != s.ID || by.Scope != ana.Scope || !s.Headed {
		t.Errorf("%+v, %v", by, err)
	}
	ephemeral, _, err := h.CreateSession(t.Context(), ana, owner.NewSession{Origins: []string{"https://Wiki.Example.org/"}})
	if err != nil || ephemeral.ProfileID != "" || ephemeral.Headed || ephemeral.Origins[0].String() != wiki {
		t.Errorf("%+v, %v", ephemeral, err)
	}
	if strings.Contains(h.log.String()+h.everything(ana.Scope), strings.Split(credential.Reveal(), ".")[2]) {
		t.Error("the credential is in the store or the log")
	}
}

// A session whose credential could not be made does not stay.
func TestNoSessionWithoutACredential(t *testing.T) {
	h := newHouse(t)
	h.store.failWrite(2)
	_, _, err := h.CreateSession(t.Context(), ana, owner.NewSession{Origins: []string{wiki}})
	want(t, err, fault.Internal)
	if list, err := h.Sessions(t.Context(), ana); err != nil || len(list) != 0 {
		t.Errorf("sessions: %v, %v", list, err)
	}
}

// Ending a session, by itself or with its device, takes everything with it.
func TestEndingASession(t *testing.T) {
	for name, end := range map[string]func(h *house, session, fingerprint string) error{
		"session": func(h *house, s, _ string) error { return h.EndSession(h.t.Context(), ana, s) },
		"device":  func(h *house, _, f string) error { return h.RevokeDevice(h.t.Context(), ana, f) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			s, credential := h.session(ana, h.ready(ana))
			asked := h.ask(s)
			by, _ := h.access.Authenticate(t.Context(), credential)
			h.must(end(h, s.ID, by.Device))
			_, err := h.access.Authenticate(t.Context(), credential)
			want(t, err, fault.Unauthenticated)
			if got := h.approval(asked).Status; got != approval.Cancelled || h.service.count("close "+s.ID) != 1 {
				t.Errorf("question %s, browser closed %d times", got, h.service.count("close "+s.ID))
			}
			h.must(h.EndSession(t.Context(), ana, s.ID)) // ending it again changes nothing
		})
	}
}

// A disk that fails in the middle of revoking an agent's device: the session
// has ended, and the owner's second try finishes the rest.
func TestRevokingADeviceCanBeRepeated(t *testing.T) {
	for failing := range 2 {
		h := newHouse(t)
		s, credential := h.session(ana, h.ready(ana))
		by, err := h.access.Authenticate(t.Context(), credential)
		h.must(err)
		h.store.failWrite(failing + 1)
		want(t, h.RevokeDevice(t.Context(), ana, by.Device), fault.Internal)
		if _, err := h.access.Authenticate(t.Context(), credential); failing == 1 && !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("the device of an ended session still works: %v", err)
		}
		want(t, h.RevokeDevice(t.Context(), ben, by.Device), fault.NotFound)
		h.must(h.RevokeDevice(t.Context(), ana, by.Device))
		d, err := h.store.Device(t.Context(), by.Device)
		h.must(err)
		if d.RevokedAt.IsZero() || h.service.count("close "+s.ID) == 0 || !h.has(ana.Scope, audit.SessionEnded) {
			t.Errorf("write %d failed: revoked at %v, calls %v", failing+1, d.RevokedAt, h.service.calls)
		}
	}
}

// The urgent stop: one transaction, every session, every question, of one scope.
func TestStopEndsEverything(t *testing.T) {
	h := newHouse(t)
	first, _ := h.session(ana, h.ready(ana))
	second, _, err := h.CreateSession(t.Context(), ana, owner.NewSession{Origins: []string{wiki}})
	if err != nil {
		t.Fatal(err)
	}
	a, b := h.ask(first), h.ask(second)
	_, err = h.Resolve(t.Context(), ana, b.ID, approval.ApproveOnce, "") // approved, not used yet
	h.must(err)
	theirs, _ := h.session(ben, h.ready(ben))
	c := h.ask(theirs)

	before := h.everything(ana.Scope)
	h.store.failWrite(1)
	_, err = h.Stop(t.Context(), ana)
	want(t, err, fault.Internal)
	if h.everything(ana.Scope) != before || h.service.count("close "+first.ID) != 0 {
		t.Error("a stop that was not stored had an effect")
	}

	got, err := h.Stop(t.Context(), ana)
	if err != nil || got != (owner.Stopped{Sessions: 2, Approvals: 2}) {
		t.Errorf("%+v, %v", got, err)
	}
	if h.approval(a).Status != approval.Cancelled || h.approval(b).Status != approval.Cancelled || h.approval(c).Status != approval.Pending {
		t.Errorf("questions: %s, %s; another owner's: %s", h.approval(a).Status, h.approval(b).Status, h.approval(c).Status)
	}
	if h.service.count("close "+first.ID) != 1 || h.service.count("close "+second.ID) != 1 || h.service.count("close "+theirs.ID) != 0 {
		t.Errorf("closed: %v", h.service.calls)
	}
	if !h.has(ana.Scope, audit.StoppedEverything) {
		t.Error("not in the audit trail")
	}
}

// PLACE-02: no browser waits for another's call in flight before it is closed.
func TestStopClosesAllAtOnce(t *testing.T) {
	h := newHouse(t)
	first, _ := h.session(ana, h.ready(ana))
	other, _ := h.session(ana, h.ready(ana))
	h.leases.meet = make(chan struct{}) // one after another, neither would be closed
	done := make(chan error, 1)
	go func() { done <- second(h.Stop(t.Context(), ana)) }()
	select {
	case err := <-done:
		h.must(err)
	case <-time.After(time.Minute):
		t.Fatal("one browser waits for another")
	}
	if h.service.count("close "+first.ID) != 1 || h.service.count("close "+other.ID) != 1 {
		t.Errorf("closed: %v", h.service.calls)
	}
}

// TOOL-07, CER-06: an agent's device can do nothing of all this, nor can nobody.
func TestOnlyOwnersMayAsk(t *testing.T) {
	h := newHouse(t)
	id := h.ready(ana)
	s, _ := h.session(ana, id)
	asked := h.ask(s)
	before, calls := h.everything(ana.Scope), len(h.service.calls)
	agent := caller.Caller{Scope: ana.Scope, Role: caller.Agent, Session: s.ID, Device: ana.Device}
	for _, by := range []caller.Caller{agent, {Scope: ana.Scope}, {Role: caller.Owner}} {
		ctx := t.Context()
		for name, err := range map[string]error{
			"create":   second(h.CreateProfile(ctx, by, "key-0009", []string{wiki})),
			"list":     second(h.Profiles(ctx, by)),
			"get":      second(h.Profile(ctx, by, id)),
			"revoke":   second(h.RevokeProfile(ctx, by, id)),
			"delete":   h.DeleteProfile(ctx, by, id),
			"begin":    second(h.BeginCeremony(ctx, by, id, "")),
			"ceremony": second(h.Ceremony(ctx, by, id)),
			"cancel":   second(h.CancelCeremony(ctx, by, id)),
			"list a":   second(h.Approvals(ctx, by, "", 1)),
			"get a":    second(h.Approval(ctx, by, asked.ID)),
			"resolve":  second(h.Resolve(ctx, by, asked.ID, approval.ApproveOnce, "")),
			"sessions": second(h.Sessions(ctx, by)),
			"end":      h.EndSession(ctx, by, s.ID),
			"stop":     second(h.Stop(ctx, by)),
			"devices":  second(h.PairedDevices(ctx, by)),
			"unpair":   h.RevokeDevice(ctx, by, ana.Device),
			"audit":    second(h.Audit(ctx, by, 0, 1)),
		} {
			if !fault.Is(err, fault.Forbidden) {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, _, err := h.CreateSession(ctx, by, owner.NewSession{Origins: []string{wiki}})
		want(t, err, fault.Forbidden)
	}
	if h.everything(ana.Scope) != before || len(h.service.calls) != calls {
		t.Error("something changed")
	}
}

func TestNewRefusesAnIncompleteConfiguration(t *testing.T) {
	if _, err := owner.New(owner.Config{}); err == nil {
		t.Error("accepted")
	}
	h := newHouse(t)
	h.store.views = store.ErrUnavailable
	_, err := h.Profiles(t.Context(), ana)
	want(t, err, fault.Internal)
}

func second[T any](_ T, err error) error { return err }

func (h *house) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) endBehind(sessionID string) error {
	return h.store.Store.Tx(h.t.Context(), ana.Scope, func(tx store.Tx) error { return tx.EndSession(sessionID, h.clock()) })
}

func (h *house) moveGeneration(profileID string) {
	h.t.Helper()
	p := h.profile(ana.Scope, profileID)
	h.must(h.store.Store.Tx(h.t.Context(), ana.Scope, func(tx store.Tx) error { return tx.UpdateProfile(p.SignIn(h.clock()), p.Generation) }))
}

func (h *house) ceremonyRecord(id string) (c ceremony.Ceremony, err error) {
	err = h.store.Store.View(h.t.Context(), ana.Scope, func(tx store.Tx) (err error) { c, err = tx.Ceremony(id); return err })
	return c, err
}

// over is another Owner on the same store, with another isolated service.
func (h *house) over(s browser.Service) *owner.Owner {
	h.t.Helper()
	o, err := owner.New(owner.Config{Store: h.store, Service: s, Devices: nobody{}, Leases: h.leases, Hub: h.hub, Now: h.clock, Log: h.Log})
	h.must(err)
	return o
}

type nobody struct{}

func (nobody) Pair(context.Context, caller.Caller, string, caller.Role, string) (device.Device, secret.Text, error) {
	return device.Device{}, secret.Text{}, device.Refused()
}
func (nobody) Devices(context.Context, caller.Caller) ([]device.Device, error) { return nil, nil }
func (nobody) Revoke(context.Context, caller.Caller, string) error             { return nil }

// slow never finishes a launch before its context does.
type slow struct {
	*service
	launched chan time.Duration
}

func (s *slow) BeginCeremony(ctx context.Context, _ caller.Scope, _, _ string, _ site.URL) (browser.Ceremony, error) {
	start := time.Now()
	<-ctx.Done()
	s.launched <- time.Since(start)
	return browser.Ceremony{}, ctx.Err()
}
