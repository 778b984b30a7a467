package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/app/broker"
	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// approved brings an act to the point where it may be dispatched.
func (b *bench) approved(t *testing.T) map[string]any {
	t.Helper()
	args := act(b.open(t), "click", "Save")
	_, err := b.call(action.Act, args)
	wantCode(t, err, fault.ApprovalPending)
	b.decide(t, b.approvals(t)[0].ID, approval.ApproveOnce)
	return args
}

// GATE-07, REL-01: a browser that dies during an act leaves an unknown outcome
// and no lease, and the act is never repeated.
func TestDeathDuringAnActIsUncertain(t *testing.T) {
	b := newBench(t, nil, nil)
	args := b.approved(t)
	b.world.OnAct(func(_ context.Context, p *fake.Page, _ action.Action) error {
		p.Crash()
		return fault.New(fault.OutcomeUnknown, "the browser ended")
	})
	_, err := b.call(action.Act, args)
	wantCode(t, err, fault.OutcomeUnknown)
	if b.service.Leases() != 0 {
		t.Error("the lease of a dead browser is still held")
	}
	last := b.invocations(t)[0]
	if last.Outcome != run.Uncertain || last.EffectSentAt.IsZero() {
		t.Errorf("invocation %+v", last)
	}
	b.world.OnAct(nil)
	_, err = b.call(action.Act, args)
	wantCode(t, err, fault.PageChanged)
	if _, err := b.call(action.Observe, struct{}{}); err == nil {
		t.Error("a fresh browser pretended to have a page")
	}
	if len(b.world.Effects()) != 0 {
		t.Errorf("effects %v", b.world.Effects())
	}
}

// A refusal that proves that nothing was sent keeps the lease, and the owner
// can be asked again for the same thing.
func TestProvenRefusalKeepsTheLease(t *testing.T) {
	b := newBench(t, nil, nil)
	args := b.approved(t)
	b.world.OnAct(func(context.Context, *fake.Page, action.Action) error {
		return fault.New(fault.ElementNotFound, "Another element covers it. Nothing was sent.")
	})
	_, err := b.call(action.Act, args)
	wantCode(t, err, fault.ElementNotFound)
	if b.service.Leases() != 1 || b.world.Launched() != 1 {
		t.Error("the lease was not kept")
	}
	b.world.OnAct(nil)
	_, err = b.call(action.Act, args)
	wantCode(t, err, fault.ApprovalPending)
	b.decide(t, b.approvals(t, approval.Pending)[0].ID, approval.ApproveOnce)
	if _, err = b.call(action.Act, args); err != nil {
		t.Fatal(err)
	}
	if len(b.world.Effects()) != 1 || b.world.Launched() != 1 {
		t.Errorf("effects %v, %d browsers", b.world.Effects(), b.world.Launched())
	}
}

// NAVC-01, REL-01: an input that was sent but led nowhere keeps page, lease and
// code, counts as possibly effective, and is not repeated.
func TestInputThatLedNowhereIsNotRepeated(t *testing.T) {
	for _, code := range []fault.Code{fault.URLDisallowed, fault.NavigationCancelled} {
		b := newBench(t, nil, nil)
		args := b.approved(t)
		b.world.OnAct(func(context.Context, *fake.Page, action.Action) error { return fault.New(code, "sent") })
		_, err := b.call(action.Act, args)
		wantCode(t, err, code)
		b.world.OnAct(nil)
		_, err = b.call(action.Act, args)
		wantCode(t, err, fault.PageChanged)
		if last := b.invocations(t)[0]; last.Outcome != run.Uncertain || b.service.Leases() != 1 || len(b.world.Effects()) != 0 {
			t.Errorf("%s: %+v, %d leases, effects %v", code, last, b.service.Leases(), b.world.Effects())
		}
	}
}

// broken fails the n-th write and all later ones, as a full disk does.
type broken struct {
	store.Store
	left int
}

func (s *broken) Tx(ctx context.Context, scope caller.Scope, fn func(store.Tx) error) error {
	if s.left--; s.left < 0 {
		return store.ErrUnavailable
	}
	return s.Store.Tx(ctx, scope, fn)
}

