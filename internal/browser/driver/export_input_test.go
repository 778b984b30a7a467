package driver

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/input"

	"github.com/chaperone-agents/chaperone/internal/browser/cdp"
)

// ModifiedClick is a trusted click that no act can send: with modifier keys
// (1 Alt, 2 Ctrl, 4 Meta, 8 Shift) or another button.
func ModifiedClick(ctx context.Context, t *testing.T, p *Page, x, y float64, modifiers int64, button input.MouseButton) {
	t.Helper()
	for _, kind := range []input.DispatchMouseEventType{input.DispatchMouseEventTypeMouseMoved, input.DispatchMouseEventTypeMousePressed, input.DispatchMouseEventTypeMouseReleased} {
		event := input.DispatchMouseEventParams{Type: kind, X: x, Y: y, Modifiers: modifiers}
		if kind != input.DispatchMouseEventTypeMouseMoved {
			event.Button, event.ClickCount = button, 1
		}
		if _, err := cdp.Call(ctx, p.session, input.DispatchMouseEvent, event); err != nil {
			t.Fatal(err)
		}
	}
}
