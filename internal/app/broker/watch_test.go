package broker_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
)

// watching runs a call with a condition in a bubble, where time is exact.
func watching(t *testing.T, answer func(n int, r action.Request, d observe.Document) (observe.Document, error), test func(t *testing.T, b *bench, s *scripted)) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newSeeing(t, contract.Newest, answer)
		test(t, b, s)
	})
}

func wait(role, name string, ms int) map[string]any {
	return map[string]any{"wait_for": map[string]any{"role": role, "name": name, "timeout_ms": ms}}
}

// COND-02, COND-04: a condition that comes true is seen at the next look, and
// looks are 250 ms apart.
func TestWaitForComesTrue(t *testing.T) {
	var at []time.Time
	watching(t, func(n int, _ action.Request, d observe.Document) (observe.Document, error) {
		at = append(at, time.Now())
		if n >= 4 {
			d.Elements[0].Name = "Done"
		}
		return d, nil
	}, func(t *testing.T, b *bench, s *scripted) {
		b.open(t)
		v, err := b.call(action.Observe, wait("button", "Done", 2000))
		if err != nil || v.Condition.Status != "satisfied" || v.Condition.Observations != 3 || v.Condition.ElapsedMS != 500 || v.Condition.Scope != "observation_window" {
			t.Fatalf("%+v, %v", v.Condition, err)
		}
		if v.Elements[0].Name != "Done" {
			t.Error("the answer is not the newest observation")
		}
		for i := 2; i < len(at); i++ {
			if at[i].Sub(at[i-1]) < 250*time.Millisecond {
				t.Errorf("looks %d and %d are %v apart", i-1, i, at[i].Sub(at[i-1]))
			}
		}
		if _, err := b.call(action.Act, act(v, "click", "Done")); err != nil {
			t.Errorf("the references of the answer: %v", err)
		}
	})
}

// COND-02, COND-03: never more than 21 looks, none that would run past the
// time, and one look only when there is no time.
func TestWaitForGivesUp(t *testing.T) {
	for name, x := range map[string]struct {
		each         time.Duration // what one look takes
		timeout      int
		observations int
	}{
		"quick looks": {0, 5000, 20}, "no time": {0, 0, 1}, "slow looks": {700 * time.Millisecond, 2000, 2}, "one look takes it all": {3 * time.Second, 2000, 1},
		"exactly one more": {0, 250, 1}, "just enough": {0, 251, 2},
	} {
		t.Run(name, func(t *testing.T) {
			watching(t, func(n int, _ action.Request, d observe.Document) (observe.Document, error) {
				if n > 1 {
					<-time.After(x.each)
				}
				return d, nil
			}, func(t *testing.T, b *bench, s *scripted) {
				b.open(t)
				v, err := b.call(action.Observe, wait("button", "Never", x.timeout))
				if err != nil || v.Condition.Status != "not_observed" || v.Condition.ElapsedMS > x.timeout {
					t.Fatalf("%+v, %v", v.Condition, err)
				}
				if v.Condition.Observations != x.observations || len(s.requests()) != 1+x.observations {
					t.Errorf("%d observations, %d reads; want %d", v.Condition.Observations, len(s.requests())-1, x.observations)
				}
			})
		})
	}
}

// COND-04, EVID-01: what is ambiguous stays so; evidence of failure ends the
// wait.
func TestAmbiguousAndFailed(t *testing.T) {
	watching(t, func(_ int, _ action.Request, d observe.Document) (observe.Document, error) {
		d.Elements[1].Role, d.Elements[1].Name, d.Text = "button", "Save", "It failed"
		return d, nil
	}, func(t *testing.T, b *bench, s *scripted) {
		b.open(t)
		v, err := b.call(action.Observe, wait("button", "Save", 1000))
		if err != nil || v.Condition.Status != "ambiguous" {
			t.Errorf("%+v, %v", v.Condition, err)
		}
		v, err = b.call(action.Observe, map[string]any{"wait_for": map[string]any{"role": "button", "name": "Gone", "failure_evidence": map[string]any{"kind": "text", "text": "It failed"}}})
		if err != nil || v.Condition.Status != "failed" || v.Condition.Observations != 1 {
			t.Errorf("%+v, %v", v.Condition, err)
		}
	})
}

