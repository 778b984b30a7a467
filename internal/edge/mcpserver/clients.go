package mcpserver

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
)

// maxTransports is how many transport sessions one device has at most; a
// further one ends the oldest.
const maxTransports = 8

// clientKey keeps the transport sessions of one device away from another's: an
// Mcp-Session-Id is worth nothing without the credential it began with.
type clientKey struct {
	device string
	names  Names
}

// client is what one device has open over HTTP.
type client struct {
	credential secret.Text // to see whether the device still may enter
	server     *mcp.Server
	handler    http.Handler
	beginning  sync.Mutex // held while a transport session begins
}

// client finds or makes the caller's. Those of devices that may no longer
// enter make room first, so there are never more than live devices, and those
// that ended since the newest one came.
func (s *Server) client(ctx context.Context, a agent, credential secret.Text) *client {
	key := clientKey{device: a.Device, names: a.names}
	s.mu.Lock()
	c := s.clients[key]
	s.mu.Unlock()
	if c != nil {
		return c
	}
	s.sweep(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clients[key]; c != nil {
		return c
	}
	c = &client{credential: credential, server: s.server(a)}
	c.handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return c.server },
		&mcp.StreamableHTTPOptions{SessionTimeout: idleTime, MaxRequestBodyBytes: maxBody})
	s.clients[key] = c
	return c
}

// sweep drops the clients whose device was revoked or whose session has ended.
func (s *Server) sweep(ctx context.Context) {
	s.mu.Lock()
	all := maps.Clone(s.clients)
	s.mu.Unlock()
	for key, c := range all {
		if _, err := s.Authenticate(ctx, c.credential); !fault.Is(err, fault.Unauthenticated) {
			continue
		}
		s.mu.Lock()
		delete(s.clients, key)
		s.mu.Unlock()
		go c.keep(0) // a call under way may take its time
	}
}

// keep ends the oldest transport sessions until at most n are left.
func (c *client) keep(n int) {
	open := slices.Collect(c.server.Sessions())
	for _, session := range open[:max(0, len(open)-n)] {
		session.Close() // an error is that of a client that has gone
	}
}

func (c *client) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" {
		c.beginning.Lock()
		defer c.beginning.Unlock()
		c.keep(maxTransports - 1)
	}
	c.handler.ServeHTTP(w, r)
}
