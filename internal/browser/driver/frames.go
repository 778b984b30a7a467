package driver

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/chaperone-agents/chaperone/internal/browser/pagejs"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

const (
	frameBound  = 3 * time.Second // how long the frames of a page may take to answer, all together
	rootsBound  = time.Second     // how long opening closed shadow roots may take
	rootsRounds = 4               // closed roots in closed roots
)

// sight is what one document showed, with those of its frames.
type sight struct {
	world  *world
	page   pagejs.Page
	frames map[int]*sight // by the number of the frame's element
	unread string         // why page is empty
}

// look reads one document, and once more when that made closed shadow roots
// readable.
func (p *Page) look(ctx context.Context, w *world, args pagejs.ObserveArgs) (*sight, error) {
	s := &sight{world: w, frames: map[int]*sight{}}
	for round := 0; ; round++ {
		s.page = pagejs.Page{}
		if err := p.in(ctx, w, pagejs.Observe, args, &s.page); err != nil {
			return nil, err
		}
		if len(s.page.Suspects) == 0 || round == rootsRounds {
			return s, nil
		}
		opened, err := p.openSuspects(ctx, w, s.page.Suspects)
		if err != nil {
			return nil, err
		}
		if opened == 0 && !slices.Contains(s.page.Unread, "closed_shadow") {
			return s, nil
		}
	}
}

// openSuspects opens the closed roots of elements that may have one. Only the
// end of the whole call is an error: a root that does not open stays closed.
func (p *Page) openSuspects(ctx context.Context, w *world, suspects []int) (int, error) {
	bounded, cancel := context.WithTimeout(ctx, rootsBound)
	defer cancel()
	nodes, err := p.describe(bounded, w, suspects)
	if err != nil {
		return 0, ctx.Err()
	}
	opened, err := p.openRoots(bounded, w, nodes)
	if err != nil {
		return 0, ctx.Err()
	}
	return opened, nil
}

// lookInto reads the frames of a document, all at once, and the frames in
// them. A frame that does not answer in time is declared and holds up nothing.
func (p *Page) lookInto(ctx context.Context, s *sight, args pagejs.ObserveArgs, from path, left *budget) {
	var numbers []int
	for _, e := range s.page.Entries {
		if e.Frame != nil {
			numbers = append(numbers, e.Number)
		}
	}
	if len(numbers) == 0 {
		return
	}
	owners, err := p.describe(ctx, s.world, numbers)
	var group sync.WaitGroup
	for _, number := range numbers {
		child := &sight{frames: map[int]*sight{}}
		s.frames[number] = child
		owner := owners[number]
		switch {
		case !left.take():
			child.unread = beyond
			continue
		case err != nil:
			child.unread = reason(err)
			continue
		case owner == nil || owner.FrameID == "":
			child.unread = "plugin"
			continue
		}
		inner := args
		inner.Offset, inner.Anchor = 0, 0
		below := from.into(number)
		if below != nil {
			inner.Offset, inner.Anchor = below[0].offset, below[0].number
		}
		group.Go(func() {
			w, err := p.enterFrame(ctx, string(owner.FrameID), s.world, number)
			var got *sight
			if err == nil {
				got, err = p.look(ctx, w, inner)
			}
			if err != nil {
				child.unread = reason(err)
				return
			}
			*child = *got
			w.origin = got.page.Origin
			p.lookInto(ctx, child, args, below, left)
		})
	}
	group.Wait()
}

// reason says why a frame was not read.
func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "timeout"
	}
	return "cross_process"
}

// beyond declares, once for all of them, the frames beyond the bound.
const beyond = "frames"

// budget is how many frames may still be declared.
type budget struct {
	mu   sync.Mutex
	left int
}

func (b *budget) take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left--
	return b.left >= 0
}

// step is a position among the candidates of one document. A number says that
// the frame with that number is there, and the next step is in it; or, in the
// last step, that the element with it is the anchor.
type step struct{ offset, number int }

// path is a position in a page with frames, from the outermost document on. The
// empty path is the beginning.
type path []step

// into is the rest of the path inside a frame, nil when it does not lead there.
func (p path) into(number int) path {
	if len(p) > 1 && p[0].number == number {
		return p[1:]
	}
	return nil
}

// window is the part of a page that one observation is of.
type window struct {
	entries []found
	frames  []observe.Frame
	unread  []string
	scanned int
	limited bool
	next    path // nil at the end
	text    []*sight
}

// found is a control, where it was found.
type found struct {
	pagejs.Entry
	world *world
	frame string // id in frames
	at    path
}

// gather puts what the documents showed in the order of the page, from the
// position on, until the window is full. It reports whether it got to the end.
func (w *window) gather(s *sight, from, outer path, frame, blocked string) bool {
	w.unread = append(w.unread, s.page.Unread...)
	at := 0
	if len(from) > 0 {
		at = from[0].offset
	}
	for _, e := range s.page.Entries {
		here := append(append(path{}, outer...), step{e.Position, e.Number})
		if w.scanned >= observe.MaxScanned || (e.Frame == nil && len(w.entries) == observe.MaxElements) {
			w.next = stop(here)
			w.limited = w.limited || w.scanned >= observe.MaxScanned
			return false
		}
		w.scanned += e.Position - at + 1
		at = e.Position + 1
		if e.Frame == nil {
			if blocked != "" && e.State.Blocked == "" {
				e.State.Blocked = blocked
			}
			w.entries = append(w.entries, found{Entry: e, world: s.world, frame: frame, at: here})
			continue
		}
		child := s.frames[e.Number]
		if child == nil {
			continue // the contract before 1.9.0 has no frames
		}
		if child.unread == beyond {
			w.unread = append(w.unread, beyond)
			continue
		}
		id := w.add(e, child, frame)
		if child.unread != "" {
			continue
		}
		over := blocked
		if over == "" {
			over = e.Frame.Blocked
		}
		w.text = append(w.text, child)
		if !w.gather(child, from.into(e.Number), here, id, over) {
			return false
		}
	}
	if len(from) == 0 {
		from = path{{}}
	}
	w.scanned = min(w.scanned+max(0, from[0].offset+s.page.Scanned-at), observe.MaxScanned)
	w.limited = w.limited || s.page.Limited
	if s.page.Next >= 0 {
		w.next = append(append(path{}, outer...), step{offset: s.page.Next})
		return false
	}
	return true
}

// add declares a frame.
func (w *window) add(e pagejs.Entry, s *sight, parent string) string {
	f := observe.Frame{ID: "f" + strconv.Itoa(len(w.frames)+1), Parent: parent, Origin: s.page.Origin, Name: e.Frame.Title, Unread: s.unread}
	if f.Unread != "" {
		f.Origin = "null"
	}
	w.frames = append(w.frames, f)
	return f.ID
}

// stop is the path to a candidate that is still to come.
func stop(at path) path {
	out := append(path{}, at...)
	out[len(out)-1].number = 0
	return out
}
