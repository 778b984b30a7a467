package broker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/app/broker"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/grant"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// scripted is the fake service with observations of the test's own: answer may
// change what the fake page answered, and is told what was asked.
type scripted struct {
	*fake.Service
	mu     sync.Mutex
	asked  []action.Request
	answer func(n int, r action.Request, d observe.Document) (observe.Document, error)
}

var _ browser.Service = (*scripted)(nil)

func (s *scripted) Do(ctx context.Context, held lease.Held, permit grant.Permit, r action.Request) (observe.Document, error) {
	plain := r
	plain.Query = observe.Query{}
	d, err := s.Service.Do(ctx, held, permit, plain)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r)
	if err != nil || s.answer == nil {
		return d, err
	}
	return s.answer(len(s.asked), r, d)
}

func (s *scripted) requests() []action.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]action.Request(nil), s.asked...)
}

// newSeeing is a bench whose observations the test scripts, with a session of
// the contract.
func newSeeing(t *testing.T, set contract.Set, answer func(n int, r action.Request, d observe.Document) (observe.Document, error)) (*bench, *scripted) {
	t.Helper()
	var s *scripted
	b := newBench(t, nil, func(c *broker.Config) {
		s = &scripted{Service: c.Service.(*fake.Service), answer: answer}
		c.Service = s
		c.ApproveAll = true
	})
	if set != contract.Newest {
		b.use(t, set)
	}
	return b, s
}

