package browserd_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chaperone-agents/chaperone/internal/app/browserd"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/browser/servicetest"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/constraint"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// CAPY-01, CAPY-02: over the cap nothing is started, re-attaching takes no
// slot, and a closed browser frees its slot.
func TestCapacity(t *testing.T) {
	r := newRig(t, func(c *browserd.Config) { c.Capacity = 2 })
	first := r.acquire("run")
	other := r.key("run")
	other.ProfileID, other.ProviderRef = "", ""
	second, err := r.Acquire(t.Context(), other, false, time.Now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	third := other
	third.RunID = "third"
	_, err = r.Acquire(t.Context(), third, false, time.Now().Add(time.Minute))
	if e := fault.Public(err); e.Code != fault.ProviderUnavailable || !e.Retryable {
		t.Errorf("over the cap: %v", err)
	}
	if r.acquire("run").Ref != first.Ref {
		t.Error("re-attaching over the cap gave another lease")
	}
	if n := r.world.Launched(); n != 2 {
		t.Errorf("%d browsers were started", n)
	}
	if err := r.CloseLease(t.Context(), second.Ref); err != nil {
		t.Fatal(err)
	}
	if _, err = r.Acquire(t.Context(), third, false, time.Now().Add(time.Minute)); err != nil {
		t.Errorf("after a close: %v", err)
	}
	id := ident.New()
	p, err := r.Provision(t.Context(), ada, id, r.origins)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.BeginCeremony(t.Context(), ada, id, p.ProviderRef, r.request(action.Navigate, map[string]string{"url": servicetest.SignIn}).URL)
	if e := fault.Public(err); e.Code != fault.ProviderUnavailable || !e.Retryable {
		t.Errorf("a sign-in over the cap: %v", err)
	}
}

// LEASE-04: many callers with one key get one browser.
func TestConcurrentAcquire(t *testing.T) {
	r := newRig(t)
	r.world.OnLaunch(func(browser.Spec) error { runtime.Gosched(); return nil })
	refs := make([]string, 16)
	var all sync.WaitGroup
	for i := range refs {
		all.Go(func() { refs[i] = r.acquire("run").Ref })
	}
	all.Wait()
	for _, ref := range refs {
		if ref != refs[0] {
			t.Error("two references for one key")
		}
	}
	if n := r.world.Launched(); n != 1 {
		t.Errorf("%d browsers were started", n)
	}
}

// HEAD-01, HEAD-03: a browser that cannot start is never replaced by another
// kind, and its slot is free again. Its own words stay inside.
func TestLaunchFailure(t *testing.T) {
	r := newRig(t, func(c *browserd.Config) { c.Capacity = 1 })
	r.world.OnLaunch(func(s browser.Spec) error {
		if !s.Headed {
			t.Error("a headless browser was asked for")
		}
		return errors.New("Xvfb: cannot open /planted/path")
	})
	for range 2 {
		_, err := r.Acquire(t.Context(), r.key("run"), true, time.Now().Add(time.Minute))
		if e := fault.Public(err); e.Code != fault.ProviderUnavailable || strings.Contains(e.Public, "planted") {
			t.Errorf("%v", e)
		}
	}
	r.world.OnLaunch(nil)
	r.acquire("run")
	if m, err := r.page().Capture(t.Context()); err != nil || len(m.Cookies) != 1 || m.Cookies[0].Value != "earlier" {
		t.Errorf("the seal was not restored: %v, %v", m, err)
	}
}

// LEASE-08, weak spot 18: a full disk at the close keeps the old seal, frees
// the profile, and says so.
func TestFullDiskAtSeal(t *testing.T) {
	r := newRig(t)
	l := r.acquire("run")
	r.page().SetCookie("session", "newer")
	r.vault.set(func(m *memory) { m.sealErr = fault.Wrap(fault.Internal, "Not written.", syscall.ENOSPC) })
	err := r.CloseLease(t.Context(), l.Ref)
	if e := fault.Public(err); e.Code != fault.ProviderUnavailable || !strings.Contains(e.Public, "kept") {
		t.Errorf("close: %v", err)
	}
	r.untouched()
	if n := len(r.world.Live()); n != 0 {
		t.Errorf("%d browsers are left", n)
	}
	r.acquire("other")
}

// deaf is a launcher whose pages capture, observe or close as a test says.
type deaf struct {
	*fake.World
	capture func(context.Context) (browser.Material, error)
	observe func(observe.Document) observe.Document
	opens   atomic.Int64 // navigations that reached a page
	closing time.Duration
}

type deafPage struct {
	browser.Page
	d *deaf
}

func (d *deaf) Launch(ctx context.Context, s browser.Spec) (browser.Page, error) {
	p, err := d.World.Launch(ctx, s)
	if err != nil {
		return nil, err
	}
	return &deafPage{Page: p, d: d}, nil
}

func (p *deafPage) Capture(ctx context.Context) (browser.Material, error) {
	if p.d.capture != nil {
		return p.d.capture(ctx)
	}
	return p.Page.Capture(ctx)
}

func (p *deafPage) Close() error {
	time.Sleep(p.d.closing)
	return p.Page.Close()
}

func (p *deafPage) Navigate(ctx context.Context, u site.URL) (observe.Document, error) {
	p.d.opens.Add(1)
	d, err := p.Page.Navigate(ctx, u)
	if err == nil && p.d.observe != nil {
		d = p.d.observe(d)
	}
	return d, err
}

func (p *deafPage) Act(ctx context.Context, a action.Action, c *constraint.Constraint) (observe.Document, error) {
	d, err := p.Page.Act(ctx, a, c)
	if err == nil && p.d.observe != nil {
		d = p.d.observe(d)
	}
	return d, err
}

// LEASE-08: a failed capture, or one that hangs, replaces no seal.
func TestFailedCapture(t *testing.T) {
	for name, capture := range map[string]func(context.Context) (browser.Material, error){
		"fails": func(context.Context) (browser.Material, error) {
			return browser.Material{Cookies: []browser.Cookie{{Name: "half"}}}, errors.New("half of it")
		},
		"hangs": func(ctx context.Context) (browser.Material, error) {
			<-ctx.Done()
			return browser.Material{}, ctx.Err()
		},
		"is empty": func(context.Context) (browser.Material, error) { return browser.Material{}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, func(c *browserd.Config) { c.Launcher = &deaf{World: c.Launcher.(*fake.World), capture: capture} })
				l := r.acquire("run")
				if err := r.CloseLease(t.Context(), l.Ref); (err == nil) != (name == "is empty") {
					t.Errorf("close: %v", err)
				}
				r.untouched()
				if n := len(r.world.Live()); n != 0 {
					t.Errorf("%d browsers are left", n)
				}
			})
		})
	}
}

