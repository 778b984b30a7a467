package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser/pagejs"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// view is what the newest observation showed, for acts and continuations. It
// lives and dies with its revision (CAPT-02, EXP-11).
type view struct {
	targets map[int]place // by the number in references
	cursor  string
	next    path
}

// place is an element: where it lives, its number there, and its position.
type place struct {
	world  *world
	number int
	at     path
}

// capture makes one observation. The revision becomes current only when the
// whole of it is valid; on any failure no reference is live (CAPT-01, CAPT-02).
func (p *Page) capture(ctx context.Context, what plan) (observe.Document, error) {
	p.mu.Lock()
	p.revision, p.reading, p.view = "", reading{}, view{}
	p.mu.Unlock()
	revision := ident.Hex(16)
	args := what.args
	args.Revision, args.Regions, args.Challenges, args.Draft = revision, true, p.config.Challenges, p.draft
	args.Specified = p.config.Specified
	if len(what.from) > 0 {
		args.Offset, args.Anchor = what.from[0].offset, what.from[0].number
	}
	seen, generation, err := p.lookAtPage(ctx, args, what.from)
	if err != nil {
		return observe.Document{}, errors.Join(err, p.forget(ctx))
	}
	switch {
	case seen.page.Challenged:
		return observe.Document{}, needsUser()
	case seen.page.Gone:
		return observe.Document{}, fault.New(fault.PageChanged, "The region is no longer there. Observe again.")
	case seen.moved():
		return observe.Document{}, errors.Join(fault.New(fault.PageChanged, "The page has changed where the reading was to go on. Observe again."), p.forget(ctx))
	}
	d, next, shown, err := p.document(revision, seen, what)
	if err != nil {
		return observe.Document{}, errors.Join(err, p.forget(ctx))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.doc.generation != generation {
		return observe.Document{}, fault.New(fault.PageChanged, "The page was replaced while it was read. Observe again.").Retry()
	}
	p.revision, p.reading, p.view, p.cost = revision, next, shown, seen.page.Cost
	d.Notices, p.notices, p.asked, p.dialogs = p.notices, nil, map[string]string{}, 0
	return d, nil
}

// lookAtPage reads the main document, again when it was replaced meanwhile,
// and then the frames in it.
func (p *Page) lookAtPage(ctx context.Context, args pagejs.ObserveArgs, from path) (*sight, int, error) {
	for try := 0; ; try++ {
		p.mu.Lock()
		generation := p.doc.generation
		p.mu.Unlock()
		seen, err := p.look(ctx, p.main, args)
		if err == nil {
			bounded, cancel := context.WithTimeout(ctx, frameBound)
			defer cancel()
			inner := pagejs.ObserveArgs{Revision: args.Revision, Specified: args.Specified}
			if !args.Specified {
				p.lookInto(bounded, seen, inner, from, &budget{left: observe.MaxFrames})
			}
			return seen, generation, nil
		}
		if errors.Is(err, errMoved) && try == 3 {
			return nil, 0, fault.New(fault.PageChanged, "The page was replaced while it was read. Observe again.").Retry()
		}
		if !errors.Is(err, errMoved) {
			return nil, 0, err
		}
		if err := p.awaitDocument(ctx, settleBound); err != nil {
			return nil, 0, err
		}
	}
}

// moved reports whether a position to go on from is not where it was.
func (s *sight) moved() bool {
	if s.page.Moved {
		return true
	}
	for _, child := range s.frames {
		if child.moved() {
			return true
		}
	}
	return false
}

// forget releases every handle; a page that cannot answer has none.
func (p *Page) forget(ctx context.Context) error {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
	}
	var nothing any
	if err := p.ask(ctx, pagejs.Forget, struct{}{}, &nothing); err != nil {
		return fmt.Errorf("releasing handles: %w", err)
	}
	return nil
}

