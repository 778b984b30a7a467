package broker

import (
	"context"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/condition"
	"github.com/chaperone-agents/chaperone/internal/rules/grant"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/rules/policy"
)

// watcher looks at a page until a condition is met or its time is over. It
// only ever reads (COND-07).
type watcher struct {
	*Broker
	trace     *trace
	session   *session
	bound     binding
	condition *condition.Condition
	begin     time.Time
	reads     int
	last      time.Duration // what the last look took
}

// watch evaluates the condition of the call, if it has one, over the
// observation that the call made and over further ones: at most twenty,
// at least 250 ms apart, within the condition's time and that of ctx (COND-02,
// COND-03, EVID-04). The time of a wait begins with its first look, that of a
// postcondition once the act has been sent and seen. The newest observation is
// the session's when it returns.
func (b *Broker) watch(ctx context.Context, t *trace, s *session, bound binding, r action.Request, began time.Time) (*condition.Result, error) {
	if r.Condition == nil {
		return nil, nil
	}
	w := &watcher{Broker: b, trace: t, session: s, bound: bound, condition: r.Condition, begin: began, reads: 1, last: time.Since(began)}
	if r.Tool.Writes() {
		w.begin, w.last = time.Now(), 0
	}
	status, err := w.look(ctx, false)
	for err == nil && !status.Final() && w.again() {
		if err = pause(ctx); err != nil || !w.again() {
			break
		}
		var seen condition.Status
		if seen, err = w.look(ctx, true); err == nil && w.inTime() {
			status = seen // what came too late is shown, but decides nothing
		}
	}
	if err != nil {
		return nil, lost(r, err)
	}
	elapsed := min(time.Since(w.begin), time.Duration(r.Condition.TimeoutMS)*time.Millisecond)
	return &condition.Result{Status: status, Scope: condition.Scope, Observations: w.reads, ElapsedMS: int(elapsed.Milliseconds())}, nil
}

// again leaves room for all the reads of one look.
func (w *watcher) again() bool {
	reads := w.reads
	if w.condition.NeedsRows() {
		reads += 2 // rows that are stale, and a fresh observation, before the rows
	}
	return w.condition.Again(time.Since(w.begin), w.last, reads) && w.document().Interruption == ""
}

func (w *watcher) inTime() bool {
	return time.Since(w.begin) <= time.Duration(w.condition.TimeoutMS)*time.Millisecond
}

// look evaluates one observation: the newest, or a fresh one. A row needs the
// rows of the newest revision; if that is stale, it may be read afresh once.
func (w *watcher) look(ctx context.Context, fresh bool) (condition.Status, error) {
	if fresh || w.condition.NeedsRows() {
		defer func(began time.Time) { w.last = time.Since(began) }(time.Now())
	}
	if !w.condition.NeedsRows() {
		if fresh {
			if err := w.read(ctx, observe.Query{}); err != nil {
				return "", err
			}
		}
		return w.condition.Evaluate(w.document()), nil
	}
	err := w.rows(ctx)
	if fault.Is(err, fault.PageChanged) {
		if err := w.read(ctx, observe.Query{}); err != nil {
			return "", err
		}
		if !w.inTime() {
			return condition.NotObserved, nil
		}
		if err = w.rows(ctx); fault.Is(err, fault.PageChanged) {
			return condition.NotObserved, nil
		}
	}
	if err != nil {
		return "", err
	}
	status := w.condition.Evaluate(w.document())
	w.session.dropRows()
	return status, nil
}

func (w *watcher) rows(ctx context.Context) error {
	d := w.document()
	if d.Interruption != "" {
		return nil
	}
	x := w.condition.Evidence.Extract(d.Revision)
	return w.read(ctx, observe.Query{Extract: &x})
}

func (w *watcher) document() observe.Document {
	w.session.mu.Lock()
	defer w.session.mu.Unlock()
	return w.session.last.Document()
}

// read makes one further observation under the session's lease.
func (w *watcher) read(ctx context.Context, q observe.Query) error {
	w.reads++
	done := w.trace.start(PhaseRead, Isolated)
	return done(w.readNow(ctx, q))
}

func (w *watcher) readNow(ctx context.Context, q observe.Query) error {
	s := w.session
	r, err := action.Read(q)
	if err != nil {
		return err
	}
	permit, err := grant.FromPolicy(policy.Decide(r, w.bound.session.Origins), r)
	if err != nil {
		return err
	}
	held, err := lease.Hold(s.lease.Ref, s.lease.Sequence, s.lease.ExpiresAt, w.Now())
	if err != nil {
		return err
	}
	d, err := w.Service.Do(ctx, held, permit, r)
	if err != nil {
		return err
	}
	return s.saw(d, w.bound.session.Origins)
}

func pause(ctx context.Context) error {
	timer := time.NewTimer(condition.Spacing)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.ProviderUnavailable, "The call was cancelled while it waited for what it expects to see. Observe again.", ctx.Err()).Retry()
	}
}

// lostError is evidence that was lost after an act was sent: the act's outcome
// is unknown, while the page may be as it was (COND-06).
type lostError struct {
	fault *fault.Error
	keep  bool // page and lease
	owner bool // the website asks for its owner
}

func (e *lostError) Error() string { return e.fault.Error() }
func (e *lostError) Unwrap() error { return e.fault }

func lost(r action.Request, err error) error {
	switch {
	case !r.Tool.Writes():
		return err
	case fault.Is(err, fault.NeedsUser):
		return challenged(err)
	}
	return &lostError{keep: keeps(fault.CodeOf(err)), fault: fault.Wrap(fault.OutcomeUnknown,
		"The action was sent, and the page could not be read afterwards. What came of it is not known. It is not repeated; observe to see.", err)}
}

// challenged is an act after which the website asked for its owner (CHAL-01).
func challenged(err error) error {
	return &lostError{keep: true, owner: true, fault: fault.Wrap(fault.OutcomeUnknown,
		"The website asks for its owner to sign in. The action was sent before that, and what came of it is not known. It is not repeated; ask the owner to sign in, then observe.", err)}
}
