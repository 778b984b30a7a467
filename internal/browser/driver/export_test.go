package driver

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/browser/pagejs"
)

// Names is the name of every node that a page of the corpus labels.
func Names(ctx context.Context, t *testing.T, p *Page) json.RawMessage {
	t.Helper()
	var out json.RawMessage
	if err := p.ask(ctx, pagejs.Names, struct{}{}, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Cost is where the time of the newest observation went.
func Cost(p *Page) pagejs.Cost {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cost
}