// EVID-03, EVID-04: rows are read from the newest revision; a stale read is
// made good by one fresh one, within the same 21; the rows are not shown.
func TestRowCondition(t *testing.T) {
	stale := 0
	watching(t, func(n int, r action.Request, d observe.Document) (observe.Document, error) {
		x := r.Query.Extract
		if x == nil {
			return d, nil
		}
		if n == 3 { // the first rows that are asked for
			stale++
			return observe.Document{}, fault.New(fault.PageChanged, "changed")
		}
		d.Extraction = &observe.Extraction{Version: 1, Revision: d.Revision, Kind: x.Kind, Index: x.Index, Status: "extracted", Scope: "main_document", RowLimit: x.RowLimit, Fields: x.Fields}
		if n >= 6 {
			d.Extraction.Rows = []observe.Row{{Ref: d.Revision + ":row:0", SchemaValid: true, Cells: []observe.Cell{{Field: "Id", Ref: d.Revision + ":cell:0:0", Text: "7", Value: 7.0, Status: "present"}}}}
		}
		return d, nil
	}, func(t *testing.T, b *bench, s *scripted) {
		b.open(t)
		v, err := b.call(action.Observe, map[string]any{"wait_for": map[string]any{"timeout_ms": 5000, "evidence": map[string]any{
			"kind": "row", "collection_kind": "table", "fields": []any{map[string]any{"name": "Id", "column": 0, "type": "integer", "value": 7}}}}})
		if err != nil || v.Condition.Status != "satisfied" || stale != 1 || v.Extraction != nil {
			t.Fatalf("%+v, %v, %d stale", v.Condition, err, stale)
		}
		// navigate, observe, rows (stale), observe, rows, rows
		if n := len(s.requests()); n != 6 || v.Condition.Observations != 5 {
			t.Errorf("%d operations, %d observations", n, v.Condition.Observations)
		}
		revisions := map[string]bool{}
		for _, r := range s.requests() {
			if x := r.Query.Extract; x != nil {
				if revisions[x.Revision] && stale == 0 {
					t.Error("rows of one revision were read twice")
				}
				revisions[x.Revision] = true
			}
		}
		if _, err := b.call(action.Act, act(v, "click", "Save")); err != nil {
			t.Errorf("the references of the answer: %v", err)
		}
	})
}

// EVID-04: rows that are always stale use up no more than the 21 reads, and
// the answer is the newest observation.
func TestRowsAlwaysStale(t *testing.T) {
	var newest string
	watching(t, func(_ int, r action.Request, d observe.Document) (observe.Document, error) {
		if r.Query.Extract != nil {
			return observe.Document{}, fault.New(fault.PageChanged, "changed")
		}
		newest = d.Revision
		return d, nil
	}, func(t *testing.T, b *bench, s *scripted) {
		b.open(t)
		v, err := b.call(action.Observe, map[string]any{"wait_for": map[string]any{"timeout_ms": 5000, "evidence": map[string]any{
			"kind": "row", "collection_kind": "table", "fields": []any{map[string]any{"name": "Id", "column": 0, "type": "integer", "value": 7}}}}})
		if err != nil || v.Condition.Status != "not_observed" || v.Condition.Observations > 21 || v.Condition.Observations < 15 || len(s.requests())-1 != v.Condition.Observations {
			t.Fatalf("%+v, %v, %d operations", v.Condition, err, len(s.requests()))
		}
		if v.Revision != newest {
			t.Error("the answer is not the newest observation")
		}
	})
}

