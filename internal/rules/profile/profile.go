// Package profile is the life of a browser profile: who owns it, where it may
// be used, and which transitions exist (PROF-01, PSM-02, PSM-03). It holds no
// session material; that is the vault's.
package profile

import (
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
)

// Status of a profile. A deleted profile is simply absent.
type Status string

const (
	Provisioning           Status = "provisioning"
	AuthenticationRequired Status = "authentication_required"
	Ready                  Status = "ready"
	NeedsUser              Status = "needs_user"
	Revoked                Status = "revoked"
)

// Profile is the durable metadata of one profile. ProviderRef is a capability
// of the isolated service and never leaves the orchestrator.
type Profile struct {
	caller.Scope
	ID           string
	ProviderName string // empty until bound
	ProviderRef  string // empty until bound
	Origins      site.Origins
	Status       Status
	Generation   int64 // goes up with every transition and every sign-in (PSM-07, PSM-08)
	KeyVersion   string
	CreatedAt    time.Time
	UpdatedAt    time.Time
	LastUsedAt   time.Time // zero until first used
}

// Reserve makes the provisioning record that precedes any material (PSM-04).
func Reserve(scope caller.Scope, id string, origins site.Origins, now time.Time) Profile {
	return Profile{Scope: scope, ID: id, Origins: origins, Status: Provisioning, CreatedAt: now, UpdatedAt: now}
}

// Bind attaches the isolated service's reference to a reservation (PSM-04).
func (p Profile) Bind(providerName, providerRef, keyVersion string, now time.Time) (Profile, error) {
	if p.Status != Provisioning || providerName == "" || providerRef == "" || keyVersion == "" {
		return p, refuse(p.Status, AuthenticationRequired)
	}
	p.ProviderName, p.ProviderRef, p.KeyVersion = providerName, providerRef, keyVersion
	return p.advance(AuthenticationRequired, now), nil
}

// To moves the profile to another status. Every move advances the generation,
// so that leases and approvals of the earlier one cannot stay valid (PSM-07).
// Revoking a revoked profile changes nothing (PSM-11).
func (p Profile) To(next Status, now time.Time) (Profile, error) {
	if p.Status == Revoked && next == Revoked {
		return p, nil
	}
	for _, s := range transitions[p.Status] {
		if s == next {
			return p.advance(next, now), nil
		}
	}
	return p, refuse(p.Status, next)
}

// SignIn advances the generation without a transition: a ceremony began, or a
// ready outcome was recorded for a profile that is ready already (PSM-08).
func (p Profile) SignIn(now time.Time) Profile { return p.advance(p.Status, now) }

// Used notes a use; the generation stays.
func (p Profile) Used(now time.Time) Profile { p.LastUsedAt = now; return p }

func (p Profile) advance(s Status, now time.Time) Profile {
	p.Status, p.Generation, p.UpdatedAt = s, p.Generation+1, now
	return p
}

var transitions = map[Status][]Status{
	Provisioning:           {Revoked},
	AuthenticationRequired: {Ready, NeedsUser, Revoked},
	Ready:                  {AuthenticationRequired, NeedsUser, Revoked},
	NeedsUser:              {AuthenticationRequired, Ready, Revoked},
}

func refuse(from, to Status) error {
	return fault.Newf(fault.InvalidTransition, "A profile that is %s cannot become %s. Nothing was changed.", from, to)
}
