package broker

import (
	"context"
	"errors"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// heed tells the owner when the call that ended, with cause or without, met a
// page that asks for its owner.
func (b *Broker) heed(ctx context.Context, c caller.Caller, s *session, cause error) {
	if !s.needsOwner(cause) {
		return
	}
	if err := b.askOwner(ctx, c); err != nil {
		b.Log.Error("profile not marked as needing its owner", "session", c.Session, "cause", err)
	}
}

func (s *session) needsOwner(cause error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, ok := errors.AsType[*lostError](cause); ok && l.owner {
		return true
	}
	return fault.Is(cause, fault.NeedsUser) || s.last.Document().Interruption == observe.NeedsUser
}

// askOwner shows the owner that the website asks for a sign-in: the profile is
// no longer ready, and its new generation ends every approval and grant that
// was given before (PSM-07, REC-02). The lease stays.
func (b *Broker) askOwner(ctx context.Context, c caller.Caller) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	now := b.Now()
	err := b.Store.Tx(ctx, c.Scope, func(tx store.Tx) error {
		bound, err := tx.Session(c.Session)
		if err != nil || bound.ProfileID == "" {
			return err
		}
		p, err := tx.Profile(bound.ProfileID)
		if err != nil || p.Status != profile.Ready {
			return err
		}
		next, err := p.To(profile.NeedsUser, now)
		if err != nil {
			return err
		}
		if err := tx.UpdateProfile(next, p.Generation); err != nil {
			return err
		}
		_, err = tx.Append(audit.Entry{
			Scope: c.Scope, At: now, Kind: audit.ProfileChanged, Device: c.Device, Subject: p.ID, Detail: string(next.Status),
		})
		return err
	})
	b.Hub.Changed(c.Scope)
	return err
}
