package servicetest

import (
	"context"
	"strings"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/rules/grant"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
)

var cases = []struct {
	name string
	run  func(*env)
}{
	{"LIFE-01 provision is idempotent for one scope and one set of origins", provisionTwice},
	{"HCP-04 a foreign owner finds nothing", foreign},
	{"LEASE-04 the same key attaches to the same lease", attach},
	{"LEASE-05 another run is refused", otherRun},
	{"LEASE-02 an old reference opens nothing", oldReference},
	{"LEASE-07 no dispatch without a lease and the right permit", permits},
	{"LEASE-07 navigation stays on the lease's origins", offOrigin},
	{"SHTTP-02 an act is dispatched once", actOnce},
	{"CONS-01 CONS-04 an act that its grant does not cover keeps its number", uncovered},
	{"UPL-08 SHTTP-02 an image is uploaded once, whole", uploadOnce},
	{"UPL-06 UPL-08 no upload without its image, lease and permit", uploadGuarded},
	{"VIEW-02 a picture uses nothing up", pictures},
	{"REL-01 a browser lost in an act is outcome unknown and is not sealed", crash},
	{"LEASE-08 a healthy close seals", seals},
	{"LEASE-08 an expired lease is not sealed", expiry},
	{"LEASE-08 an empty session does not replace a seal", empty},
	{"LEASE-02 RENEW-01 deadlines are capped", caps},
	{"LEASE-09 revoke closes every browser first", revokes},
	{"LEASE-09 revoke during an act", revokeDuringAct},
	{"LIFE-02 delete needs a revoked profile and repeats", deletes},
	{"CER-03 one sign-in at a time, and no lease beside it", signIns},
	{"CER-02 the capability is in one answer", capabilities},
	{"CER-01 the sign-in address is on the profile's origins", signInAddress},
	{"EPH-02 an ephemeral browser keeps nothing", ephemeral},
}

func provisionTwice(e *env) {
	again, err := e.Service.Provision(e.Context(), owner, e.profile, e.origins)
	if err != nil || again.ProviderRef != e.ref {
		e.Errorf("a repetition gave another reference, or %v", err)
	}
	_, err = e.Service.Provision(e.Context(), caller.Scope{Tenant: "local", Principal: "eve"}, e.profile, e.origins)
	e.refused("another owner's provision", err, fault.Conflict)
	others, err := site.ParseOrigins([]string{"https://elsewhere.example"})
	if err != nil {
		e.Fatalf("origins: %v", err)
	}
	_, err = e.Service.Provision(e.Context(), owner, e.profile, others)
	e.refused("provision with other origins", err, fault.Conflict)
}

func foreign(e *env) {
	eve := caller.Scope{Tenant: "local", Principal: "eve"}
	key := e.key("run")
	key.Scope = eve
	_, err := e.Service.Acquire(e.Context(), key, true, e.Now().Add(time.Minute))
	e.refused("acquire", err, fault.ProfileUnavailable)
	wrong := e.key("run")
	wrong.ProviderRef = ident.Token(32)
	_, err = e.Service.Acquire(e.Context(), wrong, true, e.Now().Add(time.Minute))
	e.refused("acquire with another reference", err, fault.ProfileUnavailable)
	if n := e.World.Launched(); n != 0 {
		e.Errorf("refused calls started %d browsers", n)
	}
	c, err := e.Service.BeginCeremony(e.Context(), owner, e.profile, e.ref, e.request(action.Navigate, map[string]string{"url": SignIn}).URL)
	if err != nil {
		e.Fatalf("begin: %v", err)
	}
	e.refused("revoke", e.Service.Revoke(e.Context(), eve, e.profile, e.ref), fault.ProfileUnavailable)
	e.refused("delete", e.Service.Delete(e.Context(), eve, e.profile, e.ref), fault.ProfileUnavailable)
	_, err = e.Service.CeremonyStatus(e.Context(), eve, c.ID)
	e.refused("status", err, fault.NotFound)
	e.refused("cancel", e.Service.CancelCeremony(e.Context(), eve, c.ID), fault.NotFound)
	if err := e.Service.CancelCeremony(e.Context(), owner, c.ID); err != nil {
		e.Fatalf("cancel: %v", err)
	}
	e.acquire("run") // the profile is still the owner's
}

