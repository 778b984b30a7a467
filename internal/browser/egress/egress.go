// Package egress is the only way out of a browser: a CONNECT proxy that opens
// tunnels to port 443 of public DNS names whose every address is public, and
// dials the address it has checked (PROXY-01, PROXY-02). It writes one audit
// line per attempt. The browser's network namespace holds nothing but this
// proxy's listening socket, so what is refused here cannot leave at all.
package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/devmode"
	"github.com/chaperone-agents/chaperone/internal/base/site"
)

// Limits of one proxy, which serves one browser.
const (
	MaxHead  = 64 << 10 // bytes of a request head
	MaxConns = 256      // open connections; more are answered 503

	headTime = 10 * time.Second // to send the whole request head
	stepTime = 10 * time.Second // to resolve, and again to dial
	idleTime = 10 * time.Minute // without a byte in either direction
	halfTime = time.Minute      // without a byte after one side has finished
)

// Config is what a proxy needs.
type Config struct {
	Tenant string               // on every audit line
	Audit  func(Decision) error // called once per attempt, from many goroutines, before the browser is answered; an error refuses the attempt
	Log    *slog.Logger
	// Dev maps names to loopback addresses in the development mode. Every
	// other rule, also for those names, is unchanged. Nil in production.
	Dev *devmode.Config
	// Resolve returns the addresses of a name, best first. Nil means the
	// system's resolver.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects by TCP. Nil means the system's.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

// Proxy is the egress of one browser.
type Proxy struct {
	cfg   Config
	slots chan struct{}
}

// New validates the configuration.
func New(cfg Config) (*Proxy, error) {
	if cfg.Tenant == "" || cfg.Audit == nil || cfg.Log == nil {
		return nil, errors.New("egress: a tenant, an audit function and a logger are needed")
	}
	if cfg.Dev != nil {
		for name, to := range cfg.Dev.Hosts {
			if !to.Addr().Unmap().IsLoopback() {
				return nil, fmt.Errorf("egress: development host %s is not mapped to loopback", name)
			}
		}
	}
	if cfg.Resolve == nil {
		cfg.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			// The final dot keeps the machine's search domains out of it.
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host+".")
		}
	}
	if cfg.Dial == nil {
		cfg.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", to.String())
		}
	}
	return &Proxy{cfg: cfg, slots: make(chan struct{}, MaxConns)}, nil
}

// Serve accepts from l until ctx ends or l fails. Then it closes l and every
// connection, and returns once nothing of them is left: nil if ctx ended.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var open sync.WaitGroup
	defer open.Wait()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	defer l.Close()
	for {
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				conn.Close()
			}
			return nil
		case err != nil:
			return fmt.Errorf("egress: accept: %w", err)
		}
		select {
		case p.slots <- struct{}{}:
			open.Go(func() {
				defer func() { <-p.slots }()
				p.serve(ctx, conn)
			})
		default:
			p.record(Decision{Reason: Busy})
			conn.SetDeadline(time.Now().Add(time.Second))
			refuse(conn, Busy)
			conn.Close()
		}
	}
}

// serve answers one connection: one attempt, then a tunnel or the end.
func (p *Proxy) serve(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()

	conn.SetDeadline(time.Now().Add(headTime))
	r := bufio.NewReader(conn)
	t, ok := readTarget(r)
	conn.SetDeadline(time.Time{})

	d := Decision{Host: t.host, Port: t.port}
	var out net.Conn
	if !ok {
		d.Reason = MalformedRequest
	} else {
		out, d.Addrs, d.Reason = p.open(ctx, t)
	}
	if out != nil {
		defer out.Close()
		stop := context.AfterFunc(ctx, func() { out.Close() })
		defer stop()
	}
	recorded := p.record(d)
	conn.SetDeadline(time.Now().Add(stepTime))
	if recorded != nil && out != nil {
		p.cfg.Log.Error("egress refused: its decision could not be written down", "cause", recorded)
		refuse(conn, Busy)
		return
	}
	if out == nil {
		refuse(conn, d.Reason)
		return
	}
	if _, err := conn.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		return
	}
	tunnel(conn, r, out)
}

// open decides, and dials only what it has checked.
func (p *Proxy) open(ctx context.Context, t target) (net.Conn, []netip.Addr, Reason) {
	// The browser's own requests are pointed at names under .invalid and are
	// counted apart from what pages ask for.
	if h := strings.ToLower(strings.TrimSuffix(t.host, ".")); strings.HasSuffix(h, ".invalid") {
		return nil, nil, VendorDropped
	}
	host, err := site.NormalHost(t.host)
	if err != nil || !t.connect || t.port != 443 {
		return nil, nil, DestinationDenied
	}
	var to netip.AddrPort
	var addrs []netip.Addr
	if p.cfg.Dev != nil {
		to = p.cfg.Dev.Hosts[host]
	}
	if to.IsValid() {
		addrs = []netip.Addr{to.Addr()}
	} else {
		if addrs, err = p.resolve(ctx, host); err != nil || len(addrs) == 0 {
			return nil, nil, ResolveFailed
		}
		for _, a := range addrs {
			if !site.PublicAddr(a) {
				return nil, addrs[:min(len(addrs), 16)], PrivateAddress
			}
		}
		to = netip.AddrPortFrom(addrs[0].Unmap(), 443)
	}
	addrs = addrs[:min(len(addrs), 16)]
	dctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	conn, err := p.cfg.Dial(dctx, to)
	if err != nil {
		return nil, addrs, DialFailed
	}
	return conn, addrs, Allowed
}

func (p *Proxy) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	return p.cfg.Resolve(ctx, host)
}

func (p *Proxy) record(d Decision) error {
	d.Tenant, d.At = p.cfg.Tenant, time.Now()
	p.cfg.Log.Debug("egress decision", "host", d.Host, "port", d.Port, "addresses", len(d.Addrs), "reason", string(d.Reason))
	return p.cfg.Audit(d)
}
