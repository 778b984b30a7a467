// Package lease says what holding a browser means: the identity a lease is
// bound to, its caps, and the proof of holding it that every dispatch needs
// (LEASE-01 to LEASE-07, RENEW-01).
package lease

import (
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
)

const (
	MaxStep = 15 * time.Minute // longest deadline of one acquire or renew
	MaxLife = 60 * time.Minute // longest life with all renewals
	MaxRef  = 128              // bytes of a lease reference
)

// Key is the identity of a lease: the same key re-attaches, any other waits or
// is refused (LEASE-04, LEASE-05).
type Key struct {
	caller.Scope
	ProfileID   string // empty for an ephemeral browser
	ProviderRef string // empty for an ephemeral browser
	RunID       string
	Attempt     int // from 1
	Origins     site.Origins
	// Specified: the run began with a contract before 1.9.0, so its pages are
	// observed as those say (TOOL-10).
	Specified bool
}

// Ephemeral reports whether the lease has no profile behind it (EPH-01).
func (k Key) Ephemeral() bool { return k.ProfileID == "" }

// Deadline is the expiry of a lease created at created when wanted was asked
// for at now: capped by step and by life.
func Deadline(created, now, wanted time.Time) time.Time {
	d := wanted
	if limit := now.Add(MaxStep); d.After(limit) {
		d = limit
	}
	if limit := created.Add(MaxLife); d.After(limit) {
		d = limit
	}
	return d
}

// Held proves that the caller holds a live lease for its next operation. The
// zero Held proves nothing and is refused by every dispatch.
type Held struct {
	ref      string
	sequence int64
	expires  time.Time
}

// Hold makes the proof for operation number sequence (from 1). It returns
// fault.ProfileUnavailable if the lease is over.
func Hold(ref string, sequence int64, expires, now time.Time) (Held, error) {
	if ref == "" || len(ref) > MaxRef || sequence < 1 || !now.Before(expires) {
		return Held{}, fault.New(fault.ProfileUnavailable, "The browser session has ended. Nothing was sent; call again to start a new one.")
	}
	return Held{ref: ref, sequence: sequence, expires: expires}, nil
}

// Valid reports whether this is a proof at all.
func (h Held) Valid() bool { return h.ref != "" }

// Ref is the lease reference; it goes to the isolated service only.
func (h Held) Ref() string { return h.ref }

// Sequence is the number of the operation that this proof is for.
func (h Held) Sequence() int64 { return h.sequence }

// Expires is when the lease ends unless renewed.
func (h Held) Expires() time.Time { return h.expires }
