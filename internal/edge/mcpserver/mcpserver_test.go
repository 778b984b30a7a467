package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/chaperone-agents/chaperone/internal/app/access"
	"github.com/chaperone-agents/chaperone/internal/app/broker"
	"github.com/chaperone-agents/chaperone/internal/app/notify"
	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/edge/httpx"
	"github.com/chaperone-agents/chaperone/internal/edge/mcpserver"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
	"github.com/chaperone-agents/chaperone/internal/store"
	"github.com/chaperone-agents/chaperone/internal/store/sqlite"
)

const home = "https://desk.practice.example/"

var scope = caller.Scope{Tenant: "local", Principal: "owner"}

// bench is the MCP door over a fake web, with paired agents.
type bench struct {
	t     *testing.T
	store store.Store
	world *fake.World
	hub   *notify.Hub
	door  *httptest.Server
	pair  *access.Access
	ended chan string
	mcp   *mcpserver.Server
}

func newBench(t *testing.T, wait time.Duration) *bench {
	t.Helper()
	return newBenchWith(t, wait, func(*broker.Config) {})
}

func newBenchWith(t *testing.T, wait time.Duration, change func(*broker.Config)) *bench {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	db, err := sqlite.Open(sqlite.Config{Path: filepath.Join(t.TempDir(), "data", "test.db"), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, store: db, world: &fake.World{}, hub: notify.New(), ended: make(chan string, 8)}
	b.world.Put(home, fake.Doc{Title: "Desk <&>", Text: "Tickets & more", Controls: []fake.Control{{Role: "button", Name: "Save"}}})
	if b.pair, err = access.New(access.Config{Store: db, Log: log}); err != nil {
		t.Fatal(err)
	}
	config := broker.Config{
		Store: db, Service: &fake.Service{World: b.world}, Hub: b.hub, ApprovalWait: wait, Log: log,
		ApprovalURL: func(id string) string { return "http://127.0.0.1:8787/#/approvals/" + id },
	}
	change(&config)
	calls, err := broker.New(config)
	if err != nil {
		t.Fatal(err)
	}
	door, err := mcpserver.New(mcpserver.Config{
		Broker: calls, Authenticate: b.pair.Authenticate, Names: mcpserver.Dotted, Version: "test", Hub: b.hub, Log: log,
		EndSession: func(_ context.Context, c caller.Caller) error { b.ended <- c.Session; return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	b.mcp = door
	mux := http.NewServeMux()
	door.Mount(mux)
	b.door = httptest.NewUnstartedServer(nil)
	guard := httpx.Guard{Hosts: []string{b.door.Listener.Addr().String()}}
	b.door.Config.Handler = guard.Wrap(mux)
	b.door.Start()
	t.Cleanup(func() { b.door.CloseClientConnections(); b.door.Close(); db.Close() })
	return b
}

// agent pairs a device; role Owner makes one without a session.
func (b *bench) agent(role caller.Role) (session, credential string) {
	b.t.Helper()
	return b.agentWith(role, contract.Newest)
}

// agentWith pairs an agent whose session has the contract.
func (b *bench) agentWith(role caller.Role, set contract.Set) (session, credential string) {
	b.t.Helper()
	if role == caller.Agent {
		origins, err := site.ParseOrigins([]string{home})
		if err != nil {
			b.t.Fatal(err)
		}
		session = ident.New()
		err = b.store.Tx(b.t.Context(), scope, func(tx store.Tx) error {
			return tx.InsertSession(run.Session{Scope: scope, ID: session, Origins: origins, Contract: set, CreatedAt: time.Now()})
		})
		if err != nil {
			b.t.Fatal(err)
		}
	}
	_, text, err := b.pair.Pair(b.t.Context(), caller.Caller{Scope: scope, Role: caller.Owner}, "test", role, session)
	if err != nil {
		b.t.Fatal(err)
	}
	return session, text.Reveal()
}

type bearer string

func (c bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(c))
	return http.DefaultTransport.RoundTrip(r)
}

// overHTTP and overStdio connect an MCP client to the door.
func (b *bench) overHTTP(credential string, o *mcp.ClientOptions) *mcp.ClientSession {
	return b.connect(&mcp.StreamableClientTransport{Endpoint: b.door.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer(credential)}}, o)
}

func (b *bench) overStdio(credential, query string, o *mcp.ClientOptions) *mcp.ClientSession {
	b.t.Helper()
	ws, _, err := websocket.Dial(b.t.Context(), "ws"+b.door.URL[4:]+"/mcp/stdio"+query, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + credential}}})
	if err != nil {
		b.t.Fatal(err)
	}
	ws.SetReadLimit(1 << 20)
	conn := websocket.NetConn(context.Background(), ws, websocket.MessageBinary)
	return b.connect(&mcp.IOTransport{Reader: conn, Writer: conn}, o)
}

func (b *bench) connect(transport mcp.Transport, o *mcp.ClientOptions) *mcp.ClientSession {
	b.t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o)
	s, err := client.Connect(b.t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { s.Close() })
	return s
}

