package browserd

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
)

// closeWait is how long a close waits for an operation under way.
const closeWait = 5 * time.Second

// held is one lease. The reference is made from a random nonce, fresh for each
// lease, and is not kept: the same key can be told it again, and a copy of an
// earlier lease's reference opens nothing.
type held struct {
	rt      *runtime
	key     lease.Key
	nonce   string
	created time.Time

	// Guarded by Service.mu.
	expires  time.Time
	sequence int64 // number of the next act
	closing  bool  // no longer to be found; the slot is taken until rt.gone
}

// Acquire implements browser.Service.
func (s *Service) Acquire(ctx context.Context, key lease.Key, headed bool, deadline time.Time) (browser.Lease, error) {
	if err := validKey(key); err != nil {
		return browser.Lease{}, err
	}
	if !s.now().Before(deadline) {
		return browser.Lease{}, fault.New(fault.ProfileUnavailable, "The deadline of the session has passed. Nothing was started.")
	}
	o := ownerOf(key)
	if !key.Ephemeral() {
		if _, err := s.tuple(o, key.ProviderRef, key.Origins); err != nil {
			return browser.Lease{}, err
		}
	}
	for {
		l, mine, wait, err := s.claimLease(key, o, deadline)
		switch {
		case err != nil:
			return browser.Lease{}, err
		case mine:
			return s.startLease(ctx, l, headed)
		case wait != nil: // an ended lease is still being sealed or closed
			select {
			case <-wait:
				continue
			case <-ctx.Done():
				return browser.Lease{}, fault.Wrap(fault.ProfileUnavailable, "The profile's last session is still being closed. Nothing was started.", ctx.Err()).Retry()
			}
		default:
			return s.attach(ctx, l)
		}
	}
}

// claimLease finds the live lease of the key, or makes one that the caller
// must start (mine), or says what to wait for first.
func (s *Service) claimLease(key lease.Key, o owner, deadline time.Time) (l *held, mine bool, wait <-chan struct{}, err error) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	print := fingerprint(key)
	if l = s.keys[print]; l != nil && now.Before(l.expires) && !l.closing {
		return l, false, nil, nil
	}
	for _, other := range s.keys {
		ended := other.closing || !now.Before(other.expires)
		if ended && (other == l || (other.rt.owner == o && o != (owner{}))) {
			if !other.closing {
				other.closing = true
				go s.end(other.rt)
			}
			return nil, false, other.rt.gone, nil
		}
	}
	rt, err := s.occupy(o, false)
	if err != nil {
		return nil, false, nil, err
	}
	l = &held{rt: rt, key: key, nonce: ident.Token(32), created: now, expires: lease.Deadline(now, now, deadline), sequence: 1}
	at := s.digest("lease", s.reference(l))
	s.keys[print], s.leases[at] = l, l
	rt.forget = func() {
		delete(s.keys, print)
		delete(s.leases, at)
	}
	return l, true, nil, nil
}

func (s *Service) startLease(ctx context.Context, l *held, headed bool) (browser.Lease, error) {
	spec := browser.Spec{Tenant: l.key.Tenant, Origins: l.key.Origins, Headed: headed, Challenges: !l.key.Ephemeral(), Specified: l.key.Specified}
	if err := s.start(ctx, l.rt, spec, l.key.ProviderRef); err != nil {
		return browser.Lease{}, err
	}
	s.spawn(func() { // a browser that ends by itself frees its slot at once
		select {
		case <-l.rt.page.Done():
			s.retire(l)
		case <-l.rt.gone:
		}
	})
	return s.answer(l), nil
}

// attach waits for a lease that another call is starting.
func (s *Service) attach(ctx context.Context, l *held) (browser.Lease, error) {
	select {
	case <-l.rt.started:
	case <-ctx.Done():
		return browser.Lease{}, fault.Wrap(fault.ProviderUnavailable, "The browser is still starting. Try again.", ctx.Err()).Retry()
	}
	if l.rt.err != nil {
		return browser.Lease{}, startFailed(l.rt.err)
	}
	return s.answer(l), nil
}

