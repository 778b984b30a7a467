// Package ceremony is the life of a remote sign-in and the rule that decides
// whether it succeeded (CER-06, CER-07, READY-01 to READY-04).
package ceremony

import (
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
)

// Life is how long a ceremony may take (CER-01).
const Life = 5 * time.Minute

// Status of a ceremony.
type Status string

const (
	AuthenticationRequired Status = "authentication_required"
	NeedsUser              Status = "needs_user"
	Ready                  Status = "ready"
	Expired                Status = "expired"
	Cancelled              Status = "cancelled"
)

// Terminal reports whether the ceremony has an outcome.
func (s Status) Terminal() bool { return s == Ready || s == Expired || s == Cancelled }

// Known reports whether s is one of the statuses.
func (s Status) Known() bool {
	return s == AuthenticationRequired || s == NeedsUser || s.Terminal()
}

// Ceremony is the orchestrator's record of a sign-in. It has no capability:
// that is shown once and kept nowhere (CER-02).
type Ceremony struct {
	caller.Scope
	ID        string
	ProfileID string
	Status    Status
	ExpiresAt time.Time
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Open reports whether agents must be kept away because of this ceremony.
func (c Ceremony) Open(now time.Time) bool { return !c.Status.Terminal() && now.Before(c.ExpiresAt) }

// To records an outcome or a change between the two waiting states. A terminal
// status never changes; it returns false when nothing changed.
func (c Ceremony) To(next Status, now time.Time) (Ceremony, bool) {
	if c.Status.Terminal() || c.Status == next || !next.Known() {
		return c, false
	}
	c.Status, c.UpdatedAt = next, now
	return c, true
}

// Evidence is what the isolated service can see of a sign-in. No text and no
// cookie value is part of it (READY-02).
type Evidence struct {
	// TextDuringChallenge: the user sent text in this ceremony while a
	// challenge was on screen.
	TextDuringChallenge bool
	ChallengeVisible    bool // a password or one-time-code field, a CAPTCHA, a consent or second-factor request
	OnAllowedOrigin     bool
	StoragePresent      bool // at least one cookie or storage item
	// Origin is where the main frame is, such as https://wiki.example.org, as
	// the browser itself reports it; empty when unknown. It is shown to the
	// owner and decides nothing.
	Origin string
}

// Ready is the evidence rule READY-01. Without evidence a sign-in is never
// called ready, not even on a page that saved state already signs in.
func (e Evidence) Ready() bool {
	return e.TextDuringChallenge && !e.ChallengeVisible && e.OnAllowedOrigin && e.StoragePresent
}

// Waiting is the status of a live ceremony with this evidence.
func (e Evidence) Waiting() Status {
	if e.ChallengeVisible {
		return NeedsUser
	}
	return AuthenticationRequired
}