func call(t *testing.T, s *mcp.ClientSession, name string, args any) (map[string]any, *mcp.CallToolResult) {
	t.Helper()
	p := &mcp.CallToolParams{Name: name, Arguments: args}
	p.SetProgressToken("p")
	r, err := s.CallTool(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	text, ok := r.Content[0].(*mcp.TextContent)
	if !ok || len(r.Content) != 1 {
		t.Fatalf("content %v, want one text block", r.Content)
	}
	var fromText, structured map[string]any
	if err := json.Unmarshal([]byte(text.Text), &fromText); err != nil {
		t.Fatalf("%v in %s", err, text.Text)
	}
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(text.Text)) != nil || compact.String() != text.Text {
		t.Errorf("the text is not compact: %s", text.Text)
	}
	body, err := json.Marshal(r.StructuredContent)
	if err != nil || json.Unmarshal(body, &structured) != nil {
		t.Fatalf("structured content %s", body)
	}
	if a, b := asJSON(t, fromText), asJSON(t, structured); a != b {
		t.Errorf("text %s differs from structured content %s", a, b)
	}
	return fromText, r
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The result envelope, its trust label, and refusals as tool errors with code,
// message and retryable (TRUST-01, CODE-01).
func TestResultsAndRefusals(t *testing.T) {
	b := newBench(t, 0)
	_, credential := b.agent(caller.Agent)
	s := b.overHTTP(credential, nil)
	view, r := call(t, s, "browser.navigate", map[string]any{"url": home})
	if r.IsError || view["title"] != "Desk <&>" || view["content_trust"] != "external_untrusted" || view["url"] != home || view["revision"] == "" {
		t.Fatalf("view %v", view)
	}
	if text := r.Content[0].(*mcp.TextContent).Text; !strings.Contains(text, "Desk <&>") {
		t.Errorf("the text is HTML-escaped: %s", text)
	}
	element := view["elements"].([]any)[0].(map[string]any)
	for name, args := range map[string]any{
		"tool.arguments_invalid":      map[string]any{"kind": "click", "expected_revision": "x", "ref": "y", "force": true},
		"tool.browser.page_changed":   map[string]any{"kind": "click", "expected_revision": "x", "ref": "y"},
		"approval_pending":            map[string]any{"kind": "click", "expected_revision": view["revision"], "ref": element["ref"]},
		"tool.browser.url_disallowed": nil,
	} {
		tool := "browser.act"
		if args == nil {
			tool, args = "browser.navigate", map[string]any{"url": "https://user@desk.practice.example/"}
		}
		refusal, r := call(t, s, tool, args)
		if !r.IsError || refusal["code"] != name || refusal["message"] == "" || refusal["retryable"] == nil {
			t.Errorf("refusal %v, want %s", refusal, name)
		}
		if pending, _ := refusal["approval"].(map[string]any); (name == "approval_pending") != (pending != nil) {
			t.Errorf("refusal %v", refusal)
		}
	}
	if len(b.world.Effects()) != 0 {
		t.Errorf("effects %v", b.world.Effects())
	}
}

// A call that needs the owner is announced by progress and, where the client
// can show an address, by a URL elicitation; the answer comes from the owner
// alone, and a client that accepts the elicitation has approved nothing.
func TestWaitingIsAnnounced(t *testing.T) {
	b := newBench(t, 30*time.Second)
	_, credential := b.agent(caller.Agent)
	var mu sync.Mutex
	var elicited *mcp.ElicitParams
	progress := make(chan string, 8)
	s := b.overStdio(credential, "", &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			mu.Lock()
			defer mu.Unlock()
			elicited = r.Params
			return &mcp.ElicitResult{Action: "accept"}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Message },
	})
	view, _ := call(t, s, "browser.navigate", map[string]any{"url": home})
	go func() {
		<-progress
		for {
			mu.Lock()
			shown := elicited
			mu.Unlock()
			if shown != nil {
				break
			}
			<-time.After(5 * time.Millisecond)
		}
		if n := len(b.world.Effects()); n != 0 {
			t.Errorf("accepting the elicitation had %d effects", n)
		}
		err := b.store.Tx(context.Background(), scope, func(tx store.Tx) error {
			list, err := tx.Approvals("", 1, approval.Pending)
			if err != nil || len(list) != 1 {
				return errors.Join(err, errors.New("no question"))
			}
			yes, err := list[0].Decide(approval.ApproveOnce, "", "owner", time.Now())
			return errors.Join(err, tx.UpdateApproval(yes, approval.Pending))
		})
		if err != nil {
			t.Error(err)
		}
		b.hub.Changed(scope)
	}()
	ref := view["elements"].([]any)[0].(map[string]any)["ref"]
	_, r := call(t, s, "browser.act", map[string]any{"kind": "click", "expected_revision": view["revision"], "ref": ref})
	if r.IsError || len(b.world.Effects()) != 1 {
		t.Fatalf("result %s, effects %v", asJSON(t, r), b.world.Effects())
	}
	mu.Lock()
	defer mu.Unlock()
	if elicited.Mode != "url" || !strings.HasPrefix(elicited.URL, "http://127.0.0.1:8787/#/approvals/") || elicited.ElicitationID == "" {
		t.Errorf("elicitation %+v", elicited)
	}
}

