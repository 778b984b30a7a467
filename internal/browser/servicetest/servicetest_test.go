package servicetest_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/browser/servicetest"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/grant"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/rules/policy"
)

// clock is a time that tests move.
type clock struct{ ahead atomic.Int64 }

func (c *clock) Now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) Advance(d time.Duration) { c.ahead.Add(int64(d)) }

func open(broken func(*fake.Service, *clock) browser.Service) servicetest.Subject {
	c, w := &clock{}, &fake.World{}
	s := &fake.Service{World: w, Now: c.Now}
	return servicetest.Subject{Service: broken(s, c), World: w, Now: c.Now, Advance: c.Advance}
}

// The fake that other rooms test with keeps the contract (GATE-01).
func TestFakeService(t *testing.T) {
	servicetest.Run(t, func(*testing.T) servicetest.Subject {
		return open(func(s *fake.Service, _ *clock) browser.Service { return s })
	})
}

// Each broken service breaks one rule, and the suite says so.
func TestBrokenServicesAreCaught(t *testing.T) {
	for _, b := range []struct {
		name, caught string
		wrap         func(*fake.Service, *clock) browser.Service
	}{
		{"replays an act", "SHTTP-02 an act is dispatched once", func(s *fake.Service, _ *clock) browser.Service { return replays{s} }},
		{"makes its own permit", "LEASE-07 no dispatch without a lease and the right permit", func(s *fake.Service, _ *clock) browser.Service { return unpermitted{s} }},
		{"ignores the owner", "HCP-04 a foreign owner finds nothing", func(s *fake.Service, _ *clock) browser.Service { return ownerless{s} }},
		{"lets a second run in", "LEASE-05 another run is refused", func(s *fake.Service, _ *clock) browser.Service { return shared{s} }},
		{"starts a browser per acquire", "LEASE-04 the same key attaches to the same lease", func(s *fake.Service, _ *clock) browser.Service { return unattached{s, new(atomic.Int64)} }},
		{"revokes later", "LEASE-09 revoke closes every browser first", func(s *fake.Service, _ *clock) browser.Service { return lazy{s} }},
		{"signs in beside a lease", "CER-03 one sign-in at a time, and no lease beside it", func(s *fake.Service, _ *clock) browser.Service { return besides{s} }},
		{"never ends a lease", "LEASE-02 RENEW-01 deadlines are capped", func(s *fake.Service, _ *clock) browser.Service { return endless{s} }},
		{"seals an expired lease", "LEASE-08 an expired lease is not sealed", func(s *fake.Service, c *clock) browser.Service { return late{s, c} }},
		{"forgets to seal", "LEASE-08 a healthy close seals", func(s *fake.Service, _ *clock) browser.Service { return forgetful{s} }},
		{"makes a new reference each time", "LIFE-01 provision is idempotent for one scope and one set of origins", func(s *fake.Service, _ *clock) browser.Service { return provisions{s} }},
		{"drops the constraint", "CONS-01 CONS-04 an act that its grant does not cover keeps its number", func(s *fake.Service, _ *clock) browser.Service { return unlimited{s} }},
		{"uses up the number of a refusal", "CONS-01 CONS-04 an act that its grant does not cover keeps its number", func(s *fake.Service, _ *clock) browser.Service { return wasteful{s} }},
		{"uploads again", "UPL-08 SHTTP-02 an image is uploaded once, whole", func(s *fake.Service, _ *clock) browser.Service { return insists{s} }},
		{"says that it has uploaded", "UPL-08 SHTTP-02 an image is uploaded once, whole", func(s *fake.Service, _ *clock) browser.Service { return boasts{s} }},
		{"uploads without a permit", "UPL-06 UPL-08 no upload without its image, lease and permit", func(s *fake.Service, _ *clock) browser.Service { return lax{s} }},
		{"takes another image", "UPL-06 UPL-08 no upload without its image, lease and permit", func(s *fake.Service, _ *clock) browser.Service { return renames{s} }},
		{"shows any page", "VIEW-02 a picture uses nothing up", func(s *fake.Service, _ *clock) browser.Service { return shows{s} }},
		{"calls a lost act failed", "REL-01 a browser lost in an act is outcome unknown and is not sealed", func(s *fake.Service, _ *clock) browser.Service { return hopeful{s} }},
	} {
		t.Run(b.name, func(t *testing.T) {
			failed := servicetest.Failures(t.Context(), func() servicetest.Subject { return open(b.wrap) })
			if !slices.Contains(failed, b.caught) {
				t.Errorf("not caught by %q; failed were %q", b.caught, failed)
			}
		})
	}
}

type replays struct{ *fake.Service }

func (s replays) Do(ctx context.Context, h lease.Held, p grant.Permit, r action.Request) (observe.Document, error) {
	d, err := s.Service.Do(ctx, h, p, r)
	if fault.Is(err, fault.OutcomeUnknown) {
		if again, e := lease.Hold(h.Ref(), h.Sequence()+1, h.Expires(), time.Time{}); e == nil {
			return s.Service.Do(ctx, again, p, r)
		}
	}
	return d, err
}

type unpermitted struct{ *fake.Service }

func (s unpermitted) Do(ctx context.Context, h lease.Held, _ grant.Permit, r action.Request) (observe.Document, error) {
	p, err := grant.FromPolicy(policy.Decision{Verdict: policy.Allow}, r)
	if err != nil {
		return observe.Document{}, err
	}
	return s.Service.Do(ctx, h, p, r)
}

// unlimited makes a permit without the constraint.
type unlimited struct{ *fake.Service }

