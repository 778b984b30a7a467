package storetest_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/device"
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
	"github.com/chaperone-agents/chaperone/internal/store"
	"github.com/chaperone-agents/chaperone/internal/store/sqlite"
	"github.com/chaperone-agents/chaperone/internal/store/storetest"
)

// faulty is a store with one rule broken: wrap replaces what fn sees, and
// around replaces how a transaction is run.
type faulty struct {
	store.Store
	wrap   func(inner store.Store, scope caller.Scope, tx store.Tx) store.Tx
	around func(inner store.Store, ctx context.Context, scope caller.Scope, fn func(store.Tx) error) error
	note   func(inner store.Store, ctx context.Context, scope caller.Scope, fn func(store.Tx) error) error
}

func (f faulty) Note(ctx context.Context, scope caller.Scope, fn func(store.Tx) error) error {
	if f.note != nil {
		return f.note(f.Store, ctx, scope, fn)
	}
	return f.Store.Note(ctx, scope, f.wrapped(scope, fn))
}

func (f faulty) Tx(ctx context.Context, scope caller.Scope, fn func(store.Tx) error) error {
	if f.around != nil {
		return f.around(f.Store, ctx, scope, fn)
	}
	return f.Store.Tx(ctx, scope, f.wrapped(scope, fn))
}

func (f faulty) View(ctx context.Context, scope caller.Scope, fn func(store.Tx) error) error {
	return f.Store.View(ctx, scope, f.wrapped(scope, fn))
}

func (f faulty) wrapped(scope caller.Scope, fn func(store.Tx) error) func(store.Tx) error {
	if f.wrap == nil {
		return fn
	}
	return func(tx store.Tx) error { return fn(f.wrap(f.Store, scope, tx)) }
}

// elsewhere looks a record up in every other scope when its own has none.
func elsewhere[T any](inner store.Store, mine T, err error, find func(store.Tx) (T, error)) (T, error) {
	if !errors.Is(err, store.ErrAbsent) {
		return mine, err
	}
	all, err := inner.Scopes(context.Background())
	if err != nil {
		return mine, err
	}
	for _, scope := range all {
		var found T
		err := inner.View(context.Background(), scope, func(tx store.Tx) (err error) { found, err = find(tx); return err })
		if err == nil {
			return found, nil
		}
	}
	return mine, store.ErrAbsent
}

type anyScopeProfile struct {
	store.Tx
	inner store.Store
}

func (b anyScopeProfile) Profile(id string) (profile.Profile, error) {
	p, err := b.Tx.Profile(id)
	return elsewhere(b.inner, p, err, func(tx store.Tx) (profile.Profile, error) { return tx.Profile(id) })
}

type anyScopeApproval struct {
	store.Tx
	inner store.Store
}

func (b anyScopeApproval) OpenApproval(session, digest string) (approval.Approval, error) {
	a, err := b.Tx.OpenApproval(session, digest)
	return elsewhere(b.inner, a, err, func(tx store.Tx) (approval.Approval, error) { return tx.OpenApproval(session, digest) })
}

type anyScopeCeremony struct {
	store.Tx
	inner store.Store
}

func (b anyScopeCeremony) LatestCeremony(profileID string) (ceremony.Ceremony, error) {
	c, err := b.Tx.LatestCeremony(profileID)
	return elsewhere(b.inner, c, err, func(tx store.Tx) (ceremony.Ceremony, error) { return tx.LatestCeremony(profileID) })
}

type foreignEndIsDone struct{ store.Tx }

func (b foreignEndIsDone) EndSession(id string, at time.Time) error {
	if err := b.Tx.EndSession(id, at); !errors.Is(err, store.ErrAbsent) {
		return err
	}
	return nil // as an UPDATE that nobody asks for its count
}

type adopts struct {
	store.Tx
	scope caller.Scope
}

func (b adopts) InsertSession(s run.Session) error {
	s.Scope = b.scope
	return b.Tx.InsertSession(s)
}

type anyGeneration struct{ store.Tx }

func (b anyGeneration) UpdateProfile(p profile.Profile, expected int64) error {
	if now, err := b.Tx.Profile(p.ID); err == nil {
		expected = now.Generation
	}
	return b.Tx.UpdateProfile(p, expected)
}

