package egress_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/devmode"
	"github.com/chaperone-agents/chaperone/internal/browser/egress"
)

// world is everything a proxy can touch in a test: names whose answers may
// change between two look-ups, an echo server behind every dial, and records
// of what was really resolved, dialled and audited.
type world struct {
	mu        sync.Mutex
	names     map[string][][]netip.Addr // one answer per look-up; the last repeats
	lookups   map[string]int
	dials     []netip.AddrPort
	decisions []egress.Decision
	echo      net.Addr

	auditFails error
}

func newWorld(t testing.TB) *world {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				fmt.Fprint(c, "hello ")
				io.Copy(c, c)
				fmt.Fprint(c, " bye") // only reached when the half-close came through
			}()
		}
	}()
	return &world{names: map[string][][]netip.Addr{}, lookups: map[string]int{}, echo: l.Addr()}
}

func (w *world) answer(host string, answers ...string) {
	for _, a := range answers {
		var one []netip.Addr
		for s := range strings.FieldsSeq(a) {
			one = append(one, netip.MustParseAddr(s))
		}
		w.names[host] = append(w.names[host], one)
	}
}

func (w *world) resolve(_ context.Context, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list, n := w.names[strings.TrimSuffix(host, ".")], w.lookups[host]
	w.lookups[host]++
	if len(list) == 0 {
		return nil, errors.New("no such name")
	}
	return list[min(n, len(list)-1)], nil
}

func (w *world) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	w.mu.Lock()
	w.dials = append(w.dials, to)
	w.mu.Unlock()
	if to.Addr() == netip.MustParseAddr("8.8.4.4") {
		return nil, errors.New("refused")
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", w.echo.String())
}

func (w *world) audit(d egress.Decision) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.decisions = append(w.decisions, d)
	return w.auditFails
}

// starter runs a proxy, ours or a broken one, on l.
type starter func(ctx context.Context, w *world, dev *devmode.Config, l net.Listener) error

func ours(ctx context.Context, w *world, dev *devmode.Config, l net.Listener) error {
	p, err := egress.New(egress.Config{
		Tenant: "tenant-1", Dev: dev, Resolve: w.resolve, Dial: w.dial, Audit: w.audit, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	return p.Serve(ctx, l)
}

// attempt sends one raw request through a fresh proxy and returns the status
// line; what it opened and audited is in w.
func attempt(t testing.TB, start starter, w *world, dev *devmode.Config, request string) (string, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- start(ctx, w, dev, l) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Serve: %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("Serve did not end with its context")
		}
	})
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	io.WriteString(c, request) // a refusal may come before the end of it
	line, _ := bufio.NewReaderSize(oneByte{c}, 1).ReadString('\n')
	return strings.TrimSpace(line), c
}

// oneByte keeps a buffered reader from taking more than the line.
type oneByte struct{ r io.Reader }

func (o oneByte) Read(b []byte) (int, error) { return o.r.Read(b[:1]) }

// rule is one thing that PROXY-01, PROXY-02 or section 3.3 demands: a request
// and its only permitted consequence.
type rule struct {
	name    string
	request string
	answers map[string][]string
	dev     bool
	status  string        // prefix of the status line
	reason  egress.Reason // of the one decision
	dialled string        // the one dial, or "" for none
}

func connect(authority string) string {
	return "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n"
}

