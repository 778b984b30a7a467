package owner_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// PSM-04, META-02: the reservation precedes the material, and the binding names it.
func TestCreateBindsAReservationToItsMaterial(t *testing.T) {
	h := newHouse(t)
	id := h.create(ana)
	p := h.profile(ana.Scope, id)
	if p.Status != profile.AuthenticationRequired || p.ProviderRef == "" || p.KeyVersion == "" || p.Generation != 1 {
		t.Errorf("stored: %+v", p)
	}
	if !h.service.Has(id) {
		t.Error("there is no material")
	}
	if got := h.trail(ana.Scope); !slices.Equal(got, []audit.Kind{audit.ProfileCreated, audit.ProfileChanged}) {
		t.Errorf("audit: %v", got)
	}
}

// API-02: a repeated creation is the same profile, for one principal only.
func TestCreateIsIdempotent(t *testing.T) {
	h := newHouse(t)
	var wg sync.WaitGroup
	ids := make([]string, 6)
	for i := range ids {
		wg.Go(func() {
			p, err := h.CreateProfile(t.Context(), ana, "key-0001", []string{wiki, "https://login.example.org"})
			if err != nil {
				t.Error(err)
			}
			ids[i] = p.ID
		})
	}
	wg.Wait()
	if len(slices.Compact(slices.Clone(ids))) != 1 {
		t.Errorf("several profiles: %v", ids)
	}
	if n := h.service.count("provision"); n != 1 {
		t.Errorf("provisioned %d times", n)
	}
	_, err := h.CreateProfile(t.Context(), ana, "key-0001", []string{wiki})
	want(t, err, fault.Conflict)
	other, err := h.CreateProfile(t.Context(), ben, "key-0001", []string{wiki, "https://login.example.org"})
	if err != nil || other.ID == ids[0] {
		t.Errorf("the other principal got %s, %v", other.ID, err)
	}
}

// API-02: one to 64 unique public HTTPS origins.
func TestCreateRefusesWhatIsNoPublicOrigin(t *testing.T) {
	h := newHouse(t)
	before := h.everything(ana.Scope)
	for _, origins := range [][]string{
		nil, {"http://wiki.example.org"}, {wiki + "/path"}, {"https://user:pw@wiki.example.org"}, {"https://127.0.0.1"}, {"https://0x7f.1"},
		{"https://localhost"}, {"https://wiki.example.org:8443"}, {wiki, "https://WIKI.example.org."}, {"https://co.uk"}, {"https://github.io"},
		slices.Repeat([]string{wiki}, 65),
	} {
		_, err := h.CreateProfile(t.Context(), ana, "key-0002", origins)
		want(t, err, fault.MalformedRequest)
		if strings.Contains(fault.Public(err).Public, "user:pw") {
			t.Errorf("the refusal repeats the input: %q", fault.Public(err).Public)
		}
	}
	if h.everything(ana.Scope) != before || h.service.count("provision") != 0 {
		t.Error("something was created")
	}
}

// PSM-05: what could not be provisioned is a revoked reservation.
func TestFailedProvisioningRevokesTheReservation(t *testing.T) {
	h := newHouse(t)
	h.service.Fail(fault.New(fault.ProviderUnavailable, "gone"))
	_, err := h.CreateProfile(t.Context(), ana, "key-0003", []string{wiki})
	want(t, err, fault.ProviderUnavailable)
	list, err := h.Profiles(t.Context(), ana)
	if err != nil || len(list) != 1 || list[0].Status != profile.Revoked || list[0].ProviderRef != "" {
		t.Fatalf("%+v, %v", list, err)
	}
	h.service.Fail(nil)
	_, err = h.CreateProfile(t.Context(), ana, "key-0003", []string{wiki})
	want(t, err, fault.Conflict)
	if err := h.DeleteProfile(t.Context(), ana, list[0].ID); err != nil {
		t.Fatal(err)
	}
	if h.service.Has(list[0].ID) {
		t.Error("material was left behind")
	}
}

// PSM-05: material that could not be bound is deleted, then the reservation revoked.
func TestFailedBindingLeavesNoMaterial(t *testing.T) {
	h := newHouse(t)
	h.store.failWrite(2)
	_, err := h.CreateProfile(t.Context(), ana, "key-0004", []string{wiki})
	want(t, err, fault.Internal)
	list, _ := h.Profiles(t.Context(), ana)
	if len(list) != 1 || list[0].Status != profile.Revoked || h.service.Has(list[0].ID) {
		t.Errorf("profile %+v, material %v", list, h.service.Has(list[0].ID))
	}
}

