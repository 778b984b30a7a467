package profile

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
)

var (
	now   = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	later = now.Add(time.Minute)
	all   = []Status{Provisioning, AuthenticationRequired, Ready, NeedsUser, Revoked}
)

// PSM-03, section 2.1: the transitions that exist; there is no other.
func TestTransitions(t *testing.T) {
	allowed := map[Status][]Status{
		Provisioning:           {Revoked},
		AuthenticationRequired: {Ready, NeedsUser, Revoked},
		Ready:                  {AuthenticationRequired, NeedsUser, Revoked},
		NeedsUser:              {AuthenticationRequired, Ready, Revoked},
	}
	for _, from := range append(slices.Clone(all), "", "deleted") {
		for _, to := range append(slices.Clone(all), "", "deleted") {
			p := Profile{Status: from, Generation: 7, UpdatedAt: now}
			got, err := p.To(to, later)
			switch {
			case from == Revoked && to == Revoked: // PSM-11
				if err != nil || got.Generation != 7 || !got.UpdatedAt.Equal(now) {
					t.Errorf("revoking again: %+v, %v", got, err)
				}
			case slices.Contains(allowed[from], to):
				if err != nil || got.Status != to || got.Generation != 8 || !got.UpdatedAt.Equal(later) { // PSM-07
					t.Errorf("%s to %s: %+v, %v", from, to, got, err)
				}
			default:
				if !fault.Is(err, fault.InvalidTransition) || got.Status != from || got.Generation != 7 {
					t.Errorf("%s to %s: %+v, %v", from, to, got, err)
				}
			}
		}
	}
}

// PSM-04, META-02: only a reservation can be bound, and only to all of it.
func TestReserveAndBind(t *testing.T) {
	scope := caller.Scope{Tenant: "acme", Principal: "alice"}
	p := Reserve(scope, "id", nil, now)
	if p.Status != Provisioning || p.Generation != 0 || p.ProviderRef != "" || p.Scope != scope || !p.CreatedAt.Equal(now) || !p.LastUsedAt.IsZero() {
		t.Errorf("%+v", p)
	}
	bound, err := p.Bind("hosted", "ref", "k1", later)
	if err != nil || bound.Status != AuthenticationRequired || bound.Generation != 1 || bound.ProviderRef != "ref" || bound.ProviderName != "hosted" || bound.KeyVersion != "k1" {
		t.Errorf("%+v, %v", bound, err)
	}
	for _, x := range [][3]string{{"", "ref", "k1"}, {"hosted", "", "k1"}, {"hosted", "ref", ""}} {
		if got, err := p.Bind(x[0], x[1], x[2], later); !fault.Is(err, fault.InvalidTransition) || got.Status != Provisioning || got.ProviderRef != "" {
			t.Errorf("bound to %q: %+v, %v", x, got, err)
		}
	}
	for _, s := range all[1:] {
		q := bound
		q.Status = s
		if got, err := q.Bind("other", "other", "k2", later); err == nil || got.ProviderRef != "ref" {
			t.Errorf("bound again while %s: %+v", s, got)
		}
	}
}

// PSM-08: a sign-in advances the generation, a use does not.
func TestSignInAndUsed(t *testing.T) {
	p := Profile{Status: Ready, Generation: 4, UpdatedAt: now}
	if got := p.SignIn(later); got.Status != Ready || got.Generation != 5 || !got.UpdatedAt.Equal(later) {
		t.Errorf("%+v", got)
	}
	if got := p.Used(later); got.Generation != 4 || !got.LastUsedAt.Equal(later) || !got.UpdatedAt.Equal(now) {
		t.Errorf("%+v", got)
	}
}

// PSM-07: along any path the generation never repeats for another state, and
// nothing leaves revoked.
func TestGenerationProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := Reserve(caller.Scope{}, "id", nil, now).Bind("n", "r", "k", now)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			before := p
			if rapid.Bool().Draw(t, "sign in") && p.Status != Revoked {
				p = p.SignIn(now)
			} else {
				p, _ = p.To(rapid.SampledFrom(all).Draw(t, "to"), now)
			}
			if p.Generation < before.Generation || p.Status != before.Status && p.Generation == before.Generation {
				t.Fatalf("%+v becomes %+v", before, p)
			}
			if before.Status == Revoked && p.Status != Revoked || p.Status == Provisioning {
				t.Fatalf("%s becomes %s", before.Status, p.Status)
			}
		}
	})
}
