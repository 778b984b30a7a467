package product

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/testkit/practice"
)

// Hand is an owner at the sign-in page, without its pictures: it sends what
// the page would send.
type Hand struct {
	t    testing.TB
	conn *websocket.Conn

	mu       sync.Mutex
	changed  chan struct{}
	state    string
	pictures int
	acks     map[int64]bool
	seq      int64
	gone     bool
}

// Shake connects to the sign-in with a launch address. It fails the test
// unless wanted is false.
func Shake(t testing.TB, launch string, wanted bool) *Hand {
	t.Helper()
	u, err := url.Parse(launch)
	if err != nil {
		t.Fatal(err)
	}
	origin := u.Scheme + "://" + u.Host
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws://"+u.Host+u.Path+"/live", &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {origin}}})
	if err != nil {
		if wanted {
			t.Fatal(err)
		}
		return nil
	}
	conn.SetReadLimit(8 << 20)
	h := &Hand{t: t, conn: conn, changed: make(chan struct{}), acks: map[int64]bool{}}
	t.Cleanup(func() { conn.CloseNow() })
	h.write(map[string]string{"capability": u.Fragment})
	go h.read()
	return h
}

func (h *Hand) write(v any) {
	h.t.Helper()
	body, err := json.Marshal(v)
	if err == nil {
		err = h.conn.Write(h.t.Context(), websocket.MessageText, body)
	}
	if err != nil {
		h.t.Logf("sign-in page: %v", err)
	}
}

func (h *Hand) read() {
	for {
		kind, body, err := h.conn.Read(context.Background())
		var m struct {
			Type, State string
			Seq         int64
			OK          bool
		}
		h.mu.Lock()
		switch {
		case err != nil:
			h.gone = true
		case kind == websocket.MessageBinary:
			h.pictures++
		case json.Unmarshal(body, &m) == nil && m.Type == "state":
			h.state = m.State
		case m.Type == "ack":
			h.acks[m.Seq] = m.OK
		}
		close(h.changed)
		h.changed = make(chan struct{})
		h.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Until waits until what it sees passes; it reports whether that happened.
func (h *Hand) Until(limit time.Duration, pass func(state string, pictures int, gone bool) bool) bool {
	deadline := time.After(limit)
	for {
		h.mu.Lock()
		ok, changed := pass(h.state, h.pictures, h.gone), h.changed
		h.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-changed:
		case <-deadline:
			return false
		}
	}
}

// Send sends one event and reports whether it was acknowledged as done.
func (h *Hand) Send(in browser.Input) bool {
	h.t.Helper()
	h.mu.Lock()
	h.seq++
	seq := h.seq
	h.mu.Unlock()
	h.write(map[string]any{"seq": seq, "event": in})
	h.Until(time.Minute, func(string, int, bool) bool { _, ok := h.acks[seq]; return ok || h.gone })
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.acks[seq]
}

// Type sends text; Press sends a key.
func (h *Hand) Type(text string) bool { return h.Send(browser.Input{Kind: "text", Text: text}) }
func (h *Hand) Press(key string) bool { return h.Send(browser.Input{Kind: "key", Key: key}) }

// Begin asks for a sign-in and returns its launch address and id.
func (r *Running) Begin(profile, loginURL string) (launch, id string, status <-chan Result) {
	r.t.Helper()
	done := make(chan Result, 1)
	lines := make(chan string, 1)
	go func() {
		done <- stream(r.t, lines, Bin(r.t)+"/chaperone", "--data", r.Data, "signin", profile, "--url", loginURL, "--json", "--no-open")
	}()
	select {
	case first := <-lines:
		var begun struct {
			ID        string `json:"id"`
			LaunchURL string `json:"launch_url"`
		}
		if err := json.Unmarshal([]byte(first), &begun); err != nil {
			r.t.Fatalf("%v in %s", err, first)
		}
		return begun.LaunchURL, begun.ID, done
	case got := <-done:
		r.t.Fatalf("chaperone signin: status %d: %s", got.Status, got.Err)
	case <-time.After(90 * time.Second):
		r.t.Fatal("chaperone signin printed nothing")
	}
	return "", "", nil
}

// SignIn signs the account in to the desk through the sign-in page.
func (r *Running) SignIn(site *practice.Site, profile string) {
	r.t.Helper()
	account, ok := site.Account("mira") // whose sessions last
	if !ok {
		r.t.Fatal("the practice site has no account mira")
	}
	launch, _, done := r.Begin(profile, practice.URL(practice.Desk, "/signin"))
	h := Shake(r.t, launch, true)
	if !h.Until(time.Minute, func(_ string, pictures int, _ bool) bool { return pictures > 0 }) {
		r.t.Fatal("the sign-in page shows no picture")
	}
	mark := site.Mark()
	h.Type(account.Name)
	h.Press("Tab")
	h.Type(account.Password)
	h.Press("Enter")
	waitRequest(r.t, site, mark, "/signin/code")
	// The page may still be loading: a person would look, this hand tries again.
	for range 10 {
		h.Type(site.Code(account.Name))
		h.Press("Enter")
		ctx, cancel := context.WithTimeout(r.t.Context(), 3*time.Second)
		_, err := site.WaitEffect(ctx, practice.SignedIn, mark)
		cancel()
		if err == nil {
			break
		}
	}
	select {
	case got := <-done:
		if got.Status != 0 || !strings.Contains(got.Out, `"ready"`) {
			r.t.Fatalf("chaperone signin: status %d: %s %s", got.Status, got.Out, got.Err)
		}
	case <-time.After(60 * time.Second):
		r.t.Fatal("the sign-in did not become ready")
	}
}

// waitRequest waits until the desk was asked for the path after mark.
func waitRequest(t testing.TB, site *practice.Site, mark int, path string) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		for _, q := range site.Requests(practice.Desk) {
			if q.N > mark && q.Path == path {
				return
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
	t.Fatalf("the desk was never asked for %s", path)
}

// Cancel ends the sign-in from its page.
func (h *Hand) Cancel() { h.write(map[string]bool{"cancel": true}) }
