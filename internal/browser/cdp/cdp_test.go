package cdp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/chromedp/cdproto"
	protocdp "github.com/chromedp/cdproto/cdp"
	"go.uber.org/goleak"

	"github.com/chaperone-agents/chaperone/internal/browser/cdp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type echo struct {
	N int `json:"n"`
}

var command = protocdp.Command[echo, echo]{Method: "Test.echo"}

// browser is the other end of the pipes.
type browser struct {
	in  *bufio.Reader
	out net.Conn
}

func pair(t *testing.T) (*cdp.Conn, *browser) {
	t.Helper()
	ours, theirs := net.Pipe()
	c := cdp.New(ours, ours)
	t.Cleanup(func() { _ = c.Close(); _ = theirs.Close() })
	return c, &browser{in: bufio.NewReader(theirs), out: theirs}
}

func (b *browser) read() (id int64, params string, _ error) {
	raw, err := b.in.ReadBytes(0)
	if err != nil {
		return 0, "", err
	}
	var m struct {
		ID     int64
		Params json.RawMessage
	}
	err = json.Unmarshal(raw[:len(raw)-1], &m)
	return m.ID, string(m.Params), err
}

func (b *browser) write(format string, args ...any) { fmt.Fprintf(b.out, format+"\x00", args...) }

func TestRepliesMeetTheirCalls(t *testing.T) {
	c, b := pair(t)
	go func() { // answers in reverse order, in pairs
		for {
			id1, p1, err := b.read()
			if err != nil {
				return
			}
			id2, p2, err := b.read()
			if err != nil {
				return
			}
			b.write(`{"id":%d,"result":%s}`, id2, p2)
			b.write(`{"id":%d,"result":%s}`, id1, p1)
		}
	}()
	var wg sync.WaitGroup
	for n := range 100 {
		wg.Go(func() {
			if r, err := cdp.Call(t.Context(), c.Session("s"), command, echo{n}); err != nil || r.N != n {
				t.Errorf("call %d: %d, %v", n, r.N, err)
			}
		})
	}
	wg.Wait()
}

// REL-02: a call ends with an error when the browser, the target or the caller ends.
func TestEveryCallEnds(t *testing.T) {
	t.Run("the browser's error", func(t *testing.T) {
		c, b := pair(t)
		go func() {
			id, _, _ := b.read()
			b.write(`{"id":%d,"error":{"code":-32000,"message":"no"}}`, id)
		}()
		_, err := cdp.Call(t.Context(), c.Root(), command, echo{})
		if _, ok := errors.AsType[*cdproto.Error](err); !ok {
			t.Error(err)
		}
	})
	for name, c := range map[string]struct {
		cause func(*cdp.Conn, *browser, context.CancelFunc)
		want  error
	}{
		"the pipe ends":       {func(_ *cdp.Conn, b *browser, _ context.CancelFunc) { _ = b.out.Close() }, cdp.ErrClosed},
		"we close":            {func(c *cdp.Conn, _ *browser, _ context.CancelFunc) { _ = c.Close() }, cdp.ErrClosed},
		"the target crashes":  {func(c *cdp.Conn, _ *browser, _ context.CancelFunc) { c.Session("s").Drop() }, cdp.ErrDetached},
		"the caller gives up": {func(_ *cdp.Conn, _ *browser, cancel context.CancelFunc) { cancel() }, context.Canceled},
		"the browser babbles": {func(_ *cdp.Conn, b *browser, _ context.CancelFunc) { b.write("{") }, cdp.ErrClosed},
		"half a message, then": {func(_ *cdp.Conn, b *browser, _ context.CancelFunc) {
			_, _ = io.WriteString(b.out, `{"id":1`)
			_ = b.out.Close()
		}, cdp.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			conn, b := pair(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				if _, _, err := b.read(); err == nil {
					c.cause(conn, b, cancel)
				}
			}()
			if _, err := cdp.Call(ctx, conn.Session("s"), command, echo{}); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

func TestEventsKeepTheirOrderAndSession(t *testing.T) {
	c, b := pair(t)
	const n = 1000
	go func() {
		for i := range n {
			b.write(`{"method":"A.b","sessionId":"%d","params":{"n":%d}}`, i%2, i)
		}
	}()
	var wg sync.WaitGroup
	for s := range 2 {
		wg.Go(func() {
			next := s
			session := c.Session(fmt.Sprint(s))
			session.Serve(func(e cdp.Event) {
				var v echo
				if err := e.Decode(&v); err != nil || v.N != next {
					t.Errorf("session %d: event %d, want %d (%v)", s, v.N, next, err)
				}
				if next += 2; next >= n {
					session.Drop()
				}
			})
		})
	}
	wg.Wait()
}
