package browserd

import (
	"context"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
)

const (
	checkPeriod  = time.Second             // between checks when something changed
	confirmAfter = 2500 * time.Millisecond // between the two positive checks (SWEEP-02)
	checkLimit   = 5 * time.Second         // of one check
)

// watch decides a sign-in: it runs until there is an outcome. Two positive
// checks 2.5 seconds apart, with no event of the owner's between them, make it
// ready; nothing else does.
func (s *Service) watch(c *signIn) {
	tick := time.NewTicker(checkPeriod)
	defer tick.Stop()
	expiry := time.NewTimer(c.expires.Sub(s.now()))
	defer expiry.Stop()
	var confirm <-chan time.Time
	var inputs int // when the first of the two checks began
	for {
		select {
		case <-c.done:
			return
		case <-c.rt.page.Done():
			s.conclude(c, failed)
			return
		case <-expiry.C:
			s.conclude(c, expired)
			return
		case <-tick.C:
			now, due := s.due(c)
			if confirm == nil && due && s.check(c) {
				inputs, confirm = now, time.After(confirmAfter)
			}
		case <-confirm:
			confirm = nil
			now, _ := s.due(c)
			if now != inputs {
				s.touch(c)
			} else if s.check(c) && s.complete(c) {
				return
			}
		}
	}
}

// due takes note of a coming check: how many events were sent so far, and
// whether anything happened since the last one. Once the owner has sent text
// to a challenge every tick is due until the end, as a site may finish without
// a new picture; before that no check could make the sign-in ready.
func (s *Service) due(c *signIn) (inputs int, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	due = c.stale || c.typed
	c.stale = false
	return c.inputs, due
}

func (s *Service) touch(c *signIn) {
	s.mu.Lock()
	c.stale = true
	s.mu.Unlock()
}

// check looks at the page once, shows what it found, and reports whether the
// evidence is complete. A page that cannot be read is no evidence.
func (s *Service) check(c *signIn) bool {
	ctx, cancel := context.WithTimeout(c.rt.ctx, checkLimit)
	defer cancel()
	if c.rt.enter(ctx) != nil {
		return false
	}
	defer c.rt.leave()
	e, err := s.evidence(ctx, c)
	return err == nil && e.Ready()
}

// evidence reads the page. The caller has the runtime's turn.
func (s *Service) evidence(ctx context.Context, c *signIn) (ceremony.Evidence, error) {
	e, err := c.rt.page.Evidence(ctx)
	if err != nil {
		return e, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e.TextDuringChallenge = c.typed
	if !c.ending {
		c.show(func(v *State) {
			v.Status, v.Origin, v.Wanting = e.Waiting(), e.Origin, wanting(e)
			v.Phase = Live
			if e.ChallengeVisible {
				v.Phase = Attention
			}
		})
	}
	return e, nil
}

// complete seals the session and ends the sign-in as ready. It returns false
// when there was nothing to seal and the sign-in goes on.
func (s *Service) complete(c *signIn) bool {
	ctx, cancel := context.WithTimeout(c.rt.ctx, sealLimit)
	defer cancel()
	if c.rt.enter(ctx) != nil {
		return false
	}
	m, err := c.rt.page.Capture(ctx)
	c.rt.leave()
	if err != nil || m.Empty() {
		return false
	}
	if !s.ending(c) {
		return true // cancelled, revoked or expired while it was read
	}
	o := ready
	if stored, err := s.seal(c.rt, c.ref, m); err != nil || !stored {
		s.log.Error("a sign-in could not be sealed; the earlier seal is kept", "code", fault.CodeOf(err))
		o = failed
	}
	s.settle(c, o)
	return true
}
