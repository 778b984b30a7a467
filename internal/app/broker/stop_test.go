package broker_test

import (
	"context"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
)

// REL-01, PLACE-02: a browser that is to be closed is not kept open by the call
// in flight: that is cancelled, and an act among them has an unknown outcome.
func TestClosingCancelsTheCallInFlight(t *testing.T) {
	b := newBench(t, nil, nil)
	args := b.approved(t)
	acting := make(chan struct{})
	b.world.OnAct(func(ctx context.Context, _ *fake.Page, _ action.Action) error {
		close(acting)
		<-ctx.Done()
		return ctx.Err()
	})
	ended := make(chan error, 1)
	go func() {
		_, err := b.call(action.Act, args)
		ended <- err
	}()
	<-acting
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := b.broker.CloseSession(ctx, b.agent.Scope, b.agent.Session); err != nil {
		t.Fatal(err)
	}
	wantCode(t, <-ended, fault.OutcomeUnknown)
	if last := b.invocations(t)[0]; last.Outcome != run.Uncertain || last.EffectSentAt.IsZero() {
		t.Errorf("invocation %+v", last)
	}
	if b.service.Leases() != 0 || len(b.world.Live()) != 0 {
		t.Error("the browser is still open")
	}

	b.world.OnAct(nil) // the next call is not cancelled by what came before it
	if v := b.open(t); len(v.Elements) == 0 {
		t.Errorf("the session does not go on: %+v", v)
	}
}
