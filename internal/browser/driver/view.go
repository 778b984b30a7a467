package driver

import (
	"context"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	protocdp "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/cdp"
	"github.com/chaperone-agents/chaperone/internal/browser/pagejs"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
)

// frameGap is the shortest time between two pictures.
const frameGap = 125 * time.Millisecond

// Evidence is what READY-01 needs to know of the page now. No text and no
// value is part of it.
func (p *Page) Evidence(ctx context.Context) (ceremony.Evidence, error) {
	leave, err := p.enter(ctx)
	if err != nil {
		return ceremony.Evidence{}, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, captureBound)
	defer cancel()
	var e ceremony.Evidence
	p.mu.Lock()
	u, err := site.ParseURL(p.doc.url)
	p.mu.Unlock()
	e.OnAllowedOrigin = err == nil && p.config.Origins.Has(u.Origin())
	e.Origin = u.Origin().String()
	if err := p.ask(ctx, pagejs.Challenge, pagejs.ChallengeArgs{Whole: true}, &e.ChallengeVisible); err != nil {
		return ceremony.Evidence{}, p.ended(err)
	}
	cookies, err := p.cookies(ctx)
	if err != nil {
		return ceremony.Evidence{}, p.ended(err)
	}
	e.StoragePresent = len(cookies) > 0
	if !e.StoragePresent && e.OnAllowedOrigin {
		if err := p.ask(ctx, pagejs.HasStorage, struct{}{}, &e.StoragePresent); err != nil {
			return ceremony.Evidence{}, p.ended(err)
		}
	}
	return e, nil
}

// screencast is one stream of pictures.
type screencast struct {
	out  chan browser.Frame // capacity 1
	last time.Time
	stop context.CancelFunc
}

// Frames streams pictures of the page, at most eight a second. A second
// stream ends the first.
func (p *Page) Frames(ctx context.Context) (<-chan browser.Frame, error) {
	if p.conn.Err() != nil {
		return nil, fault.Wrap(fault.ProviderUnavailable, "The browser has ended.", p.conn.Err())
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &screencast{out: make(chan browser.Frame, 1), stop: cancel}
	p.castMu.Lock()
	if p.cast != nil {
		p.cast.stop()
		close(p.cast.out)
		cdp.Send(p.session, page.StopScreencast, protocdp.Empty{})
	}
	p.cast = c
	quality := int64(60)
	started := cdp.Send(p.session, page.StartScreencast, page.StartScreencastParams{
		Format: page.StartScreencastFormatJpeg, Quality: &quality, MaxWidth: 1280, MaxHeight: 1280, MaxFramesInFlight: 1,
	})
	p.castMu.Unlock()
	go func() {
		select {
		case <-ctx.Done():
		case <-p.conn.Done():
		}
		p.endCast(c)
	}()
	if _, err := started(ctx); err != nil {
		p.endCast(c)
		return nil, fault.Wrap(fault.ProviderUnavailable, "The picture of the page could not be started.", err)
	}
	return c.out, nil
}

// endCast ends the stream unless another has taken its place.
func (p *Page) endCast(c *screencast) {
	p.castMu.Lock()
	defer p.castMu.Unlock()
	if p.cast != c {
		return
	}
	c.stop()
	close(c.out)
	p.cast = nil
	cdp.Send(p.session, page.StopScreencast, protocdp.Empty{})
}

// onFrame keeps the newest picture for the receiver and acknowledges it late
// enough to keep the rate down; an unacknowledged picture holds up the next.
func (p *Page) onFrame(v page.EventScreencastFrame) {
	p.castMu.Lock()
	defer p.castMu.Unlock()
	ack := func() {
		cdp.Send(p.session, page.ScreencastFrameAck, page.ScreencastFrameAckParams{SessionID: v.SessionID})
	}
	if p.cast == nil || v.Metadata == nil {
		ack()
		return
	}
	select { // drop the one that nobody took
	case <-p.cast.out:
	default:
	}
	p.cast.out <- browser.Frame{JPEG: v.Data, Width: int(v.Metadata.DeviceWidth), Height: int(v.Metadata.DeviceHeight)}
	pause := frameGap - time.Since(p.cast.last)
	p.cast.last = time.Now()
	time.AfterFunc(max(pause, 0), ack)
}

// Input sends one event of the owner's to the page: a click, a key, or a text
// as one key press per character (HEAD-04).
func (p *Page) Input(ctx context.Context, in browser.Input) error {
	if err := validInput(in); err != nil {
		return err
	}
	p.inputMu.Lock()
	defer p.inputMu.Unlock()
	var err error
	switch in.Kind {
	case "click":
		err = p.rawClick(ctx, float64(in.X), float64(in.Y))
	case "key":
		err = p.key(ctx, keys[in.Key])
	case "text":
		for _, r := range in.Text {
			if err = p.key(ctx, character(r)); err != nil {
				break
			}
		}
	}
	if err != nil && p.conn.Err() != nil {
		return fault.Wrap(fault.ProviderUnavailable, "The browser has ended.", err)
	}
	if err != nil {
		return fault.Wrap(fault.OutcomeUnknown, "The input may not have arrived.", err)
	}
	return nil
}

func validInput(in browser.Input) error {
	ok := false
	switch in.Kind {
	case "click":
		ok = in.X >= 0 && in.X <= 8192 && in.Y >= 0 && in.Y <= 8192 && in.Text == "" && in.Key == ""
	case "text":
		ok = in.Text != "" && utf8.ValidString(in.Text) && utf8.RuneCountInString(in.Text) <= 4096 && in.X == 0 && in.Y == 0 && in.Key == ""
	case "key":
		ok = slices.Contains(browser.InputKeys(), in.Key) && in.X == 0 && in.Y == 0 && in.Text == ""
	}
	if !ok {
		return fault.New(fault.MalformedRequest, "The input is not a click, a text or one of the known keys within bounds.")
	}
	return nil
}

func (p *Page) rawClick(ctx context.Context, x, y float64) error {
	event := func(kind input.DispatchMouseEventType, button input.MouseButton, buttons, count int64) cdp.Wait[protocdp.Empty] {
		return cdp.Send(p.session, input.DispatchMouseEvent, input.DispatchMouseEventParams{
			Type: kind, X: x, Y: y, Button: button, Buttons: buttons, ClickCount: count,
		})
	}
	moved := event(input.DispatchMouseEventTypeMouseMoved, "", 0, 0)
	down := event(input.DispatchMouseEventTypeMousePressed, input.MouseButtonLeft, 1, 1)
	up := event(input.DispatchMouseEventTypeMouseReleased, input.MouseButtonLeft, 0, 1)
	_, errMoved := moved(ctx)
	_, errDown := down(ctx)
	_, errUp := up(ctx)
	return errors.Join(errMoved, errDown, errUp)
}

// character is the keystroke that writes r.
func character(r rune) keystroke {
	k := keystroke{key: string(r), text: string(r)}
	switch {
	case r == '\n', r == '\r':
		return keys["Enter"]
	case r == '\t':
		return keys["Tab"]
	case r >= 'a' && r <= 'z':
		k.vk, k.code = int64(r-'a'+'A'), "Key"+string(r-'a'+'A')
	case r >= 'A' && r <= 'Z':
		k.vk, k.code = int64(r), "Key"+string(r)
	case r >= '0' && r <= '9':
		k.vk, k.code = int64(r), "Digit"+string(r)
	case r == ' ':
		return keys["Space"]
	}
	return k
}