// COND-06, COND-07: a postcondition that is not met says nothing of the act; a
// page that is lost while it is looked for makes the act uncertain; nothing is
// ever sent again.
func TestPostcondition(t *testing.T) {
	post := func(v map[string]any) map[string]any {
		v["postcondition"] = map[string]any{"role": "button", "name": "Done", "timeout_ms": 1000}
		return v
	}
	watching(t, nil, func(t *testing.T, b *bench, s *scripted) {
		v, err := b.call(action.Act, post(act(b.open(t), "click", "Save")))
		if err != nil || v.Condition.Status != "not_observed" || len(b.world.Effects()) != 1 {
			t.Errorf("%+v, %v, effects %v", v.Condition, err, b.world.Effects())
		}
		if i := b.invocations(t)[0]; i.Outcome != run.Succeeded {
			t.Errorf("invocation %+v", i)
		}
		for _, r := range s.requests() {
			if r.Tool == action.Act && r.Query != (observe.Query{}) {
				t.Error("an act was sent with a query")
			}
		}
	})
	for name, x := range map[string]struct {
		code   fault.Code
		leases int
	}{"the browser is lost": {fault.ProviderUnavailable, 0}, "the page is not allowed": {fault.OutputInvalid, 1}} {
		t.Run(name, func(t *testing.T) {
			watching(t, func(n int, _ action.Request, d observe.Document) (observe.Document, error) {
				if n == 3 {
					return d, fault.New(x.code, "lost")
				}
				return d, nil
			}, func(t *testing.T, b *bench, s *scripted) {
				args := post(act(b.open(t), "click", "Save"))
				_, err := b.call(action.Act, args)
				wantCode(t, err, fault.OutcomeUnknown)
				if i := b.invocations(t)[0]; i.Outcome != run.Uncertain || b.service.Leases() != x.leases || len(b.world.Effects()) != 1 {
					t.Errorf("invocation %+v, %d leases, effects %v", i, b.service.Leases(), b.world.Effects())
				}
				if _, err := b.call(action.Act, args); err == nil || len(b.world.Effects()) != 1 {
					t.Errorf("it was sent again: %v", err)
				}
			})
		})
	}
}

// COND-06: a wait that is cancelled answers with no observation, and leaves
// none to act on.
func TestCancelledWait(t *testing.T) {
	watching(t, nil, func(t *testing.T, b *bench, s *scripted) {
		v := b.open(t)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		body, _ := json.Marshal(wait("button", "Never", 5000))
		got, err := b.broker.Call(ctx, b.agent, action.Observe, body, nil)
		wantCode(t, err, fault.ProviderUnavailable)
		if got.Revision != "" {
			t.Errorf("a stale observation: %+v", got)
		}
		_, err = b.call(action.Act, act(v, "click", "Save"))
		if err == nil || len(b.world.Effects()) != 0 {
			t.Errorf("it can still be acted on: %v", err)
		}
		entries := b.kinds(t)
		if entries[len(entries)-1] != audit.CallFailed {
			t.Errorf("audit %v", entries)
		}
	})
}

// CHAL-01: a challenge that shows only while an act's postcondition is looked
// for makes the act uncertain, keeps the lease and tells the owner, however
// the browser reports it.
func TestChallengeWhileWatching(t *testing.T) {
	for name, report := range map[string]func(observe.Document) (observe.Document, error){
		"as an observation": func(d observe.Document) (observe.Document, error) {
			return observe.Document{URL: d.URL, Revision: d.Revision, Interruption: observe.NeedsUser}, nil
		},
		"as a refusal": func(d observe.Document) (observe.Document, error) {
			return observe.Document{}, fault.New(fault.NeedsUser, "asked")
		},
	} {
		t.Run(name, func(t *testing.T) {
			watching(t, func(n int, _ action.Request, d observe.Document) (observe.Document, error) {
				if n < 3 {
					return d, nil
				}
				return report(d)
			}, func(t *testing.T, b *bench, s *scripted) {
				args := act(b.open(t), "click", "Save")
				args["postcondition"] = map[string]any{"role": "button", "name": "Done", "timeout_ms": 1000}
				_, err := b.call(action.Act, args)
				wantCode(t, err, fault.OutcomeUnknown)
				if i := b.invocations(t)[0]; i.Outcome != run.Uncertain || b.service.Leases() != 1 || b.record(t).Status != profile.NeedsUser {
					t.Errorf("invocation %+v, %d leases, profile %s", i, b.service.Leases(), b.record(t).Status)
				}
			})
		})
	}
}

// COND-03: what is seen after the time is over decides nothing; its references
// are good all the same.
func TestLateEvidence(t *testing.T) {
	watching(t, func(n int, _ action.Request, d observe.Document) (observe.Document, error) {
		if n == 3 {
			<-time.After(3 * time.Second)
			d.Elements[0].Name = "Done"
		}
		return d, nil
	}, func(t *testing.T, b *bench, s *scripted) {
		b.open(t)
		v, err := b.call(action.Observe, wait("button", "Done", 1000))
		if err != nil || v.Condition.Status != "not_observed" || v.Condition.ElapsedMS != 1000 || v.Condition.Observations != 2 {
			t.Fatalf("%+v, %v", v.Condition, err)
		}
		if _, err := b.call(action.Act, act(v, "click", "Done")); err != nil {
			t.Error(err)
		}
	})
}
