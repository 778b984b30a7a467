package egress_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/devmode"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser/egress"
)

// naive is the proxy that one writes without the rules, with each of its
// mistakes to be made or not.
type naive struct {
	plaintext   bool // forwards other methods than CONNECT
	anyPort     bool
	anyHost     bool // also IP literals and private names
	firstOnly   bool // checks only the first address
	anyAddress  bool // checks none
	redial      bool // resolves again to dial
	devAll      bool // the development mode opens loopback for every name
	noVendor    bool // does not count vendor requests apart
	silent      bool // forgets the audit line of a refusal
	twice       bool // writes it twice
	half        bool // ends both directions when one ends
	wrongStatus bool // 403 for what failed
	bigHeads    bool // no bound on a request head
}

func (n naive) serve(ctx context.Context, w *world, dev *devmode.Config, l net.Listener) error {
	context.AfterFunc(ctx, func() { l.Close() })
	for {
		c, err := l.Accept()
		if err != nil {
			return nil
		}
		go n.one(ctx, w, dev, c)
	}
}

func (n naive) one(ctx context.Context, w *world, dev *devmode.Config, c net.Conn) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	r := bufio.NewReader(c)
	var limited io.Reader = r
	if !n.bigHeads {
		limited = io.LimitReader(r, egress.MaxHead)
	}
	req, err := http.ReadRequest(bufio.NewReader(limited))
	if err != nil {
		w.audit(egress.Decision{Tenant: "tenant-1", Reason: egress.MalformedRequest, At: time.Now()})
		io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
		return
	}
	host, port, _ := net.SplitHostPort(req.Host)
	out, addrs, reason := n.open(ctx, w, dev, req.Method, host, port)
	d := egress.Decision{Tenant: "tenant-1", Host: host, Addrs: addrs, Reason: reason, At: time.Now()}
	if out != nil || !n.silent {
		w.audit(d)
	}
	if n.twice {
		w.audit(d)
	}
	if out == nil {
		status := "403 Forbidden"
		if (reason == egress.ResolveFailed || reason == egress.DialFailed) && !n.wrongStatus {
			status = "502 Bad Gateway"
		}
		io.WriteString(c, "HTTP/1.1 "+status+"\r\n\r\n")
		return
	}
	defer out.Close()
	io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
	done := make(chan struct{})
	go func() { io.Copy(c, out); close(done) }()
	io.Copy(out, c)
	if !n.half {
		out.(*net.TCPConn).CloseWrite()
		<-done
	}
}

func (n naive) open(ctx context.Context, w *world, dev *devmode.Config, method, host, port string) (net.Conn, []netip.Addr, egress.Reason) {
	if strings.HasSuffix(host, ".invalid") && !n.noVendor {
		return nil, nil, egress.VendorDropped
	}
	normal, err := site.NormalHost(host)
	if n.anyHost {
		normal, err = host, nil
	}
	if err != nil || (method != "CONNECT" && !n.plaintext) || (port != "443" && !n.anyPort) {
		return nil, nil, egress.DestinationDenied
	}
	if dev != nil {
		if to, ok := dev.Hosts[normal]; ok {
			c, _ := w.dial(ctx, to)
			return c, []netip.Addr{to.Addr()}, egress.Allowed
		}
	}
	addrs, err := w.resolve(ctx, normal)
	if err != nil || len(addrs) == 0 {
		return nil, nil, egress.ResolveFailed
	}
	for i, a := range addrs {
		if !site.PublicAddr(a) && !n.anyAddress && !(n.firstOnly && i > 0) && !(n.devAll && dev != nil) {
			return nil, addrs, egress.PrivateAddress
		}
	}
	to := addrs[0]
	if n.redial {
		if again, err := w.resolve(ctx, normal); err == nil {
			to = again[0]
		}
	}
	c, err := w.dial(ctx, netip.AddrPortFrom(to.Unmap(), 443))
	if err != nil {
		return nil, addrs, egress.DialFailed
	}
	return c, addrs, egress.Allowed
}

// The suite catches every mistake of the naive proxy, each by a rule that is
// about it.
func TestSuiteCatchesBrokenProxies(t *testing.T) {
	for name, c := range map[string]struct {
		broken naive
		rule   string
	}{
		"forwards plaintext":         {naive{plaintext: true, anyHost: true, anyPort: true}, "plaintext"},
		"opens any port":             {naive{anyPort: true}, "port :8443"},
		"opens IP literals":          {naive{anyHost: true}, "host 127.0.0.1"},
		"opens private names":        {naive{anyHost: true}, "host site.internal"},
		"checks the first address":   {naive{firstOnly: true}, "among public ones"},
		"checks no address":          {naive{anyAddress: true}, "address 169.254.169.254"},
		"resolves again":             {naive{redial: true}, "rebinding"},
		"opens loopback in dev mode": {naive{devAll: true}, "unmapped loopback"},
		"mixes vendor requests in":   {naive{noVendor: true}, "vendor request is dropped"},
		"forgets an audit line":      {naive{silent: true}, "address 10.0.0.1"},
		"repeats an audit line":      {naive{twice: true}, "address 10.0.0.1"},
		"cannot half-close":          {naive{half: true}, "opened at its checked address"},
		"hides failures":             {naive{wrongStatus: true}, "unknown name"},
		"reads without bound":        {naive{bigHeads: true}, "very many fields"},
	} {
		t.Run(name, func(t *testing.T) {
			tried := 0
			for _, r := range rules() {
				if !strings.Contains(r.name, c.rule) {
					continue
				}
				tried++
				if r.check(t, c.broken.serve) != nil {
					return
				}
			}
			t.Errorf("%d rules about %q found nothing wrong", tried, c.rule)
		})
	}
}