func attach(e *env) {
	l := e.acquire("run")
	e.open(l.Ref, Home)
	again, err := e.Service.Acquire(e.Context(), e.key("run"), true, e.Now().Add(14*time.Minute))
	if err != nil {
		e.Fatalf("acquire: %v", err)
	}
	if again.Ref != l.Ref || again.Sequence != l.Sequence || !again.ExpiresAt.Equal(l.ExpiresAt) {
		e.Errorf("the same key got another lease: %v and %v", l.ExpiresAt, again.ExpiresAt)
	}
	if n := e.World.Launched(); n != 1 {
		e.Errorf("%d browsers were started", n)
	}
}

func otherRun(e *env) {
	e.acquire("run")
	_, err := e.Service.Acquire(e.Context(), e.key("other"), true, e.Now().Add(time.Minute))
	e.refused("a second run", err, fault.ProfileUnavailable)
	if n := e.World.Launched(); n != 1 {
		e.Errorf("%d browsers were started", n)
	}
}

func oldReference(e *env) {
	first := e.acquire("run")
	if err := e.Service.CloseLease(e.Context(), first.Ref); err != nil {
		e.Fatalf("close: %v", err)
	}
	if second := e.acquire("run"); second.Ref == first.Ref {
		e.Errorf("two leases of one run have the same reference")
	}
	_, err := e.do(first.Ref, 1, e.request(action.Navigate, map[string]string{"url": Home}))
	e.refused("a closed lease's reference", err, fault.ProfileUnavailable)
	_, err = e.Service.Renew(e.Context(), first.Ref, e.Now().Add(time.Minute))
	e.refused("renewing a closed lease", err, fault.ProfileUnavailable)
	if err := e.Service.CloseLease(e.Context(), first.Ref); err != nil {
		e.Errorf("closing a closed lease: %v", err)
	}
	if r := e.World.Requests(); len(r) != 0 {
		e.Errorf("requests were sent: %v", r)
	}
}

func permits(e *env) {
	l := e.acquire("run")
	r := e.request(action.Navigate, map[string]string{"url": Home})
	h, err := lease.Hold(l.Ref, 1, e.Now().Add(time.Minute), e.Now())
	if err != nil {
		e.Fatalf("hold: %v", err)
	}
	_, err = e.Service.Do(e.Context(), lease.Held{}, e.permit(r), r)
	e.refused("no lease", err)
	_, err = e.Service.Do(e.Context(), h, grant.Permit{}, r)
	e.refused("no permit", err)
	_, err = e.Service.Do(e.Context(), h, e.permit(e.request(action.Observe, struct{}{})), r)
	e.refused("another call's permit", err)
	if sent := e.World.Requests(); len(sent) != 0 {
		e.Errorf("requests were sent: %v", sent)
	}
}

func offOrigin(e *env) {
	l := e.acquire("run")
	_, err := e.do(l.Ref, 1, e.request(action.Navigate, map[string]string{"url": Off}))
	e.refused("another origin", err, fault.URLDisallowed)
	if sent := e.World.Requests(); len(sent) != 0 {
		e.Errorf("requests were sent: %v", sent)
	}
}

