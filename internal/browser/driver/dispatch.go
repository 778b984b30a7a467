package driver

import (
	"context"
	"errors"

	protocdp "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"

	"github.com/chaperone-agents/chaperone/internal/browser/cdp"
	"github.com/chaperone-agents/chaperone/internal/browser/pagejs"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
)

// errBlocked: the input went to another element and was stopped there.
var errBlocked = errors.New("driver: the input met another element")

// errDiffers: afterwards the page did not hold what was put in.
var errDiffers = errors.New("driver: the page did not keep the input")

// dispatch sends the act's input. sent says that something may have reached
// the page.
func (p *Page) dispatch(ctx context.Context, a action.Action, t aimed) (sent bool, _ error) {
	ctx, cancel := context.WithTimeout(ctx, inputBound)
	defer cancel()
	p.mu.Lock()
	p.nav = navigation{}
	p.mu.Unlock()
	switch a.Kind {
	case action.Click:
		return p.click(ctx, t)
	case action.Check:
		sent, err := p.click(ctx, t)
		if err != nil {
			return sent, err
		}
		return true, p.confirm(ctx, t, pagejs.ConfirmChecked)
	case action.Type:
		return p.typeText(ctx, t, *a.Value)
	case action.Select:
		return p.choose(ctx, t, *a.Value)
	case action.Press:
		return p.press(ctx, t, *a.Key)
	default: // Scroll; Validate knows no other
		_, err := cdp.Call(ctx, p.session, wheel, wheelParams{
			Type: input.DispatchMouseEventTypeMouseWheel, X: t.found.X, Y: t.found.Y, DeltaY: float64(*a.DeltaY),
		})
		return true, err
	}
}

// wheel is Input.dispatchMouseEvent for a wheel event, for which the browser
// wants both deltas; the generated parameters leave one of zero out.
var wheel = protocdp.Command[wheelParams, protocdp.Empty]{Method: input.CommandDispatchMouseEvent}

type wheelParams struct {
	Type   input.DispatchMouseEventType `json:"type"`
	X      float64                      `json:"x"`
	Y      float64                      `json:"y"`
	DeltaX float64                      `json:"deltaX"`
	DeltaY float64                      `json:"deltaY"`
}

// click moves the mouse there, checks again what is under it, arms the guard
// and presses the button.
func (p *Page) click(ctx context.Context, t aimed) (sent bool, _ error) {
	at := input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: t.found.X, Y: t.found.Y}
	if _, err := cdp.Call(ctx, p.session, input.DispatchMouseEvent, at); err != nil {
		return true, err // a movement can start something, too
	}
	var aim pagejs.Target
	if err := p.in(ctx, t.world, pagejs.Aim, t.args, &aim); err != nil {
		return true, err
	}
	if err := p.outwards(ctx, t.world, &aim, clickTypes); err != nil {
		return true, err
	}
	if aim.Reason != "" {
		return false, refusal(aim.Reason)
	}
	press, release := at, at
	press.X, press.Y, release.X, release.Y = aim.X, aim.Y, aim.X, aim.Y
	press.Type, press.Button, press.Buttons, press.ClickCount = input.DispatchMouseEventTypeMousePressed, input.MouseButtonLeft, 1, 1
	release.Type, release.Button, release.ClickCount = input.DispatchMouseEventTypeMouseReleased, input.MouseButtonLeft, 1
	down := cdp.Send(p.session, input.DispatchMouseEvent, press)
	up := cdp.Send(p.session, input.DispatchMouseEvent, release)
	_, errDown := down(ctx)
	_, errUp := up(ctx)
	if err := errors.Join(errDown, errUp); err != nil {
		return true, err
	}
	return true, p.disarm(ctx, t.world)
}

// clickTypes are the events of a click, for the documents around a frame.
var clickTypes = []string{"mousedown", "mouseup", "click"}

// disarm reads what the guard saw, in the element's document and in those
// around it. A document that has gone took the guard with it; then the click
// has done its work.
func (p *Page) disarm(ctx context.Context, w *world) error {
	for {
		var v pagejs.Verdict
		err := p.in(ctx, w, pagejs.Disarm, struct{}{}, &v)
		switch {
		case p.left(err), err != nil && w.frame != "" && ctx.Err() == nil && p.conn.Err() == nil:
		case err != nil:
			return err
		case v.Blocked:
			return errBlocked
		}
		if w.frame == "" {
			return nil
		}
		w = w.parent
	}
}

