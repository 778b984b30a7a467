package browserd

import (
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
)

// Phase is what the owner's page shows of a sign-in.
type Phase string

const (
	Live      Phase = "live"
	Attention Phase = "attention" // the site asks for something only the owner has
	Done      Phase = "done"
	Expired   Phase = "expired"
	Cancelled Phase = "cancelled"
	Failed    Phase = "failed"
)

// Wanting is what a sign-in still needs before it counts as done (READY-01).
type Wanting string

const (
	Nothing       Wanting = ""
	WantText      Wanting = "text"      // nothing was typed while the site asked for it
	WantChallenge Wanting = "challenge" // the site is still asking
	WantOrigin    Wanting = "origin"    // the page is not on one of the profile's origins
	WantSession   Wanting = "session"   // the site keeps no session
	WantSecond    Wanting = "second"    // all is there; one more look in a moment
)

func wanting(e ceremony.Evidence) Wanting {
	switch {
	case e.ChallengeVisible:
		return WantChallenge
	case !e.OnAllowedOrigin:
		return WantOrigin
	case !e.TextDuringChallenge:
		return WantText
	case !e.StoragePresent:
		return WantSession
	}
	return WantSecond
}

// State is what the owner may see of a sign-in beside the picture.
type State struct {
	Phase     Phase
	Status    ceremony.Status
	Origin    string // of the page, as the browser reports it; empty when unknown
	Wanting   Wanting
	ExpiresAt time.Time
}

// inputLimit bounds one event; 4096 characters are 4096 key presses.
const inputLimit = 30 * time.Second

// Viewer is the owner's page of one sign-in. Its methods are safe for
// concurrent use.
type Viewer struct {
	service  *Service
	c        *signIn
	next     secret.Text
	replaced chan struct{}
}

// Next is the capability for one reconnection of this same page: a telephone
// drops its connection while its owner looks up a code. It is single-use too.
func (v *Viewer) Next() secret.Text { return v.next }

// Replaced is closed when the page connected anew; this Viewer is then over.
func (v *Viewer) Replaced() <-chan struct{} { return v.replaced }

// State is the present state and a channel that closes when it changes.
func (v *Viewer) State() (State, <-chan struct{}) {
	v.service.mu.Lock()
	defer v.service.mu.Unlock()
	return v.c.view, v.c.changed
}

// Left is how long the sign-in may still take.
func (v *Viewer) Left() time.Duration { return max(0, v.c.expires.Sub(v.service.now())) }

// Frames streams pictures until ctx ends.
func (v *Viewer) Frames(ctx context.Context) (<-chan browser.Frame, error) {
	ctx, cancel := v.c.rt.join(ctx)
	source, err := v.c.rt.page.Frames(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	frames := make(chan browser.Frame)
	go func() {
		defer cancel()
		defer close(frames)
		for {
			select {
			case f, ok := <-source:
				if !ok {
					return
				}
				v.service.touch(v.c) // a new picture may be a new page
				select {
				case frames <- f:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return frames, nil
}

// Input sends one event of the owner's to the page. The text is neither kept
// nor inspected; only that there was some, and that a challenge was on screen
// just before (READY-01).
func (v *Viewer) Input(ctx context.Context, in browser.Input) error {
	if !validInput(in) {
		return fault.New(fault.MalformedRequest, "That is not an event of a sign-in. Nothing was sent.")
	}
	s, c := v.service, v.c
	ctx, cancel := c.rt.join(ctx)
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, inputLimit)
	defer stop()
	s.mu.Lock()
	over, typed := c.ending || c.viewer != v, c.typed
	c.inputs++
	c.stale = true
	s.mu.Unlock()
	if over {
		return fault.New(fault.ProfileUnavailable, "This sign-in is over. Nothing was sent.")
	}
	challenged := false
	if in.Kind == "text" && !typed {
		if err := c.rt.enter(ctx); err != nil {
			return inputFailed(err)
		}
		e, err := s.evidence(ctx, c)
		c.rt.leave()
		challenged = err == nil && e.ChallengeVisible
	}
	if err := c.rt.page.Input(ctx, in); err != nil {
		return inputFailed(err)
	}
	s.mu.Lock()
	c.typed = c.typed || challenged
	c.stale = true
	s.mu.Unlock()
	return nil
}

func inputFailed(err error) error {
	return fault.Wrap(fault.ProviderUnavailable, "The event did not reach the page.", err)
}

// Check asks for a look at the page now.
func (v *Viewer) Check() { v.service.touch(v.c) }

// Cancel ends the sign-in without sealing.
func (v *Viewer) Cancel() { v.service.conclude(v.c, cancelled) }

// Close says that the page has gone. The sign-in goes on until it is ready or
// its time is up, as the owner may be back.
func (v *Viewer) Close() { v.service.touch(v.c) }

func validInput(in browser.Input) bool {
	switch in.Kind {
	case "click":
		return in.Text == "" && in.Key == "" && in.X >= 0 && in.X <= 8192 && in.Y >= 0 && in.Y <= 8192
	case "text":
		return in.X == 0 && in.Y == 0 && in.Key == "" && in.Text != "" && utf8.ValidString(in.Text) && utf8.RuneCountInString(in.Text) <= 4096
	case "key":
		return in.X == 0 && in.Y == 0 && in.Text == "" && slices.Contains(browser.InputKeys(), in.Key)
	}
	return false
}
