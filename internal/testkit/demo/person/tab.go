package person

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"github.com/chaperone-agents/chaperone/internal/browser/cdp"
)

// Tab is one page. Its methods are for one caller at a time.
type Tab struct {
	person  *Person
	id      target.ID
	session *cdp.Session
}

// Open goes to the address and waits until it has loaded.
func (t *Tab) Open(ctx context.Context, address string) error {
	r, err := cdp.Call(ctx, t.session, page.Navigate, page.NavigateParams{URL: address})
	if err != nil {
		return fmt.Errorf("person: open %s: %w", address, err)
	}
	if r.ErrorText != "" {
		return fmt.Errorf("person: open %s: %s", address, r.ErrorText)
	}
	return t.Wait(ctx, `document.readyState === "complete"`)
}

// Close closes the tab.
func (t *Tab) Close(ctx context.Context) error {
	_, err := cdp.Call(ctx, t.person.conn.Root(), target.CloseTarget, target.CloseTargetParams{TargetID: t.id})
	return err
}

// look brings the tab to the front: one in the background draws nothing.
func (t *Tab) look(ctx context.Context) error {
	if t.person.front == t.id {
		return nil
	}
	if _, err := cdp.Call(ctx, t.session, page.BringToFront, proto.Empty{}); err != nil {
		return fmt.Errorf("person: %w", err)
	}
	t.person.front = t.id
	return nil
}

// Resize gives the page another size.
func (t *Tab) Resize(ctx context.Context, width, height int) error {
	_, err := cdp.Call(ctx, t.session, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: int64(width), Height: int64(height), DeviceScaleFactor: 1, Mobile: width < 600,
	})
	return err
}

// Read evaluates an expression in the page and decodes its value into v, which
// may be nil.
func (t *Tab) Read(ctx context.Context, expression string, v any) error {
	yes := true
	r, err := cdp.Call(ctx, t.session, runtime.Evaluate, runtime.EvaluateParams{Expression: expression, ReturnByValue: &yes, AwaitPromise: &yes})
	if err != nil {
		return fmt.Errorf("person: %w", err)
	}
	if r.ExceptionDetails != nil {
		return fmt.Errorf("person: the page failed at %.200s: %s", expression, r.ExceptionDetails.Text)
	}
	if v == nil || len(r.Result.Value) == 0 {
		return nil
	}
	return json.Unmarshal(r.Result.Value, v)
}

// Wait waits until the expression is true. Pages that are just being replaced
// are asked again.
func (t *Tab) Wait(ctx context.Context, expression string) error {
	var last error
	err := poll(ctx, func() (bool, error) {
		var yes bool
		last = t.Read(ctx, "Boolean("+expression+")", &yes)
		if errors.Is(last, cdp.ErrClosed) || errors.Is(last, cdp.ErrDetached) {
			return false, last
		}
		return yes, nil
	})
	if err != nil {
		return fmt.Errorf("person: waited for %s: %w", expression, errors.Join(err, last))
	}
	return nil
}

// Element is an expression that finds one element.
type Element string

// CSS finds by selector.
func CSS(selector string) Element {
	return Element(fmt.Sprintf("document.querySelector(%s)", quote(selector)))
}

// Button finds the first button or link, in the topmost dialog if one is open,
// by the words on it.
func Button(words string) Element {
	return within(`[...document.querySelectorAll("dialog[open]")].pop() ?? document`, words)
}

// ButtonIn finds a button or link by its words within the element.
func ButtonIn(place Element, words string) Element { return within(string(place), words) }

func within(place, words string) Element {
	return Element(fmt.Sprintf(
		`[...((%s)?.querySelectorAll("button, a, [role=button]") ?? [])].find((b) => b.textContent.replace(/\s+/g, " ").trim() === %s)`,
		place, quote(words)))
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(b)
}

// Click waits until the element is there, enabled, in view and not covered,
// and clicks its middle.
func (t *Tab) Click(ctx context.Context, e Element) error { return t.ClickAt(ctx, e, 0.5, 0.5) }

