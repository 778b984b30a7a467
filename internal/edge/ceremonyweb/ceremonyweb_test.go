package ceremonyweb_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/chaperone-agents/chaperone/internal/browser"
)

// HAND-03, section 2.9: exact paths, and the same headers on every answer.
func TestPages(t *testing.T) {
	r := newRig(t)
	c, _, capability := r.begin()
	for path, status := range map[string]int{
		"/authentication/" + c.ID:                                200,
		"/authentication/00000000-0000-4000-8000-000000000000":   200, // says nothing of what exists
		"/authentication-surface.js":                             200,
		"/authentication-events.js":                              200,
		"/authentication-surface.css":                            200,
		"/authentication/" + strings.ToUpper(c.ID):               404,
		"/authentication/" + strings.ReplaceAll(c.ID, "-", ""):   404,
		"/authentication/" + c.ID + "%0A":                        404,
		"/authentication/" + c.ID + "/":                          404,
		"/authentication/" + c.ID + "/live/more":                 404,
		"/authentication/" + c.ID + "/handoff":                   404,
		"/authentication/%2e%2e%2fetc":                           404,
		"/":                                                      404,
		"/favicon.ico":                                           404,
		"/v1/browser-sessions:acquire":                           404,
		"/authentication/" + c.ID + "/live":                      403, // no Origin
		"/authentication/00000000-0000-4000-8000-000000000000/x": 404,
	} {
		a := r.get(path, nil)
		if a.StatusCode != status {
			t.Errorf("%s: status %d, want %d", path, a.StatusCode, status)
		}
		csp := a.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: the policy lacks %s", path, want)
			}
		}
		if strings.Contains(csp, "unsafe") || a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("X-Content-Type-Options") != "nosniff" ||
			a.Header.Get("Referrer-Policy") != "no-referrer" || a.Header.Get("X-Frame-Options") != "DENY" || a.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s: headers %v", path, a.Header)
		}
		if body, err := io.ReadAll(a.Body); err != nil || strings.Contains(string(body), capability) || strings.Contains(string(body), c.ID) {
			t.Errorf("%s: the body has something of the sign-in, or %v", path, err)
		}
	}
}

// Weak listeners are how web pages reach local programs: foreign names and
// origins are refused on each route (CER-05).
func TestHostAndOrigin(t *testing.T) {
	r := newRig(t)
	c, _, _ := r.begin()
	host := strings.TrimPrefix(r.origin, "http://")
	port := host[strings.LastIndex(host, ":"):]
	for _, path := range []string{"/authentication/" + c.ID, "/authentication/" + c.ID + "/live"} {
		for _, h := range []string{"127.0.0.1" + port, "evil.example", "localhost", "localhost" + port + ".evil.example", "[::1]" + port} {
			if a := r.get(path, map[string]string{"Host": h, "Origin": r.origin}); a.StatusCode != http.StatusMisdirectedRequest {
				t.Errorf("%s with Host %s: %d", path, h, a.StatusCode)
			}
		}
		for _, o := range []string{"null", "http://127.0.0.1" + port, "https://localhost" + port, "http://evil.example", r.origin + ".evil.example", ""} {
			if a := r.get(path, map[string]string{"Origin": o, "Connection": "Upgrade", "Upgrade": "websocket"}); a.StatusCode != http.StatusForbidden {
				t.Errorf("%s with Origin %q: %d", path, o, a.StatusCode)
			}
		}
	}
}

// page is the other end of the live connection, as a program.
type page struct {
	*rig
	conn *websocket.Conn
}

type message struct {
	Type, State, Origin, Wanting, Capability string
	ExpiresIn                                int64 `json:"expires_in_ms"`
	Seq                                      int64
	OK                                       bool
}

func (r *rig) dial(address string) *page {
	r.t.Helper()
	conn, _, err := websocket.Dial(r.t.Context(), "ws"+strings.TrimPrefix(address, "http")+"/live", &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {r.origin}}})
	if err != nil {
		r.t.Fatal(err)
	}
	conn.SetReadLimit(8 << 20)
	r.t.Cleanup(func() { conn.CloseNow() })
	return &page{rig: r, conn: conn}
}

func (p *page) say(s string) {
	p.t.Helper()
	if err := p.conn.Write(p.t.Context(), websocket.MessageText, []byte(s)); err != nil {
		p.t.Fatal(err)
	}
}

