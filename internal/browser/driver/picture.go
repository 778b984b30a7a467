package driver

import (
	"context"
	"math"

	"github.com/chromedp/cdproto/page"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/cdp"
	"github.com/chaperone-agents/chaperone/internal/browser/pagejs"
)

// Size of a picture, in CSS pixels; less near the edge of a small screen.
const (
	pictureWidth  = 640
	pictureHeight = 360
)

// Picture shows the surroundings of an element as they are on screen now. It
// asks the page where the element is and the browser for the pixels: the page
// is neither scrolled nor drawn into.
func (p *Page) Picture(ctx context.Context, revision, ref string) (browser.Picture, error) {
	leave, err := p.enter(ctx)
	if err != nil {
		return browser.Picture{}, err
	}
	defer leave()
	w, index, err := p.referred(revision, ref)
	if err != nil {
		return browser.Picture{}, err
	}
	var seen pagejs.Pictured
	if err := p.in(ctx, w, pagejs.PicturedAt, pagejs.TargetArgs{Revision: revision, Index: index}, &seen); err != nil {
		return browser.Picture{}, p.unreadable(err)
	}
	at := pagejs.Target{Reason: seen.Reason, X: seen.X, Y: seen.Y}
	if w.frame != "" && seen.Reason == "" {
		var screen pagejs.Pictured
		if err := p.outwards(ctx, w, &at, nil); err != nil {
			return browser.Picture{}, p.unreadable(err)
		}
		if err := p.in(ctx, p.main, pagejs.Screen, struct{}{}, &screen); err != nil {
			return browser.Picture{}, p.unreadable(err)
		}
		seen.ScreenWidth, seen.ScreenHeight = screen.ScreenWidth, screen.ScreenHeight
	}
	if at.Reason != "" {
		return browser.Picture{}, refusal(at.Reason)
	}
	seen.X, seen.Y = at.X, at.Y
	return p.shoot(ctx, seen)
}

// shoot takes the picture around a point of the screen, in a quality that fits.
func (p *Page) shoot(ctx context.Context, seen pagejs.Pictured) (browser.Picture, error) {
	width, height := math.Min(pictureWidth, seen.ScreenWidth), math.Min(pictureHeight, seen.ScreenHeight)
	left, top := around(seen.X, width, seen.ScreenWidth), around(seen.Y, height, seen.ScreenHeight)
	box := cut(seen, left, top, width, height)
	metrics, err := cdp.Call(ctx, p.session, page.GetLayoutMetrics, struct{}{})
	if err != nil || metrics.CSSVisualViewport == nil {
		return browser.Picture{}, p.unreadable(err)
	}
	clip := &page.Viewport{X: left + metrics.CSSVisualViewport.PageX, Y: top + metrics.CSSVisualViewport.PageY, Width: width, Height: height, Scale: 1}
	for _, quality := range []int64{70, 40} {
		shot, err := cdp.Call(ctx, p.session, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatJpeg, Quality: &quality, Clip: clip})
		if err != nil {
			return browser.Picture{}, p.unreadable(err)
		}
		out := browser.Picture{JPEG: shot.Data, Width: int(width), Height: int(height), Box: box}
		if out.Valid() {
			return out, nil
		}
	}
	return browser.Picture{}, fault.New(fault.OutputInvalid, "The browser's answer is over its bound.")
}

// around is where a stretch begins that has the point in its middle, and is
// within the screen.
func around(point, length, screen float64) float64 {
	return math.Floor(math.Max(0, math.Min(point-length/2, screen-length)))
}

// cut is the element's box in the picture.
func cut(seen pagejs.Pictured, left, top, width, height float64) browser.Box {
	x0, x1 := math.Max(seen.X-seen.Width/2-left, 0), math.Min(seen.X+seen.Width/2-left, width)
	y0, y1 := math.Max(seen.Y-seen.Height/2-top, 0), math.Min(seen.Y+seen.Height/2-top, height)
	return browser.Box{X: int(x0), Y: int(y0), Width: int(math.Max(0, x1-math.Floor(x0))), Height: int(math.Max(0, y1-math.Floor(y0)))}
}