// use moves the agent to a session of the contract.
func (b *bench) use(t *testing.T, set contract.Set) {
	t.Helper()
	err := b.store.Tx(context.Background(), b.agent.Scope, func(tx store.Tx) error {
		old, err := tx.Session(b.agent.Session)
		if err != nil {
			return err
		}
		fresh := run.Session{Scope: b.agent.Scope, ID: ident.New(), ProfileID: b.profile, Origins: old.Origins, Contract: set, CreatedAt: b.clock.Now()}
		b.agent.Session = fresh.ID
		return tx.InsertSession(fresh)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func asJSON(t testing.TB, v any) map[string]any {
	t.Helper()
	body, err := json.Marshal(v)
	var m map[string]any
	if err == nil {
		err = json.Unmarshal(body, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TOOL-10, TOOL-11: the session's contract decides what a call may say and
// what its answer looks like.
func TestContractOfTheSession(t *testing.T) {
	for set, x := range map[contract.Set]struct{ takes, refuses, has, lacks string }{
		"1.0.0": {`{}`, `{"after":"x:1"}`, "content_trust", "coverage"},
		"1.1.0": {`{"element_offset":1}`, `{"after":"x:1"}`, "total_elements", "coverage"},
		"1.7.0": {`{"wait_for":{"role":"button","name":"Save"}}`, `{"since":"x"}`, "condition", "since_unavailable"},
		"1.8.0": {`{"wait_for":{"role":"button","name":"Save"}}`, `{"text_offset":0,"expected_revision":"x"}`, "coverage", "total_elements"},
		"1.9.0": {`{"since":"x"}`, `{"element_offset":1}`, "since_unavailable", "total_elements"},
	} {
		b, _ := newSeeing(t, set, nil)
		if got, err := b.broker.Contract(t.Context(), b.agent); err != nil || got != set {
			t.Errorf("%s: contract %s, %v", set, got, err)
		}
		b.open(t)
		for _, page := range b.world.Live() {
			if page.Spec().Specified != (set != contract.Newest) {
				t.Errorf("%s: a browser that observes as specified: %v", set, page.Spec().Specified)
			}
		}
		_, err := b.broker.Call(t.Context(), b.agent, action.Observe, json.RawMessage(x.refuses), nil)
		wantCode(t, err, fault.ArgumentsInvalid)
		v, err := b.broker.Call(t.Context(), b.agent, action.Observe, json.RawMessage(x.takes), nil)
		if err != nil {
			t.Fatalf("%s: %v", set, err)
		}
		m := asJSON(t, v)
		if _, ok := m[x.has]; !ok || m[x.lacks] != nil {
			t.Errorf("%s: %v", set, m)
		}
	}
}

// EXP-01: what cannot be a call is refused before the browser hears of it.
func TestRefusedArgumentsReachNothing(t *testing.T) {
	b, s := newSeeing(t, contract.Newest, nil)
	_, err := b.call(action.Observe, map[string]any{"after": "x", "selector": "#a"})
	wantCode(t, err, fault.ArgumentsInvalid)
	if len(s.requests()) != 0 || b.world.Launched() != 0 {
		t.Error("the browser was started")
	}
}

// what an agent asks for is what the browser is asked for, and no more: no
// postcondition, no predicate.
func TestQueriesReachTheBrowser(t *testing.T) {
	b, s := newSeeing(t, contract.Newest, nil)
	v := b.open(t)
	ref := v.Elements[0].Ref
	for name, x := range map[string]struct {
		args any
		want observe.Query
	}{
		"after":  {map[string]any{"after": ref}, observe.Query{After: ref}},
		"text":   {map[string]any{"expected_revision": "r", "text_offset": 7}, observe.Query{Text: &observe.TextQuery{Revision: "r", Offset: 7}}},
		"region": {map[string]any{"region_ref": "r:region:0", "expected_revision": "r"}, observe.Query{Region: &observe.RegionQuery{Ref: "r:region:0", Revision: "r"}}},
	} {
		if _, err := b.call(action.Observe, x.args); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all := s.requests()
		got, _ := json.Marshal(all[len(all)-1].Query)
		if want, _ := json.Marshal(x.want); string(got) != string(want) {
			t.Errorf("%s: the browser was asked %s", name, got)
		}
	}
}

func withRegion(d observe.Document) observe.Document {
	d.RegionCoverage = &observe.RegionCoverage{Version: 1, Scope: "main_document"}
	d.Regions = []observe.Region{{Ref: d.Revision + ":region:0", Kind: observe.RegionMain, Text: "main"}}
	return d
}

// FOC-03, FOC-07 to FOC-09: a region is for reading; an offset continues a
// focused read, and takes that read's cursor along. Refusals keep the page and
// reach nothing.
func TestRegionsAndFocus(t *testing.T) {
	b, s := newSeeing(t, contract.Newest, func(_ int, r action.Request, d observe.Document) (observe.Document, error) {
		d = withRegion(d)
		if r.Query.Region != nil {
			d.Text = "some text"
			d.Focus = &observe.Focus{RegionRef: d.Revision + ":focus", TextTotalBytes: 100, TextCursor: strings.Repeat("t", 32)}
		}
		return d, nil
	})
	v := b.open(t)
	region := v.Regions[0].Ref
	_, err := b.call(action.Act, map[string]any{"kind": "click", "expected_revision": v.Revision, "ref": region})
	wantCode(t, err, fault.RegionNotActionable)
	_, err = b.call(action.Observe, map[string]any{"region_ref": region, "expected_revision": v.Revision, "text_offset": 5})
	wantCode(t, err, fault.FocusRequired)
	if n := len(s.requests()); n != 1 || len(b.world.Effects()) != 0 || len(b.approvals(t)) != 0 {
		t.Fatalf("%d operations, effects %v", n, b.world.Effects())
	}
	// A revision that is not the newest still reaches the browser, which knows.
	if _, err = b.call(action.Observe, map[string]any{"region_ref": region, "expected_revision": "old", "text_offset": 5}); err != nil {
		t.Error(err)
	}
	v = b.open(t)
	region = v.Regions[0].Ref
	focused, err := b.call(action.Observe, map[string]any{"region_ref": region, "expected_revision": v.Revision})
	if err != nil || focused.NextText == nil {
		t.Fatalf("%+v, %v", focused.Window, err)
	}
	next := asJSON(t, focused.NextText)
	delete(next, "text_cursor") // the session knows it
	if _, err = b.call(action.Observe, next); err != nil {
		t.Fatal(err)
	}
	all := s.requests()
	if q := all[len(all)-1].Query.Region; q == nil || q.TextOffset != 9 || q.TextCursor != strings.Repeat("t", 32) {
		t.Errorf("the browser was asked for %+v", q)
	}
}

// since: an agent reads what changed, and goes on with new references.
func TestSince(t *testing.T) {
	b, _ := newSeeing(t, contract.Newest, nil)
	v := b.open(t)
	again, err := b.call(action.Observe, map[string]any{"since": v.Revision})
	if err != nil || again.Since != v.Revision || again.Unchanged != 3 || len(again.Elements) != 0 || again.Text != "" || again.Revision == v.Revision {
		t.Fatalf("%+v, %v", asJSON(t, again), err)
	}
	b.world.Put(home, fake.Doc{Title: "Desk", Text: "Tickets", Controls: []fake.Control{{Role: "button", Name: "Saved"}, {Role: "textbox", Name: "Subject", Field: observe.FieldText}}})
	v, err = b.call(action.Observe, map[string]any{"since": again.Revision})
	if err != nil || v.Unchanged != 1 || len(v.Elements) != 1 || v.Elements[0].Name != "Saved" || len(v.Gone) != 1 || v.Gone[0] != 2 {
		t.Fatalf("%+v, %v", asJSON(t, v), err)
	}
	// An element that was not listed again is acted on by its number.
	if _, err := b.call(action.Act, map[string]any{"kind": "type", "expected_revision": v.Revision, "ref": v.Revision + ":1", "value": "hello"}); err != nil {
		t.Fatal(err)
	}
	if e := b.world.Effects(); len(e) != 1 || e[0].Name != "Subject" {
		t.Errorf("effects %v", e)
	}
	if v, err = b.call(action.Observe, map[string]any{"since": again.Revision}); err != nil || !v.SinceUnavailable || len(v.Elements) != 2 {
		t.Errorf("an old revision: %+v, %v", asJSON(t, v), err)
	}
}

// CHAL-01, REC-02: a sign-in challenge ends a read with its mark and without
// references, and an act in uncertainty; the lease is kept for the owner.
func TestChallenge(t *testing.T) {
	challenged := func(_ int, r action.Request, d observe.Document) (observe.Document, error) {
		if r.Tool == action.Navigate {
			return d, nil
		}
		return observe.Document{URL: d.URL, Revision: d.Revision, Interruption: observe.NeedsUser}, nil
	}
	b, s := newSeeing(t, contract.Newest, challenged)
	v := b.open(t)
	args := act(v, "click", "Save")
	_, err := b.call(action.Act, args)
	wantCode(t, err, fault.OutcomeUnknown)
	if i := b.invocations(t)[0]; i.Outcome != run.Uncertain || b.service.Leases() != 1 {
		t.Errorf("invocation %+v, %d leases", i, b.service.Leases())
	}
	for tool, again := range map[action.Tool]any{action.Act: args, action.Observe: struct{}{}} { // the profile waits for its owner
		_, err = b.call(tool, again)
		wantCode(t, err, fault.NeedsUser)
	}
	if len(b.world.Effects()) != 1 || len(s.requests()) != 2 {
		t.Errorf("effects %v", b.world.Effects())
	}
	b, _ = newSeeing(t, contract.Newest, challenged)
	b.open(t)
	v, err = b.call(action.Observe, struct{}{})
	if err != nil || v.Interruption != observe.NeedsUser || len(v.Elements) != 0 {
		t.Errorf("%+v, %v", asJSON(t, v), err)
	}
	if p := b.record(t); p.Status != profile.NeedsUser {
		t.Errorf("after a read that met a challenge the profile is %s", p.Status)
	}
	old, _ := newSeeing(t, "1.0.0", challenged)
	old.open(t)
	_, err = old.call(action.Observe, struct{}{})
	wantCode(t, err, fault.NeedsUser)
}

// OPD-01 to OPD-04: every call leaves a bounded record of its phases that has
// no text of anybody's in it.
func TestDiagnostics(t *testing.T) {
	b, _ := newSeeing(t, contract.Newest, nil)
	b.open(t)
	const marker = "marker-of-a-page"
	_, err := b.call("browser."+marker, struct{}{})
	wantCode(t, err, fault.ArgumentsInvalid)
	for range 300 {
		_, err = b.call(action.Act, map[string]any{"kind": "click", "expected_revision": marker, "ref": marker})
	}
	wantCode(t, err, fault.PageChanged)
	kept := b.broker.Diagnostics(b.agent.Scope)
	if len(kept) != 256 {
		t.Fatalf("%d calls are kept", len(kept))
	}
	if _, err := b.call(action.Observe, struct{}{}); err != nil {
		t.Fatal(err)
	}
	kept = b.broker.Diagnostics(b.agent.Scope)
	last := kept[len(kept)-1]
	var phases []string
	for _, p := range last.Phases {
		phases = append(phases, fmt.Sprint(p.Phase, "/", p.Placement, "/", p.Category))
	}
	want := "prepare/orchestrator/none acquire/isolated/none permit/database/none dispatch/isolated/none record/database/none project/orchestrator/none"
	if got := strings.Join(phases, " "); got != want || last.Tool != action.Observe || last.Category != broker.NoFailure || last.Version != 1 {
		t.Errorf("%+v: %s", last, got)
	}
	if before := kept[len(kept)-2]; before.Category != broker.InvalidArguments {
		t.Errorf("%+v", before)
	}
	if s := fmt.Sprintf("%+v", kept); strings.Contains(s, marker) {
		t.Error("a call's words are in its record")
	}
}
