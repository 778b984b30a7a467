package browserd

import (
	"context"
	"crypto/subtle"
	"slices"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
)

const (
	capabilityBytes = 32             // CER-02
	outcomeLife     = 24 * time.Hour // SWEEP-03
	maxOutcomes     = 1024
)

// signIn is one remote sign-in.
type signIn struct {
	id      string
	rt      *runtime
	ref     string
	origins site.Origins
	expires time.Time
	done    chan struct{} // closed with the outcome

	// Guarded by Service.mu.
	capability digest // of the one that may be claimed next
	view       State
	ending     bool
	endedAt    time.Time
	typed      bool          // READY-02: the one thing kept of what the owner did
	inputs     int           // events sent so far
	stale      bool          // something happened since the last check
	viewer     *Viewer       // who is connected now
	changed    chan struct{} // closed and replaced when view changes
}

// BeginCeremony implements browser.Service. The sign-in begins with the
// session that is sealed now; nothing but a ready outcome replaces that.
func (s *Service) BeginCeremony(ctx context.Context, scope caller.Scope, profileID, ref string, login site.URL) (browser.Ceremony, error) {
	o := owner{Scope: scope, profileID: profileID}
	r, err := s.tuple(o, ref, nil)
	if err != nil {
		return browser.Ceremony{}, err
	}
	if !r.Origins.Has(login.Origin()) {
		return browser.Ceremony{}, fault.New(fault.URLDisallowed, "The sign-in address is not on one of the profile's origins. Nothing was opened.")
	}
	capability := secret.NewText(ident.Token(capabilityBytes))
	c, err := s.openCeremony(o, r.Ref, r.Origins, capability)
	if err != nil {
		return browser.Ceremony{}, err
	}
	if err := s.start(ctx, c.rt, browser.Spec{Tenant: scope.Tenant, Origins: r.Origins, Headed: true}, ref); err != nil {
		s.conclude(c, failed)
		return browser.Ceremony{}, err
	}
	if err := s.openLogin(ctx, c, login); err != nil {
		s.conclude(c, failed)
		return browser.Ceremony{}, err
	}
	s.spawn(func() { s.watch(c) })
	return browser.Ceremony{
		ID: c.id, Status: ceremony.AuthenticationRequired, ExpiresAt: c.expires,
		LaunchURL: secret.NewText(s.base + "/authentication/" + c.id + "#" + capability.Reveal()),
	}, nil
}

// openCeremony takes the slot and makes the record in one step, so that of two
// begins one is refused before anything starts (CER-03).
func (s *Service) openCeremony(o owner, ref string, origins site.Origins, capability secret.Text) (*signIn, error) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if rt := s.occupant(o); rt != nil && rt.signIn {
		return nil, fault.New(fault.Conflict, "A sign-in to this profile is open already. Nothing was started.")
	}
	rt, err := s.occupy(o, true)
	if err != nil {
		return nil, err
	}
	c := &signIn{
		id: ident.New(), rt: rt, ref: ref, origins: origins, expires: now.Add(ceremony.Life), done: make(chan struct{}),
		capability: s.digest("capability", capability.Reveal()), changed: make(chan struct{}), stale: true,
		view: State{Phase: Live, Status: ceremony.AuthenticationRequired, ExpiresAt: now.Add(ceremony.Life)},
	}
	s.ceremonies[c.id] = c
	return c, nil
}

// openLogin opens the login page. A page that asks to sign in is what is
// wanted here, whatever the driver calls it.
func (s *Service) openLogin(ctx context.Context, c *signIn, login site.URL) error {
	ctx, cancel := c.rt.join(ctx)
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, launchLimit)
	defer stop()
	if err := c.rt.enter(ctx); err != nil {
		return fault.Wrap(fault.ProviderUnavailable, "The sign-in was ended before it began.", err)
	}
	defer c.rt.leave()
	_, err := c.rt.page.Navigate(ctx, login)
	switch fault.CodeOf(err) {
	case "", fault.NeedsUser, fault.AuthenticationRequired, fault.OutputInvalid:
		return nil
	case fault.SiteUnreachable, fault.URLDisallowed, fault.ProviderUnavailable:
		return err
	}
	return fault.Wrap(fault.ProviderUnavailable, "The sign-in page could not be opened. Try again.", err).Retry()
}