// A full disk: nothing is stored, so nothing is provisioned either.
func TestCreateStartsNothingWithoutAReservation(t *testing.T) {
	h := newHouse(t)
	h.store.failWrite(1)
	_, err := h.CreateProfile(t.Context(), ana, "key-0005", []string{wiki})
	want(t, err, fault.Internal)
	if h.service.count("provision") != 0 || h.everything(ana.Scope) != newHouse(t).everything(ana.Scope) {
		t.Error("something was started or stored")
	}
}

// A creation that its program did not survive is finished by its repetition.
func TestCreateFinishesWhatACrashLeft(t *testing.T) {
	h := newHouse(t)
	p, err := h.CreateProfile(t.Context(), ana, "key-0006", []string{wiki})
	if err != nil {
		t.Fatal(err)
	}
	err = h.store.Store.Tx(t.Context(), ana.Scope, func(tx store.Tx) error { // as after the first transaction
		if err := tx.DeleteProfile(p.ID, p.Generation); err != nil {
			return err
		}
		return tx.InsertProfile(profile.Reserve(ana.Scope, p.ID, p.Origins, h.clock()))
	})
	if err != nil {
		t.Fatal(err)
	}
	again, err := h.CreateProfile(t.Context(), ana, "key-0006", []string{wiki})
	if err != nil || again.ID != p.ID || again.Status != profile.AuthenticationRequired || again.ProviderRef != p.ProviderRef {
		t.Errorf("%+v, %v", again, err)
	}
}

// PSM-10, PROF-03: revocation is committed with everything that hangs on the
// profile, also when the isolated service does not answer; it is then repeated.
func TestRevokeFailsClosed(t *testing.T) {
	h := newHouse(t)
	id := h.ready(ana)
	s, credential := h.session(ana, id)
	asked := h.ask(s)
	before := h.profile(ana.Scope, id)
	h.service.Fail(fault.New(fault.ProviderUnavailable, "gone"))

	_, err := h.RevokeProfile(t.Context(), ana, id)
	want(t, err, fault.ProviderUnavailable)
	p := h.profile(ana.Scope, id)
	if p.Status != profile.Revoked || p.Generation != before.Generation+1 {
		t.Errorf("stored: %s, generation %d after %d", p.Status, p.Generation, before.Generation)
	}
	if got := h.approval(asked).Status; got != approval.Cancelled {
		t.Errorf("the question is %s", got)
	}
	_, err = h.access.Authenticate(t.Context(), credential)
	want(t, err, fault.Unauthenticated)
	_, err = h.Resolve(t.Context(), ana, asked.ID, approval.ApproveOnce, "")
	want(t, err, fault.Conflict)

	h.service.Fail(nil)
	asked2 := h.service.count("revoke")
	if err := h.Upkeep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.Upkeep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := h.service.count("revoke") - asked2; n != 1 {
		t.Errorf("upkeep asked the service %d times, want once", n)
	}
	if _, err := h.RevokeProfile(t.Context(), ana, id); err != nil {
		t.Errorf("repeated: %v", err)
	}
	if got := h.profile(ana.Scope, id).Generation; got != p.Generation {
		t.Errorf("repeating moved the generation to %d", got)
	}
}