func rules() []rule {
	const no, bad = "HTTP/1.1 403", "HTTP/1.1 502"
	denied := func(name, request string) rule {
		return rule{name: name, request: request, status: no, reason: egress.DestinationDenied}
	}
	public := map[string][]string{"site.example.org": {"93.184.216.34"}, "127.0.0.1": {"93.184.216.34"}, "site.internal": {"93.184.216.34"}, "site": {"93.184.216.34"}}
	list := []rule{
		{name: "PROXY-01 a public name is opened at its checked address", request: connect("site.example.org:443"),
			answers: public, status: "HTTP/1.1 200", reason: egress.Allowed, dialled: "93.184.216.34:443"},
		{name: "PROXY-01 a final dot and capitals are the same name", request: connect("Site.Example.ORG.:443"),
			answers: public, status: "HTTP/1.1 200", reason: egress.Allowed, dialled: "93.184.216.34:443"},
		{name: "PROXY-01 a rebinding name is dialled at the address that was checked", request: connect("rebind.example.org:443"),
			answers: map[string][]string{"rebind.example.org": {"93.184.216.34", "127.0.0.1"}},
			status:  "HTTP/1.1 200", reason: egress.Allowed, dialled: "93.184.216.34:443"},
		{name: "PROXY-01 one private address among public ones refuses the name", request: connect("mixed.example.org:443"),
			answers: map[string][]string{"mixed.example.org": {"93.184.216.34 10.0.0.1"}}, status: no, reason: egress.PrivateAddress},
		{name: "3.3 an unknown name is 502", request: connect("missing.example.org:443"), status: bad, reason: egress.ResolveFailed},
		{name: "3.3 a name without addresses is 502", request: connect("empty.example.org:443"),
			answers: map[string][]string{"empty.example.org": {""}}, status: bad, reason: egress.ResolveFailed},
		{name: "3.3 an address that does not answer is 502", request: connect("closed.example.org:443"),
			answers: map[string][]string{"closed.example.org": {"8.8.4.4"}}, status: bad, reason: egress.DialFailed, dialled: "8.8.4.4:443"},
		{name: "2.9 a vendor request is dropped and counted apart", request: connect("gaia.invalid:443"), status: no, reason: egress.VendorDropped},
		{name: "2.9 a plain vendor request too", request: "POST http://update.invalid/service HTTP/1.1\r\nHost: update.invalid\r\n\r\n", status: no, reason: egress.VendorDropped},
		{name: "development: a mapped name goes to its loopback address", dev: true, request: connect("wiki.practice.example:443"),
			status: "HTTP/1.1 200", reason: egress.Allowed, dialled: "127.0.0.1:8443"},
		{name: "development: an unmapped loopback name stays refused", dev: true, request: connect("other.example.org:443"),
			answers: map[string][]string{"other.example.org": {"127.0.0.1"}}, status: no, reason: egress.PrivateAddress},
		denied("development: a mapped name on another port stays refused", connect("wiki.practice.example:8443")),
		denied("development: localhost stays refused", connect("localhost:443")),
	}
	list[len(list)-2].dev, list[len(list)-1].dev = true, true
	for _, a := range []string{"10.0.0.1", "127.0.0.1", "169.254.169.254", "192.168.1.1", "172.16.0.1", "100.64.0.1", "0.0.0.0", "224.0.0.1",
		"255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "ff02::1", "::ffff:10.0.0.1", "::ffff:127.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "fd00:ec2::254"} {
		list = append(list, rule{name: "PROXY-02 address " + a, request: connect("private.example.org:443"),
			answers: map[string][]string{"private.example.org": {a}}, status: no, reason: egress.PrivateAddress})
	}
	for _, h := range []string{"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "127.1", "1.1.1.1", "[2606:4700::1111]", "::1",
		"site", "localhost", "site.local", "site.internal", "printer.home", "nas.lan", "metadata.google.internal", "*.example.org", "-a.example.org", "a..example.org", ".example.org",
		"site.example.1", "user@site.example.org", "user:pw@site.example.org", "site.example.org/", "site.example.org%00", "site.example.org#", strings.Repeat("a.", 127) + "org"} {
		r := denied("PROXY-02 host "+h, connect(h+":443"))
		r.answers = public
		list = append(list, r)
	}
	for _, p := range []string{":80", ":8443", ":22", ":0443", ":+443", ":443.", ":0x1bb", ":", ":-1", ":65979", ":443:443", ""} {
		r := denied("PROXY-01 port "+p, connect("site.example.org"+p))
		r.answers = public
		list = append(list, r)
	}
	for _, q := range []string{"GET http://site.example.org/ HTTP/1.1", "GET https://site.example.org/ HTTP/1.1", "POST http://127.0.0.1:443/ HTTP/1.1", "GET / HTTP/1.1",
		"connect site.example.org:443 HTTP/1.1", "OPTIONS * HTTP/1.1", "CONNECT http://site.example.org:443/ HTTP/1.1"} {
		r := denied("PROXY-02 plaintext "+q, q+"\r\nHost: site.example.org\r\n\r\n")
		r.answers = public
		list = append(list, r)
	}
	for name, q := range map[string]string{
		"no version":       "CONNECT site.example.org:443\r\n\r\n",
		"HTTP/2":           "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"two targets":      "CONNECT site.example.org:443 127.0.0.1:443 HTTP/1.1\r\n\r\n",
		"a bare return":    "CONNECT site.example.org:443\r127.0.0.1:443 HTTP/1.1\r\n\r\n",
		"a NUL":            "CONNECT site.example.org\x00:443 HTTP/1.1\r\n\r\n",
		"a look-alike":     "CONNECT sit\u0435.example.org:443 HTTP/1.1\r\n\r\n",
		"TLS":              "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n",
		"a long line":      "CONNECT " + strings.Repeat("a", 1<<20) + ":443 HTTP/1.1\r\n\r\n",
		"a long field":     "CONNECT site.example.org:443 HTTP/1.1\r\nA: " + strings.Repeat("b", egress.MaxHead) + "\r\n\r\n",
		"very many fields": "CONNECT site.example.org:443 HTTP/1.1\r\n" + strings.Repeat("A: b\r\n", egress.MaxHead/6) + "\r\n",
	} {
		list = append(list, rule{name: "3.3 malformed: " + name, request: q, answers: public, status: "HTTP/1.1 400", reason: egress.MalformedRequest})
	}
	return list
}

