package pipe

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"sync"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/rules/constraint"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// graceTime is how long a worker may take to answer a call that was cancelled;
// one that takes longer is lost.
const graceTime = 5 * time.Second

// Client is the service's end of the pipe: browser.Page without its end.
type Client struct {
	conn *net.UnixConn
	out  writer
	lost chan struct{}

	mu      sync.Mutex
	last    uint64
	calls   map[uint64]*call
	streams map[uint64]*stream
}

type call struct {
	op   op
	done chan answer // room for one
}

type answer struct {
	body []byte
	err  *fault.Error
}

// NewClient takes the connection over.
func NewClient(conn *net.UnixConn) *Client {
	c := &Client{conn: conn, out: writer{conn: conn}, lost: make(chan struct{}), calls: map[uint64]*call{}, streams: map[uint64]*stream{}}
	go c.read()
	return c
}

// Lost is closed when the connection has ended, for whatever reason.
func (c *Client) Lost() <-chan struct{} { return c.lost }

// Close ends the connection, and with it the worker.
func (c *Client) Close() { c.conn.Close() }

// Launch starts the browser; it is the first call and made once.
func (c *Client) Launch(ctx context.Context, s Setup) error {
	body, err := json.Marshal(s)
	if err != nil {
		return fault.Wrap(fault.Internal, "The browser could not be described.", err)
	}
	_, err = c.call(ctx, opLaunch, body)
	return err
}

func (c *Client) Restore(ctx context.Context, m browser.Material) error {
	body, err := m.Encode()
	if err != nil {
		return fault.Wrap(fault.ProfileUnavailable, "The session is too large to restore. Nothing was opened.", err)
	}
	defer clear(body)
	_, err = c.call(ctx, opRestore, body)
	return err
}

func (c *Client) Navigate(ctx context.Context, u site.URL) (observe.Document, error) {
	body, err := json.Marshal(u)
	if err != nil {
		return observe.Document{}, fault.Wrap(fault.Internal, "The address could not be sent.", err)
	}
	return c.document(ctx, opNavigate, body)
}

func (c *Client) Observe(ctx context.Context, q observe.Query) (observe.Document, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return observe.Document{}, fault.Wrap(fault.Internal, "The query could not be sent.", err)
	}
	return c.document(ctx, opObserve, body)
}

// Act never reports a certain failure for an input that was possibly sent.
func (c *Client) Act(ctx context.Context, a action.Action, limit *constraint.Constraint) (observe.Document, error) {
	body, err := json.Marshal(act{a, limit})
	if err != nil {
		return observe.Document{}, fault.Wrap(fault.Internal, "The action could not be sent.", err)
	}
	return c.document(ctx, opAct, body)
}

func (c *Client) Capture(ctx context.Context) (browser.Material, error) {
	body, err := c.call(ctx, opCapture, nil)
	if err != nil {
		return browser.Material{}, err
	}
	defer clear(body)
	m, err := browser.DecodeMaterial(body)
	if err != nil {
		// The cause would quote the session.
		return browser.Material{}, fault.New(fault.OutputInvalid, "The browser's session could not be read. Nothing was saved.")
	}
	return m, nil
}

func (c *Client) Evidence(ctx context.Context) (ceremony.Evidence, error) {
	body, err := c.call(ctx, opEvidence, nil)
	if err != nil {
		return ceremony.Evidence{}, err
	}
	var e ceremony.Evidence
	if json.Unmarshal(body, &e) != nil {
		return ceremony.Evidence{}, unreadable()
	}
	e.TextDuringChallenge = false // not the page's to say
	return e, nil
}

func (c *Client) Input(ctx context.Context, in browser.Input) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fault.New(fault.Internal, "The event could not be sent.")
	}
	_, err = c.call(ctx, opInput, body)
	return err
}

func (c *Client) document(ctx context.Context, o op, body []byte) (observe.Document, error) {
	body, err := c.call(ctx, o, body)
	if err != nil {
		return observe.Document{}, err
	}
	var d observe.Document
	if parts(body) > maxParts || json.Unmarshal(body, &d) != nil {
		if o.sends() {
			return observe.Document{}, unknown()
		}
		return observe.Document{}, unreadable()
	}
	return d, nil
}

// call sends one request and waits for its answer.
func (c *Client) call(ctx context.Context, o op, body []byte) ([]byte, error) {
	id, pending, err := c.register(o, nil)
	if err != nil {
		return nil, err
	}
	return c.finish(ctx, id, pending, body)
}