func actOnce(e *env) {
	l := e.acquire("run")
	d := e.open(l.Ref, Home)
	d, err := e.do(l.Ref, l.Sequence, e.click(d))
	if err != nil {
		e.Fatalf("act: %v", err)
	}
	_, err = e.do(l.Ref, l.Sequence, e.click(d))
	e.refused("a repeated number", err, fault.OutcomeUnknown)
	if n := len(e.World.Effects()); n != 1 {
		e.Errorf("%d effects, want 1", n)
	}
	next := e.acquire("run").Sequence
	if _, err := e.do(l.Ref, next, e.click(d)); err != nil {
		e.Errorf("the next number: %v", err)
	}
	if n := len(e.World.Effects()); n != 2 {
		e.Errorf("%d effects, want 2", n)
	}
}

func crash(e *env) {
	e.sealed("good")
	l := e.acquire("run")
	d := e.open(l.Ref, Home)
	e.page().SetCookie("session", "doubtful")
	e.World.OnAct(func(_ context.Context, p *fake.Page, _ action.Action) error {
		p.Crash()
		return fault.New(fault.OutcomeUnknown, "The browser ended.")
	})
	_, err := e.do(l.Ref, l.Sequence, e.click(d))
	e.refused("an act that lost its browser", err, fault.OutcomeUnknown)
	if err := e.Service.CloseLease(e.Context(), l.Ref); err != nil {
		e.Errorf("close: %v", err)
	}
	if c := e.cookie("after"); c != "good" {
		e.Errorf("the seal holds %q, want the earlier session", c)
	}
}

func seals(e *env) {
	e.sealed("one")
	if c := e.cookie("check"); c != "one" {
		e.Errorf("the seal holds %q", c)
	}
	e.sealed("two")
	if c := e.cookie("check again"); c != "two" {
		e.Errorf("the seal holds %q", c)
	}
	if n := len(e.World.Live()); n != 0 {
		e.Errorf("%d browsers are left", n)
	}
}

func expiry(e *env) {
	e.sealed("good")
	l := e.acquire("run")
	e.page().SetCookie("session", "late")
	e.Advance(16 * time.Minute)
	h, err := lease.Hold(l.Ref, 1, e.Now().Add(time.Minute), e.Now())
	if err != nil {
		e.Fatalf("hold: %v", err)
	}
	r := e.request(action.Navigate, map[string]string{"url": Home})
	_, err = e.Service.Do(e.Context(), h, e.permit(r), r)
	e.refused("an expired lease", err, fault.ProfileUnavailable)
	_, err = e.Service.Renew(e.Context(), l.Ref, e.Now().Add(time.Minute))
	e.refused("renewing an expired lease", err, fault.ProfileUnavailable)
	if err := e.Service.CloseLease(e.Context(), l.Ref); err != nil {
		e.Errorf("close: %v", err)
	}
	if c := e.cookie("after"); c != "good" {
		e.Errorf("the seal holds %q, want the earlier session", c)
	}
}

func empty(e *env) {
	e.sealed("good")
	l := e.acquire("run")
	if err := e.page().Restore(e.Context(), browser.Material{}); err != nil {
		e.Fatalf("restore: %v", err)
	}
	if err := e.Service.CloseLease(e.Context(), l.Ref); err != nil {
		e.Errorf("close: %v", err)
	}
	if c := e.cookie("after"); c != "good" {
		e.Errorf("the seal holds %q, want the earlier session", c)
	}
}

func caps(e *env) {
	began := e.Now()
	l, err := e.Service.Acquire(e.Context(), e.key("run"), true, began.Add(10*time.Hour))
	if err != nil {
		e.Fatalf("acquire: %v", err)
	}
	if d := l.ExpiresAt.Sub(began); d > lease.MaxStep+time.Minute || d < lease.MaxStep-time.Minute {
		e.Errorf("the first deadline is %v away", d)
	}
	for range 8 {
		e.Advance(10 * time.Minute)
		renewed, err := e.Service.Renew(e.Context(), l.Ref, e.Now().Add(10*time.Hour))
		if err != nil {
			break // its life is over
		}
		l = renewed
		if d := l.ExpiresAt.Sub(e.Now()); d > lease.MaxStep+time.Minute {
			e.Errorf("a renewal is %v long", d)
		}
	}
	if d := l.ExpiresAt.Sub(began); d > lease.MaxLife+time.Minute || d < lease.MaxLife-time.Minute {
		e.Errorf("the whole life is %v", d)
	}
}

