// Package owner is everything the owner can ask for: profiles and their
// sign-ins, answers to approvals, agent sessions, and the urgent stop
// (PROF-01, PROF-03, PSM-04 to PSM-12, CER-01 to CER-06, LURL-01, LURL-03,
// READY-04, BIND-01, API-02). A use case changes what is desired in one store
// transaction, with the audit entry inside it, and asks the isolated service
// afterwards; where both are needed, the order is the one that fails closed.
package owner

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/chaperone-agents/chaperone/internal/app/notify"
	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/device"
	"github.com/chaperone-agents/chaperone/internal/store"
)

const (
	lockWait    = 5 * time.Second  // for another change of the same profile (CER-04)
	launchTime  = 30 * time.Second // for a sign-in browser to start (CER-04)
	serviceTime = 30 * time.Second // for any other request to the isolated service
	cleanUpTime = 10 * time.Second // for undoing, after the caller may have gone
	listLimit   = 200
)

// Devices pairs and revokes clients; app/access has it.
type Devices interface {
	Pair(ctx context.Context, by caller.Caller, name string, role caller.Role, sessionID string) (device.Device, secret.Text, error)
	Devices(ctx context.Context, by caller.Caller) ([]device.Device, error)
	Revoke(ctx context.Context, by caller.Caller, fingerprint string) error
}

// Leases closes the browser that an agent session holds, if any; the broker
// has it. Calls in flight end first or fail.
type Leases interface {
	CloseSession(ctx context.Context, scope caller.Scope, sessionID string) error
}

// Config of an Owner. Every member is needed unless it says otherwise.
type Config struct {
	Store   store.Store
	Service browser.Service
	Devices Devices
	Leases  Leases
	Hub     *notify.Hub
	Now     func() time.Time // nil means time.Now
	Log     *slog.Logger
}

// Owner carries out the owner's requests. It is safe for concurrent use.
type Owner struct {
	Config
	locks   locks
	revoked confirmed
}

// New checks the configuration.
func New(c Config) (*Owner, error) {
	if c.Store == nil || c.Service == nil || c.Devices == nil || c.Leases == nil || c.Hub == nil || c.Log == nil {
		return nil, errors.New("owner: the configuration is incomplete")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Owner{Config: c}, nil
}

// Ready reports whether the store answers.
func (o *Owner) Ready(ctx context.Context) error {
	_, err := o.Store.Scopes(ctx)
	return public(err)
}

// Audit lists entries above after, oldest first; with after below zero, the
// newest ones. limit is 1 to 200.
func (o *Owner) Audit(ctx context.Context, by caller.Caller, after int64, limit int) (entries []audit.Entry, err error) {
	err = o.view(ctx, by, func(tx store.Tx) error {
		if after < 0 {
			entries, err = tx.AuditTail(limit)
		} else {
			entries, err = tx.Audit(after, limit)
		}
		return err
	})
	return entries, err
}

// tx runs fn in one transaction for an owner, and wakes who waits when it is
// durable.
func (o *Owner) tx(ctx context.Context, by caller.Caller, fn func(store.Tx) error) error {
	if err := by.RequireOwner(); err != nil {
		return err
	}
	err := o.Store.Tx(ctx, by.Scope, fn)
	if err == nil {
		o.Hub.Changed(by.Scope)
	}
	return public(err)
}

func (o *Owner) view(ctx context.Context, by caller.Caller, fn func(store.Tx) error) error {
	if err := by.RequireOwner(); err != nil {
		return err
	}
	return public(o.Store.View(ctx, by.Scope, fn))
}

// public gives the store's errors their codes.
func public(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrAbsent):
		return fault.Wrap(fault.NotFound, "There is no such record. Nothing was changed.", err)
	case errors.Is(err, store.ErrStale), errors.Is(err, store.ErrExists):
		return fault.Wrap(fault.Conflict, "The record changed at the same moment. Nothing was changed; look again and repeat.", err).Retry()
	case errors.Is(err, store.ErrUnavailable):
		return fault.Wrap(fault.Internal, "The database cannot be read or written. Nothing was changed.", err).Retry()
	}
	return err
}

// note appends an audit entry about subject.
func (o *Owner) note(tx store.Tx, by caller.Caller, kind audit.Kind, subject, detail string) error {
	_, err := tx.Append(audit.Entry{Scope: by.Scope, At: o.Now(), Kind: kind, Device: by.Device, Subject: subject, Detail: detail})
	return err
}

// detached bounds work that must be finished even if the caller goes away.
func detached(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), d)
}