type anyGenerationDelete struct{ store.Tx }

func (b anyGenerationDelete) DeleteProfile(id string, expected int64) error {
	if now, err := b.Tx.Profile(id); err == nil {
		expected = now.Generation
	}
	return b.Tx.DeleteProfile(id, expected)
}

type staleIsAbsent struct{ store.Tx }

func (b staleIsAbsent) UpdateProfile(p profile.Profile, expected int64) error {
	err := b.Tx.UpdateProfile(p, expected)
	if errors.Is(err, store.ErrStale) {
		return store.ErrAbsent
	}
	return err
}

type anyStatus struct{ store.Tx }

func (b anyStatus) UpdateApproval(a approval.Approval, expected approval.Status) error {
	if now, err := b.Tx.Approval(a.ID); err == nil {
		expected = now.Status
	}
	return b.Tx.UpdateApproval(a, expected)
}

type anyCeremonyStatus struct{ store.Tx }

func (b anyCeremonyStatus) UpdateCeremony(c ceremony.Ceremony, expected ceremony.Status) error {
	if now, err := b.Tx.Ceremony(c.ID); err == nil {
		expected = now.Status
	}
	return b.Tx.UpdateCeremony(c, expected)
}

type twoOpen struct{ store.Tx }

func (b twoOpen) InsertApproval(a approval.Approval) error {
	err := b.Tx.InsertApproval(a)
	if errors.Is(err, store.ErrExists) {
		a.Digest += "'" // as if no index kept it out
		err = b.Tx.InsertApproval(a)
	}
	return err
}

type reusedApproval struct{ store.Tx }

func (b reusedApproval) InsertInvocation(i run.Invocation) error {
	err := b.Tx.InsertInvocation(i)
	if errors.Is(err, store.ErrExists) && i.ApprovalID != "" {
		i.ApprovalID = ""
		err = b.Tx.InsertInvocation(i)
	}
	return err
}

type finishesTwice struct{ store.Tx }

func (b finishesTwice) FinishInvocation(i run.Invocation) error {
	err := b.Tx.FinishInvocation(i)
	if errors.Is(err, store.ErrStale) {
		return nil
	}
	return err
}

type forgetsRevocation struct{ store.Tx }

func (forgetsRevocation) RevokeDevice(string, time.Time) error { return nil }

type listsRevoked struct{ store.Tx }

func (b listsRevoked) Devices(bool, int) ([]device.Device, error) { return b.Tx.Devices(false, 200) }

type forgetsWatermark struct{ store.Tx }

func (b forgetsWatermark) InsertInvocation(i run.Invocation) error {
	i.EffectSentAt = time.Time{}
	return b.Tx.InsertInvocation(i)
}

type renumbers struct{ store.Tx }

func (b renumbers) Audit(after int64, limit int) ([]audit.Entry, error) {
	list, err := b.Tx.Audit(after, limit)
	for i := range list {
		list[i].Number = int64(i + 1)
	}
	return list, err
}

// burns uses up a number also when its transaction fails.
type burns struct {
	store.Tx
	appended *atomic.Int64
}

func (b burns) Append(e audit.Entry) (audit.Entry, error) {
	e, err := b.Tx.Append(e)
	e.Number = b.appended.Add(1)
	return e, err
}

type oldestFirst struct{ store.Tx }

func (b oldestFirst) Sessions(profileID string, live bool, limit int) ([]run.Session, error) {
	list, err := b.Tx.Sessions(profileID, live, limit)
	slices.Reverse(list)
	return list, err
}

type unlimited struct{ store.Tx }

func (b unlimited) Audit(after int64, limit int) ([]audit.Entry, error) {
	return b.Tx.Audit(after, min(max(limit, 1), 200))
}

type dropsDetail struct{ store.Tx }

func (b dropsDetail) InsertProfile(p profile.Profile) error {
	p.LastUsedAt = time.Time{}
	return b.Tx.InsertProfile(p)
}

type millis struct{ store.Tx }