func revokes(e *env) {
	l := e.acquire("run")
	if err := e.Service.Revoke(e.Context(), owner, e.profile, e.ref); err != nil {
		e.Fatalf("revoke: %v", err)
	}
	if n := len(e.World.Live()); n != 0 {
		e.Errorf("%d browsers are left when revoke returned", n)
	}
	_, err := e.do(l.Ref, 1, e.request(action.Navigate, map[string]string{"url": Home}))
	e.refused("a revoked lease", err, fault.ProfileUnavailable)
	_, err = e.Service.Acquire(e.Context(), e.key("other"), true, e.Now().Add(time.Minute))
	e.refused("acquire after revoke", err, fault.ProfileUnavailable)
	_, err = e.Service.BeginCeremony(e.Context(), owner, e.profile, e.ref, e.request(action.Navigate, map[string]string{"url": SignIn}).URL)
	e.refused("sign-in after revoke", err)
	if err := e.Service.Revoke(e.Context(), owner, e.profile, e.ref); err != nil {
		e.Errorf("revoking again: %v", err)
	}
	if n := e.World.Launched(); n != 1 {
		e.Errorf("%d browsers were started", n)
	}
}

func revokeDuringAct(e *env) {
	l := e.acquire("run")
	d := e.open(l.Ref, Home)
	sent := make(chan struct{})
	e.World.OnAct(func(_ context.Context, p *fake.Page, _ action.Action) error {
		close(sent)
		<-p.Done()
		return fault.New(fault.OutcomeUnknown, "The browser ended.")
	})
	click := e.click(d)
	h, err := lease.Hold(l.Ref, l.Sequence, e.Now().Add(time.Minute), e.Now())
	if err != nil {
		e.Fatalf("hold: %v", err)
	}
	permit := e.permit(click)
	acted := make(chan error, 1)
	go func() {
		_, err := e.Service.Do(e.Context(), h, permit, click)
		acted <- err
	}()
	<-sent
	if err := e.Service.Revoke(e.Context(), owner, e.profile, e.ref); err != nil {
		e.Errorf("revoke: %v", err)
	}
	if n := len(e.World.Live()); n != 0 {
		e.Errorf("%d browsers are left when revoke returned", n)
		for _, p := range e.World.Live() {
			p.Crash() // a service that fails here must not hang the suite
		}
	}
	e.refused("the act", <-acted, fault.OutcomeUnknown)
}

func deletes(e *env) {
	e.refused("deleting a live profile", e.Service.Delete(e.Context(), owner, e.profile, e.ref), fault.Conflict)
	e.acquire("run") // it is still there
	if err := e.Service.Revoke(e.Context(), owner, e.profile, e.ref); err != nil {
		e.Fatalf("revoke: %v", err)
	}
	for range 2 {
		if err := e.Service.Delete(e.Context(), owner, e.profile, e.ref); err != nil {
			e.Errorf("delete: %v", err)
		}
	}
	_, err := e.Service.Acquire(e.Context(), e.key("other"), true, e.Now().Add(time.Minute))
	e.refused("acquire after delete", err, fault.ProfileUnavailable)
}

