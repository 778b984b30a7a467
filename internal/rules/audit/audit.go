// Package audit is the closed list of what is written down about who did what.
// An entry names identifiers, codes and digests, never page content, typed
// text or secrets (VOUT-08, OPD-03).
package audit

import (
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
)

// Kind of an entry.
type Kind string

const (
	ProfileCreated     Kind = "browser.profile.created"
	ProfileChanged     Kind = "browser.profile.changed" // detail: the new status
	ProfileRevoked     Kind = "browser.profile.revoked"
	ProfileDeleted     Kind = "browser.profile.deleted"
	CeremonyBegun      Kind = "browser.authentication.begun"
	CeremonyEnded      Kind = "browser.authentication.ended" // detail: the outcome
	SessionStarted     Kind = "session.started"
	SessionEnded       Kind = "session.ended"
	ApprovalRequested  Kind = "approval.requested"
	ApprovalResolved   Kind = "approval.resolved" // detail: approved, denied, expired
	ImageAttached      Kind = "image.attached"    // to a session; the subject is the image
	ImageRemoved       Kind = "image.removed"     // by the owner, its time, or the end of its session
	CallAuthorized     Kind = "tool.call.authorized"
	CallDenied         Kind = "tool.call.denied"
	CallCompleted      Kind = "tool.call.completed"
	CallFailed         Kind = "tool.call.failed"
	CallUncertain      Kind = "tool.call.uncertain"
	DevicePaired       Kind = "device.paired"
	DeviceRevoked      Kind = "device.revoked"
	LoginRefused       Kind = "console.login.refused"
	StoppedEverything  Kind = "owner.stopped"
	RecoveredUncertain Kind = "tool.call.recovered_uncertain"
)

// Entry is one line of the audit trail. Number grows by one per entry of a
// scope and is set by the store.
type Entry struct {
	caller.Scope
	Number  int64
	At      time.Time
	Kind    Kind
	Device  string // fingerprint of who asked; empty for the system itself
	Subject string // id of what it is about: profile, approval, session, device
	Tool    string // tool name, where there is one
	Digest  string // digest of the arguments, where there are any
	Code    string // fault code, where there is one
	Detail  string // one word or number of our own
}