// document checks what the documents reported and gives their elements
// references.
func (p *Page) document(revision string, seen *sight, what plan) (observe.Document, reading, view, error) {
	none := func(err error) (observe.Document, reading, view, error) {
		return observe.Document{}, reading{}, view{}, err
	}
	main := seen.page
	u, err := site.ParseURL(main.URL)
	if err != nil || !p.config.Origins.Has(u.Origin()) {
		return none(fault.New(fault.URLDisallowed, "No page of an allowed origin is open. Open one with browser.navigate."))
	}
	w := window{}
	more := !w.gather(seen, what.from, nil, "", "")
	d := observe.Document{
		URL: u.String(), Title: main.Title, Revision: revision, MoreElements: more || w.limited,
		Elements: make([]observe.Element, len(w.entries)), Facts: make(map[string]observe.Facts, len(w.entries)),
		States: make(map[string]observe.State, len(w.entries)), Frames: w.frames, Unread: slices.Compact(slices.Sorted(slices.Values(w.unread))),
	}
	shown := view{targets: make(map[int]place, len(w.entries))}
	tell := newTeller(u)
	for i, e := range w.entries {
		number := p.number(e.world, e.Number)
		shown.targets[number] = place{e.world, e.Number, e.at}
		ref := revision + ":" + strconv.Itoa(number)
		d.Elements[i] = observe.Element{Ref: ref, Role: e.Role, Name: e.Name, Disabled: e.Disabled, Checked: e.Checked}
		d.Facts[ref] = tell.facts(e.Entry)
		if e.State.Frame = e.frame; !e.State.Empty() {
			d.States[ref] = e.State
		}
	}
	d.Coverage = what.from.coverage(w)
	if w.next != nil {
		shown.cursor, shown.next = ident.Hex(16), w.next
		d.Coverage.NextCursor = shown.cursor
	}
	scope := addTexts(&main, w.text)
	next, err := what.finish(&d, u, main)
	if err != nil {
		return none(err)
	}
	if scope != "" {
		d.TextCoverage.Scope = scope
	}
	p.echo(&d, main.Draft)
	if _, err := observe.Accept(d, p.config.Origins); err != nil {
		return none(err)
	}
	return d, next, shown, nil
}

// coverage says which candidates were looked at (EXP-08). With frames, the
// offset counts the candidates before it in the documents around it only.
func (from path) coverage(w window) *observe.Coverage {
	c := &observe.Coverage{ScannedCandidates: w.scanned, ScanLimitReached: w.limited}
	for _, s := range from {
		c.CandidateOffset = min(c.CandidateOffset+s.offset, observe.MaxCandidateOffset)
	}
	return c
}

// addTexts appends the text of frames to that of the page, within the bounds
// of one text.
func addTexts(main *pagejs.Page, frames []*sight) (scope string) {
	for _, s := range frames {
		f := s.page.Extras
		switch {
		case main.TextNodeLimit || main.TextLimit || f.Text == "":
			continue
		case main.TextNodes+f.TextNodes > observe.MaxScannedNodes:
			main.TextNodeLimit = true
			continue
		case len(main.Text)+1+len(f.Text) > observe.MaxText || main.TextUnits+f.TextUnits > observe.MaxText:
			main.TextLimit = true
			continue
		}
		if main.Text != "" {
			main.Text += "\n"
		}
		main.Text += f.Text
		main.TextNodes, main.TextUnits = main.TextNodes+f.TextNodes, main.TextUnits+f.TextUnits
		main.TextNodeLimit, main.TextLimit = f.TextNodeLimit, f.TextLimit
		scope = "all_readable_frames"
	}
	return scope
}

// number is the number in references of an element: the same for as long as
// the page's document lives, and never another's.
func (p *Page) number(w *world, local int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	refs := w.refs
	if w.frame == "" {
		if p.doc.refs == nil {
			p.doc.refs = map[int]int{}
		}
		refs = p.doc.refs
	}
	n, ok := refs[local]
	if !ok {
		n = p.doc.next
		p.doc.next++
		refs[local] = n
	}
	return n
}

// position is where a window goes on: behind an element of the newest
// observation, or where that ended (EXP-06, EXP-07, EXP-11).
func (v view) position(q observe.Query, revision string) (path, error) {
	if q.Cursor != "" {
		if v.cursor == "" || q.Cursor != v.cursor {
			return nil, newest("", revision)
		}
		return v.next, nil
	}
	n, ok := refNumber(q.After, revision)
	at, known := v.targets[n]
	if !ok || !known {
		return nil, newest("", revision)
	}
	return at.at, nil
}

// refNumber is the number in a reference of the revision.
func refNumber(ref, revision string) (int, bool) {
	rest, ok := strings.CutPrefix(ref, revision+":")
	n, err := strconv.Atoi(rest)
	return n, ok && revision != "" && err == nil && n >= 0 && strconv.Itoa(n) == rest
}

// notice keeps what the browser stopped for the next observation, each thing
// once. It needs p.mu.
func (p *Page) notice(kind, text string) {
	n := observe.Notice{Kind: kind, Text: clipNotice(text)}
	if slices.Contains(p.notices, n) {
		return
	}
	if len(p.notices) == observe.MaxNotices {
		p.notices = p.notices[1:]
	}
	p.notices = append(p.notices, n)
}

// clipNotice is a text within the bound of a notice.
func clipNotice(text string) string {
	r := []rune(text) // what is no UTF-8 becomes a replacement character
	return string(r[:min(len(r), maxNotice)])
}

const maxNotice = 256 // characters