func signIns(e *env) {
	login := e.request(action.Navigate, map[string]string{"url": SignIn}).URL
	c, err := e.Service.BeginCeremony(e.Context(), owner, e.profile, e.ref, login)
	if err != nil {
		e.Fatalf("begin: %v", err)
	}
	started := e.World.Launched()
	_, err = e.Service.BeginCeremony(e.Context(), owner, e.profile, e.ref, login)
	e.refused("a second sign-in", err, fault.Conflict)
	_, err = e.Service.Acquire(e.Context(), e.key("run"), true, e.Now().Add(time.Minute))
	e.refused("a lease beside a sign-in", err, fault.ProfileUnavailable)
	if n := e.World.Launched(); n != started {
		e.Errorf("refused calls started %d browsers", n-started)
	}
	s, err := e.Service.CeremonyStatus(e.Context(), owner, c.ID)
	if err != nil || s.Terminal() {
		e.Errorf("status %q, %v", s, err)
	}
	for range 2 {
		if err := e.Service.CancelCeremony(e.Context(), owner, c.ID); err != nil {
			e.Errorf("cancel: %v", err)
		}
	}
	if s, err := e.Service.CeremonyStatus(e.Context(), owner, c.ID); err != nil || s != ceremony.Cancelled {
		e.Errorf("status %q, %v", s, err)
	}
	if n := len(e.World.Live()); n != 0 {
		e.Errorf("%d browsers are left", n)
	}
	e.acquire("run")
}

func capabilities(e *env) {
	login := e.request(action.Navigate, map[string]string{"url": SignIn}).URL
	seen := map[string]bool{}
	for range 2 {
		c, err := e.Service.BeginCeremony(e.Context(), owner, e.profile, e.ref, login)
		if err != nil {
			e.Fatalf("begin: %v", err)
		}
		address, capability, ok := strings.Cut(c.LaunchURL.Reveal(), "#")
		if !ok || len(capability) < 43 || !strings.HasSuffix(address, "/authentication/"+c.ID) || strings.Contains(address, "?") {
			e.Errorf("the launch address is not /authentication/{id}#capability")
		}
		if seen[capability] || seen[c.ID] {
			e.Errorf("two sign-ins share a capability or an id")
		}
		seen[capability], seen[c.ID] = true, true
		if d := c.ExpiresAt.Sub(e.Now()); d > ceremony.Life || d < ceremony.Life-time.Minute {
			e.Errorf("the sign-in lasts %v", d)
		}
		if err := e.Service.CancelCeremony(e.Context(), owner, c.ID); err != nil {
			e.Errorf("cancel: %v", err)
		}
	}
}

func signInAddress(e *env) {
	_, err := e.Service.BeginCeremony(e.Context(), owner, e.profile, e.ref, e.request(action.Navigate, map[string]string{"url": Off}).URL)
	e.refused("a sign-in elsewhere", err, fault.URLDisallowed)
	if sent := e.World.Requests(); len(sent) != 0 {
		e.Errorf("requests were sent: %v", sent)
	}
	if n := e.World.Launched(); n != 0 {
		e.Errorf("a refused sign-in started %d browsers", n)
	}
}

func ephemeral(e *env) {
	key := lease.Key{Scope: owner, RunID: "run", Attempt: 1, Origins: e.origins, Specified: true}
	l, err := e.Service.Acquire(e.Context(), key, false, e.Now().Add(time.Minute))
	if err != nil {
		e.Fatalf("acquire: %v", err)
	}
	if s := e.page().Spec(); s.Headed || !s.Specified {
		e.Errorf("the browser is not what was asked for: %+v", s)
	}
	e.page().SetCookie("session", "passing")
	if err := e.Service.CloseLease(e.Context(), l.Ref); err != nil {
		e.Errorf("close: %v", err)
	}
	if n := len(e.World.Live()); n != 0 {
		e.Fatalf("%d browsers are left", n)
	}
	if _, err := e.Service.Acquire(e.Context(), key, false, e.Now().Add(time.Minute)); err != nil {
		e.Fatalf("acquire: %v", err)
	}
	if m, err := e.page().Capture(e.Context()); err != nil || !m.Empty() {
		e.Errorf("a new ephemeral browser has a session: %v, %v", m, err)
	}
	e.page().Crash()
	if c := e.cookie("profile"); c != "" {
		e.Errorf("the profile got the ephemeral session")
	}
}
