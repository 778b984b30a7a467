// Package cdp is a small client of the Chrome DevTools Protocol over a pair of
// pipes (EPH-01: no port is ever opened). Types come from cdproto; this
// package adds transport, sessions and failure only. It serves CAP-03 and
// REL-02: a call always ends, with a reply or with an error.
package cdp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/chromedp/cdproto"
)

// MaxMessage bounds one incoming message in bytes. A screenshot or a session
// of the largest size fits; anything bigger ends the connection.
const MaxMessage = 256 << 20

// maxQueue bounds the events a session may leave unread.
const maxQueue = 1 << 16

var (
	// ErrClosed: the connection has ended; the browser has gone.
	ErrClosed = errors.New("cdp: connection closed")
	// ErrDetached: the session's target crashed or was detached.
	ErrDetached = errors.New("cdp: target gone")
)

// Conn is one connection to a browser. Its methods are safe for concurrent use.
type Conn struct {
	w       io.WriteCloser
	writeMu sync.Mutex

	mu       sync.Mutex
	next     int64
	pending  map[int64]call
	sessions map[string]*Session
	err      error
	done     chan struct{}
}

type call struct {
	session string
	reply   chan reply // capacity 1
}

type reply struct {
	result json.RawMessage
	err    error
}

type message struct {
	ID        int64           `json:"id,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *cdproto.Error  `json:"error,omitempty"`
}

// New starts a connection that reads NUL-terminated messages from r and writes
// them to w. It owns w; whoever owns r must close it to end the reader.
func New(r io.Reader, w io.WriteCloser) *Conn {
	c := &Conn{w: w, pending: map[int64]call{}, sessions: map[string]*Session{}, done: make(chan struct{})}
	go c.read(bufio.NewReaderSize(r, 64<<10))
	return c
}

// Done is closed when the connection has ended, for whatever reason.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is why the connection ended, nil before that.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection; pending calls fail with ErrClosed.
func (c *Conn) Close() error {
	c.end(ErrClosed)
	return c.w.Close()
}

// Root is the session of the browser itself.
func (c *Conn) Root() *Session { return c.Session("") }

// Session is the session with the id. Events that arrived before the first
// call of Session are kept for it.
func (c *Conn) Session(id string) *Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session(id)
}

// session needs c.mu.
func (c *Conn) session(id string) *Session {
	s := c.sessions[id]
	if s == nil {
		s = &Session{conn: c, id: id, wake: make(chan struct{}, 1), done: make(chan struct{})}
		if c.err != nil {
			close(s.done)
		}
		c.sessions[id] = s
	}
	return s
}

func (c *Conn) read(r *bufio.Reader) {
	for {
		raw, err := readMessage(r)
		if err != nil {
			c.end(fmt.Errorf("%w: %w", ErrClosed, err))
			return
		}
		var m message
		if err := json.Unmarshal(raw, &m); err != nil {
			c.end(fmt.Errorf("%w: the browser sent no JSON", ErrClosed))
			return
		}
		if err := c.dispatch(m); err != nil {
			c.end(err)
			return
		}
	}
}

// readMessage returns the bytes up to the next NUL. The slice is fresh: parts
// of it live on in queues.
func readMessage(r *bufio.Reader) ([]byte, error) {
	var buf bytes.Buffer
	for {
		part, err := r.ReadSlice(0)
		if buf.Len()+len(part) > MaxMessage {
			return nil, errors.New("the browser sent a message over the limit")
		}
		buf.Write(part)
		switch {
		case err == nil:
			return buf.Bytes()[:buf.Len()-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// dispatch hands a message over without ever waiting for its receiver.
func (c *Conn) dispatch(m message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.ID != 0 {
		p, ok := c.pending[m.ID]
		delete(c.pending, m.ID)
		if !ok { // the caller gave up
			return nil
		}
		rep := reply{result: m.Result}
		if m.Error != nil {
			rep.err = m.Error
		}
		p.reply <- rep
		return nil
	}
	s := c.session(m.SessionID)
	if !s.push(Event{Method: m.Method, params: m.Params}) {
		return fmt.Errorf("%w: events of a session were left unread", ErrClosed)
	}
	return nil
}

func (c *Conn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	close(c.done)
	for id, p := range c.pending {
		p.reply <- reply{err: err}
		delete(c.pending, id)
	}
	for _, s := range c.sessions {
		s.end()
	}
}

// drop fails the session's pending calls and forgets the session.
func (c *Conn) drop(s *Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, p := range c.pending {
		if p.session == s.id {
			p.reply <- reply{err: ErrDetached}
			delete(c.pending, id)
		}
	}
	s.end()
	delete(c.sessions, s.id)
}

// send writes the command and returns a function that waits for its reply.
func (c *Conn) send(session, method string, params any) (func(context.Context) (json.RawMessage, error), error) {
	p, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("cdp: %s: %w", method, err)
	}
	rep := make(chan reply, 1)
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return nil, c.err
	}
	c.next++
	id := c.next
	c.pending[id] = call{session: session, reply: rep}
	c.mu.Unlock()

	body, err := json.Marshal(message{ID: id, SessionID: session, Method: method, Params: p})
	if err == nil {
		c.writeMu.Lock()
		_, err = c.w.Write(append(body, 0))
		c.writeMu.Unlock()
	}
	if err != nil {
		c.forget(id)
		return nil, fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return func(ctx context.Context) (json.RawMessage, error) {
		select {
		case r := <-rep:
			return r.result, r.err
		case <-ctx.Done():
			c.forget(id)
			return nil, ctx.Err()
		}
	}, nil
}

func (c *Conn) forget(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id)
}
