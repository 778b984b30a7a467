// Package servicetest is the contract of browser.Service: the same cases for
// the fake, for the real service in process, and for the real one behind its
// socket. Each case looks at the websites and browsers behind the service, not
// only at its answers (GATE-01, LIFE-01, LIFE-02, HCP-04, LEASE-02, LEASE-04,
// CONS-01, CONS-04, LEASE-05, LEASE-07 to LEASE-09, RENEW-01, CER-02, CER-03, EPH-02, SHTTP-02).
package servicetest

import (
	"context"
	"encoding/json"
	"runtime"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/grant"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/rules/policy"
)

// Subject is one service under test, fresh for each case, over World.
type Subject struct {
	Service browser.Service
	World   *fake.World
	Now     func() time.Time
	Advance func(time.Duration) // moves Now
}

// T is what a case needs of *testing.T.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Context() context.Context
}

// Run holds the services that open makes to the contract.
func Run(t *testing.T, open func(*testing.T) Subject) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(begin(t, open(t))) })
	}
}

// Failures runs the contract and returns the names of the cases that failed.
// It exists to show that broken services are caught.
func Failures(ctx context.Context, open func() Subject) []string {
	var failed []string
	for _, c := range cases {
		r := &recorder{ctx: ctx}
		done := make(chan struct{})
		go func() { // Fatalf ends a goroutine
			defer close(done)
			c.run(begin(r, open()))
		}()
		<-done
		if r.failed {
			failed = append(failed, c.name)
		}
	}
	return failed
}

type recorder struct {
	ctx    context.Context
	failed bool
}

func (*recorder) Helper()                    {}
func (r *recorder) Errorf(string, ...any)    { r.failed = true }
func (r *recorder) Fatalf(string, ...any)    { r.failed = true; runtime.Goexit() }
func (r *recorder) Context() context.Context { return r.ctx }

// Addresses of the scripted website.
const (
	Home    = "https://desk.practice.example/"
	SignIn  = "https://desk.practice.example/sign-in"
	Off     = "https://elsewhere.example/"
	Account = "https://desk.practice.example/account"
)

// Website fills the world with a home page that has one button, and a page
// that asks to sign in and leads to the account.
func Website(w *fake.World) {
	w.Put(Home, fake.Doc{Title: "Desk", Text: "Hello", Controls: []fake.Control{{Role: "button", Name: "Save"}}})
	w.Put(SignIn, fake.Doc{Title: "Sign in", Challenge: true, Controls: []fake.Control{
		{Role: "textbox", Name: "Password", Field: observe.FieldPassword},
		{Role: "button", Name: "Sign in", Opens: Account, SetsCookie: "session"},
	}})
	w.Put(Account, fake.Doc{Title: "Account", Text: "Welcome"})
	w.Put(Off, fake.Doc{Title: "Elsewhere"})
}

// owner is the scope that the cases act for.
var owner = caller.Scope{Tenant: "local", Principal: "ada"}

// env is a case's view of its subject, with one provisioned profile.
type env struct {
	T
	Subject
	profile string
	ref     string
	origins site.Origins
}

func begin(t T, s Subject) *env {
	t.Helper()
	Website(s.World)
	e := &env{T: t, Subject: s, profile: ident.New()}
	var err error
	if e.origins, err = site.ParseOrigins([]string{"https://desk.practice.example"}); err != nil {
		t.Fatalf("origins: %v", err)
	}
	p, err := s.Service.Provision(t.Context(), owner, e.profile, e.origins)
	if err != nil {
		t.Fatalf("provision: %v", err)
	}
	e.ref = p.ProviderRef
	return e
}

func (e *env) key(run string) lease.Key {
	return lease.Key{Scope: owner, ProfileID: e.profile, ProviderRef: e.ref, RunID: run, Attempt: 1, Origins: e.origins}
}

func (e *env) acquire(run string) browser.Lease {
	e.Helper()
	l, err := e.Service.Acquire(e.Context(), e.key(run), true, e.Now().Add(10*time.Minute))
	if err != nil {
		e.Fatalf("acquire: %v", err)
	}
	return l
}

// refused demands an error, with one of the codes if any are named.
func (e *env) refused(what string, err error, codes ...fault.Code) {
	e.Helper()
	if err == nil {
		e.Errorf("%s was accepted", what)
		return
	}
	for _, c := range codes {
		if fault.Is(err, c) {
			return
		}
	}
	if len(codes) > 0 {
		e.Errorf("%s: code %q, want one of %q", what, fault.CodeOf(err), codes)
	}
}

func (e *env) request(tool action.Tool, arguments any) action.Request {
	e.Helper()
	b, err := json.Marshal(arguments)
	if err != nil {
		e.Fatalf("arguments: %v", err)
	}
	r, err := action.Prepare(tool, b)
	if err != nil {
		e.Fatalf("prepare: %v", err)
	}
	return r
}

// do holds the lease, gets the owner's permit, and dispatches.
func (e *env) do(ref string, sequence int64, r action.Request) (observe.Document, error) {
	e.Helper()
	h, err := lease.Hold(ref, sequence, e.Now().Add(time.Minute), e.Now())
	if err != nil {
		e.Fatalf("hold: %v", err)
	}
	return e.Service.Do(e.Context(), h, e.permit(r), r)
}

func (e *env) permit(r action.Request) grant.Permit {
	e.Helper()
	if !r.Tool.Writes() {
		p, err := grant.FromPolicy(policy.Decision{Verdict: policy.Allow}, r)
		if err != nil {
			e.Fatalf("permit: %v", err)
		}
		return p
	}
	now := e.Now()
	a := approval.Approval{Scope: owner, ID: ident.New(), SessionID: "run", Digest: r.Digest, Status: approval.Approved, ExpiresAt: now.Add(time.Hour)}
	p, _, err := grant.FromApproval(a, "run", a.Generation, r, now)
	if err != nil {
		e.Fatalf("permit: %v", err)
	}
	return p
}

func (e *env) open(ref string, url string) observe.Document {
	e.Helper()
	d, err := e.do(ref, 1, e.request(action.Navigate, map[string]string{"url": url}))
	if err != nil {
		e.Fatalf("navigate: %v", err)
	}
	return d
}

// click is an act on the only control of the document.
func (e *env) click(d observe.Document) action.Request {
	e.Helper()
	return e.request(action.Act, map[string]string{"kind": "click", "expected_revision": d.Revision, "ref": d.Elements[0].Ref})
}

// page is the only browser there is.
func (e *env) page() *fake.Page {
	e.Helper()
	live := e.World.Live()
	if len(live) != 1 {
		e.Fatalf("%d browsers are open, want 1", len(live))
	}
	return live[0]
}

// cookie is the value of the session cookie in a browser started from the seal.
func (e *env) cookie(run string) string {
	e.Helper()
	l := e.acquire(run)
	m, err := e.page().Capture(e.Context())
	if err != nil {
		e.Fatalf("capture: %v", err)
	}
	e.page().Crash() // so that looking changes nothing
	if err := e.Service.CloseLease(e.Context(), l.Ref); err != nil {
		e.Fatalf("close: %v", err)
	}
	for _, c := range m.Cookies {
		if c.Name == "session" {
			return c.Value
		}
	}
	return ""
}

// sealed opens a lease, sets the cookie and closes it healthily.
func (e *env) sealed(value string) {
	e.Helper()
	l := e.acquire("seal-" + value)
	e.page().SetCookie("session", value)
	if err := e.Service.CloseLease(e.Context(), l.Ref); err != nil {
		e.Fatalf("close: %v", err)
	}
}