// ClickAt clicks at a place within the element, given as parts of its width
// and height.
func (t *Tab) ClickAt(ctx context.Context, e Element, partX, partY float64) error {
	var at struct {
		X, Y   float64
		Usable bool
	}
	find := fmt.Sprintf(`(() => {
		const e = %s;
		if (!e || e.disabled) return { Usable: false };
		const inside = (r) => r.top >= 0 && r.left >= 0 && r.bottom <= innerHeight && r.right <= innerWidth;
		if (!inside(e.getBoundingClientRect())) e.scrollIntoView({ block: "nearest", behavior: "instant" });
		const r = e.getBoundingClientRect();
		const x = r.left + r.width * %v, y = r.top + r.height * %v;
		const top = document.elementFromPoint(x, y);
		return { X: x, Y: y, Usable: top !== null && (e.contains(top) || top.contains(e) && top.tagName === "LABEL") };
	})()`, e, partX, partY)
	if err := t.look(ctx); err != nil {
		return err
	}
	var before struct{ X, Y float64 }
	err := poll(ctx, func() (bool, error) {
		if err := t.Read(ctx, find, &at); err != nil {
			return false, err
		}
		still := at.Usable && at.X == before.X && at.Y == before.Y // no click on what is moving
		before.X, before.Y = at.X, at.Y
		return still, nil
	})
	if err != nil {
		return fmt.Errorf("person: nothing to click: %s: %w", e, err)
	}
	return t.mouse(ctx, at.X, at.Y)
}

func (t *Tab) mouse(ctx context.Context, x, y float64) error {
	for _, m := range []input.DispatchMouseEventParams{
		{Type: input.DispatchMouseEventTypeMouseMoved, X: x, Y: y},
		{Type: input.DispatchMouseEventTypeMousePressed, X: x, Y: y, Button: input.MouseButtonLeft, Buttons: 1, ClickCount: 1},
		{Type: input.DispatchMouseEventTypeMouseReleased, X: x, Y: y, Button: input.MouseButtonLeft, ClickCount: 1},
	} {
		if _, err := cdp.Call(ctx, t.session, input.DispatchMouseEvent, m); err != nil {
			return fmt.Errorf("person: click: %w", err)
		}
	}
	return nil
}

// Type presses a key for each character, into whatever has the focus.
func (t *Tab) Type(ctx context.Context, text string) error {
	for _, c := range text {
		if err := t.key(ctx, input.DispatchKeyEventParams{Key: string(c), Text: string(c)}); err != nil {
			return err
		}
	}
	return nil
}

// keys are the ones that Press knows, with their numbers.
var keys = map[string]struct {
	code int64
	text string
}{"Enter": {13, "\r"}, "Tab": {9, ""}, "Escape": {27, ""}, "Backspace": {8, ""}, "ArrowDown": {40, ""}, "ArrowUp": {38, ""}}

// Press presses a named key: Enter, Tab, Escape, Backspace, ArrowUp, ArrowDown.
func (t *Tab) Press(ctx context.Context, name string) error {
	k, ok := keys[name]
	if !ok {
		return fmt.Errorf("person: no key %q", name)
	}
	return t.key(ctx, input.DispatchKeyEventParams{Key: name, Code: name, WindowsVirtualKeyCode: k.code, Text: k.text})
}

func (t *Tab) key(ctx context.Context, k input.DispatchKeyEventParams) error {
	if err := t.look(ctx); err != nil {
		return err
	}
	down, up := k, k
	down.Type, up.Type, up.Text = input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp, ""
	if k.Text == "" {
		down.Type = input.DispatchKeyEventTypeRawKeyDown
	}
	for _, e := range []input.DispatchKeyEventParams{down, up} {
		if _, err := cdp.Call(ctx, t.session, input.DispatchKeyEvent, e); err != nil {
			return fmt.Errorf("person: key: %w", err)
		}
	}
	return nil
}

// Fill clicks the field, and types into it.
func (t *Tab) Fill(ctx context.Context, field Element, text string) error {
	if err := t.Click(ctx, field); err != nil {
		return err
	}
	return t.Type(ctx, text)
}

// Picture is what the tab shows, as a JPEG.
func (t *Tab) Picture(ctx context.Context) ([]byte, error) {
	if err := t.look(ctx); err != nil {
		return nil, err
	}
	quality := int64(80)
	r, err := cdp.Call(ctx, t.session, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatJpeg, Quality: &quality})
	if err != nil {
		return nil, fmt.Errorf("person: picture: %w", err)
	}
	return r.Data, nil
}

// Show replaces the page by the markup, for pictures of something that has no
// page of its own.
func (t *Tab) Show(ctx context.Context, markup string) error {
	if err := t.Open(ctx, "about:blank"); err != nil {
		return err
	}
	return t.Read(ctx, "document.open(), document.write("+strings.ReplaceAll(quote(markup), "</", `<\/`)+"), document.close()", nil)
}
