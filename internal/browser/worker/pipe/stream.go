package pipe

import (
	"context"
	"sync"

	"github.com/chaperone-agents/chaperone/internal/browser"
)

// stream hands pictures to a receiver that may be slow: it keeps the latest.
type stream struct {
	mu   sync.Mutex
	out  chan browser.Frame // room for one
	over bool
	done chan struct{}
}

func newStream() *stream {
	return &stream{out: make(chan browser.Frame, 1), done: make(chan struct{})}
}

func (s *stream) push(f browser.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	select {
	case <-s.out:
	default:
	}
	s.out <- f // never blocks: only push sends, and there is room now
}

func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.over = true
		close(s.out)
		close(s.done)
	}
}

// Frames asks the worker for pictures. The channel is closed when ctx ends or
// the browser does.
func (c *Client) Frames(ctx context.Context) (<-chan browser.Frame, error) {
	s := newStream()
	id, pending, err := c.register(opFrames, s)
	if err != nil {
		return nil, err
	}
	if _, err := c.finish(ctx, id, pending, nil); err != nil {
		c.endStream(id)
		return nil, err
	}
	go func() {
		select {
		case <-ctx.Done():
			// The stream stays registered, and mute, until the worker says that
			// it has ended it; pictures may be under way.
			s.end()
			c.out.send(cancel, opFrames, id, nil)
		case <-s.done:
		}
	}()
	return s.out, nil
}

func (c *Client) endStream(id uint64) {
	c.mu.Lock()
	s := c.streams[id]
	delete(c.streams, id)
	c.mu.Unlock()
	if s != nil {
		s.end()
	}
}
