// Package store is the port to the orchestrator's metadata: profiles,
// sign-ins, agent sessions, approvals, invocations, images, devices and the
// audit trail. It holds no session material and no key (META-01). Every statement
// carries tenant and principal; a row of another scope behaves exactly as an
// absent one (META-04, PSM-11).
package store

import (
	"context"
	"errors"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/rules/device"
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
)

var (
	// ErrAbsent: no such record in this scope.
	ErrAbsent = errors.New("store: absent")
	// ErrStale: the record changed since it was read; read it again.
	ErrStale = errors.New("store: stale")
	// ErrExists: the identifier, or a unique property, is taken.
	ErrExists = errors.New("store: exists")
	// ErrUnavailable: the database cannot be read or written (disk full, read
	// only, corrupt). Nothing was stored.
	ErrUnavailable = errors.New("store: unavailable")
)

// Store opens transactions.
type Store interface {
	// Tx runs fn in one serialised read-write transaction for the scope. The
	// transaction is durable (synced) when Tx returns nil, and has no effect
	// when it returns an error.
	Tx(ctx context.Context, scope caller.Scope, fn func(Tx) error) error
	// Note is Tx without the wait for the disk, for what may be lost: every
	// later transaction sees it, the end of the process does not undo it, and
	// the next Tx makes it durable. A machine that stops before that may lose
	// it, whole, with every Note after it and nothing else.
	Note(ctx context.Context, scope caller.Scope, fn func(Tx) error) error
	// View runs fn on a consistent snapshot for the scope; writes fail.
	View(ctx context.Context, scope caller.Scope, fn func(Tx) error) error
	// Device finds a device by fingerprint in any scope, for authentication
	// only. ErrAbsent if there is none.
	Device(ctx context.Context, fingerprint string) (device.Device, error)
	// Scopes lists the scopes that own a profile, session or device, for
	// recovery at start.
	Scopes(ctx context.Context) ([]caller.Scope, error)
	Close() error
}

// Tx is one transaction of one scope; a record passed in that carries another
// scope is ErrAbsent. Lists hold at most limit rows (1 to 200), newest first,
// where newest is the order of insertion. Times are kept to the microsecond, in
// UTC. ErrAbsent of the record itself, ErrStale, and ErrExists of an insert leave
// the transaction usable; after any other failure Tx fails whatever fn returns.
type Tx interface {
	InsertProfile(profile.Profile) error // ErrExists also when another live profile has the same ProviderRef
	Profile(id string) (profile.Profile, error)
	Profiles(limit int) ([]profile.Profile, error)
	// UpdateProfile replaces the record if its generation is still expected, and
	// the new one is no lower; ErrStale otherwise. ErrExists when another live
	// profile has the same ProviderRef.
	UpdateProfile(p profile.Profile, expected int64) error
	// DeleteProfile removes the record and its ceremonies if its generation is
	// still expected.
	DeleteProfile(id string, expected int64) error

	InsertCeremony(ceremony.Ceremony) error
	Ceremony(id string) (ceremony.Ceremony, error)
	// LatestCeremony is the newest of the profile; ErrAbsent if there was none.
	LatestCeremony(profileID string) (ceremony.Ceremony, error)
	// UpdateCeremony replaces status and times if the status is still expected.
	UpdateCeremony(c ceremony.Ceremony, expected ceremony.Status) error

	InsertSession(run.Session) error
	Session(id string) (run.Session, error)
	// Sessions lists live sessions only when live is true, of one profile only
	// when profileID is not empty.
	Sessions(profileID string, live bool, limit int) ([]run.Session, error)
	EndSession(id string, at time.Time) error // ending an ended session changes nothing

	InsertApproval(approval.Approval) error
	Approval(id string) (approval.Approval, error)
	// OpenApproval is the pending or approved one of the session with the
	// digest; ErrAbsent if there is none. At most one exists.
	OpenApproval(sessionID, digest string) (approval.Approval, error)
	// LastApproval is the newest of the session with the digest, in any status.
	LastApproval(sessionID, digest string) (approval.Approval, error)
	// Approvals lists those with one of the statuses, or all when none is
	// named; sessionID narrows when not empty.
	Approvals(sessionID string, limit int, statuses ...approval.Status) ([]approval.Approval, error)
	// UpdateApproval stores status, reason, decision and times if the status is
	// still expected. What the approval is bound to never changes.
	UpdateApproval(a approval.Approval, expected approval.Status) error

	// InsertInvocation: ErrExists also when the approval authorized another
	// invocation already (GATE-07).
	InsertInvocation(run.Invocation) error
	// FinishInvocation stores outcome, code and time of a running invocation;
	// ErrStale if it is finished already.
	FinishInvocation(run.Invocation) error
	RunningInvocations(limit int) ([]run.Invocation, error)
	Invocations(sessionID string, limit int) ([]run.Invocation, error)

	InsertImage(artifact.Image) error
	Image(id string) (artifact.Image, error)
	// Images lists those of one session, or all when sessionID is empty.
	Images(sessionID string, limit int) ([]artifact.Image, error)
	DeleteImage(id string) error
	ImageUse() (artifact.Use, error) // by the scope, expired ones included

	InsertDevice(device.Device) error
	// Devices lists those that can still authenticate only when live is true:
	// not revoked, and not bound to a session that ended.
	Devices(live bool, limit int) ([]device.Device, error)
	RevokeDevice(fingerprint string, at time.Time) error // revoking a revoked device changes nothing
	SeenDevice(fingerprint string, at time.Time) error

	// Append writes an audit entry and returns it with its number.
	Append(audit.Entry) (audit.Entry, error)
	// Audit lists entries with a number above after, oldest first.
	Audit(after int64, limit int) ([]audit.Entry, error)
	// AuditTail lists the newest entries, oldest of them first.
	AuditTail(limit int) ([]audit.Entry, error)
}