func (s *broken) Note(ctx context.Context, scope caller.Scope, fn func(store.Tx) error) error {
	if s.left--; s.left < 0 {
		return store.ErrUnavailable
	}
	return s.Store.Note(ctx, scope, fn)
}

// ACC-02, GATE-05: what cannot be written down is not done.
func TestFullDiskSendsNothing(t *testing.T) {
	disk := &broken{left: 1000}
	b := newBench(t, func(s store.Store) store.Store { disk.Store = s; return disk }, nil)
	args := b.approved(t)
	disk.left = 0
	_, err := b.call(action.Act, args)
	wantCode(t, err, fault.ProviderUnavailable)
	_, err = b.call(action.Observe, struct{}{})
	wantCode(t, err, fault.ProviderUnavailable)
	if len(b.world.Effects()) != 0 {
		t.Errorf("effects %v", b.world.Effects())
	}
}

// REL-01: an act whose outcome cannot be written down is unknown, stays open
// in the store, and becomes uncertain at the next start.
func TestUnrecordedOutcomeIsUncertain(t *testing.T) {
	disk := &broken{left: 1000}
	b := newBench(t, func(s store.Store) store.Store { disk.Store = s; return disk }, nil)
	args := b.approved(t)
	disk.left = 2 // finding the approval, and the intent
	_, err := b.call(action.Act, args)
	wantCode(t, err, fault.OutcomeUnknown)
	if len(b.world.Effects()) != 1 {
		t.Fatalf("effects %v", b.world.Effects())
	}
	disk.left = 1000
	n, err := b.broker.Recover(t.Context())
	if err != nil || n != 1 {
		t.Fatalf("recovered %d, %v", n, err)
	}
	if last := b.invocations(t)[0]; last.Outcome != run.Uncertain {
		t.Errorf("invocation %+v", last)
	}
	if kinds := b.kinds(t); kinds[len(kinds)-1] != audit.RecoveredUncertain {
		t.Errorf("audit %v", kinds)
	}
}

// What the owner has taken away is refused at the next call, also for a call
// that was approved before (POL-02, LEASE-09, PSM-10, CER-05).
func TestTakenAwayIsRefused(t *testing.T) {
	change := func(fn func(store.Tx, *bench) error) func(*testing.T, *bench) {
		return func(t *testing.T, b *bench) {
			err := b.store.Tx(t.Context(), b.agent.Scope, func(tx store.Tx) error { return fn(tx, b) })
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	move := func(to profile.Status) func(*testing.T, *bench) {
		return change(func(tx store.Tx, b *bench) error {
			p, err := tx.Profile(b.profile)
			if err != nil {
				return err
			}
			next, err := p.To(to, b.clock.Now())
			return errors.Join(err, tx.UpdateProfile(next, p.Generation))
		})
	}
	for name, c := range map[string]struct {
		take func(*testing.T, *bench)
		code fault.Code
	}{
		"revoked":       {move(profile.Revoked), fault.ProfileUnavailable},
		"needs user":    {move(profile.NeedsUser), fault.NeedsUser},
		"not signed in": {move(profile.AuthenticationRequired), fault.AuthenticationRequired},
		"session ended": {change(func(tx store.Tx, b *bench) error { return tx.EndSession(b.agent.Session, b.clock.Now()) }), fault.ProfileUnavailable},
		"signing in": {change(func(tx store.Tx, b *bench) error {
			return tx.InsertCeremony(ceremony.Ceremony{
				Scope: b.agent.Scope, ID: ident.New(), ProfileID: b.profile, Status: ceremony.AuthenticationRequired,
				CreatedAt: b.clock.Now(), UpdatedAt: b.clock.Now(), ExpiresAt: b.clock.Now().Add(ceremony.Life),
			})
		}), fault.ProfileUnavailable},
		"foreign principal": {func(_ *testing.T, b *bench) { b.agent.Principal = "mallory" }, fault.ProfileUnavailable},
		"unknown session":   {func(_ *testing.T, b *bench) { b.agent.Session = ident.New() }, fault.ProfileUnavailable},
		"an owner's device": {func(_ *testing.T, b *bench) { b.agent.Role = caller.Owner }, fault.Forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, nil)
			args := b.approved(t)
			c.take(t, b)
			_, err := b.call(action.Act, args)
			wantCode(t, err, c.code)
			_, err = b.call(action.Observe, struct{}{})
			wantCode(t, err, c.code)
			if len(b.world.Effects()) != 0 {
				t.Errorf("effects %v", b.world.Effects())
			}
		})
	}
}

