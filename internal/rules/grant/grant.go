// Package grant makes the permit without which nothing is dispatched: proof
// that a policy decision or the owner authorized exactly one call (POL-02,
// GATE-05).
package grant

import (
	"slices"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/constraint"
	"github.com/chaperone-agents/chaperone/internal/rules/policy"
)

// Source says what authorized a call.
type Source string

const (
	ByPolicy   Source = "policy"   // a read or a bounded scroll
	ByApproval Source = "approval" // one owner decision
)

// Permit authorizes one call, identified by its digest. The zero Permit
// authorizes nothing and is refused by every dispatch.
type Permit struct {
	source Source
	ref    string
	digest string
	limit  *constraint.Constraint
}

// FromPolicy turns an allowing decision into a permit for the request.
func FromPolicy(d policy.Decision, r action.Request) (Permit, error) {
	if d.Verdict != policy.Allow || r.Digest == "" {
		return Permit{}, fault.New(fault.ActionNotAllowed, "The policy does not allow this call by itself. Nothing was sent.")
	}
	return Permit{source: ByPolicy, ref: policy.Version, digest: r.Digest}, nil
}

// FromApproval spends the approval on the request: it returns the permit and
// the used approval, which must be stored in the transaction that records the
// intent.
func FromApproval(a approval.Approval, session string, generation int64, r action.Request, now time.Time) (Permit, approval.Approval, error) {
	if a.ID == "" || r.Digest == "" {
		return Permit{}, a, fault.New(fault.ActionNotAllowed, "This call cannot be approved. Nothing was sent.")
	}
	used, err := a.Use(session, r.Digest, generation, now)
	if err != nil {
		return Permit{}, a, err
	}
	return Permit{source: ByApproval, ref: a.ID, digest: r.Digest}, used, nil
}

// Under is the permit with a constraint for an act of the request, which can
// only take away from what it authorizes (CONS-01). It returns
// fault.ActionNotAllowed for anything but that act, and fault.ArgumentsInvalid
// for a constraint that is not consistent.
func (p Permit) Under(c constraint.Constraint, r action.Request) (Permit, error) {
	if !p.For(r.Digest) || r.Tool != action.Act || p.limit != nil {
		return Permit{}, fault.New(fault.ActionNotAllowed, "A constraint is for one act that is permitted. Nothing was sent.")
	}
	if err := c.Validate(); err != nil {
		return Permit{}, err
	}
	c.Origins = slices.Clone(c.Origins)
	p.limit = &c
	return p, nil
}

// Constraint limits the act that the permit is for; nil when nothing does. It
// is not to be written to.
func (p Permit) Constraint() *constraint.Constraint { return p.limit }

// For reports whether the permit authorizes the call with the digest.
func (p Permit) For(digest string) bool { return p.source != "" && digest != "" && p.digest == digest }

// Source is what authorized the call.
func (p Permit) Source() Source { return p.source }

// Ref is the id of the approval, or the version of the policy.
func (p Permit) Ref() string { return p.ref }