// register opens a call, and the stream that belongs to it, if any.
func (c *Client) register(o op, s *stream) (uint64, *call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		return 0, nil, gone()
	}
	c.last++
	p := &call{op: o, done: make(chan answer, 1)}
	c.calls[c.last] = p
	if s != nil {
		c.streams[c.last] = s
	}
	return c.last, p, nil
}

func (c *Client) forget(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
}

func (c *Client) finish(ctx context.Context, id uint64, p *call, body []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		c.forget(id)
		return nil, cancelled(err)
	}
	if err := c.out.send(request, p.op, id, body); err != nil {
		if err == errTooLarge {
			c.forget(id)
			return nil, fault.New(fault.ArgumentsInvalid, "The call is too large. Nothing was sent.")
		}
		return nil, lostDuring(p.op)
	}
	select {
	case a := <-p.done:
		return a.read(p.op, nil)
	case <-c.lost:
		return c.afterLoss(p)
	case <-ctx.Done():
	}
	c.out.send(cancel, p.op, id, nil)
	timer := time.NewTimer(graceTime)
	defer timer.Stop()
	select {
	case a := <-p.done:
		return a.read(p.op, ctx.Err())
	case <-c.lost:
		return c.afterLoss(p)
	case <-timer.C:
		c.conn.Close() // whatever it is doing, it no longer obeys
		return nil, lostDuring(p.op)
	}
}

// afterLoss prefers an answer that arrived just before the connection ended.
func (c *Client) afterLoss(p *call) ([]byte, error) {
	select {
	case a := <-p.done:
		return a.read(p.op, nil)
	default:
		return nil, lostDuring(p.op)
	}
}

// read turns an answer into a result; ctxErr is set when the call was cancelled.
func (a answer) read(o op, ctxErr error) ([]byte, error) {
	switch {
	case a.err == nil:
		return a.body, nil
	case a.err.Code != fault.Internal:
		return nil, a.err
	case o.sends():
		return nil, unknown() // a nameless failure does not say that nothing was sent
	case ctxErr != nil:
		return nil, cancelled(ctxErr)
	default:
		return nil, a.err
	}
}

// read is the only reader. Any surprise ends the connection.
func (c *Client) read() {
	r := bufio.NewReaderSize(c.conn, 64<<10)
	for c.receive(r) == nil {
	}
	c.conn.Close()
	c.mu.Lock()
	streams := c.streams
	c.calls, c.streams = nil, nil
	c.mu.Unlock()
	close(c.lost)
	for _, s := range streams {
		s.end()
	}
}

func (c *Client) receive(r *bufio.Reader) error {
	h, err := readHeader(r)
	if err != nil {
		return err
	}
	c.mu.Lock()
	p, s := c.calls[h.id], c.streams[h.id]
	c.mu.Unlock()
	switch {
	case (h.kind == reply || h.kind == failure) && p != nil && h.op == p.op:
		body, err := readBody(r, h)
		if err != nil {
			return err
		}
		a := answer{body: body}
		if h.kind == failure {
			a = answer{err: decodeFault(body)}
		}
		c.forget(h.id)
		p.done <- a
		return nil
	case h.kind == picture && s != nil && h.op == opFrames:
		body, err := readBody(r, h)
		if err != nil {
			return err
		}
		var f browser.Frame
		if json.Unmarshal(body, &f) != nil || f.Width <= 0 || f.Height <= 0 || f.Width > 16384 || f.Height > 16384 || len(f.JPEG) == 0 {
			return errProtocol
		}
		s.push(f)
		return nil
	case h.kind == ended && s != nil && h.op == opFrames && h.length == 0:
		c.endStream(h.id)
		return nil
	default:
		return errProtocol
	}
}

func gone() error {
	return fault.New(fault.ProviderUnavailable, "The browser has ended. Nothing was sent.").Retry()
}

func unknown() error {
	return fault.New(fault.OutcomeUnknown, "The browser did not say what became of the input. It may have had its effect; look before repeating it.")
}

func unreadable() error {
	return fault.New(fault.OutputInvalid, "The browser's answer could not be read.")
}

func lostDuring(o op) error {
	if o.sends() {
		return unknown()
	}
	return fault.New(fault.ProviderUnavailable, "The browser ended during the call.").Retry()
}

func cancelled(cause error) error {
	return fault.Wrap(fault.ProviderUnavailable, "The call was cancelled or took too long.", cause).Retry()
}