// PSM-10: the browsers of an open sign-in go, too, and its outcome is on record.
func TestRevokeEndsAnOpenSignIn(t *testing.T) {
	h := newHouse(t)
	id := h.create(ana)
	c, err := h.BeginCeremony(t.Context(), ana, id, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.RevokeProfile(t.Context(), ana, id); err != nil {
		t.Fatal(err)
	}
	if got, err := h.Ceremony(t.Context(), ana, c.ID); err != nil || got.Status != ceremony.Cancelled {
		t.Errorf("the sign-in is %s, %v", got.Status, err)
	}
	if s, _ := h.service.CeremonyStatus(t.Context(), ana.Scope, c.ID); s != ceremony.Cancelled {
		t.Errorf("at the service it is %s", s)
	}
}

// PSM-11: only a revoked profile is deleted, its material first.
func TestDeleteTakesMaterialFirst(t *testing.T) {
	h := newHouse(t)
	id := h.ready(ana)
	want(t, h.DeleteProfile(t.Context(), ana, id), fault.InvalidTransition)
	if !h.service.Has(id) {
		t.Fatal("the material of a live profile is gone")
	}
	if _, err := h.RevokeProfile(t.Context(), ana, id); err != nil {
		t.Fatal(err)
	}
	h.service.Fail(fault.New(fault.ProviderUnavailable, "gone"))
	want(t, h.DeleteProfile(t.Context(), ana, id), fault.ProviderUnavailable)
	h.profile(ana.Scope, id) // still there
	h.service.Fail(nil)

	h.store.failWrite(1)
	want(t, h.DeleteProfile(t.Context(), ana, id), fault.Internal)
	if h.service.Has(id) {
		t.Error("material outlived the metadata's turn")
	}
	if err := h.DeleteProfile(t.Context(), ana, id); err != nil {
		t.Fatalf("repeated after a failure: %v", err)
	}
	want(t, h.DeleteProfile(t.Context(), ana, id), fault.NotFound)
	if !h.has(ana.Scope, audit.ProfileDeleted) {
		t.Error("not in the audit trail")
	}
}

// A reservation that nobody finished is given up, and its material found.
func TestUpkeepGivesUpAbandonedReservations(t *testing.T) {
	h := newHouse(t)
	id := h.create(ana)
	p := h.profile(ana.Scope, id)
	err := h.store.Store.Tx(t.Context(), ana.Scope, func(tx store.Tx) error {
		if err := tx.DeleteProfile(id, p.Generation); err != nil {
			return err
		}
		return tx.InsertProfile(profile.Reserve(ana.Scope, id, p.Origins, h.clock()))
	})
	if err != nil {
		t.Fatal(err)
	}
	h.Upkeep(t.Context())
	if got := h.profile(ana.Scope, id).Status; got != profile.Provisioning {
		t.Fatalf("given up at once: %s", got)
	}
	h.pass(11 * time.Minute)
	h.Upkeep(t.Context())
	if got := h.profile(ana.Scope, id).Status; got != profile.Revoked {
		t.Fatalf("still %s", got)
	}
	if err := h.DeleteProfile(t.Context(), ana, id); err != nil || h.service.Has(id) {
		t.Errorf("deleted: %v, material left: %v", err, h.service.Has(id))
	}
}

// PSM-11, API-02: what another principal owns looks exactly like what is absent.
func TestForeignLooksAbsent(t *testing.T) {
	h := newHouse(t)
	id := h.ready(ana)
	s, _ := h.session(ana, id)
	asked := h.ask(s)
	c, err := h.BeginCeremony(t.Context(), ana, id, "")
	if err != nil {
		t.Fatal(err)
	}
	before := h.everything(ana.Scope)
	const nobody = "00000000-0000-4000-8000-000000000000"
	for name, try := range map[string]func(by caller.Caller, profileID, ceremonyID, approvalID, sessionID string) error{
		"get": func(by caller.Caller, p, _, _, _ string) error { _, err := h.Profile(t.Context(), by, p); return err },
		"revoke": func(by caller.Caller, p, _, _, _ string) error {
			_, err := h.RevokeProfile(t.Context(), by, p)
			return err
		},
		"delete": func(by caller.Caller, p, _, _, _ string) error { return h.DeleteProfile(t.Context(), by, p) },
		"begin": func(by caller.Caller, p, _, _, _ string) error {
			_, err := h.BeginCeremony(t.Context(), by, p, "https://not.a.site")
			return err
		},
		"status": func(by caller.Caller, _, c, _, _ string) error { _, err := h.Ceremony(t.Context(), by, c); return err },
		"cancel": func(by caller.Caller, _, c, _, _ string) error {
			_, err := h.CancelCeremony(t.Context(), by, c)
			return err
		},
		"approval": func(by caller.Caller, _, _, a, _ string) error { _, err := h.Approval(t.Context(), by, a); return err },
		"resolve": func(by caller.Caller, _, _, a, _ string) error {
			_, err := h.Resolve(t.Context(), by, a, approval.ApproveOnce, "")
			return err
		},
		"end": func(by caller.Caller, _, _, _, s string) error { return h.EndSession(t.Context(), by, s) },
	} {
		foreign := try(ben, id, c.ID, asked.ID, s.ID)
		absent := try(ben, nobody, nobody, nobody, nobody)
		want(t, foreign, fault.NotFound)
		if *fault.Public(foreign) != *fault.Public(absent) {
			t.Errorf("%s tells %q from %q", name, fault.Public(foreign).Public, fault.Public(absent).Public)
		}
	}
	if h.everything(ana.Scope) != before {
		t.Error("something of the other principal changed")
	}
}