// CeremonyStatus implements browser.Service.
func (s *Service) CeremonyStatus(_ context.Context, scope caller.Scope, id string) (ceremony.Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.ceremonies[id]
	if c == nil || c.rt.owner.Scope != scope {
		return "", noCeremony()
	}
	c.stale = true
	return c.view.Status, nil
}

// CancelCeremony implements browser.Service. Cancelling a sign-in that has an
// outcome changes nothing.
func (s *Service) CancelCeremony(_ context.Context, scope caller.Scope, id string) error {
	s.mu.Lock()
	c := s.ceremonies[id]
	s.mu.Unlock()
	if c == nil || c.rt.owner.Scope != scope {
		return noCeremony()
	}
	s.conclude(c, cancelled)
	return nil
}

func noCeremony() error { return fault.New(fault.NotFound, "There is no such sign-in.") }

// outcome is how a sign-in ends, for the orchestrator and for the owner's page.
type outcome struct {
	status ceremony.Status
	phase  Phase
}

var (
	ready     = outcome{ceremony.Ready, Done}
	expired   = outcome{ceremony.Expired, Expired}
	cancelled = outcome{ceremony.Cancelled, Cancelled}
	failed    = outcome{ceremony.Cancelled, Failed}
)

// ending begins the end: exactly one caller gets true and must call settle.
// The others wait for the outcome.
func (s *Service) ending(c *signIn) bool {
	s.mu.Lock()
	first := !c.ending
	c.ending = true
	s.mu.Unlock()
	if !first {
		<-c.done
	}
	return first
}

// conclude ends a sign-in without sealing; the earlier seal is untouched
// (READY-04). It returns when the browser has gone.
func (s *Service) conclude(c *signIn, o outcome) {
	if s.ending(c) {
		s.settle(c, o)
	}
}

// settle closes the browser and makes the outcome known, in that order.
func (s *Service) settle(c *signIn, o outcome) {
	s.end(c.rt)
	s.mu.Lock()
	defer s.mu.Unlock()
	c.endedAt = s.now()
	c.show(func(v *State) { v.Status, v.Phase, v.Wanting = o.status, o.phase, Nothing })
	close(c.done)
	s.log.Info("a sign-in ended", "status", o.status, "phase", o.phase)
}

// show changes what the owner sees. The caller holds s.mu.
func (c *signIn) show(change func(*State)) {
	before := c.view
	change(&c.view)
	if c.view != before {
		close(c.changed)
		c.changed = make(chan struct{})
	}
}

// openCeremonies lists those without an outcome. The caller holds s.mu.
func (s *Service) openCeremonies() []*signIn {
	var open []*signIn
	for _, c := range s.ceremonies {
		if !c.view.Status.Terminal() {
			open = append(open, c)
		}
	}
	return open
}

// forgetCeremonies drops outcomes that are a day old, and the oldest over the
// bound. The caller holds s.mu.
func (s *Service) forgetCeremonies(now time.Time) {
	var over []*signIn
	for id, c := range s.ceremonies {
		switch {
		case !c.view.Status.Terminal():
		case now.Sub(c.endedAt) >= outcomeLife:
			delete(s.ceremonies, id)
		default:
			over = append(over, c)
		}
	}
	if len(over) <= maxOutcomes {
		return
	}
	slices.SortFunc(over, func(a, b *signIn) int { return a.endedAt.Compare(b.endedAt) })
	for _, c := range over[:len(over)-maxOutcomes] {
		delete(s.ceremonies, c.id)
	}
}

// Claim spends a capability: it connects the owner's page to the sign-in and
// makes the capability worthless. Unknown, wrong, repeated and expired ones
// are refused alike with fault.Forbidden.
func (s *Service) Claim(id string, capability secret.Text) (*Viewer, error) {
	shown := s.digest("capability", capability.Reveal())
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.ceremonies[id]
	if c == nil {
		c = &signIn{ending: true} // compared all the same
	}
	right := subtle.ConstantTimeCompare(shown[:], c.capability[:]) == 1
	if !right || c.ending || !s.now().Before(c.view.ExpiresAt) {
		return nil, fault.New(fault.Forbidden, "This sign-in link was used before or has expired. Start again from the console.")
	}
	next := secret.NewText(ident.Token(capabilityBytes))
	c.capability = s.digest("capability", next.Reveal())
	if c.viewer != nil {
		close(c.viewer.replaced)
	}
	c.viewer = &Viewer{service: s, c: c, next: next, replaced: make(chan struct{})}
	return c.viewer, nil
}
