package browserd_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chaperone-agents/chaperone/internal/app/browserd"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/browser/servicetest"
)

// LEASE-09: a fence that cannot be written closes the browsers all the same,
// and the owner hears that it must be repeated.
func TestRevokeWithAFullDisk(t *testing.T) {
	r := newRig(t)
	r.acquire("run")
	r.vault.set(func(m *memory) { m.fenceErr = fault.Wrap(fault.Internal, "Not written.", syscall.ENOSPC) })
	if err := r.Revoke(t.Context(), ada, r.profile, r.ref); !fault.Is(err, fault.ProviderUnavailable) {
		t.Errorf("revoke: %v", err)
	}
	if n := len(r.world.Live()); n != 0 {
		t.Errorf("%d browsers are left", n)
	}
	r.untouched()
}

// LEASE-09: revoke ends a launch that is under way, and one that comes between
// the capture and the seal leaves the old seal.
func TestRevokeRaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		slow := &slowLauncher{World: r.world}
		s := start(t, browserd.Config{Vault: r.vault, Launcher: slow})
		got := make(chan error, 1)
		go func() {
			_, err := s.Acquire(t.Context(), r.key("run"), true, time.Now().Add(time.Minute))
			got <- err
		}()
		synctest.Wait()
		if err := s.Revoke(t.Context(), ada, r.profile, r.ref); err != nil {
			t.Errorf("revoke: %v", err)
		}
		if err := <-got; err == nil {
			t.Error("a lease was given after revoke")
		}
		if n := len(r.world.Live()); n != 0 {
			t.Errorf("%d browsers are left", n)
		}
	})
	t.Run("at the seal", func(t *testing.T) {
		r := newRig(t)
		l := r.acquire("run")
		r.page().SetCookie("session", "newer")
		r.vault.set(func(m *memory) {
			m.onSeal = func() { m.set(func(m *memory) { m.records[r.profile].Revoked = true }) }
		})
		if err := r.CloseLease(t.Context(), l.Ref); !fault.Is(err, fault.ProviderUnavailable) {
			t.Errorf("close: %v", err)
		}
		r.untouched()
	})
}

// slowLauncher starts a browser only when it must not.
type slowLauncher struct{ *fake.World }

func (l *slowLauncher) Launch(ctx context.Context, s browser.Spec) (browser.Page, error) {
	<-ctx.Done()
	return l.World.Launch(context.WithoutCancel(ctx), s) // too late, but it did
}

// LEASE-02: a restart invalidates every lease; the seal stays.
func TestRestart(t *testing.T) {
	r := newRig(t)
	l := r.acquire("run")
	r.page().SetCookie("session", "newer")
	r.Shutdown(t.Context())
	if got, n := r.vault.holds(r.profile); n != 1 || !strings.Contains(got, "newer") {
		t.Errorf("shutdown sealed %d times", n)
	}
	if n := len(r.world.Live()); n != 0 {
		t.Errorf("%d browsers are left", n)
	}
	if _, err := r.Acquire(t.Context(), r.key("run"), true, time.Now().Add(time.Minute)); !fault.Is(err, fault.ProviderUnavailable) {
		t.Errorf("acquire after shutdown: %v", err)
	}
	again := start(t, browserd.Config{Vault: r.vault, Launcher: r.world})
	if _, err := again.Renew(t.Context(), l.Ref, time.Now().Add(time.Minute)); !fault.Is(err, fault.ProfileUnavailable) {
		t.Errorf("an old lease after a restart: %v", err)
	}
	if strings.Contains(r.log.String(), l.Ref) || strings.Contains(r.log.String(), r.ref) {
		t.Error("the log has a reference (LEASE-10)")
	}
}

// A shutdown that runs out of time closes what is still being sealed, and the
// earlier seal stays.
func TestShutdownIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *browserd.Config) {
			c.Launcher = &deaf{World: c.Launcher.(*fake.World), capture: func(ctx context.Context) (browser.Material, error) {
				<-ctx.Done()
				return browser.Material{}, ctx.Err()
			}}
		})
		r.acquire("run")
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		r.Shutdown(ctx)
		if d := time.Since(began); d != 3*time.Second {
			t.Errorf("it took %v of fake time", d)
		}
		if n := len(r.world.Live()); n != 0 {
			t.Errorf("%d browsers are left", n)
		}
		r.untouched()
	})
}

// READY-04: while the browser of a sign-in is still closing there is no
// outcome, and its profile is not free.
func TestOutcomeComesLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *browserd.Config) {
			c.Launcher = &deaf{World: c.Launcher.(*fake.World), closing: time.Minute}
		})
		c, v := r.connect()
		r.input(v, password)
		r.input(v, enter)
		time.Sleep(30 * time.Second) // sealed long ago, and still closing
		if _, n := r.vault.holds(r.profile); n != 1 {
			t.Errorf("sealed %d times", n)
		}
		if s := r.status(c); s == "ready" {
			t.Error("ready was known before the browser had gone")
		}
		if _, err := r.Acquire(t.Context(), r.key("run"), true, time.Now().Add(time.Minute)); !fault.Is(err, fault.ProfileUnavailable) {
			t.Errorf("acquire: %v", err)
		}
		time.Sleep(time.Minute)
		if s := r.status(c); s != "ready" {
			t.Errorf("status %s", s)
		}
	})
}

// LEASE-07: the lease's origins hold before the page is asked at all.
func TestOriginsBeforeThePage(t *testing.T) {
	pages := &deaf{}
	r := newRig(t, func(c *browserd.Config) { pages.World = c.Launcher.(*fake.World); c.Launcher = pages })
	l := r.acquire("run")
	if err := r.navigate(l.Ref, servicetest.Off); !fault.Is(err, fault.URLDisallowed) || pages.opens.Load() != 0 {
		t.Errorf("%v after %d navigations", err, pages.opens.Load())
	}
}
