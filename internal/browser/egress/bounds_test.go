package egress_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chaperone-agents/chaperone/internal/browser/egress"
)

// pipes is a listener over pipes in memory, whose deadlines follow the clock
// of a synctest bubble.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }
func (p *pipes) dial() net.Conn {
	near, far := net.Pipe()
	p.conns <- far
	return near
}

// bubble runs f with a proxy whose every tunnel leads to the far ends in outs.
func bubble(t *testing.T, f func(l *pipes, outs chan net.Conn, decisions func() []egress.Reason)) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var reasons []egress.Reason
		outs := make(chan net.Conn, egress.MaxConns+1)
		p, err := egress.New(egress.Config{
			Tenant: "t", Log: slog.New(slog.DiscardHandler),
			Audit: func(d egress.Decision) error {
				mu.Lock()
				defer mu.Unlock()
				reasons = append(reasons, d.Reason)
				return nil
			},
			Resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
				if strings.HasPrefix(host, "slow") {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
			},
			Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
				near, far := net.Pipe()
				outs <- far
				return near, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		l := newPipes()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Serve(ctx, l) }()
		f(l, outs, func() []egress.Reason {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(reasons)
		})
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func open(t *testing.T, c net.Conn) *bufio.Reader {
	t.Helper()
	go io.WriteString(c, connect("site.example.org:443"))
	r := bufio.NewReader(c)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("no tunnel: %v", err)
		}
		if line == "\r\n" {
			return r
		}
	}
}

// 3.3: a head that comes too slowly ends with a decision, after ten seconds
// whatever trickles in.
func TestSlowHead(t *testing.T) {
	bubble(t, func(l *pipes, _ chan net.Conn, decisions func() []egress.Reason) {
		c := l.dial()
		begin := time.Now()
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			for {
				if _, err := io.WriteString(c, "A"); err != nil {
					return
				}
				select {
				case <-time.After(time.Second):
				case <-stop:
					return
				}
			}
		}()
		line, _ := bufio.NewReader(c).ReadString('\n')
		if took := time.Since(begin); took > 11*time.Second || !strings.HasPrefix(line, "HTTP/1.1 400") {
			t.Errorf("after %v: %q", took, line)
		}
		c.Close()
		if got := decisions(); !slices.Equal(got, []egress.Reason{egress.MalformedRequest}) {
			t.Errorf("decisions %v", got)
		}
	})
}

// 3.3: a resolver that hangs is 502 in bounded time.
func TestSlowResolver(t *testing.T) {
	bubble(t, func(l *pipes, _ chan net.Conn, decisions func() []egress.Reason) {
		c := l.dial()
		begin := time.Now()
		go io.WriteString(c, connect("slow.example.org:443"))
		line, _ := bufio.NewReader(c).ReadString('\n')
		if took := time.Since(begin); took > 11*time.Second || !strings.HasPrefix(line, "HTTP/1.1 502") {
			t.Errorf("after %v: %q", took, line)
		}
		c.Close()
	})
}

// A silent tunnel lives for ten minutes after its last byte, in either
// direction, and then ends on both sides.
func TestIdleTunnel(t *testing.T) {
	bubble(t, func(l *pipes, outs chan net.Conn, _ func() []egress.Reason) {
		c := l.dial()
		r := open(t, c)
		far := <-outs
		<-time.After(9 * time.Minute)
		go io.WriteString(far, "x")
		if b, err := r.ReadByte(); err != nil || b != 'x' {
			t.Fatalf("after nine minutes: %q, %v", b, err)
		}
		begin := time.Now()
		if _, err := r.ReadByte(); err == nil || time.Since(begin) > 11*time.Minute || time.Since(begin) < 9*time.Minute {
			t.Errorf("idle for %v: %v", time.Since(begin), err)
		}
		if _, err := far.Read(make([]byte, 1)); err == nil {
			t.Error("the far end is still open")
		}
	})
}

// More connections than allowed are refused at once, with a decision, and room
// comes back.
func TestConnectionsAreBounded(t *testing.T) {
	bubble(t, func(l *pipes, outs chan net.Conn, decisions func() []egress.Reason) {
		var held []net.Conn
		for range egress.MaxConns {
			c := l.dial()
			open(t, c)
			held = append(held, c)
		}
		c := l.dial()
		if line, _ := bufio.NewReader(c).ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 503") {
			t.Errorf("one too many: %q", line)
		}
		c.Close()
		if got := decisions(); got[len(got)-1] != egress.Busy || len(got) != egress.MaxConns+1 {
			t.Errorf("%d decisions, the last %v", len(got), got[len(got)-1])
		}
		held[0].Close()
		synctest.Wait()
		open(t, l.dial())
	})
}

func TestReasonsAreClosed(t *testing.T) {
	seen := map[egress.Reason]bool{}
	for _, r := range egress.Reasons() {
		if seen[r] || r == "" {
			t.Errorf("%q is listed twice or empty", r)
		}
		seen[r] = true
	}
	for _, r := range rules() {
		if !seen[r.reason] {
			t.Errorf("%q is not listed", r.reason)
		}
	}
}