// A call that is cancelled while it waits sends nothing, and its question stays
// for the identical call to join.
func TestCancelledWhileWaiting(t *testing.T) {
	b := newBench(t, nil, func(c *broker.Config) { c.ApprovalWait = time.Hour })
	args, err := json.Marshal(act(b.open(t), "click", "Save"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = b.broker.Call(ctx, b.agent, action.Act, args, func(broker.Pending) { cancel() })
	wantCode(t, err, fault.ApprovalPending)
	if open := b.approvals(t, approval.Pending); len(open) != 1 || len(b.world.Effects()) != 0 {
		t.Errorf("open %v, effects %v", open, b.world.Effects())
	}
}

// approve_all answers in the owner's place in development mode, and says so.
func TestApproveAll(t *testing.T) {
	b := newBench(t, nil, func(c *broker.Config) { c.ApproveAll = true })
	if _, err := b.call(action.Act, act(b.open(t), "click", "Save")); err != nil {
		t.Fatal(err)
	}
	if a := b.approvals(t); len(a) != 1 || a[0].DecidedBy != "development-mode" || len(b.world.Effects()) != 1 {
		t.Errorf("approvals %+v, effects %v", a, b.world.Effects())
	}
}

// RENEW-01, RENEW-02, LEASE-06: upkeep renews a lease before it expires, up to
// its ceiling; after that a call gets a new one, and ended sessions lose theirs.
func TestUpkeep(t *testing.T) {
	b := newBench(t, nil, nil)
	b.open(t)
	for range 5 {
		b.clock.Advance(11 * time.Minute)
		b.broker.Upkeep(t.Context())
	}
	if _, err := b.call(action.Observe, struct{}{}); err != nil || b.world.Launched() != 1 {
		t.Fatalf("after 55 minutes: %v, %d browsers", err, b.world.Launched())
	}
	b.clock.Advance(6 * time.Minute)
	b.broker.Upkeep(t.Context())
	b.open(t)
	if b.world.Launched() != 2 || b.service.Leases() != 1 {
		t.Fatalf("%d browsers started, %d leases", b.world.Launched(), b.service.Leases())
	}
	err := b.store.Tx(t.Context(), b.agent.Scope, func(tx store.Tx) error { return tx.EndSession(b.agent.Session, b.clock.Now()) })
	if err != nil {
		t.Fatal(err)
	}
	b.broker.Upkeep(t.Context())
	if b.service.Leases() != 0 || len(b.world.Live()) != 0 {
		t.Error("an ended session still has a browser")
	}
}

// A closed session browser is sealed and given up; the session can go on with
// another one, and a shutdown closes that.
func TestCloseSessionAndShutdown(t *testing.T) {
	b := newBench(t, nil, nil)
	b.open(t)
	if err := b.broker.CloseSession(t.Context(), b.agent.Scope, b.agent.Session); err != nil || len(b.world.Live()) != 0 {
		t.Fatalf("%v, live %v", err, b.world.Live())
	}
	if err := b.broker.CloseSession(t.Context(), caller.Scope{Tenant: "local", Principal: "mallory"}, b.agent.Session); err != nil {
		t.Fatal(err)
	}
	b.open(t)
	b.broker.Shutdown(t.Context())
	if len(b.world.Live()) != 0 || b.world.Launched() != 2 {
		t.Errorf("live %d, launched %d", len(b.world.Live()), b.world.Launched())
	}
}