// left reports whether a question failed because the page went elsewhere.
func (p *Page) left(err error) bool {
	if err == nil || p.conn.Err() != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Is(err, errMoved) || p.nav.pending || p.nav.requested || p.nav.committed
}

func (p *Page) confirm(ctx context.Context, t aimed, fn pagejs.Function) error {
	var yes bool
	if err := p.in(ctx, t.world, fn, t.args, &yes); err != nil {
		return err
	}
	if !yes {
		return errDiffers
	}
	return nil
}

// focus gives the element the focus and prepares it for keys or text. What
// its focus handler may have done is no input of the act.
func (p *Page) focus(ctx context.Context, t aimed) (pagejs.Target, error) {
	var got pagejs.Target
	if err := p.in(ctx, t.world, pagejs.FocusFor, t.args, &got); err != nil {
		return got, p.unreadable(err)
	}
	if got.Reason != "" {
		return got, refusal(got.Reason)
	}
	return got, nil
}

// typeText replaces the content of a field and compares afterwards; the
// comparison happens in the page, and only its answer comes back.
func (p *Page) typeText(ctx context.Context, t aimed, text string) (sent bool, _ error) {
	t.args.Text = text
	got, err := p.focus(ctx, t)
	if err != nil {
		return false, err
	}
	if !got.Sent {
		if text == "" {
			err = p.key(ctx, keys["Delete"])
		} else {
			_, err = cdp.Call(ctx, p.session, input.InsertText, input.InsertTextParams{Text: text})
		}
		if err != nil {
			return true, err
		}
	}
	err = p.confirm(ctx, t, pagejs.ConfirmText)
	if err == nil && text != "" {
		p.keepDraft(ctx, t, text)
	}
	return true, err
}

func (p *Page) choose(ctx context.Context, t aimed, value string) (sent bool, _ error) {
	t.args.Value = value
	var got pagejs.Target
	err := p.in(ctx, t.world, pagejs.Choose, t.args, &got)
	switch {
	case err != nil:
		return true, err
	case got.Reason != "":
		return false, refusal(got.Reason)
	case !got.Kept:
		return true, errDiffers
	}
	return true, nil
}

func (p *Page) press(ctx context.Context, t aimed, name string) (sent bool, _ error) {
	if _, err := p.focus(ctx, t); err != nil {
		return false, err
	}
	if err := p.key(ctx, keys[name]); err != nil {
		return true, err
	}
	return true, p.disarm(ctx, t.world)
}

// keystroke is one key of a keyboard.
type keystroke struct {
	key, code, text string
	vk              int64
}

// keys are those of action.Keys and browser.InputKeys, and Delete.
var keys = map[string]keystroke{
	"Enter": {"Enter", "Enter", "\r", 13}, "Escape": {"Escape", "Escape", "", 27}, "Tab": {"Tab", "Tab", "", 9},
	"Space": {" ", "Space", " ", 32}, "Backspace": {"Backspace", "Backspace", "", 8}, "Delete": {"Delete", "Delete", "", 46},
	"ArrowUp": {"ArrowUp", "ArrowUp", "", 38}, "ArrowDown": {"ArrowDown", "ArrowDown", "", 40},
	"ArrowLeft": {"ArrowLeft", "ArrowLeft", "", 37}, "ArrowRight": {"ArrowRight", "ArrowRight", "", 39},
}

func (p *Page) key(ctx context.Context, k keystroke) error {
	event := input.DispatchKeyEventParams{
		Type: input.DispatchKeyEventTypeKeyDown, Key: k.key, Code: k.code, Text: k.text, UnmodifiedText: k.text,
		WindowsVirtualKeyCode: k.vk, NativeVirtualKeyCode: k.vk,
	}
	if k.text == "" {
		event.Type = input.DispatchKeyEventTypeRawKeyDown
	}
	down := cdp.Send(p.session, input.DispatchKeyEvent, event)
	event.Type, event.Text, event.UnmodifiedText = input.DispatchKeyEventTypeKeyUp, "", ""
	up := cdp.Send(p.session, input.DispatchKeyEvent, event)
	_, errDown := down(ctx)
	_, errUp := up(ctx)
	return errors.Join(errDown, errUp)
}