// hear reads until a message passes; pictures come as messages of type picture.
func (p *page) hear(what string, pass func(message) bool) message {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	for {
		kind, b, err := p.conn.Read(ctx)
		if err != nil {
			p.t.Fatalf("%s: %v", what, err)
		}
		m := message{Type: "picture"}
		if kind == websocket.MessageText {
			if err := json.Unmarshal(b, &m); err != nil {
				p.t.Fatal(err)
			}
		} else if len(b) < 4 || binary.BigEndian.Uint16(b) != 1280 || binary.BigEndian.Uint16(b[2:]) != 800 || string(b[4:]) != string(p.film.jpeg) {
			p.t.Fatal("a picture is not width, height and the JPEG")
		}
		if pass(m) {
			return m
		}
	}
}

// closed waits until the other side has closed.
func (p *page) closed() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	for {
		if _, _, err := p.conn.Read(ctx); err != nil {
			if ctx.Err() != nil {
				p.t.Fatal("the connection stays open")
			}
			return
		}
	}
}

// ends says what ends the connection. The other side may have hung up before
// it has read all of it, so a write that fails is an ending too; one that
// hangs is not.
func (p *page) ends(s string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	if err := p.conn.Write(ctx, websocket.MessageText, []byte(s)); err != nil && ctx.Err() != nil {
		p.t.Fatal("the connection neither takes the message nor ends")
	}
	p.closed()
}

func (p *page) claim(capability string) message {
	p.t.Helper()
	p.say(`{"capability":"` + capability + `"}`)
	return p.hear("resume", func(m message) bool { return m.Type == "resume" || m.State == "refused" })
}

func isState(s string) func(message) bool {
	return func(m message) bool { return m.Type == "state" && m.State == s }
}

func isAck(seq int64) func(message) bool {
	return func(m message) bool { return m.Type == "ack" && m.Seq == seq }
}

// The whole way: pictures, states, events in order with their
// acknowledgements, and the outcome (CER-05, CER-06, SURF-02, READY-04).
func TestLive(t *testing.T) {
	r := newRig(t)
	c, address, capability := r.begin()
	p := r.dial(address)
	next := p.claim(capability).Capability
	if len(next) < 43 || next == capability {
		t.Error("no capability for a reconnection")
	}
	p.hear("a picture", func(m message) bool { return m.Type == "picture" })
	m := p.hear("attention", isState("attention"))
	if m.Origin != "https://desk.practice.example" || m.Wanting != "challenge" || m.ExpiresIn < 200_000 || m.ExpiresIn > 300_000 {
		t.Errorf("the page hears %+v", m)
	}
	for i, event := range []string{
		`{"kind":"click","x":640,"y":320}`, `{"kind":"text","text":"planted-pa"}`, `{"kind":"text","text":"ssword-XYZZY"}`, `{"kind":"key","key":"Tab"}`,
	} {
		p.say(`{"seq":` + string(rune('1'+i)) + `,"event":` + event + `}`)
		if m := p.hear("ack", isAck(int64(i+1))); !m.OK {
			t.Errorf("event %d was not delivered", i+1)
		}
	}
	want := []browser.Input{{Kind: "click", X: 640, Y: 320}, {Kind: "text", Text: "planted-pa"}, {Kind: "text", Text: "ssword-XYZZY"}, {Kind: "key", Key: "Tab"}}
	got := r.inputs()
	if len(got) != len(want) {
		t.Fatalf("%d events arrived", len(got))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("event %d arrived as another", i)
		}
	}
	p.say(`{"seq":5,"event":{"kind":"key","key":"Enter"}}`)
	p.say(`{"finished":true}`)
	p.hear("done", isState("done"))
	p.closed()
	if s, err := r.service.CeremonyStatus(t.Context(), ada, c.ID); err != nil || s != "ready" {
		t.Errorf("status %s, %v", s, err)
	}
	if log := r.log.String(); strings.Contains(log, "planted") || strings.Contains(log, "XYZZY") || strings.Contains(log, capability) || strings.Contains(log, next) {
		t.Errorf("the log has typed text or a capability: %s", log)
	}
}

