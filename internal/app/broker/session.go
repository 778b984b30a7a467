package broker

import (
	"context"
	"sync"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// session is what the broker remembers of an agent session while it runs: the
// lease, and the newest observation. Losing it costs a fresh observation.
type session struct {
	caller caller.Caller
	turn   chan struct{} // holds one token: the right to dispatch

	lease   browser.Lease // zero when there is none; guarded by turn
	attempt int           // of the next lease; guarded by turn

	mu   sync.Mutex
	last observe.Raw // zero Revision when nothing may be acted on
}

func (b *Broker) session(c caller.Caller) *session {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.sessions[c.Session]
	if s == nil || s.caller.Scope != c.Scope {
		s = &session{caller: c, turn: make(chan struct{}, 1), attempt: 1}
		s.turn <- struct{}{}
		b.sessions[c.Session] = s
	}
	return s
}

func (s *session) lock(ctx context.Context) error {
	select {
	case <-s.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *session) unlock() { s.turn <- struct{}{} }

// fresh refuses an act on anything but the newest observation (CAP-06).
func (s *session) fresh(r action.Request) error {
	if r.Tool != action.Act {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last.Document().Revision != r.Action.ExpectedRevision {
		return fault.New(fault.PageChanged, "That revision is not the newest observation. Nothing was sent; observe and use the newest references.")
	}
	if _, _, ok := s.last.Find(r.Action.Ref); !ok {
		return fault.New(fault.ElementNotFound, "The newest observation has no element with that reference. Nothing was sent.")
	}
	return nil
}

// describe is what the owner is shown of an act. What cannot be described is
// not asked about.
func (s *session) describe(r action.Request) (approval.View, string, error) {
	if err := s.fresh(r); err != nil {
		return approval.View{}, "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, facts, _ := s.last.Find(r.Action.Ref)
	if r.Action.Kind == action.Type && facts.FieldKind.Credential() {
		return approval.View{}, "", fault.New(fault.ActionNotAllowed, "Agents may not type into password or one-time-code fields. Nothing was sent; the owner signs in.")
	}
	view, summary := approval.Describe(r.Action, s.last)
	return view, summary, nil
}

// saw validates and keeps a new observation.
func (s *session) saw(d observe.Document, origins site.Origins) error {
	raw, err := observe.Accept(d, origins)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = raw // the zero Raw when refused: nothing may be acted on
	return err
}

// done notes that the service carried out an operation of the lease.
func (s *session) done(r action.Request) {
	if r.Tool == action.Act {
		s.lease.Sequence++
	}
}

// keeps reports whether page and lease outlive a failure with the code
// (section 2.2 of the requirements); after any other the lease is retired.
func keeps(code fault.Code) bool {
	switch code {
	case fault.PageChanged, fault.ElementNotFound, fault.ActionNotAllowed, fault.RegionNotActionable, fault.FocusRequired, fault.URLDisallowed,
		fault.SiteUnreachable, fault.NavigationCancelled, fault.OutputInvalid, fault.NeedsUser, fault.AuthenticationRequired:
		return true
	}
	return false
}

func (s *session) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = observe.Raw{}
}

// hold returns the proof of the session's lease, attaching or acquiring one
// when needed (LEASE-04, LEASE-06). A lease that outlasts the call is reused.
func (b *Broker) hold(ctx context.Context, s *session, bound binding) (lease.Held, error) {
	now := b.Now()
	if s.lease.Sequence == 0 || !now.Add(toolTime).Before(s.lease.ExpiresAt) {
		if s.lease.Ref != "" && !now.Add(toolTime).Before(s.lease.ExpiresAt) {
			if err := b.release(ctx, s); err != nil {
				return lease.Held{}, err
			}
			s.forget()
		}
		acquired, err := b.acquire(ctx, s, bound)
		if err != nil {
			return lease.Held{}, err
		}
		if acquired.Ref != s.lease.Ref {
			s.forget()
		}
		s.lease = acquired
	}
	return lease.Hold(s.lease.Ref, s.lease.Sequence, s.lease.ExpiresAt, now)
}

func (b *Broker) acquire(ctx context.Context, s *session, bound binding) (browser.Lease, error) {
	key := lease.Key{
		Scope: s.caller.Scope, ProfileID: bound.session.ProfileID, ProviderRef: bound.profile.ProviderRef,
		RunID: bound.session.ID, Attempt: s.attempt, Origins: bound.session.Origins,
	}
	headed := bound.session.Headed
	if !key.Ephemeral() {
		headed = !b.Headless
	}
	return b.Service.Acquire(ctx, key, headed, b.Now().Add(lease.MaxStep))
}

// release closes the session's lease, which seals a healthy profile.
func (b *Broker) release(ctx context.Context, s *session) error {
	ref := s.lease.Ref
	s.lease = browser.Lease{}
	s.attempt++
	if ref == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), toolTime)
	defer cancel()
	return b.Service.CloseLease(ctx, ref)
}

// renewBefore is how close to expiry a lease is renewed (RENEW-02).
const renewBefore = 5 * time.Minute
