package notify_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chaperone-agents/chaperone/internal/app/notify"
	"github.com/chaperone-agents/chaperone/internal/base/caller"
)

var (
	alice = caller.Scope{Tenant: "t", Principal: "alice"}
	bob   = caller.Scope{Tenant: "t", Principal: "bob"}
)

// POL-02: an answer that arrives between the look and the wait is not missed.
func TestNoLostWakeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := notify.New()
		var answered atomic.Bool
		looks := 0
		err := h.Wait(t.Context(), alice, func() (bool, error) {
			looks++
			if looks == 1 {
				defer func() { answered.Store(true); h.Changed(alice) }() // after the look, before the wait
				return answered.Load(), nil
			}
			return answered.Load(), nil
		})
		if err != nil || looks != 2 {
			t.Fatalf("err %v after %d looks", err, looks)
		}
	})
}

func TestEverybodyOfTheScopeIsWokenAndNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := notify.New()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var done atomic.Bool
		var woken, foreign atomic.Int32
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if h.Wait(ctx, alice, func() (bool, error) { return done.Load(), nil }) == nil {
					woken.Add(1)
				}
			})
		}
		wg.Go(func() {
			looks := 0
			h.Wait(ctx, bob, func() (bool, error) { looks++; foreign.Store(int32(looks)); return false, nil })
		})
		synctest.Wait()
		done.Store(true)
		h.Changed(alice)
		synctest.Wait()
		if woken.Load() != 20 || foreign.Load() != 1 {
			t.Errorf("woken %d of 20; the other scope looked %d times", woken.Load(), foreign.Load())
		}
		cancel()
		wg.Wait()
	})
}

func TestWaitEndsWithItsContextAndWithAFailure(t *testing.T) {
	h := notify.New()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Wait(ctx, alice, func() (bool, error) { return false, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled wait: %v", err)
	}
	boom := errors.New("boom")
	if err := h.Wait(t.Context(), alice, func() (bool, error) { return false, boom }); !errors.Is(err, boom) {
		t.Errorf("failed look: %v", err)
	}
	h.Changed(alice) // nobody waits: nothing happens, nothing is kept
}
