// Package notify wakes those who wait for a change: an agent's call that waits
// for the owner's answer (section 2.7 of the requirements, POL-02), and the
// event stream of the console. It carries no content; who is woken reads the
// store.
package notify

import (
	"context"
	"sync"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
)

// Hub broadcasts changes within a scope. It is safe for concurrent use.
type Hub struct {
	mu   sync.Mutex
	next map[caller.Scope]chan struct{}
}

// New makes a Hub.
func New() *Hub { return &Hub{next: map[caller.Scope]chan struct{}{}} }

// Changed wakes everybody who waits on the scope.
func (h *Hub) Changed(scope caller.Scope) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c, ok := h.next[scope]; ok {
		close(c)
		delete(h.next, scope)
	}
}

// Next is closed by the first Changed after this call. Take it before reading
// the state: a change between the two is then never missed.
func (h *Hub) Next(scope caller.Scope) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	c, ok := h.next[scope]
	if !ok {
		c = make(chan struct{})
		h.next[scope] = c
	}
	return c
}

// Wait calls done at once and after every change until it reports true or
// fails, or ctx ends.
func (h *Hub) Wait(ctx context.Context, scope caller.Scope, done func() (bool, error)) error {
	for {
		next := h.Next(scope)
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
