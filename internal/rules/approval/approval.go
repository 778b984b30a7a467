// Package approval is the owner's decision about one action: what the owner is
// shown, how long the question stands, and that an answer is good once
// (VIEW-01 to VIEW-04, POL-02, section 2.7 of the requirements).
package approval

import (
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
)

// Life is how long an approval of a high-risk action stays open, and an
// approved one unused.
const Life = 4 * time.Hour

// Status of an approval.
type Status string

const (
	Pending   Status = "pending"
	Approved  Status = "approved" // decided, not used yet
	Used      Status = "used"     // approved, and spent on its one action
	Denied    Status = "denied"
	Expired   Status = "expired"
	Cancelled Status = "cancelled" // its session or profile ended first
)

// Decision is the owner's answer.
type Decision string

const (
	ApproveOnce Decision = "approve_once"
	Deny        Decision = "deny"
)

// Approval is one question to the owner. Digest binds it to the tool, the
// arguments, the revision and the element; SessionID to one agent session;
// Generation to one sign-in of the profile.
type Approval struct {
	caller.Scope
	ID         string
	SessionID  string
	ProfileID  string // empty for an ephemeral browser
	Generation int64
	Tool       action.Tool
	Digest     string
	Status     Status
	Summary    string // our own words only (VIEW-01)
	View       View
	Reason     string // the owner's, with a denial; at most 500 characters
	DecidedBy  string // fingerprint of the owner's device
	CreatedAt  time.Time
	ExpiresAt  time.Time
	DecidedAt  time.Time
}

// At is the approval as it stands at now: a question or an unused answer past
// its expiry has expired.
func (a Approval) At(now time.Time) Approval {
	if (a.Status == Pending || a.Status == Approved) && !now.Before(a.ExpiresAt) {
		a.Status = Expired
	}
	return a
}

// Decide records the owner's answer to a pending question. A question that
// already has an answer, or none in time, yields fault.Conflict.
func (a Approval) Decide(d Decision, reason, device string, now time.Time) (Approval, error) {
	a = a.At(now)
	switch {
	case a.Status != Pending:
		return a, fault.Newf(fault.Conflict, "This approval is %s already. Nothing was changed.", a.Status)
	case len([]rune(reason)) > 500:
		return a, fault.New(fault.MalformedRequest, "A reason has at most 500 characters.")
	case d == ApproveOnce:
		a.Status = Approved
	case d == Deny:
		a.Status, a.Reason = Denied, reason
	default:
		return a, fault.New(fault.MalformedRequest, "A decision is approve_once or deny.")
	}
	a.DecidedBy, a.DecidedAt = device, now
	return a, nil
}

// Use spends an approved question on the call with the digest, once. It
// returns fault.ApprovalPending, ApprovalDenied or ApprovalExpired otherwise.
func (a Approval) Use(session, digest string, generation int64, now time.Time) (Approval, error) {
	a = a.At(now)
	if a.SessionID != session || a.Digest != digest || a.Generation != generation {
		return a, fault.New(fault.ApprovalExpired, "The approval was for another call, session or sign-in. Nothing was sent; observe and ask again.")
	}
	switch a.Status {
	case Approved:
		a.Status = Used
		return a, nil
	case Pending:
		return a, fault.New(fault.ApprovalPending, "The owner has not decided yet. Nothing was sent.").Retry()
	case Denied:
		return a, fault.New(fault.ApprovalDenied, "The owner denied this action. Nothing was sent; do not ask again for the same thing.")
	default:
		return a, fault.New(fault.ApprovalExpired, "The approval is no longer valid. Nothing was sent; observe and ask again.")
	}
}

// Cancel withdraws a question that has not been used.
func (a Approval) Cancel() Approval {
	if a.Status == Pending || a.Status == Approved {
		a.Status = Cancelled
	}
	return a
}
