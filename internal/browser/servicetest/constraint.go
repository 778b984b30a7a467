package servicetest

import (
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/consequence"
	"github.com/chaperone-agents/chaperone/internal/rules/constraint"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
)

func uncovered(e *env) {
	l := e.acquire("run")
	d := e.open(l.Ref, Home)
	limited := func(kind constraint.Kind, until time.Time) error {
		c := constraint.Constraint{Kind: kind, Origins: e.origins, ExpiresAt: until, Ceiling: consequence.Routine}
		if kind == constraint.Research {
			c.Ceiling, c.MaxText = consequence.Unknown, constraint.MaxText
		}
		r := e.click(d)
		h, err := lease.Hold(l.Ref, l.Sequence, e.Now().Add(time.Minute), e.Now())
		if err != nil {
			e.Fatalf("hold: %v", err)
		}
		p, err := e.permit(r).Under(c, r)
		if err != nil {
			e.Fatalf("permit: %v", err)
		}
		after, err := e.Service.Do(e.Context(), h, p, r)
		if err == nil {
			d = after
		}
		return err
	}
	soon := time.Now().Add(time.Hour)
	e.refused("an act above the ceiling", limited(constraint.Standing, soon), fault.GrantNotApplicable)
	e.refused("the observation before it", limited(constraint.Research, soon), fault.PageChanged)
	if now := e.acquire("run"); now.Ref != l.Ref || now.Sequence > l.Sequence+1 {
		e.Errorf("the lease is another, or at %d after %d", now.Sequence, l.Sequence)
	} else {
		l = now
	}
	var err error
	if d, err = e.do(l.Ref, l.Sequence, e.request(action.Observe, struct{}{})); err != nil {
		e.Fatalf("observe: %v", err)
	}
	e.refused("an expired grant", limited(constraint.Research, time.Now()), fault.GrantNotApplicable)
	if now := e.acquire("run"); now.Sequence != l.Sequence {
		e.Errorf("the next number is %d after a refusal, was %d", now.Sequence, l.Sequence)
	}
	if d, err = e.do(l.Ref, l.Sequence, e.request(action.Observe, struct{}{})); err != nil {
		e.Fatalf("observe: %v", err)
	}
	if err := limited(constraint.Research, soon); err != nil {
		e.Errorf("a covered act with the same number: %v", err)
	}
	if n := len(e.World.Effects()); n != 1 {
		e.Errorf("%d effects, want 1", n)
	}
}