// CAPT-01, LEASE-07: what a page reports is checked again; after an act the
// outcome is unknown then, as the act was sent.
func TestReportsAreChecked(t *testing.T) {
	r := newRig(t, func(c *browserd.Config) {
		c.Launcher = &deaf{World: c.Launcher.(*fake.World), observe: func(d observe.Document) observe.Document {
			d.URL = servicetest.Off
			return d
		}}
	})
	l := r.acquire("run")
	if err := r.navigate(l.Ref, servicetest.Home); !fault.Is(err, fault.OutputInvalid) {
		t.Errorf("navigate: %v", err)
	}
	d, err := r.Dispatch(t.Context(), l.Ref, 0, r.request(action.Observe, struct{}{}), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Dispatch(t.Context(), l.Ref, 1, r.request(action.Act, map[string]string{"kind": "click", "expected_revision": d.Revision, "ref": d.Elements[0].Ref}), nil)
	if !fault.Is(err, fault.OutcomeUnknown) || len(r.world.Effects()) != 1 {
		t.Errorf("act: %v with %d effects", err, len(r.world.Effects()))
	}
}

// REL-01: whatever an act's page says that is not one of our refusals means
// that the outcome is unknown; a refusal means that nothing was sent.
func TestActErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want fault.Code
	}{
		{errors.New("websocket: planted site text"), fault.OutcomeUnknown},
		{fault.New(fault.Internal, "x"), fault.OutcomeUnknown},
		{fault.New(fault.SiteUnreachable, "x"), fault.OutcomeUnknown},
		{context.DeadlineExceeded, fault.OutcomeUnknown},
		{fault.New(fault.PageChanged, "x"), fault.PageChanged},
		{fault.New(fault.ElementNotFound, "x"), fault.ElementNotFound},
		{fault.New(fault.NeedsUser, "x"), fault.NeedsUser},
	} {
		t.Run(fmt.Sprint(c.err), func(t *testing.T) {
			r := newRig(t)
			l := r.acquire("run")
			d, err := r.Dispatch(t.Context(), l.Ref, 0, r.request(action.Navigate, map[string]string{"url": servicetest.Home}), nil)
			if err != nil {
				t.Fatal(err)
			}
			r.world.OnAct(func(context.Context, *fake.Page, action.Action) error { return c.err })
			_, err = r.Dispatch(t.Context(), l.Ref, 1, r.request(action.Act, map[string]string{"kind": "click", "expected_revision": d.Revision, "ref": d.Elements[0].Ref}), nil)
			if e := fault.Public(err); e.Code != c.want || strings.Contains(e.Public, "planted") {
				t.Errorf("%v", e)
			}
			// The browser is alive, so the lease is: the agent can look first.
			if _, err := r.Dispatch(t.Context(), l.Ref, 0, r.request(action.Observe, struct{}{}), nil); err != nil {
				t.Errorf("observing after it: %v", err)
			}
		})
	}
}

