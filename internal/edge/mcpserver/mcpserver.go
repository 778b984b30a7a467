// Package mcpserver serves the browser tools over the Model Context Protocol:
// streamable HTTP at /mcp, and the byte stream of a stdio client tunnelled
// through one websocket at /mcp/stdio. Both authenticate the paired device of
// one agent session and speak to the same broker (CAP-01, TOOL-01 to TOOL-05,
// TOOL-07, TOOL-10, UPL-10, GOAL-03, OBS results of section 2.2 of the requirements).
package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/chaperone-agents/chaperone/internal/app/broker"
	"github.com/chaperone-agents/chaperone/internal/app/notify"
	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/edge/httpx"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// Config of the MCP endpoints; every member is needed.
type Config struct {
	Broker       *broker.Broker
	Authenticate func(context.Context, secret.Text) (caller.Caller, error)
	EndSession   func(context.Context, caller.Caller) error // the stdio client of the session has gone
	Hub          *notify.Hub                                // wakes open streams to look whether they still may be
	Version      string
	Names        Names // default spelling; ?tool-names=dotted|underscore overrides it
	Log          *slog.Logger
}

const (
	maxBody  = 256 << 10 // bytes of one request of an agent
	endTime  = 40 * time.Second
	idleTime = 2 * time.Hour
)

// Server serves agents.
type Server struct {
	Config
	mu      sync.Mutex
	clients map[clientKey]*client
}

// New checks the configuration.
func New(c Config) (*Server, error) {
	if c.Broker == nil || c.Authenticate == nil || c.EndSession == nil || c.Hub == nil || c.Log == nil || (c.Names != Dotted && c.Names != Underscore) {
		return nil, errors.New("mcpserver: the configuration is incomplete")
	}
	return &Server{Config: c, clients: map[clientKey]*client{}}, nil
}

// Mount adds /mcp and /mcp/stdio to a mux that is behind an httpx.Guard.
func (s *Server) Mount(mux *http.ServeMux) {
	mux.HandleFunc("/mcp", s.serveHTTP)
	mux.HandleFunc("GET /mcp/stdio", s.serveStdio)
}

// agent is an authenticated agent device, the spelling it wants, and the tools
// that its session began with.
type agent struct {
	caller.Caller
	names Names
	tools contract.Set
	about string // the instructions
}

// agent authenticates the request as an agent device.
func (s *Server) agent(r *http.Request) (agent, error) {
	c, err := s.Authenticate(r.Context(), httpx.Bearer(r))
	if err != nil {
		return agent{}, err
	}
	if c.Role != caller.Agent || c.Session == "" {
		return agent{}, fault.New(fault.Forbidden, "This is the agents' endpoint. Use the credential of an agent session.")
	}
	a := agent{Caller: c, names: s.Names}
	if n := Names(r.URL.Query().Get("tool-names")); n == Dotted || n == Underscore {
		a.names = n
	}
	if a.tools, err = s.Broker.Contract(r.Context(), c); err != nil {
		return agent{}, err
	}
	images, err := s.Broker.Attached(r.Context(), c)
	if a.about = instructions; len(images) > 0 {
		a.about += " The owner attached these images to this session (image_id, newest first): " + strings.Join(images, ", ") + "."
	}
	return a, err
}

func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	a, err := s.agent(r)
	if err != nil {
		httpx.Fail(w, err)
		return
	}
	if r.Method == http.MethodGet { // a stream that lasts; every other request authenticates anew
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go s.whileAllowed(ctx, r, a.Scope, cancel)
		r = r.WithContext(ctx)
	}
	s.client(r.Context(), a, httpx.Bearer(r)).ServeHTTP(w, r)
}

// whileAllowed calls end as soon as the credential of the request that opened a
// stream is refused: its device was revoked, or its session has ended.
func (s *Server) whileAllowed(ctx context.Context, r *http.Request, scope caller.Scope, end func()) {
	credential := httpx.Bearer(r)
	err := s.Hub.Wait(ctx, scope, func() (bool, error) { _, err := s.Authenticate(ctx, credential); return false, err })
	if ctx.Err() == nil {
		s.Log.Info("stream of an agent ended", "code", fault.CodeOf(err))
		s.sweep(ctx)
		end()
	}
}

// serveStdio lends the connection of a stdio client the life of its agent
// session: when one ends, so does the other.
func (s *Server) serveStdio(w http.ResponseWriter, r *http.Request) {
	a, err := s.agent(r)
	if err != nil {
		httpx.Fail(w, err)
		return
	}
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has answered
	}
	ws.SetReadLimit(maxBody)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	conn := websocket.NetConn(ctx, ws, websocket.MessageBinary)
	defer conn.Close()
	go s.whileAllowed(ctx, r, a.Scope, func() { ws.Close(websocket.StatusPolicyViolation, "the session has ended") })
	session, err := s.server(a).Connect(ctx, &mcp.IOTransport{Reader: conn, Writer: conn, MaxLineLength: maxBody}, nil)
	if err == nil {
		session.Wait() // an error here is the client going away
	}
	ending, done := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer done()
	if err := s.EndSession(ending, a.Caller); err != nil {
		s.Log.Warn("agent session not ended", "session", a.Session, "code", fault.CodeOf(err))
	}
}

// server is the MCP server of one agent session, with the versions of the
// tools that the session began with.
func (s *Server) server(a agent) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "chaperone", Title: "Chaperone", Version: s.Version},
		&mcp.ServerOptions{Instructions: a.about, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
	for _, t := range s.Broker.Tools(a.tools) {
		server.AddTool(definition(t, a.names), func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return s.call(ctx, a.Caller, action.Tool(t.Name), r), nil
		})
	}
	return server
}

func (s *Server) call(ctx context.Context, c caller.Caller, tool action.Tool, r *mcp.CallToolRequest) *mcp.CallToolResult {
	waiting, done := context.WithCancel(ctx)
	defer done()
	view, err := s.Broker.Call(ctx, c, tool, r.Params.Arguments, func(p broker.Pending) { go announce(waiting, r, p) })
	if errors.Is(err, store.ErrUnavailable) { // the agent is told to ask the owner, who finds the cause here
		s.Log.Error("a call was refused because the database cannot be used", "session", c.Session, "cause", err)
	}
	if err != nil {
		return result(refusalOf(err), true)
	}
	return result(view, false)
}

// refusal is the JSON of a tool error.
type refusal struct {
	Code      fault.Code `json:"code"`
	Message   string     `json:"message"`
	Retryable bool       `json:"retryable"`
	Approval  *waiting   `json:"approval,omitempty"`
}

type waiting struct {
	ID        string    `json:"id"`
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
}

func refusalOf(err error) refusal {
	e := fault.Public(err)
	r := refusal{Code: e.Code, Message: e.Public, Retryable: e.Retryable}
	if p, ok := errors.AsType[*broker.PendingError](err); ok {
		r.Approval = &waiting{ID: p.ApprovalID, URL: p.Address, ExpiresAt: p.ExpiresAt.UTC().Truncate(time.Second)}
	}
	return r
}

// result is one text block of compact JSON and the same object as structured
// content.
func result(v any, isError bool) *mcp.CallToolResult {
	body, err := encode(v)
	if err != nil {
		body, _ = encode(refusalOf(err)) // a refusal is three plain members: it encodes
		isError = true
	}
	return &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: string(body)}},
		StructuredContent: json.RawMessage(body),
		IsError:           isError,
	}
}