func (b millis) InsertSession(s run.Session) error {
	s.CreatedAt = s.CreatedAt.Truncate(time.Millisecond)
	return b.Tx.InsertSession(s)
}

type anyScopeImage struct {
	store.Tx
	inner store.Store
}

func (b anyScopeImage) Image(id string) (artifact.Image, error) {
	i, err := b.Tx.Image(id)
	return elsewhere(b.inner, i, err, func(tx store.Tx) (artifact.Image, error) { return tx.Image(id) })
}

type miscounts struct{ store.Tx }

func (b miscounts) ImageUse() (artifact.Use, error) {
	u, err := b.Tx.ImageUse()
	u.Images = min(u.Images, 1)
	return u, err
}

type keepsImages struct{ store.Tx }

func (b keepsImages) DeleteImage(id string) error {
	_, err := b.Tx.Image(id)
	return err
}

type upgrades struct{ store.Tx }

func (b upgrades) InsertSession(s run.Session) error {
	s.Contract = contract.Newest
	return b.Tx.InsertSession(s)
}

// Each of these stores breaks one rule, and the named case must say so.
func TestBrokenStoresAreCaught(t *testing.T) {
	var appended atomic.Int64
	plain := func(wrap func(store.Tx) store.Tx) faulty {
		return faulty{wrap: func(_ store.Store, _ caller.Scope, tx store.Tx) store.Tx { return wrap(tx) }}
	}
	for _, broken := range []struct {
		name, caught string
		faulty       faulty
	}{
		{"reads profiles of any scope", "another scope's records", faulty{wrap: func(s store.Store, _ caller.Scope, tx store.Tx) store.Tx { return anyScopeProfile{tx, s} }}},
		{"reads approvals of any scope", "another scope's records", faulty{wrap: func(s store.Store, _ caller.Scope, tx store.Tx) store.Tx { return anyScopeApproval{tx, s} }}},
		{"reads ceremonies of any scope", "another scope's records", faulty{wrap: func(s store.Store, _ caller.Scope, tx store.Tx) store.Tx { return anyScopeCeremony{tx, s} }}},
		{"does not say that a foreign session is absent", "another scope's records", plain(func(tx store.Tx) store.Tx { return foreignEndIsDone{tx} })},
		{"adopts foreign records", "a record of another scope", faulty{wrap: func(_ store.Store, scope caller.Scope, tx store.Tx) store.Tx { return adopts{tx, scope} }}},
		{"ignores the expected generation", "change under their generation", plain(func(tx store.Tx) store.Tx { return anyGeneration{tx} })},
		{"deletes under any generation", "a deleted profile", plain(func(tx store.Tx) store.Tx { return anyGenerationDelete{tx} })},
		{"calls a stale record absent", "change under their generation", plain(func(tx store.Tx) store.Tx { return staleIsAbsent{tx} })},
		{"ignores the expected status of an approval", "approvals are kept whole", plain(func(tx store.Tx) store.Tx { return anyStatus{tx} })},
		{"ignores the expected status of a ceremony", "ceremonies are kept whole", plain(func(tx store.Tx) store.Tx { return anyCeremonyStatus{tx} })},
		{"lets two open approvals exist", "one open approval", plain(func(tx store.Tx) store.Tx { return twoOpen{tx} })},
		{"lets an approval authorize twice", "authorizes one invocation", plain(func(tx store.Tx) store.Tx { return reusedApproval{tx} })},
		{"finishes an invocation twice", "finishes once", plain(func(tx store.Tx) store.Tx { return finishesTwice{tx} })},
		{"forgets the watermark", "finishes once", plain(func(tx store.Tx) store.Tx { return forgetsWatermark{tx} })},
		{"reads images of any scope", "another scope's records", faulty{wrap: func(s store.Store, _ caller.Scope, tx store.Tx) store.Tx { return anyScopeImage{tx, s} }}},
		{"counts one session's images only", "UPL-06", plain(func(tx store.Tx) store.Tx { return miscounts{tx} })},
		{"keeps deleted images", "UPL-06", plain(func(tx store.Tx) store.Tx { return keepsImages{tx} })},
		{"forgets revocations", "devices", plain(func(tx store.Tx) store.Tx { return forgetsRevocation{tx} })},
		{"lists revoked devices as live", "devices", plain(func(tx store.Tx) store.Tx { return listsRevoked{tx} })},
		{"renumbers the audit", "grow by one", plain(func(tx store.Tx) store.Tx { return renumbers{tx} })},
		{"burns audit numbers", "grow by one", plain(func(tx store.Tx) store.Tx { return burns{tx, &appended} })},
		{"lists the oldest first", "newest first", plain(func(tx store.Tx) store.Tx { return oldestFirst{tx} })},
		{"has no limits", "lists have limits", plain(func(tx store.Tx) store.Tx { return unlimited{tx} })},
		{"loses a field", "profiles are kept whole", plain(func(tx store.Tx) store.Tx { return dropsDetail{tx} })},
		{"keeps milliseconds", "sessions are kept whole", plain(func(tx store.Tx) store.Tx { return millis{tx} })},
		{"moves every session to the newest tools", "sessions are kept whole", plain(func(tx store.Tx) store.Tx { return upgrades{tx} })},
		{"keeps what a failed transaction wrote", "a failed transaction", faulty{around: keepsFailed}},
		{"keeps what a panicking transaction wrote", "a panic", faulty{around: keepsPanicked}},
		{"keeps what a failed note wrote", "a note", faulty{note: keepsFailed}},
		{"takes no notes", "a note", faulty{note: takesNone}},
		{"puts notes off", "a note", faulty{note: putsOff}},
		{"notes after cancellation", "a note", faulty{note: ignoresCancellation}},
		{"commits after cancellation", "a cancelled transaction", faulty{around: ignoresCancellation}},
		{"commits over a failure", "a failure inside", faulty{around: swallows}},
	} {
		t.Run(broken.name, func(t *testing.T) {
			t.Parallel()
			found := false
			for _, c := range storetest.Cases() {
				if !strings.Contains(c.Name, broken.caught) {
					continue
				}
				found = true
				s := broken.faulty
				s.Store = open(t)
				if err := c.Check(s); err == nil {
					t.Errorf("%q did not notice", c.Name)
				} else {
					t.Log(err)
				}
			}
			if !found {
				t.Errorf("there is no case %q", broken.caught)
			}
		})
	}
}

