package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/chaperone-agents/chaperone/internal/app/broker"
)

const progressEvery = 5 * time.Second

// announce tells the client that a call waits for the owner: as a URL to open
// where the client can show one, and as progress where it asked for that. It
// returns when waiting ends; the owner's answer never comes through here.
func announce(waiting context.Context, r *mcp.CallToolRequest, p broker.Pending) {
	if showsURLs(r.Session) {
		go func() {
			// The client's answer only says whether it showed the address.
			_, _ = r.Session.Elicit(waiting, &mcp.ElicitParams{
				Mode: "url", URL: p.Address, ElicitationID: p.ApprovalID,
				Message: "Chaperone asks you to decide: " + p.Summary,
			})
		}()
	}
	token := r.Params.GetProgressToken()
	if token == nil {
		return
	}
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for n := 1; ; n++ {
		err := r.Session.NotifyProgress(waiting, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: float64(n), Message: "Waiting for the owner: " + p.Summary,
		})
		if err != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-waiting.Done():
			return
		}
	}
}

func showsURLs(s *mcp.ServerSession) bool {
	p := s.InitializeParams()
	return p != nil && p.Capabilities != nil && p.Capabilities.Elicitation != nil && p.Capabilities.Elicitation.URL != nil
}

// encode is compact JSON without HTML escaping, as the projection counted it.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
