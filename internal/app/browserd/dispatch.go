package browserd

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/constraint"
	"github.com/chaperone-agents/chaperone/internal/rules/grant"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// Do implements browser.Service.
func (s *Service) Do(ctx context.Context, h lease.Held, permit grant.Permit, r action.Request) (observe.Document, error) {
	if !h.Valid() || !permit.For(r.Digest) {
		return observe.Document{}, fault.New(fault.ActionNotAllowed, "The call has no lease or no permit. Nothing was sent.")
	}
	return s.Dispatch(ctx, h.Ref(), h.Sequence(), r, permit.Constraint())
}

// Dispatch carries out one validated call under the lease with the reference.
// Its caller has authenticated the orchestrator, which decides what is
// allowed; here the lease is checked again: tuple, expiry, fence, origins and,
// for an act, its number (LEASE-07). Each number is dispatched at most once. A
// constraint limits an act; one that it does not cover keeps its number
// (CONS-04).
func (s *Service) Dispatch(ctx context.Context, ref string, sequence int64, r action.Request, c *constraint.Constraint) (observe.Document, error) {
	if c != nil && r.Tool != action.Act {
		return observe.Document{}, fault.New(fault.ActionNotAllowed, "Only an act has a constraint. Nothing was sent.")
	}
	return s.dispatch(ctx, ref, sequence, r, cargo{constraint: c})
}

// cargo is what travels beside a request.
type cargo struct {
	image      artifact.Payload
	constraint *constraint.Constraint
}

func (s *Service) dispatch(ctx context.Context, ref string, sequence int64, r action.Request, with cargo) (observe.Document, error) {
	l, err := s.find(ref)
	if err != nil {
		return observe.Document{}, err
	}
	ctx, leave, err := s.turn(ctx, l)
	if err != nil {
		return observe.Document{}, err
	}
	defer leave()
	if r.Tool == action.Navigate && !l.key.Origins.Has(r.URL.Origin()) {
		return observe.Document{}, fault.New(fault.URLDisallowed, "That origin is not one this session may open. Nothing was requested.")
	}
	ctx, stop := context.WithTimeout(ctx, s.left(l))
	defer stop()
	d, err := s.operate(ctx, l, sequence, r, with)
	if l.rt.dead() {
		// Not in this goroutine's turn: ending waits for nobody, but the lease
		// must be gone before the caller hears of it.
		s.retire(l)
	}
	if err != nil {
		return observe.Document{}, operationFailed(r.Tool, err)
	}
	raw, err := observe.Accept(d, l.key.Origins)
	if err != nil {
		return observe.Document{}, operationFailed(r.Tool, err)
	}
	return raw.Document(), nil
}

// turn waits for the lease's browser and checks the right to it again. The
// context it returns ends with the lease.
func (s *Service) turn(ctx context.Context, l *held) (_ context.Context, leave func(), _ error) {
	ctx, cancel := l.rt.join(ctx)
	select {
	case <-l.rt.started:
	case <-ctx.Done():
		cancel()
		return nil, nil, ended()
	}
	if l.rt.err != nil {
		cancel()
		return nil, nil, ended()
	}
	if err := l.rt.enter(ctx); err != nil {
		cancel()
		return nil, nil, fault.Wrap(fault.ProfileUnavailable, "The browser session ended or is busy. Nothing was sent.", err)
	}
	leave = func() { l.rt.leave(); cancel() }
	if err := s.revalidate(l); err != nil {
		leave()
		return nil, nil, err
	}
	return ctx, leave, nil
}

func (s *Service) operate(ctx context.Context, l *held, sequence int64, r action.Request, with cargo) (observe.Document, error) {
	switch r.Tool {
	case action.Navigate:
		return l.rt.page.Navigate(ctx, r.URL)
	case action.Observe:
		return l.rt.page.Observe(ctx, r.Query)
	case action.Act:
		if err := s.spend(l, sequence); err != nil {
			return observe.Document{}, err
		}
		d, err := l.rt.page.Act(ctx, r.Action, with.constraint)
		if fault.Is(err, fault.GrantNotApplicable) {
			s.giveBack(l)
		}
		return d, err
	case action.Upload:
		if r.Image != with.image.ID || !with.image.Valid() {
			break
		}
		if err := s.spend(l, sequence); err != nil {
			return observe.Document{}, err
		}
		return l.rt.page.Upload(ctx, r.Action, with.image)
	}
	return observe.Document{}, fault.New(fault.ActionNotAllowed, "There is no such operation. Nothing was sent.")
}

// spend uses up the number of an act before it is sent.
func (s *Service) spend(l *held, sequence int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case sequence < l.sequence:
		return fault.New(fault.OutcomeUnknown, "An action with this number was sent before and is never sent twice. Observe before anything else.")
	case sequence > l.sequence:
		return fault.New(fault.ProfileUnavailable, "The action's number is out of order. Nothing was sent; call again.")
	}
	l.sequence++
	return nil
}

// giveBack returns the number of an act that was not sent. The lease's turn is
// still held, so it is the newest.
func (s *Service) giveBack(l *held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.sequence--
}

// left is how long the lease lasts.
func (s *Service) left(l *held) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.expires.Sub(s.now())
}

// revalidate checks the whole right to the browser again (LEASE-07).
func (s *Service) revalidate(l *held) error {
	s.mu.Lock()
	over := l.closing || !s.now().Before(l.expires)
	s.mu.Unlock()
	if over {
		return ended()
	}
	if l.key.Ephemeral() {
		return nil
	}
	_, err := s.tuple(l.rt.owner, l.key.ProviderRef, l.key.Origins)
	return err
}

// operationFailed keeps what the page itself said in our words. Of an act it
// calls everything unknown that does not say that nothing was sent.
func operationFailed(tool action.Tool, err error) error {
	code := fault.CodeOf(err)
	sent := code == fault.OutputInvalid || code == fault.SiteUnreachable
	if e, ok := errors.AsType[*fault.Error](err); ok && strings.HasPrefix(string(code), "tool.") && (!tool.Writes() || !sent) {
		return e
	}
	if tool.Writes() {
		return fault.Wrap(fault.OutcomeUnknown, "The action may have been sent, but what followed is not known. Observe before anything else; do not repeat it.", err)
	}
	return fault.Wrap(fault.ProviderUnavailable, "The browser did not answer. Nothing was changed.", err).Retry()
}