func keepsFailed(s store.Store, ctx context.Context, scope caller.Scope, fn func(store.Tx) error) error {
	var failed error
	err := s.Tx(ctx, scope, func(tx store.Tx) error { failed = fn(tx); return nil })
	return errors.Join(failed, err)
}

func takesNone(store.Store, context.Context, caller.Scope, func(store.Tx) error) error { return nil }

// putsOff writes a note down when the next transaction has long begun.
func putsOff(s store.Store, ctx context.Context, scope caller.Scope, fn func(store.Tx) error) error {
	time.AfterFunc(20*time.Millisecond, func() { _ = s.Note(ctx, scope, fn) })
	return nil
}

func keepsPanicked(s store.Store, ctx context.Context, scope caller.Scope, fn func(store.Tx) error) error {
	var panicked any
	err := s.Tx(ctx, scope, func(tx store.Tx) error {
		defer func() { panicked = recover() }()
		return fn(tx)
	})
	if panicked != nil {
		panic(panicked)
	}
	return err
}

func ignoresCancellation(s store.Store, ctx context.Context, scope caller.Scope, fn func(store.Tx) error) error {
	if err := s.Tx(context.WithoutCancel(ctx), scope, fn); err != nil {
		return err
	}
	return ctx.Err()
}

// swallows reports a transaction with a refused statement as done.
func swallows(s store.Store, ctx context.Context, scope caller.Scope, fn func(store.Tx) error) error {
	if err := s.Tx(ctx, scope, fn); !isConstraint(err) {
		return err
	}
	return nil
}

func isConstraint(err error) bool { return err != nil && strings.Contains(err.Error(), "constraint") }

func open(t *testing.T) store.Store {
	t.Helper()
	s, err := sqlite.Open(sqlite.Config{Path: filepath.Join(t.TempDir(), "data", "chaperone.db"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
