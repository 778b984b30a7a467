package browserd

import (
	"context"
	"sync"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/browser"
)

// runtime is one occupied slot, from before the launch until the browser and
// everything it left behind have gone.
type runtime struct {
	owner  owner
	signIn bool // held by a ceremony, not by a lease

	ctx     context.Context // ends every operation when the runtime ends
	cancel  context.CancelFunc
	started chan struct{} // closed when page or err is set
	page    browser.Page
	err     error

	forget func() // takes this runtime off the books; runs with s.mu held, in the step that frees the slot

	turn chan struct{} // one operation at a time: most of Page is not concurrent (SER-01)
	once sync.Once
	gone chan struct{} // closed when the slot is free
	last error         // of Page.Close
}

// occupy takes a slot for the owner. The caller holds s.mu. Nothing has been
// started when it refuses (CAPY-02, PLACE-01).
func (s *Service) occupy(o owner, signIn bool) (*runtime, error) {
	if s.closed {
		return nil, fault.New(fault.ProviderUnavailable, "The browser service is shutting down. Nothing was started.").Retry()
	}
	if rt := s.occupant(o); rt != nil {
		if rt.signIn {
			return nil, fault.New(fault.ProfileUnavailable, "The owner is signing in to this profile. Nothing was started; try again when that has ended.").Retry()
		}
		return nil, fault.New(fault.ProfileUnavailable, "Another session is using the profile. Nothing was started.").Retry()
	}
	if len(s.slots) >= s.capacity {
		return nil, fault.Newf(fault.ProviderUnavailable, "All %d browsers are in use. Nothing was started; try again when one has been closed.", s.capacity).Retry()
	}
	rt := &runtime{owner: o, signIn: signIn, started: make(chan struct{}), turn: make(chan struct{}, 1), gone: make(chan struct{})}
	rt.ctx, rt.cancel = context.WithCancel(context.Background())
	s.slots[rt] = true
	return rt, nil
}

// occupant is the runtime of a profile, nil for an ephemeral owner. The caller
// holds s.mu.
func (s *Service) occupant(o owner) *runtime {
	if o == (owner{}) {
		return nil
	}
	for rt := range s.slots {
		if rt.owner == o {
			return rt
		}
	}
	return nil
}

// running lists the runtimes of the owner, or all of them for nil.
func (s *Service) running(o *owner) []*runtime {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*runtime
	for rt := range s.slots {
		if o == nil || rt.owner == *o {
			list = append(list, rt)
		}
	}
	return list
}

// start launches the browser and restores the sealed session into it. When it
// fails the slot is free again.
func (s *Service) start(ctx context.Context, rt *runtime, spec browser.Spec, ref string) error {
	ctx, cancel := rt.join(ctx)
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, launchLimit)
	defer stop()
	rt.page, rt.err = s.launch(ctx, rt.owner, spec, ref)
	if rt.err == nil && rt.ctx.Err() != nil {
		rt.err = rt.ctx.Err()
	}
	close(rt.started)
	if rt.err == nil {
		return nil
	}
	s.end(rt)
	return startFailed(rt.err)
}

func (s *Service) launch(ctx context.Context, o owner, spec browser.Spec, ref string) (browser.Page, error) {
	page, err := s.launcher.Launch(ctx, spec)
	if err != nil || o == (owner{}) {
		return page, err
	}
	if err := s.restore(ctx, page, o, ref); err != nil {
		page.Close() // the failure to restore is the one to report
		return nil, err
	}
	return page, nil
}

func (s *Service) restore(ctx context.Context, page browser.Page, o owner, ref string) error {
	sealed, err := s.vault.Load(o.Scope, o.profileID, ref)
	if err != nil || sealed.Len() == 0 {
		return err
	}
	defer sealed.Wipe()
	m, err := browser.DecodeMaterial(sealed.Reveal())
	if err != nil {
		return err
	}
	return page.Restore(ctx, m)
}

// startFailed keeps the codes that say who can help and hides the rest.
func startFailed(err error) error {
	switch fault.CodeOf(err) {
	case fault.ProviderUnavailable, fault.ProfileUnavailable:
		return err
	}
	return fault.Wrap(fault.ProviderUnavailable, "The browser could not be started. Nothing was sent to any site.", err).Retry()
}

// end closes the browser and frees its slot; it returns when both are done.
// Any number of callers may end the same runtime.
func (s *Service) end(rt *runtime) error {
	rt.cancel()
	<-rt.started // a launch under way sees the cancelled context
	rt.once.Do(func() {
		if rt.page != nil {
			rt.last = rt.page.Close()
		}
		s.mu.Lock()
		delete(s.slots, rt)
		if rt.forget != nil {
			rt.forget()
		}
		s.mu.Unlock()
		close(rt.gone)
		if rt.last != nil {
			s.log.Error("a browser did not close cleanly", "code", fault.CodeOf(rt.last))
		}
	})
	return rt.last
}

// enter waits for this runtime's turn. Leave ends the turn.
func (rt *runtime) enter(ctx context.Context) error {
	select {
	case rt.turn <- struct{}{}:
		return nil
	case <-rt.ctx.Done():
		return rt.ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (rt *runtime) leave() { <-rt.turn }

// join is ctx that also ends with the runtime.
func (rt *runtime) join(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	release := context.AfterFunc(rt.ctx, cancel)
	return ctx, func() { release(); cancel() }
}

// dead reports whether the browser has gone by itself.
func (rt *runtime) dead() bool {
	select {
	case <-rt.page.Done():
		return true
	default:
		return false
	}
}

// seal captures the session and puts it in the vault. A failed or empty
// capture never replaces an earlier seal (LEASE-08); stored says whether one
// was written. The caller has the runtime's turn.
func (s *Service) seal(rt *runtime, ref string, m browser.Material) (stored bool, err error) {
	if m.Empty() {
		return false, nil
	}
	b, err := m.Encode()
	if err != nil {
		return false, err
	}
	plain := secret.NewBytes(b)
	defer plain.Wipe()
	if err := s.vault.Seal(rt.owner.Scope, rt.owner.profileID, ref, plain); err != nil {
		return false, err
	}
	return true, nil
}