// Renew implements browser.Service. A renewal never shortens a lease.
func (s *Service) Renew(_ context.Context, ref string, deadline time.Time) (browser.Lease, error) {
	l, err := s.find(ref)
	if err != nil {
		return browser.Lease{}, err
	}
	if err := s.revalidate(l); err != nil {
		return browser.Lease{}, err
	}
	s.mu.Lock()
	if d := lease.Deadline(l.created, s.now(), deadline); d.After(l.expires) {
		l.expires = d
	}
	s.mu.Unlock()
	return s.answer(l), nil
}

// CloseLease implements browser.Service.
func (s *Service) CloseLease(ctx context.Context, ref string) error {
	s.mu.Lock()
	l := s.leases[s.digest("lease", ref)]
	s.mu.Unlock()
	if l == nil {
		return nil
	}
	return s.closeLease(ctx, l)
}

// closeLease seals a healthy lease and ends it. The caller going away does not
// stop the sealing, so ctx counts only before that.
func (s *Service) closeLease(ctx context.Context, l *held) error {
	s.mu.Lock()
	first, healthy := !l.closing, s.now().Before(l.expires)
	l.closing = true
	s.mu.Unlock()
	if !first {
		<-l.rt.gone
		return nil
	}
	var err error
	if healthy && !l.key.Ephemeral() {
		err = s.sealLease(ctx, l)
	}
	s.end(l.rt)
	return err
}

func (s *Service) sealLease(ctx context.Context, l *held) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sealLimit)
	defer cancel()
	ctx, leave := l.rt.join(ctx)
	defer leave()
	select {
	case <-l.rt.started:
	case <-ctx.Done():
		return nil // it never held a session
	}
	if l.rt.err != nil || l.rt.dead() {
		return nil
	}
	turn, done := context.WithTimeout(ctx, closeWait)
	defer done()
	if l.rt.enter(turn) != nil {
		return notSealed(turn.Err())
	}
	defer l.rt.leave()
	if _, err := s.tuple(l.rt.owner, l.key.ProviderRef, l.key.Origins); err != nil {
		return nil // revoked meanwhile: nothing may be sealed any more
	}
	m, err := l.rt.page.Capture(ctx)
	if err != nil {
		return notSealed(err)
	}
	if _, err := s.seal(l.rt, l.key.ProviderRef, m); err != nil {
		return notSealed(err)
	}
	return nil
}

func notSealed(err error) error {
	return fault.Wrap(fault.ProviderUnavailable, "The browser was closed, but its session could not be sealed. The session that was sealed before is kept.", err)
}

// retire ends a lease without sealing: it expired, failed, or lost its right.
func (s *Service) retire(l *held) {
	s.mu.Lock()
	l.closing = true
	s.mu.Unlock()
	s.end(l.rt)
}

// find is the live lease with the reference.
func (s *Service) find(ref string) (*held, error) {
	if ref == "" || len(ref) > lease.MaxRef {
		return nil, ended()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases[s.digest("lease", ref)]
	if l == nil || l.closing || !s.now().Before(l.expires) {
		return nil, ended()
	}
	return l, nil
}

func ended() error {
	return fault.New(fault.ProfileUnavailable, "The browser session has ended. Nothing was sent; call again to start a new one.")
}

func (s *Service) answer(l *held) browser.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return browser.Lease{Ref: s.reference(l), ExpiresAt: l.expires, Sequence: l.sequence}
}

// reference is what the lease's holder shows.
func (s *Service) reference(l *held) string {
	return s.digest("reference", l.nonce).token()
}

func ownerOf(k lease.Key) owner {
	if k.Ephemeral() {
		return owner{}
	}
	return owner{Scope: k.Scope, profileID: k.ProfileID}
}

func validKey(k lease.Key) error {
	if !k.Scope.Valid() || k.RunID == "" || len(k.RunID) > 255 || k.Attempt < 1 || len(k.Origins) == 0 || len(k.Origins) > 64 ||
		(k.ProfileID == "") != (k.ProviderRef == "") || len(k.ProfileID) > 255 || len(k.ProviderRef) > 512 {
		return fault.New(fault.ProfileUnavailable, "The lease names no complete owner, run and origins. Nothing was started.")
	}
	return nil
}

// fingerprint is equal exactly for equal keys (LEASE-04).
func fingerprint(k lease.Key) string {
	origins := k.Origins.Strings()
	slices.Sort(origins)
	return fmt.Sprintf("%q %d %q", []string{k.Tenant, k.Principal, k.ProfileID, k.ProviderRef, k.RunID}, k.Attempt, origins)
}
