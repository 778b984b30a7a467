package mcpserver_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// quiet connects over HTTP without a stream of its own.
func (b *bench) quiet(credential string) *mcp.ClientSession {
	return b.connect(&mcp.StreamableClientTransport{Endpoint: b.door.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer(credential)}, DisableStandaloneSSE: true}, nil)
}

// CAP-01: what an agent makes the server keep is bounded: a device has few
// transport sessions, of which the newest work, and a device that has ended
// leaves nothing behind.
func TestClientsAreBounded(t *testing.T) {
	b := newBench(t, 0)
	_, credential := b.agent(caller.Agent)
	var sessions []*mcp.ClientSession
	for range 12 {
		sessions = append(sessions, b.quiet(credential))
	}
	if clients, transports := b.mcp.Open(); clients != 1 || transports != 8 {
		t.Errorf("%d clients with %d transport sessions", clients, transports)
	}
	if _, err := sessions[0].ListTools(t.Context(), nil); err == nil {
		t.Error("the oldest transport session still works")
	}
	for _, s := range sessions[4:] {
		if _, err := s.ListTools(t.Context(), nil); err != nil {
			t.Errorf("a newer one does not: %v", err)
		}
	}

	var ended []string
	for range 5 {
		session, credential := b.agent(caller.Agent)
		b.quiet(credential)
		ended = append(ended, session)
	}
	if clients, _ := b.mcp.Open(); clients != 6 {
		t.Errorf("%d clients of 6 devices", clients)
	}
	if err := b.store.Tx(t.Context(), scope, func(tx store.Tx) error {
		for _, id := range ended {
			if err := tx.EndSession(id, time.Now()); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	_, next := b.agent(caller.Agent)
	b.quiet(next)
	if clients, transports := b.mcp.Open(); clients != 2 || transports != 9 {
		t.Errorf("after five sessions have ended: %d clients with %d transport sessions", clients, transports)
	}
}
