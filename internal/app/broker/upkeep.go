package broker

import (
	"context"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// Upkeep renews the leases of live sessions shortly before they expire and
// closes those of sessions that ended (RENEW-02, PLACE-02). It is called about
// once a minute and whenever a session may have ended.
func (b *Broker) Upkeep(ctx context.Context) {
	b.pictures.drop(func(scope caller.Scope, id string) bool { return b.closed(ctx, scope, id) })
	b.mu.Lock()
	all := make([]*session, 0, len(b.sessions))
	for _, s := range b.sessions {
		all = append(all, s)
	}
	b.mu.Unlock()
	for _, s := range all {
		select {
		case <-s.turn: // a session in the middle of a call is looked at next time
			b.tend(ctx, s)
			s.unlock()
		default:
		}
	}
}

func (b *Broker) tend(ctx context.Context, s *session) {
	bound, err := b.binding(ctx, s.caller)
	switch code := fault.CodeOf(err); {
	case code == fault.ProviderUnavailable: // the store cannot be read: keep things as they are
	case err != nil:
		if err := b.release(ctx, s); err != nil {
			b.Log.Warn("lease not closed", "session", s.caller.Session, "code", fault.CodeOf(err))
		}
		s.forget()
		if !bound.session.Live() {
			b.mu.Lock()
			delete(b.sessions, s.caller.Session)
			b.mu.Unlock()
		}
	case s.lease.Ref != "" && s.lease.ExpiresAt.Sub(b.Now()) < renewBefore:
		renewed, err := b.Service.Renew(ctx, s.lease.Ref, b.Now().Add(lease.MaxStep))
		if err != nil {
			b.Log.Warn("lease not renewed", "session", s.caller.Session, "code", fault.CodeOf(err))
			return
		}
		s.lease.ExpiresAt = renewed.ExpiresAt
	}
}

// closeGrace is how long a call in flight may go on when its browser is to be
// closed.
const closeGrace = time.Second

// CloseSession closes the browser that an agent session holds, if any; a
// healthy profile is sealed. A call in flight may end by itself for a moment,
// then it is cancelled. The session itself stays as the store has it.
func (b *Broker) CloseSession(ctx context.Context, scope caller.Scope, sessionID string) error {
	b.mu.Lock()
	s := b.sessions[sessionID]
	b.mu.Unlock()
	if s == nil || s.caller.Scope != scope {
		return nil
	}
	grace, cancel := context.WithTimeout(ctx, closeGrace)
	defer cancel()
	if s.lock(grace) != nil {
		s.interrupt()
		if err := s.lock(ctx); err != nil {
			return fault.Wrap(fault.ProviderUnavailable, "The agent's browser is still busy and was not closed.", err).Retry()
		}
	}
	defer s.unlock()
	s.forget()
	return b.release(ctx, s)
}

// Recover gives every invocation that an earlier process left running its
// outcome: uncertain when an effect may have been sent (REL-01). It runs once,
// before the first call.
func (b *Broker) Recover(ctx context.Context) (uncertain int, err error) {
	scopes, err := b.Store.Scopes(ctx)
	if err != nil {
		return 0, err
	}
	for _, scope := range scopes {
		for more := true; more; {
			err := b.Store.Tx(ctx, scope, func(tx store.Tx) error {
				left, err := tx.RunningInvocations(200)
				if err != nil {
					return err
				}
				more = len(left) == 200
				for _, i := range left {
					i = i.Abandoned(b.Now())
					if err := tx.FinishInvocation(i); err != nil {
						return err
					}
					if i.EffectSentAt.IsZero() {
						continue
					}
					uncertain++
					system := caller.Caller{Scope: scope, Session: i.SessionID}
					if _, err := tx.Append(entry(system, audit.RecoveredUncertain, i, "", i.FinishedAt)); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return uncertain, err
			}
		}
	}
	return uncertain, nil
}

// Shutdown closes every lease, sealing the healthy ones, within the context.
func (b *Broker) Shutdown(ctx context.Context) {
	b.mu.Lock()
	all := make([]*session, 0, len(b.sessions))
	for _, s := range b.sessions {
		all = append(all, s)
	}
	b.mu.Unlock()
	for _, s := range all {
		if s.lock(ctx) != nil {
			return
		}
		if err := b.release(ctx, s); err != nil {
			b.Log.Warn("lease not closed", "session", s.caller.Session, "code", fault.CodeOf(err))
		}
		s.unlock()
	}
}
