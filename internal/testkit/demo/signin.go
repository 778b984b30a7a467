package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/chaperone-agents/chaperone/internal/testkit/demo/person"
)

// signInPage is the owner at the live picture of the isolated browser.
type signInPage struct {
	owner *owner
	tab   *person.Tab
	keep  func(caption string, jpeg []byte) // takes a picture into the report
}

const canvas = `document.getElementById("picture")`

// size of the picture, in the website's own pixels.
func (p *signInPage) size(ctx context.Context) (w, h int, err error) {
	var got struct{ W, H int }
	err = p.tab.Read(ctx, `({ W: `+canvas+`.width, H: `+canvas+`.height })`, &got)
	return got.W, got.H, err
}

// see waits until the picture shows the colour at the spot: the page with the
// button has arrived.
func (p *signInPage) see(ctx context.Context, s spot) error {
	return p.tab.Wait(ctx, fmt.Sprintf(`(() => {
		const [r, g, b] = %s.getContext("2d").getImageData(%d, %d, 1, 1).data;
		return Math.abs(r - %d) + Math.abs(g - %d) + Math.abs(b - %d) < 60;
	})()`, canvas, int(s.X), int(s.Y), s.Colour[0], s.Colour[1], s.Colour[2]))
}

// fill waits for the page in the picture, clicks the field there and types.
func (p *signInPage) fill(ctx context.Context, address, field, button, text string) error {
	w, h, err := p.size(ctx)
	if err != nil {
		return err
	}
	b, err := p.owner.recall(ctx, address, button, w, h)
	if err != nil {
		return err
	}
	f, err := p.owner.recall(ctx, address, field, w, h)
	if err != nil {
		return err
	}
	if err := p.see(ctx, b); err != nil {
		return err
	}
	if err := p.tab.ClickAt(ctx, person.CSS("#picture"), f.X/float64(w), math.Min(f.Y/float64(h), 0.999)); err != nil {
		return err
	}
	return p.typed(ctx, text)
}

// password goes to the next field, types, and submits.
func (p *signInPage) password(ctx context.Context, text string) error {
	if err := p.tab.Press(ctx, "Tab"); err != nil {
		return err
	}
	before, err := p.points(ctx)
	if err != nil {
		return err
	}
	if err := p.typed(ctx, text); err != nil {
		return err
	}
	// The picture follows the keys by a moment. It is only shown, so a moment
	// that is too short spoils nothing.
	shown, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := p.turned(shown, before, fewPoints); err != nil && ctx.Err() != nil {
		return err
	}
	if err := p.picture(ctx, "The owner types into the live picture of a browser that the agent cannot see."); err != nil {
		return err
	}
	return p.tab.Press(ctx, "Enter")
}

// answer types into the field that has the focus, and submits.
func (p *signInPage) answer(ctx context.Context, text string) error {
	if err := p.typed(ctx, text); err != nil {
		return err
	}
	return p.tab.Press(ctx, "Enter")
}

func (p *signInPage) typed(ctx context.Context, text string) error {
	if err := p.tab.Type(ctx, text); err != nil {
		return err
	}
	var lost bool
	if err := p.tab.Read(ctx, `!document.getElementById("notice").hidden`, &lost); err != nil || lost {
		return errors.Join(errors.New("the sign-in page lost a character"), err)
	}
	return nil
}

func (p *signInPage) picture(ctx context.Context, caption string) error {
	jpeg, err := p.tab.Picture(ctx)
	if err == nil {
		p.keep(caption, jpeg)
	}
	return err
}

// done waits until the page says that the session is sealed.
func (p *signInPage) done(ctx context.Context) error {
	return p.tab.Wait(ctx, `document.body.dataset.state === "done"`)
}

// points is a coarse reading of the picture: the brightness of every sixteenth
// pixel each way.
func (p *signInPage) points(ctx context.Context) ([]int, error) {
	var got []int
	err := p.tab.Read(ctx, `(() => {
		const c = `+canvas+`, d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data, out = [];
		for (let y = 0; y < c.height; y += 16) for (let x = 0; x < c.width; x += 16) {
			const i = 4 * (y * c.width + x);
			out.push((d[i] + d[i + 1] + d[i + 2]) >> 2);
		}
		return out;
	})()`, &got)
	return got, err
}

// differ counts the points that are clearly not the same.
func differ(a, b []int) int {
	n := max(len(a), len(b)) - min(len(a), len(b))
	for i := range min(len(a), len(b)) {
		if d := a[i] - b[i]; d > 12 || d < -12 {
			n++
		}
	}
	return n
}

// How many points tell something typed, and another page. A caret that blinks
// is one or two.
const (
	fewPoints  = 3
	manyPoints = 40
)

// turned waits until at least so many points of the picture are not as before,
// and the picture stands still.
func (p *signInPage) turned(ctx context.Context, before []int, points int) error {
	last := before
	for {
		now, err := p.points(ctx)
		if err != nil {
			return err
		}
		if differ(now, before) >= points && differ(now, last) < fewPoints {
			return nil
		}
		last = now
		select {
		case <-time.After(150 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the picture did not change: %w", ctx.Err())
		}
	}
}