// CER-01, CER-02: the first message opens, once; everything else is refused,
// and an attempt in between harms nobody.
func TestCapability(t *testing.T) {
	r := newRig(t)
	_, address, capability := r.begin()
	for _, first := range []string{
		`{"capability":"` + strings.Repeat("A", 43) + `"}`, `{"capability":""}`, `{}`, `[]`, `{"capability":"` + capability + `","admin":true}`,
		`{"seq":1,"event":{"kind":"text","text":"a"}}`, `{"capability":"` + capability[:42] + `"}`, `{"cancel":true}`, `{"capability":"` + capability + `"} {}`,
	} {
		p := r.dial(address)
		p.say(first)
		p.hear("refused to "+first, isState("refused"))
		p.closed()
	}
	if n := len(r.inputs()); n != 0 {
		t.Errorf("%d events arrived without a capability", n)
	}
	p := r.dial(address)
	next := p.claim(capability).Capability
	again := r.dial(address)
	if m := again.claim(capability); m.State != "refused" {
		t.Errorf("the capability opened twice: %+v", m)
	}
	p.hear("a state", func(m message) bool { return m.Type == "state" }) // the first goes on
	back := r.dial(address)
	if m := back.claim(next); m.Type != "resume" || m.Capability == next {
		t.Errorf("reconnecting: %+v", m)
	}
	p.closed() // and is over when its page is back
	back.say(`{"seq":1,"event":{"kind":"key","key":"Tab"}}`)
	if m := back.hear("ack", isAck(1)); !m.OK {
		t.Error("the reconnected page cannot type")
	}
	if err := r.service.Revoke(t.Context(), ada, r.profile, r.ref); err != nil {
		t.Fatal(err)
	}
	back.hear("cancelled", isState("cancelled"))
	back.closed()
}

// CER-01: after five minutes the capability opens nothing.
func TestExpiredCapability(t *testing.T) {
	r := newRig(t)
	_, address, capability := r.begin()
	r.ahead.Store(int64(5 * time.Minute))
	if m := r.dial(address).claim(capability); m.State != "refused" {
		t.Errorf("an expired capability: %+v", m)
	}
}

// SURF-03: a failed event is told apart; what is no event ends the connection
// without reaching the page.
func TestFailedEvents(t *testing.T) {
	r := newRig(t)
	_, address, capability := r.begin()
	p := r.dial(address)
	next := p.claim(capability).Capability
	r.film.fails.Store(true)
	p.say(`{"seq":1,"event":{"kind":"text","text":"lost"}}`)
	if m := p.hear("ack", isAck(1)); m.OK {
		t.Error("a failed event is called delivered")
	}
	p.say(`{"seq":2,"event":{"kind":"text","text":"","key":"Enter"}}`)
	if m := p.hear("ack", isAck(2)); m.OK {
		t.Error("an event of two kinds is called delivered")
	}
	p.say(`{"seq":3,"event":{"kind":"text","text":"kept"}}`)
	if m := p.hear("ack", isAck(3)); !m.OK {
		t.Error("the next event was not delivered")
	}
	if in := r.inputs(); len(in) != 1 || in[0].Text != "kept" {
		t.Errorf("%d events arrived", len(in))
	}
	for _, bad := range []string{`{"seq":4,"event":{"kind":"text","text":"a","extra":1}}`, `{"eval":"1"}`, `{"seq":-1,"event":{"kind":"key","key":"Tab"}}`, strings.Repeat("x", 70<<10)} {
		p.ends(bad)
		p = r.dial(address)
		next = p.claim(next).Capability
	}
	if in := r.inputs(); len(in) != 1 {
		t.Errorf("%d events arrived", len(in))
	}
	if strings.Contains(r.log.String(), "planted") || strings.Contains(r.log.String(), "kept") {
		t.Error("the log has a diagnostic or typed text")
	}
}

// The owner can cancel from the page, and the browser has gone before the page
// hears of it (READY-04).
func TestCancel(t *testing.T) {
	r := newRig(t)
	c, address, capability := r.begin()
	p := r.dial(address)
	p.claim(capability)
	p.say(`{"cancel":true}`)
	p.hear("cancelled", isState("cancelled"))
	p.closed()
	if s, err := r.service.CeremonyStatus(t.Context(), ada, c.ID); err != nil || s != "cancelled" || len(r.film.Live()) != 0 {
		t.Errorf("status %s, %v, %d browsers", s, err, len(r.film.Live()))
	}
}
