package grant

import (
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/consequence"
	"github.com/chaperone-agents/chaperone/internal/rules/constraint"
	"github.com/chaperone-agents/chaperone/internal/rules/policy"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// GATE-05: the zero permit authorizes nothing, not even the call without a digest.
func TestZeroPermit(t *testing.T) {
	var p Permit
	if p.For("") || p.For("d1") || p.Source() != "" || p.Ref() != "" {
		t.Errorf("%+v", p)
	}
}

func TestFromPolicy(t *testing.T) {
	r := action.Request{Tool: action.Observe, Digest: "d1"}
	p, err := FromPolicy(policy.Decision{Verdict: policy.Allow}, r)
	if err != nil || !p.For("d1") || p.For("d2") || p.For("") || p.Source() != ByPolicy || p.Ref() != policy.Version {
		t.Errorf("%+v, %v", p, err)
	}
	for _, v := range []policy.Verdict{policy.Deny, policy.Ask, 3, -1} {
		if p, err := FromPolicy(policy.Decision{Verdict: v}, r); !fault.Is(err, fault.ActionNotAllowed) || p != (Permit{}) {
			t.Errorf("verdict %d: %+v, %v", v, p, err)
		}
	}
	if p, err := FromPolicy(policy.Decision{Verdict: policy.Allow}, action.Request{}); err == nil || p != (Permit{}) {
		t.Errorf("a request that was not prepared: %+v, %v", p, err)
	}
}

// POL-02: one approval is one permit, for its own call.
func TestFromApproval(t *testing.T) {
	r := action.Request{Tool: action.Act, Digest: "d1"}
	a := approval.Approval{ID: "a1", SessionID: "s1", Digest: "d1", Generation: 2, Status: approval.Approved, ExpiresAt: now.Add(time.Hour)}
	p, used, err := FromApproval(a, "s1", 2, r, now)
	if err != nil || !p.For("d1") || p.For("d2") || p.For("") || p.Source() != ByApproval || p.Ref() != "a1" || used.Status != approval.Used {
		t.Fatalf("%+v, %+v, %v", p, used, err)
	}
	changed := func(f func(*approval.Approval)) approval.Approval { x := a; f(&x); return x }
	for _, x := range []struct {
		what       string
		a          approval.Approval
		session    string
		generation int64
		r          action.Request
		at         time.Time
	}{
		{"a used one", used, "s1", 2, r, now},
		{"a pending one", changed(func(a *approval.Approval) { a.Status = approval.Pending }), "s1", 2, r, now},
		{"a denied one", changed(func(a *approval.Approval) { a.Status = approval.Denied }), "s1", 2, r, now},
		{"an expired one", a, "s1", 2, r, now.Add(time.Hour)},
		{"another session", a, "s2", 2, r, now},
		{"another sign-in", a, "s1", 3, r, now},
		{"another call", a, "s1", 2, action.Request{Tool: action.Act, Digest: "d2"}, now},
		{"a call that was not prepared", changed(func(a *approval.Approval) { a.Digest = "" }), "s1", 2, action.Request{Tool: action.Act}, now},
		{"one without an id", changed(func(a *approval.Approval) { a.ID = "" }), "s1", 2, r, now},
		{"nothing", approval.Approval{}, "", 0, action.Request{}, now},
	} {
		p, after, err := FromApproval(x.a, x.session, x.generation, x.r, x.at)
		if err == nil || p != (Permit{}) || after.Status != x.a.Status {
			t.Errorf("%s: %+v, %+v, %v", x.what, p, after, err)
		}
	}
}

// CONS-01: a constraint goes with the permit of one act, and only takes away.
func TestUnder(t *testing.T) {
	origins, err := site.ParseOrigins([]string{"https://learn.example"})
	if err != nil {
		t.Fatal(err)
	}
	c := constraint.Constraint{Kind: constraint.Standing, Origins: origins, ExpiresAt: now.Add(time.Hour), Ceiling: consequence.Routine}
	r := action.Request{Tool: action.Act, Digest: "d1"}
	p, err := FromPolicy(policy.Decision{Verdict: policy.Allow}, r)
	if err != nil || p.Constraint() != nil {
		t.Fatalf("%+v, %v", p, err)
	}
	limited, err := p.Under(c, r)
	if err != nil || !limited.For("d1") || limited.For("d2") || limited.Source() != p.Source() || limited.Constraint() == nil || p.Constraint() != nil {
		t.Fatalf("%+v, %v", limited, err)
	}
	c.Origins[0] = site.Origin{}
	if limited.Constraint().Validate() != nil {
		t.Error("the constraint of a permit can be changed from outside")
	}
	c.Origins = origins[:0:0]
	for what, x := range map[string]struct {
		p    Permit
		c    constraint.Constraint
		r    action.Request
		code fault.Code
	}{
		"no permit":                      {Permit{}, *limited.Constraint(), r, fault.ActionNotAllowed},
		"a permit for another call":      {p, *limited.Constraint(), action.Request{Tool: action.Act, Digest: "d2"}, fault.ActionNotAllowed},
		"a call that is no act":          {p, *limited.Constraint(), action.Request{Tool: action.Upload, Digest: "d1"}, fault.ActionNotAllowed},
		"a second constraint":            {limited, *limited.Constraint(), r, fault.ActionNotAllowed},
		"a constraint without origins":   {p, c, r, fault.ArgumentsInvalid},
		"a constraint that says nothing": {p, constraint.Constraint{}, r, fault.ArgumentsInvalid},
	} {
		if got, err := x.p.Under(x.c, x.r); !fault.Is(err, x.code) || got != (Permit{}) {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
}
