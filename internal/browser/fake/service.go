package fake

import (
	"context"
	"sync"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/rules/grant"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// Service is a browser.Service in memory over a World.
type Service struct {
	World *World
	Now   func() time.Time // time.Now when nil

	mu         sync.Mutex
	profiles   map[string]*record
	leases     map[string]*live
	ceremonies map[string]*signIn
	failure    error
}

type record struct {
	scope    caller.Scope
	ref      string
	origins  site.Origins
	revoked  bool
	material browser.Material
}

type live struct {
	key      lease.Key
	page     browser.Page
	created  time.Time
	expires  time.Time
	sequence int64
}

type signIn struct {
	scope   caller.Scope
	profile string
	status  ceremony.Status
	expires time.Time
}

var _ browser.Service = (*Service)(nil)

// Fail makes every following call fail with err until it is called with nil.
func (s *Service) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
}

// Finish ends an open ceremony with a status and, when ready, a session.
func (s *Service) Finish(ceremonyID string, status ceremony.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.ceremonies[ceremonyID]
	if c == nil {
		return
	}
	c.status = status
	if r := s.profiles[c.profile]; r != nil && status == ceremony.Ready {
		r.material = browser.Material{Cookies: []browser.Cookie{{Name: "session", Value: ident.Hex(8), Domain: r.origins[0].Host(), Path: "/", Expires: -1}}}
	}
}

// Leases is the number of live leases.
func (s *Service) Leases() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.leases)
}

// Has reports whether material of the profile exists.
func (s *Service) Has(profileID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.profiles[profileID] != nil
}

func (s *Service) Provision(_ context.Context, scope caller.Scope, profileID string, origins site.Origins) (browser.Provisioned, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		return browser.Provisioned{}, s.failure
	}
	r := s.profiles[profileID]
	if r == nil {
		r = &record{scope: scope, ref: ident.Token(32), origins: origins}
		if s.profiles == nil {
			s.profiles = map[string]*record{}
		}
		s.profiles[profileID] = r
	}
	if r.scope != scope || !r.origins.Equal(origins) {
		return browser.Provisioned{}, fault.New(fault.Conflict, "The profile exists with another owner or other origins. Nothing was changed.")
	}
	return browser.Provisioned{ProviderName: "hosted-isolated", ProviderRef: r.ref, KeyVersion: "k1"}, nil
}

func (s *Service) Revoke(_ context.Context, scope caller.Scope, profileID, ref string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		return s.failure
	}
	r, err := s.find(scope, profileID, ref)
	if err != nil {
		return err
	}
	r.revoked = true
	for leaseRef, l := range s.leases {
		if l.key.ProfileID == profileID {
			l.page.Close()
			delete(s.leases, leaseRef)
		}
	}
	for _, c := range s.ceremonies {
		if c.profile == profileID && !c.status.Terminal() {
			c.status = ceremony.Cancelled
		}
	}
	return nil
}

func (s *Service) Delete(_ context.Context, scope caller.Scope, profileID, ref string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		return s.failure
	}
	if s.profiles[profileID] == nil {
		return nil
	}
	r, err := s.find(scope, profileID, ref)
	if err != nil {
		return err
	}
	if !r.revoked {
		return fault.New(fault.Conflict, "Revoke the profile before deleting it. Nothing was deleted.")
	}
	delete(s.profiles, profileID)
	return nil
}

func (s *Service) find(scope caller.Scope, profileID, ref string) (*record, error) {
	r := s.profiles[profileID]
	if r == nil || r.scope != scope || r.ref != ref {
		return nil, fault.New(fault.ProfileUnavailable, "The profile is not available.")
	}
	return r, nil
}

func (s *Service) Acquire(ctx context.Context, key lease.Key, headed bool, deadline time.Time) (browser.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		return browser.Lease{}, s.failure
	}
	now := s.now()
	var material browser.Material
	if !key.Ephemeral() {
		r, err := s.find(key.Scope, key.ProfileID, key.ProviderRef)
		if err != nil {
			return browser.Lease{}, err
		}
		if r.revoked || s.signingIn(key.ProfileID, now) {
			return browser.Lease{}, fault.New(fault.ProfileUnavailable, "The profile is revoked, or its owner is signing in.")
		}
		material = r.material
	}
	for ref, l := range s.leases {
		if l.key.ProfileID != key.ProfileID || l.key.RunID != key.RunID && key.Ephemeral() {
			continue
		}
		if l.key.RunID == key.RunID && l.key.Attempt == key.Attempt && l.key.Scope == key.Scope && now.Before(l.expires) {
			return browser.Lease{Ref: ref, ExpiresAt: l.expires, Sequence: l.sequence}, nil
		}
		if now.Before(l.expires) {
			return browser.Lease{}, fault.New(fault.ProfileUnavailable, "Another session is using the profile.")
		}
	}
	page, err := s.World.Launch(ctx, browser.Spec{Tenant: key.Tenant, Origins: key.Origins, Headed: headed, Challenges: !key.Ephemeral(), Specified: key.Specified})
	if err != nil {
		return browser.Lease{}, err
	}
	if err := page.Restore(ctx, material); err != nil {
		page.Close()
		return browser.Lease{}, err
	}
	l := &live{key: key, page: page, created: now, expires: lease.Deadline(now, now, deadline), sequence: 1}
	if s.leases == nil {
		s.leases = map[string]*live{}
	}
	ref := ident.Token(32)
	s.leases[ref] = l
	return browser.Lease{Ref: ref, ExpiresAt: l.expires, Sequence: l.sequence}, nil
}