// check runs one rule and says what went wrong.
func (r rule) check(t testing.TB, start starter) error {
	w := newWorld(t)
	for host, answers := range r.answers {
		w.answer(host, answers...)
	}
	var dev *devmode.Config
	if r.dev {
		dev = &devmode.Config{Hosts: map[string]netip.AddrPort{"wiki.practice.example": netip.MustParseAddrPort("127.0.0.1:8443")}}
	}
	status, conn := attempt(t, start, w, dev, r.request)
	if !strings.HasPrefix(status, r.status) {
		return fmt.Errorf("answer %.60q, want %s", status, r.status)
	}
	if r.reason == egress.Allowed {
		if err := echoes(conn); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var want []netip.AddrPort
	if r.dialled != "" {
		want = []netip.AddrPort{netip.MustParseAddrPort(r.dialled)}
	}
	if !slices.Equal(w.dials, want) {
		return fmt.Errorf("dialled %v, want %v", w.dials, want)
	}
	if len(w.decisions) != 1 {
		return fmt.Errorf("%d decisions, want exactly one", len(w.decisions))
	}
	d := w.decisions[0]
	switch {
	case d.Reason != r.reason:
		return fmt.Errorf("reason %s, want %s", d.Reason, r.reason)
	case d.Tenant != "tenant-1" || d.At.IsZero() || len(d.Host) > 254:
		return fmt.Errorf("incomplete decision %+v", d)
	case r.reason == egress.PrivateAddress && len(d.Addrs) == 0:
		return errors.New("the decision does not say which addresses")
	}
	return nil
}

// echoes proves that bytes flow both ways, and that ending one direction
// leaves the other open (half-close).
func echoes(c net.Conn) error {
	r := bufio.NewReader(c)
	if line, err := r.ReadString('\n'); err != nil || strings.TrimSpace(line) != "" {
		return fmt.Errorf("the answer's head does not end: %q, %v", line, err)
	}
	if _, err := io.WriteString(c, "ping"); err != nil {
		return err
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	all, err := io.ReadAll(r)
	if err != nil || string(all) != "hello ping bye" {
		return fmt.Errorf("the tunnel carried %q, %v", all, err)
	}
	return nil
}

// PROXY-01, fail closed: a decision that cannot be written down opens nothing.
func TestUnrecordedDecisionOpensNothing(t *testing.T) {
	w := newWorld(t)
	w.answer("site.example.org", "93.184.216.34")
	w.auditFails = errors.New("disk full")
	status, conn := attempt(t, ours, w, nil, connect("site.example.org:443"))
	if !strings.HasPrefix(status, "HTTP/1.1 503") {
		t.Errorf("answer %q", status)
	}
	if rest, err := io.ReadAll(conn); err != nil || strings.Contains(string(rest), "hello") {
		t.Errorf("the tunnel carried %q, %v", rest, err)
	}
}

func TestProxyRules(t *testing.T) {
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			if err := r.check(t, ours); err != nil {
				t.Error(err)
			}
		})
	}
}