// LEASE-02, SWEEP-02: an expired lease is closed by the sweep without sealing,
// also when nobody asks.
func TestSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.acquire("run")
		r.page().SetCookie("session", "late")
		time.Sleep(10*time.Minute + 16*time.Second)
		synctest.Wait()
		if n := len(r.world.Live()); n != 0 {
			t.Errorf("%d browsers are left", n)
		}
		r.untouched()
		r.acquire("other")
	})
}

// LEASE-04, LEASE-08: an expired lease of the same key is replaced, never
// revived or sealed, also before the sweep.
func TestExpiredLeaseIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		first := r.acquire("run")
		r.page().SetCookie("session", "late")
		time.Sleep(10 * time.Minute)
		second := r.acquire("run")
		if second.Ref == first.Ref {
			t.Error("the expired lease was revived")
		}
		if m, err := r.page().Capture(t.Context()); err != nil || m.Cookies[0].Value != "earlier" {
			t.Errorf("%v, %v", m, err)
		}
		r.untouched()
	})
}

// SER-01: operations of one lease run one after the other; a close waits for
// the one under way and seals what it left.
func TestOneOperationAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		l := r.acquire("run")
		running := 0
		r.world.OnLoad(func(context.Context, string) error {
			running++
			if running > 1 {
				t.Error("two operations at once")
			}
			time.Sleep(time.Second)
			running--
			return nil
		})
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if err := r.navigate(l.Ref, servicetest.Home); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		all.Go(func() { r.navigate(l.Ref, servicetest.Home) })
		synctest.Wait()
		r.page().SetCookie("session", "newer")
		if err := r.CloseLease(t.Context(), l.Ref); err != nil {
			t.Error(err)
		}
		if got, n := r.vault.holds(r.profile); n != 1 || !strings.Contains(got, "newer") {
			t.Errorf("sealed %d times", n)
		}
		all.Wait()
	})
}

// LEASE-08: an operation that does not end keeps a close from sealing, not
// from closing.
func TestCloseDuringAHangingOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		l := r.acquire("run")
		r.world.OnLoad(func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() })
		done := make(chan error, 1)
		go func() { done <- r.navigate(l.Ref, servicetest.Home) }()
		synctest.Wait()
		if err := r.CloseLease(t.Context(), l.Ref); !fault.Is(err, fault.ProviderUnavailable) {
			t.Errorf("close: %v", err)
		}
		if err := <-done; err == nil {
			t.Error("the operation succeeded")
		}
		r.untouched()
		if n := len(r.world.Live()); n != 0 {
			t.Errorf("%d browsers are left", n)
		}
	})
}

// A browser that ends by itself frees its profile at once (PLACE-02), and its
// session is not sealed.
func TestBrowserEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		l := r.acquire("run")
		r.page().Crash()
		synctest.Wait()
		if err := r.navigate(l.Ref, servicetest.Home); !fault.Is(err, fault.ProfileUnavailable) {
			t.Errorf("%v", err)
		}
		r.acquire("other")
		r.untouched()
	})
}
