package cdp

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	proto "github.com/chromedp/cdproto/cdp"
)

// Session is one attached target, or the browser itself.
type Session struct {
	conn *Conn
	id   string

	mu    sync.Mutex
	queue []Event
	wake  chan struct{} // capacity 1
	once  sync.Once
	done  chan struct{}
}

// Event is one event of a session, still encoded.
type Event struct {
	Method string
	params json.RawMessage
}

// Decode reads the event's parameters.
func (e Event) Decode(into any) error { return json.Unmarshal(e.params, into) }

// Done is closed when the target or the connection has gone.
func (s *Session) Done() <-chan struct{} { return s.done }

// Drop ends the session on this side: its pending calls fail with ErrDetached.
// A crashed target answers nothing, so its session must be dropped.
func (s *Session) Drop() { s.conn.drop(s) }

// Serve hands the session's events, all in the order of arrival, to handle
// until the session ends. handle may make calls, also on this session.
func (s *Session) Serve(handle func(Event)) {
	for {
		s.mu.Lock()
		batch := s.queue
		s.queue = nil
		s.mu.Unlock()
		for _, e := range batch {
			handle(e)
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-s.wake:
		case <-s.done:
			return
		}
	}
}

func (s *Session) push(e Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) >= maxQueue {
		return false
	}
	s.queue = append(s.queue, e)
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return true
}

func (s *Session) end() { s.once.Do(func() { close(s.done) }) }

// Wait waits for the reply of a command that was sent with Send.
type Wait[R any] func(context.Context) (R, error)

// Send writes a command and returns at once, so that several can be under way
// together. Commands of one session are carried out in the order of sending.
func Send[P, R any](s *Session, c proto.Command[P, R], params P) Wait[R] {
	wait, err := s.conn.send(s.id, c.Method, params)
	return func(ctx context.Context) (R, error) {
		var out R
		if err != nil {
			return out, err
		}
		raw, err := wait(ctx)
		if err != nil {
			return out, fmt.Errorf("%s: %w", c.Method, err)
		}
		if len(raw) > 0 {
			err = json.Unmarshal(raw, &out)
		}
		return out, err
	}
}

// Call sends a command and waits for its reply. The error is ErrClosed,
// ErrDetached, the context's, or a *cdproto.Error of the browser.
func Call[P, R any](ctx context.Context, s *Session, c proto.Command[P, R], params P) (R, error) {
	return Send(s, c, params)(ctx)
}