func (s *Service) signingIn(profileID string, now time.Time) bool {
	for _, c := range s.ceremonies {
		if c.profile == profileID && !c.status.Terminal() && now.Before(c.expires) {
			return true
		}
	}
	return false
}

func (s *Service) Renew(_ context.Context, ref string, deadline time.Time) (browser.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases[ref]
	if s.failure != nil {
		return browser.Lease{}, s.failure
	}
	if l == nil || !s.now().Before(l.expires) {
		return browser.Lease{}, fault.New(fault.ProfileUnavailable, "The browser session has ended.")
	}
	l.expires = lease.Deadline(l.created, s.now(), deadline)
	return browser.Lease{Ref: ref, ExpiresAt: l.expires, Sequence: l.sequence}, nil
}

func (s *Service) CloseLease(ctx context.Context, ref string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases[ref]
	if l == nil {
		return s.failure
	}
	delete(s.leases, ref)
	if m, err := l.page.Capture(ctx); err == nil && !m.Empty() && s.now().Before(l.expires) {
		if r := s.profiles[l.key.ProfileID]; r != nil && !r.revoked {
			r.material = m
		}
	}
	return l.page.Close()
}

func (s *Service) Do(ctx context.Context, held lease.Held, permit grant.Permit, r action.Request) (observe.Document, error) {
	if r.Tool == action.Upload {
		return observe.Document{}, fault.New(fault.ActionNotAllowed, "An upload has an image. Nothing was sent.")
	}
	page, err := s.take(held, permit, r)
	if err != nil {
		return observe.Document{}, err
	}
	switch r.Tool {
	case action.Navigate:
		return page.Navigate(ctx, r.URL)
	case action.Observe:
		return page.Observe(ctx, r.Query)
	case action.Act:
		d, err := page.Act(ctx, r.Action, permit.Constraint())
		if fault.Is(err, fault.GrantNotApplicable) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if l := s.leases[held.Ref()]; l != nil {
				l.sequence--
			}
		}
		return d, err
	}
	return observe.Document{}, fault.New(fault.ActionNotAllowed, "There is no such operation. Nothing was sent.")
}

// take checks lease and permit, uses up the number of an act, and returns the
// browser to dispatch to.
func (s *Service) take(held lease.Held, permit grant.Permit, r action.Request) (browser.Page, error) {
	if !held.Valid() || !permit.For(r.Digest) {
		return nil, fault.New(fault.ActionNotAllowed, "The call has no lease or no permit. Nothing was sent.")
	}
	s.mu.Lock()
	l, failure := s.leases[held.Ref()], s.failure
	switch {
	case failure != nil:
	case l == nil || !s.now().Before(l.expires):
		failure = fault.New(fault.ProfileUnavailable, "The browser session has ended. Nothing was sent.")
	case r.Tool.Writes() && held.Sequence() != l.sequence:
		failure = fault.New(fault.OutcomeUnknown, "That operation was dispatched before. It is not repeated.")
	case r.Tool.Writes():
		l.sequence++
	}
	s.mu.Unlock()
	if failure != nil {
		return nil, failure
	}
	return l.page, nil
}

func (s *Service) BeginCeremony(_ context.Context, scope caller.Scope, profileID, ref string, login site.URL) (browser.Ceremony, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		return browser.Ceremony{}, s.failure
	}
	r, err := s.find(scope, profileID, ref)
	if err != nil {
		return browser.Ceremony{}, err
	}
	now := s.now()
	if r.revoked || s.signingIn(profileID, now) {
		return browser.Ceremony{}, fault.New(fault.Conflict, "A sign-in is open already, or the profile is revoked.")
	}
	if !r.origins.Has(login.Origin()) {
		return browser.Ceremony{}, fault.New(fault.URLDisallowed, "The sign-in address is not on one of the profile's origins.")
	}
	id := ident.New()
	if s.ceremonies == nil {
		s.ceremonies = map[string]*signIn{}
	}
	s.ceremonies[id] = &signIn{scope: scope, profile: profileID, status: ceremony.AuthenticationRequired, expires: now.Add(ceremony.Life)}
	return browser.Ceremony{
		ID: id, Status: ceremony.AuthenticationRequired, ExpiresAt: now.Add(ceremony.Life),
		LaunchURL: secret.NewText("http://localhost:8788/authentication/" + id + "#" + ident.Token(32)),
	}, nil
}

func (s *Service) CeremonyStatus(_ context.Context, scope caller.Scope, id string) (ceremony.Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.ceremonies[id]
	switch {
	case s.failure != nil:
		return "", s.failure
	case c == nil || c.scope != scope:
		return "", fault.New(fault.NotFound, "There is no such sign-in.")
	case !c.status.Terminal() && !s.now().Before(c.expires):
		c.status = ceremony.Expired
	}
	return c.status, nil
}

func (s *Service) CancelCeremony(_ context.Context, scope caller.Scope, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.ceremonies[id]
	if c == nil || c.scope != scope {
		return fault.New(fault.NotFound, "There is no such sign-in.")
	}
	if !c.status.Terminal() {
		c.status = ceremony.Cancelled
	}
	return s.failure
}

func (s *Service) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}