// The door belongs to agents with a live session: every other caller learns
// nothing, and one agent cannot use another's transport session.
func TestWhoMayEnter(t *testing.T) {
	b := newBench(t, 0)
	_, first := b.agent(caller.Agent)
	_, second := b.agent(caller.Agent)
	_, owner := b.agent(caller.Owner)
	s := b.overHTTP(first, nil)
	post := func(path, credential, mcpSession, host, origin string) int {
		body := `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{}}`
		r, err := http.NewRequestWithContext(t.Context(), "POST", b.door.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if credential != "" {
			r.Header.Set("Authorization", "Bearer "+credential)
		}
		if mcpSession != "" {
			r.Header.Set("Mcp-Session-Id", mcpSession)
		}
		if host != "" {
			r.Host = host
		}
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK && bytes.Contains(text, []byte("browser.")) {
			t.Errorf("status %d with %s", answer.StatusCode, text)
		}
		return answer.StatusCode
	}
	for name, c := range map[string]struct{ got, want int }{
		"its own session":      {post("/mcp", first, s.ID(), "", ""), http.StatusOK},
		"another's session":    {post("/mcp", second, s.ID(), "", ""), http.StatusNotFound},
		"no credential":        {post("/mcp", "", s.ID(), "", ""), http.StatusUnauthorized},
		"wrong credential":     {post("/mcp", first[:len(first)-2]+"AA", s.ID(), "", ""), http.StatusUnauthorized},
		"an owner's":           {post("/mcp", owner, s.ID(), "", ""), http.StatusForbidden},
		"foreign host":         {post("/mcp", first, s.ID(), "rebound.example", ""), http.StatusMisdirectedRequest},
		"foreign origin":       {post("/mcp", first, s.ID(), "", "https://evil.example"), http.StatusForbidden},
		"null origin":          {post("/mcp", first, s.ID(), "", "null"), http.StatusForbidden},
		"stdio, no credential": {getStdio(t, b, ""), http.StatusUnauthorized},
		"stdio, an owner's":    {getStdio(t, b, owner), http.StatusForbidden},
	} {
		if c.got != c.want {
			t.Errorf("%s: status %d, want %d", name, c.got, c.want)
		}
	}
}

func getStdio(t *testing.T, b *bench, credential string) int {
	t.Helper()
	o := &websocket.DialOptions{HTTPHeader: http.Header{}}
	if credential != "" {
		o.HTTPHeader.Set("Authorization", "Bearer "+credential)
	}
	_, r, err := websocket.Dial(t.Context(), "ws"+b.door.URL[4:]+"/mcp/stdio", o)
	if err == nil || r == nil {
		t.Fatalf("the stream opened: %v", err)
	}
	return r.StatusCode
}

// PLACE-02: the agent session ends with its stdio client.
func TestStdioEndsItsSession(t *testing.T) {
	b := newBench(t, 0)
	session, credential := b.agent(caller.Agent)
	s := b.overStdio(credential, "", nil)
	call(t, s, "browser.navigate", map[string]any{"url": home})
	s.Close()
	select {
	case got := <-b.ended:
		if got != session {
			t.Errorf("session %s ended, want %s", got, session)
		}
	case <-time.After(time.Minute):
		t.Error("the session did not end")
	}
}

// Both kinds of stream end as soon as the session does, while another agent's
// goes on.
func TestStreamsEndWithTheirSession(t *testing.T) {
	b := newBench(t, 0)
	session, credential := b.agent(caller.Agent)
	_, other := b.agent(caller.Agent)
	stdio, kept := b.overStdio(credential, "", nil), b.overStdio(other, "", nil)
	quiet := b.connect(&mcp.StreamableClientTransport{Endpoint: b.door.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer(credential)}, DisableStandaloneSSE: true}, nil)
	stream, err := http.NewRequestWithContext(t.Context(), "GET", b.door.URL+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	stream.Header.Set("Accept", "text/event-stream")
	stream.Header.Set("Mcp-Session-Id", quiet.ID())
	answer, err := bearer(credential).RoundTrip(stream)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("status %d", answer.StatusCode)
	}
	ended := make(chan string, 2)
	go func() { stdio.Wait(); ended <- "stdio" }()
	go func() { io.Copy(io.Discard, answer.Body); ended <- "http" }()
	call(t, stdio, "browser.navigate", map[string]any{"url": home})
	b.hub.Changed(scope) // a change that concerns neither
	call(t, quiet, "browser.observe", struct{}{})
	select {
	case what := <-ended:
		t.Fatalf("the %s stream ended before its session", what)
	default:
	}
	if err := b.store.Tx(t.Context(), scope, func(tx store.Tx) error { return tx.EndSession(session, time.Now()) }); err != nil {
		t.Fatal(err)
	}
	b.hub.Changed(scope)
	for range 2 {
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatal("a stream outlived its session")
		}
	}
	call(t, kept, "browser.navigate", map[string]any{"url": home})
}
