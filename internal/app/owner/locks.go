package owner

import (
	"context"
	"sync"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
)

// key names a profile, with its scope: two principals never share a lock.
type key struct {
	caller.Scope
	profileID string
}

// locks serialises creations and sign-ins of one profile (CER-03). Revocation
// takes no lock: it must never wait for a browser that starts.
type locks struct {
	mu   sync.Mutex
	held map[key]*turn
}

type turn struct {
	token chan struct{}
	users int
}

// take waits for the profile at most lockWait and returns its release.
func (l *locks) take(ctx context.Context, k key) (release func(), err error) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[key]*turn{}
	}
	t := l.held[k]
	if t == nil {
		t = &turn{token: make(chan struct{}, 1)}
		l.held[k] = t
	}
	t.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(l.held, k)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	select {
	case t.token <- struct{}{}:
		return func() { <-t.token; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, fault.Wrap(fault.Conflict, "Another request for this profile is still running. Nothing was changed; try again in a moment.", ctx.Err()).Retry()
	}
}

// confirmed remembers which revocations the isolated service has confirmed to
// this process, so that upkeep repeats only the others (PSM-10).
type confirmed struct {
	mu   sync.Mutex
	done map[key]bool
}

func (c *confirmed) has(k key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done[k]
}

func (c *confirmed) set(k key, yes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = map[key]bool{}
	}
	if yes {
		c.done[k] = true
	} else {
		delete(c.done, k)
	}
}