func (s unlimited) Do(ctx context.Context, h lease.Held, p grant.Permit, r action.Request) (observe.Document, error) {
	if p.Constraint() != nil {
		return unpermitted(s).Do(ctx, h, p, r)
	}
	return s.Service.Do(ctx, h, p, r)
}

// wasteful spends another act's number on each refusal.
type wasteful struct{ *fake.Service }

func (s wasteful) Do(ctx context.Context, h lease.Held, p grant.Permit, r action.Request) (observe.Document, error) {
	d, err := s.Service.Do(ctx, h, p, r)
	if fault.Is(err, fault.GrantNotApplicable) {
		if _, again := s.Service.Do(ctx, h, p, r); fault.Is(again, fault.OutcomeUnknown) {
			return d, again
		}
	}
	return d, err
}

type ownerless struct{ *fake.Service }

func (s ownerless) Acquire(ctx context.Context, k lease.Key, headed bool, deadline time.Time) (browser.Lease, error) {
	k.Scope = caller.Scope{Tenant: "local", Principal: "ada"}
	return s.Service.Acquire(ctx, k, headed, deadline)
}

type shared struct{ *fake.Service }

func (s shared) Acquire(ctx context.Context, k lease.Key, headed bool, deadline time.Time) (browser.Lease, error) {
	k.RunID = "everybody"
	return s.Service.Acquire(ctx, k, headed, deadline)
}

type unattached struct {
	*fake.Service
	n *atomic.Int64
}

func (s unattached) Acquire(ctx context.Context, k lease.Key, headed bool, deadline time.Time) (browser.Lease, error) {
	k.Attempt = int(s.n.Add(1))
	return s.Service.Acquire(ctx, k, headed, deadline)
}

type lazy struct{ *fake.Service }

func (lazy) Revoke(context.Context, caller.Scope, string, string) error { return nil }

type besides struct{ *fake.Service }

func (s besides) Acquire(ctx context.Context, k lease.Key, headed bool, deadline time.Time) (browser.Lease, error) {
	k.ProfileID, k.ProviderRef = "", "" // looks at no sign-in
	return s.Service.Acquire(ctx, k, headed, deadline)
}

type endless struct{ *fake.Service }

func (s endless) Renew(ctx context.Context, ref string, deadline time.Time) (browser.Lease, error) {
	l, err := s.Service.Renew(ctx, ref, deadline)
	l.ExpiresAt = deadline
	return l, err
}

type late struct {
	*fake.Service
	c *clock
}

func (s late) CloseLease(ctx context.Context, ref string) error {
	s.c.Advance(-time.Hour)
	defer s.c.Advance(time.Hour)
	return s.Service.CloseLease(ctx, ref)
}

type forgetful struct{ *fake.Service }

func (s forgetful) CloseLease(ctx context.Context, ref string) error {
	for _, p := range s.World.Live() {
		p.Crash()
	}
	return s.Service.CloseLease(ctx, ref)
}

type provisions struct{ *fake.Service }

func (s provisions) Provision(ctx context.Context, scope caller.Scope, id string, o site.Origins) (browser.Provisioned, error) {
	p, err := s.Service.Provision(ctx, scope, id, o)
	p.ProviderRef += time.Now().String()
	return p, err
}

type hopeful struct{ *fake.Service }

func (s hopeful) Do(ctx context.Context, h lease.Held, p grant.Permit, r action.Request) (observe.Document, error) {
	d, err := s.Service.Do(ctx, h, p, r)
	if fault.Is(err, fault.OutcomeUnknown) {
		err = fault.New(fault.ProviderUnavailable, "Try again.").Retry()
	}
	return d, err
}

type insists struct{ *fake.Service }

func (s insists) Upload(ctx context.Context, h lease.Held, p grant.Permit, r action.Request, image artifact.Payload) (observe.Document, error) {
	d, err := s.Service.Upload(ctx, h, p, r, image)
	if fault.Is(err, fault.OutcomeUnknown) {
		if again, e := lease.Hold(h.Ref(), h.Sequence()+1, h.Expires(), time.Time{}); e == nil {
			return s.Service.Upload(ctx, again, p, r, image)
		}
	}
	return d, err
}

type boasts struct{ *fake.Service }

func (s boasts) Upload(ctx context.Context, h lease.Held, p grant.Permit, _ action.Request, _ artifact.Payload) (observe.Document, error) {
	look, err := action.Read(observe.Query{})
	if err != nil {
		return observe.Document{}, err
	}
	return unpermitted(s).Do(ctx, h, p, look)
}

type lax struct{ *fake.Service }

func (s lax) Upload(ctx context.Context, h lease.Held, _ grant.Permit, r action.Request, image artifact.Payload) (observe.Document, error) {
	p, err := grant.FromPolicy(policy.Decision{Verdict: policy.Allow}, r)
	if err != nil {
		return observe.Document{}, err
	}
	return s.Service.Upload(ctx, h, p, r, image)
}

type renames struct{ *fake.Service }

func (s renames) Upload(ctx context.Context, h lease.Held, p grant.Permit, r action.Request, image artifact.Payload) (observe.Document, error) {
	image.ID = r.Image
	return s.Service.Upload(ctx, h, p, r, image)
}

type shows struct{ *fake.Service }

func (s shows) Picture(ctx context.Context, h lease.Held, revision, ref string) (browser.Picture, error) {
	p, err := s.Service.Picture(ctx, h, revision, ref)
	if fault.Is(err, fault.PageChanged) {
		return browser.Picture{JPEG: []byte{0xff, 0xd8, 0xff, 0xd9}, Width: 9, Height: 9}, nil
	}
	return p, err
}
