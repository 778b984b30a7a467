// Package access decides who is calling: paired devices in the AIP-59
// local-device form, the one-time code that signs a browser in to the console,
// and the credential file of the owner's command line (AIP-59, PSM-11, TOOL-07;
// section 7.1 of the AIP-63 requirements). A credential is shown once; what is
// stored cannot make it again.
package access

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/device"
	"github.com/chaperone-agents/chaperone/internal/store"
)

const (
	seenEvery = time.Minute // how exact LastSeenAt is
	listLimit = 200
	maxName   = 80 // characters
)

// Config of an Access. Every member is needed unless it says otherwise.
type Config struct {
	Store store.Store
	Now   func() time.Time // nil means time.Now
	Log   *slog.Logger
}

// Access knows the paired devices. It is safe for concurrent use.
type Access struct {
	Config
	mu       sync.Mutex
	codes    codes
	consoles map[string]bool // fingerprints of the console sessions of this process
}

// New makes an Access.
func New(c Config) (*Access, error) {
	if c.Store == nil || c.Log == nil {
		return nil, errors.New("access: Store and Log are needed")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Access{Config: c, codes: newCodes(), consoles: map[string]bool{}}, nil
}

// Pair makes a device for the scope of by, which must be an owner; an owner
// without a device is this program itself. An agent is bound to one live
// session, an owner to none. The credential exists only in this answer; the
// device and its audit entry are stored together. Errors: Forbidden,
// MalformedRequest, NotFound for a session that does not live.
func (a *Access) Pair(ctx context.Context, by caller.Caller, name string, role caller.Role, sessionID string) (device.Device, secret.Text, error) {
	if err := by.RequireOwner(); err != nil {
		return device.Device{}, secret.Text{}, err
	}
	if !presentable(name) {
		return device.Device{}, secret.Text{}, fault.New(fault.MalformedRequest, "A device name has 1 to 80 printable characters. Nothing was paired.")
	}
	if role != caller.Owner && role != caller.Agent || (role == caller.Agent) != (sessionID != "") {
		return device.Device{}, secret.Text{}, fault.New(fault.MalformedRequest, "An agent device is bound to one session, and an owner's device to none. Nothing was paired.")
	}
	var random [48]byte
	rand.Read(random[:]) // crypto/rand.Read never fails: it ends the program instead
	d, credential := device.Mint(random, device.Device{Scope: by.Scope, Name: name, Role: role, SessionID: sessionID, CreatedAt: a.Now()})
	clear(random[:])
	err := a.Store.Tx(ctx, by.Scope, func(tx store.Tx) error {
		if sessionID != "" {
			if err := live(tx, sessionID); err != nil {
				return err
			}
		}
		if err := tx.InsertDevice(d); err != nil {
			return err
		}
		return a.note(tx, by, audit.DevicePaired, d.Fingerprint, string(role))
	})
	if err != nil {
		return device.Device{}, secret.Text{}, public(err)
	}
	return d, credential, nil
}

// Authenticate tells who presents the credential. It returns
// fault.Unauthenticated, in the same words whatever the reason, for one that is
// malformed, unknown, wrong or revoked, or bound to a session that ended; any
// of these counts from the next call on.
func (a *Access) Authenticate(ctx context.Context, credential secret.Text) (caller.Caller, error) {
	fingerprint, mac, err := device.Parse(credential)
	if err != nil {
		return caller.Caller{}, err
	}
	d, err := a.Store.Device(ctx, fingerprint)
	if err != nil && !errors.Is(err, store.ErrAbsent) {
		return caller.Caller{}, public(err)
	}
	// An unknown fingerprint leaves the zero Device, which does the same work.
	who, err := d.Verify(mac)
	if err != nil {
		return caller.Caller{}, err
	}
	if a.stale(d) {
		return caller.Caller{}, device.Refused()
	}
	if err := a.bound(ctx, who); err != nil {
		return caller.Caller{}, err
	}
	a.seen(ctx, d)
	return who, nil
}

// bound refuses an agent whose session does not live, and unknown roles.
func (a *Access) bound(ctx context.Context, who caller.Caller) error {
	switch who.Role {
	case caller.Owner:
		return nil
	case caller.Agent:
		err := a.Store.View(ctx, who.Scope, func(tx store.Tx) error { return live(tx, who.Session) })
		if err == nil || !errors.Is(err, store.ErrAbsent) {
			return public(err)
		}
	}
	return device.Refused()
}

// live returns store.ErrAbsent for a session that may not call anything.
func live(tx store.Tx, sessionID string) error {
	s, err := tx.Session(sessionID)
	if err == nil && !s.Live() {
		return store.ErrAbsent
	}
	return err
}

// seen notes the use of a device. It is not worth refusing a call for.
func (a *Access) seen(ctx context.Context, d device.Device) {
	now := a.Now()
	if since := now.Sub(d.LastSeenAt); since >= 0 && since < seenEvery {
		return
	}
	err := a.Store.Tx(ctx, d.Scope, func(tx store.Tx) error { return tx.SeenDevice(d.Fingerprint, now) })
	if err != nil {
		a.Log.Warn("use of a device not noted", "device", d.Fingerprint, "error", err)
	}
}

// Devices lists the newest 200 of the owner's devices that may still
// authenticate.
func (a *Access) Devices(ctx context.Context, by caller.Caller) (list []device.Device, err error) {
	if err := by.RequireOwner(); err != nil {
		return nil, err
	}
	err = a.Store.View(ctx, by.Scope, func(tx store.Tx) error {
		list, err = tx.Devices(true, listLimit)
		return err
	})
	return list, public(err)
}

// Revoke ends a device for good; revoking a revoked one changes nothing.
// Errors: Forbidden, NotFound.
func (a *Access) Revoke(ctx context.Context, by caller.Caller, fingerprint string) error {
	if err := by.RequireOwner(); err != nil {
		return err
	}
	d, err := a.Store.Device(ctx, fingerprint)
	if err == nil && d.Scope != by.Scope {
		err = store.ErrAbsent
	}
	if err != nil || !d.RevokedAt.IsZero() {
		return public(err)
	}
	return public(a.Store.Tx(ctx, by.Scope, func(tx store.Tx) error {
		if err := tx.RevokeDevice(fingerprint, a.Now()); err != nil {
			return err
		}
		return a.note(tx, by, audit.DeviceRevoked, fingerprint, string(d.Role))
	}))
}

func (a *Access) note(tx store.Tx, by caller.Caller, kind audit.Kind, subject, detail string) error {
	_, err := tx.Append(audit.Entry{Scope: by.Scope, At: a.Now(), Kind: kind, Device: by.Device, Subject: subject, Detail: detail})
	return err
}

// system is this program acting for the scope.
func system(scope caller.Scope) caller.Caller { return caller.Caller{Scope: scope, Role: caller.Owner} }

// presentable reports whether a name can be shown without hiding or reordering
// what is around it.
func presentable(name string) bool {
	return utf8.ValidString(name) && strings.TrimSpace(name) != "" && utf8.RuneCountInString(name) <= maxName &&
		!strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// public gives the store's errors their codes.
func public(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrAbsent):
		return fault.Wrap(fault.NotFound, "There is no such record. Nothing was changed.", err)
	case errors.Is(err, store.ErrUnavailable):
		return fault.Wrap(fault.Internal, "The database cannot be read or written. Nothing was changed.", err).Retry()
	}
	return err
}
