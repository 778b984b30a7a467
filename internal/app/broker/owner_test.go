package broker_test

import (
	"slices"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// CHAL-01, REC-02, PSM-07: a page that asks for its owner ends the profile's
// readiness, once and on record; the lease is kept, and nothing is sent.
func TestProfileNeedsItsOwner(t *testing.T) {
	for _, tool := range []action.Tool{action.Navigate, action.Observe, action.Act} {
		b := newBench(t, nil, nil)
		args := b.approved(t)
		was := b.record(t)
		b.world.Put(home, fake.Doc{Title: "Sign in", Challenge: true, Controls: []fake.Control{{Role: "button", Name: "Save"}}})
		call := map[action.Tool]any{action.Navigate: map[string]any{"url": home}, action.Observe: struct{}{}, action.Act: args}[tool]
		for range 2 {
			_, err := b.call(tool, call)
			wantCode(t, err, fault.NeedsUser)
		}
		now := b.record(t)
		if now.Status != profile.NeedsUser || now.Generation != was.Generation+1 {
			t.Errorf("%s: the profile is %s in generation %d after %d", tool, now.Status, now.Generation, was.Generation)
		}
		if n := len(slices.DeleteFunc(b.kinds(t), func(k audit.Kind) bool { return k != audit.ProfileChanged })); n != 1 {
			t.Errorf("%s: %d changes are on record", tool, n)
		}
		if len(b.world.Effects()) != 0 || b.service.Leases() != 1 {
			t.Errorf("%s: effects %v, %d leases", tool, b.world.Effects(), b.service.Leases())
		}
	}
}

func (b *bench) record(t testing.TB) (p profile.Profile) {
	t.Helper()
	err := b.store.View(t.Context(), b.agent.Scope, func(tx store.Tx) (err error) {
		p, err = tx.Profile(b.profile)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
