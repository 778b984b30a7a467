package driver

import (
	"context"
	"errors"
	"time"

	protocdp "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"

	"github.com/chaperone-agents/chaperone/internal/browser/cdp"
	"github.com/chaperone-agents/chaperone/internal/browser/pagejs"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/constraint"
)

// errBlocked: the input went to another element and was stopped there.
var errBlocked = errors.New("driver: the input met another element")

// errUnseen: the element's document stayed and saw nothing of the input.
var errUnseen = errors.New("driver: the input met nothing that can be looked at")

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
	if t.expired() {
		return false, p.inapplicable(ctx, constraint.Expired)
	}
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
		return p.typeText(ctx, t)
	case action.Select:
		return p.choose(ctx, t)
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
	var aim pagejs.Target
	for deadline := time.Now().Add(trialBound); ; {
		if _, err := cdp.Call(ctx, p.session, input.DispatchMouseEvent, at); err != nil {
			return true, err // a movement can start something, too
		}
		var err error
		if aim, err = p.aim(ctx, t); err != nil {
			return true, err
		}
		if aim.Reason != pagejs.Moving || time.Now().After(deadline) {
			break
		}
		select {
		case <-time.After(trialPause):
		case <-ctx.Done():
			return true, ctx.Err()
		}
	}
	if err := p.outwards(ctx, t.world, &aim, clickTypes); err != nil {
		return true, err
	}
	if aim.Reason != "" {
		return false, refusal(aim.Reason)
	}
	if t.expired() {
		return false, p.inapplicable(ctx, constraint.Expired)
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

// aim asks where to click. Closed shadow roots under that point are opened
// first, for what is in them may be another control.
func (p *Page) aim(ctx context.Context, t aimed) (pagejs.Target, error) {
	for round := 0; ; round++ {
		var aim pagejs.Target
		if err := p.in(ctx, t.world, pagejs.Aim, t.args, &aim); err != nil || aim.Reason != "" || len(aim.Hosts) == 0 {
			return aim, err
		}
		nodes, err := p.describe(ctx, t.world, aim.Hosts)
		if err != nil {
			return aim, err
		}
		opened, err := p.openRoots(ctx, t.world, nodes)
		if err != nil || opened == 0 {
			return aim, err
		}
		if round == rootsRounds {
			return pagejs.Target{Reason: pagejs.Covered}, nil
		}
	}
}

// clickTypes are the events of a click, for the documents around a frame.
var clickTypes = []string{"pointerdown", "mousedown", "pointerup", "mouseup", "click"}

// disarm reads what the guard saw, in the element's document and in those
// around it, which see nothing of an input into a frame. A document that has
// gone took the guard with it; then the input has done its work.
func (p *Page) disarm(ctx context.Context, w *world) error {
	for inner := w; ; {
		var v pagejs.Verdict
		err := p.in(ctx, w, pagejs.Disarm, struct{}{}, &v)
		switch {
		case p.left(err), err != nil && w.frame != "" && ctx.Err() == nil && p.conn.Err() == nil:
		case err != nil:
			return err
		case v.Blocked:
			return errBlocked
		case !v.Seen && w == inner && !p.away():
			return errUnseen
		}
		if w.frame == "" {
			return nil
		}
		w = w.parent
	}
}

// left reports whether a question failed because the page went elsewhere.
func (p *Page) left(err error) bool {
	return err != nil && p.conn.Err() == nil && (errors.Is(err, errMoved) || p.away())
}

// away reports whether the page has begun to leave since the act.
func (p *Page) away() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nav.pending || p.nav.requested || p.nav.committed
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

// ready asks a function that prepares an element for the input. It sends
// nothing; what the page's own handlers do about the focus is no input.
func (p *Page) ready(ctx context.Context, t aimed, fn pagejs.Function) (pagejs.Target, error) {
	var got pagejs.Target
	if err := p.in(ctx, t.world, fn, t.args, &got); err != nil {
		return got, p.unreadable(err)
	}
	switch {
	case got.Reason == pagejs.NoFocus && t.args.Judged: // GUARD-03
		return got, p.inapplicable(ctx, constraint.NoFocus)
	case got.Reason != "":
		return got, refusal(got.Reason)
	case t.expired():
		return got, p.inapplicable(ctx, constraint.Expired)
	}
	return got, nil
}

// set asks a function that changes the element. sent is false only when it
// answered that it did not.
func (p *Page) set(ctx context.Context, t aimed, fn pagejs.Function) (got pagejs.Target, sent bool, err error) {
	if err = p.in(ctx, t.world, fn, t.args, &got); err != nil {
		return got, true, err
	}
	if got.Reason != "" {
		return got, false, refusal(got.Reason)
	}
	return got, true, nil
}

// typeText replaces the content of a field and compares afterwards; the
// comparison happens in the page, and only its answer comes back.
func (p *Page) typeText(ctx context.Context, t aimed) (sent bool, _ error) {
	text := t.args.Text
	got, err := p.ready(ctx, t, pagejs.FocusFor)
	if err != nil {
		return false, err
	}
	if got.Picker {
		if _, sent, err := p.set(ctx, t, pagejs.Fill); err != nil {
			return sent, err
		}
	} else {
		if _, err := p.ready(ctx, t, pagejs.Prepare); err != nil {
			return false, err
		}
		if err := p.insert(ctx, text); err != nil {
			return true, err
		}
	}
	err = p.confirm(ctx, t, pagejs.ConfirmText)
	if err == nil && text != "" {
		p.keepDraft(ctx, t, text)
	}
	return true, err
}

func (p *Page) insert(ctx context.Context, text string) error {
	if text == "" {
		return p.key(ctx, keys["Delete"])
	}
	_, err := cdp.Call(ctx, p.session, input.InsertText, input.InsertTextParams{Text: text})
	return err
}

func (p *Page) choose(ctx context.Context, t aimed) (sent bool, _ error) {
	if _, err := p.ready(ctx, t, pagejs.FocusFor); err != nil {
		return false, err
	}
	got, sent, err := p.set(ctx, t, pagejs.Choose)
	if err == nil && !got.Kept {
		err = errDiffers
	}
	return sent, err
}

func (p *Page) press(ctx context.Context, t aimed, name string) (sent bool, _ error) {
	for _, fn := range []pagejs.Function{pagejs.FocusFor, pagejs.Prepare} {
		if _, err := p.ready(ctx, t, fn); err != nil {
			return false, err
		}
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
