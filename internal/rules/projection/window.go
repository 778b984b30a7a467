package projection

import (
	"maps"
	"slices"

	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// smallBudget and below leave out scan counters and cut the one reserved
// region to a label (section 2.12 of the requirements).
const (
	smallBudget = 2048
	smallLabel  = 24 // bytes
)

// fitting is a window being filled. Everything that every window has is
// counted at its longest before anything optional is let in.
type fitting struct {
	v      View
	d      observe.Document
	o      Options
	alone  int // bytes that a control can have if nothing optional is there
	room   int // bytes left
	small  bool
	change *change         // what is new since another revision; nil for a whole answer
	shown  map[string]bool // elements that were let in
	walked int             // elements from the first on without a gap, shown or unchanged
}

// window is version 1.7.0 and newer. In order of importance: revision and
// coverage; the rows of an extraction; one whole control; a label of one
// region; address, title and what 1.9.0 reports; then controls in page order
// without a gap, regions and text, each with a share.
func window(d observe.Document, o Options) (View, Shown) {
	f := &fitting{d: d, o: o, small: o.Budget <= smallBudget, shown: map[string]bool{}}
	if o.Since != "" {
		if f.change = since(d, o); f.change == nil || !f.begin() {
			f.change = nil
		}
	}
	if f.change == nil {
		fits := f.begin()
		if !fits && !f.small {
			f.small = true
			fits = f.begin()
		}
		if !fits {
			return View{omitted: true}, Shown{}
		}
	}
	f.extraction()
	first := f.firstControl()
	f.label()
	f.headings()
	text := f.textShare()
	f.controls(first, text)
	f.regions(text)
	read := f.text()
	f.next(read)
	return f.v, f.seen(read)
}

// begin counts what every window of the observation has, and reports whether
// it fits.
func (f *fitting) begin() bool {
	w := &Window{Interruption: f.d.Interruption, Condition: f.o.Condition}
	w.coverage(f.d, f.small)
	f.v = View{Revision: f.d.Revision, Elements: []Element{}, Trust: Trust, Readiness: f.d.Readiness, Window: w}
	if f.o.Version.AtLeast(contract.V190) {
		f.v.Beyond = &Beyond{SinceUnavailable: f.o.Since != "" && f.change == nil}
		if f.change != nil {
			f.v.Since, f.v.Gone, f.v.TextStartsAt = f.o.Since, f.change.gone, f.change.text
		}
	}
	worst := f.v
	worst.OmittedElements, worst.OmittedText = len(f.d.Elements), len(f.d.Text)
	longest := *w
	longest.OmittedRegions = len(f.d.Regions)
	longest.OmittedFields = []string{"url", "title"}
	longest.ExtractionOmitted = f.d.Extraction != nil
	longest.NextText = f.nextText(0, true)
	worst.Window = &longest
	if f.v.Beyond != nil {
		more := *f.v.Beyond
		more.OmittedFrames, more.OmittedNotices = len(f.d.Frames), len(f.d.Notices)
		if f.d.Draft != "" {
			longest.OmittedFields = append(longest.OmittedFields, "draft")
		}
		if len(f.d.Unread) > 0 {
			longest.OmittedFields = append(longest.OmittedFields, "unread")
		}
		if f.change != nil {
			more.Unchanged, more.UnchangedRegions = len(f.d.Elements), len(f.d.Regions)
		}
		worst.Beyond = &more
	}
	f.room = f.o.Budget - size(worst) - f.goingOn()
	f.alone = f.room
	return f.room >= 0
}

// goingOn is the longest way to say how controls go on: one of three.
func (f *fitting) goingOn() int {
	n := len(f.d.Elements)
	if n == 0 && (f.d.Coverage == nil || f.d.Coverage.NextCursor == "") {
		return 0
	}
	most := member("expansion_blocked", blocked)
	if n > 0 {
		most = max(most, member("next_observe", NextObserve{After: f.d.Elements[n-1].Ref}))
	}
	if c := f.d.Coverage; c != nil && c.NextCursor != "" {
		cursor := member("next_observe", NextObserve{Cursor: c.NextCursor})
		if !f.small {
			cursor += member("next_cursor", c.NextCursor)
		}
		most = max(most, cursor)
	}
	return most
}

// take spends room if there is enough.
func (f *fitting) take(cost int) bool {
	if cost > f.room {
		return false
	}
	f.room -= cost
	return true
}

// member is the cost of a member that has a value.
func member(name string, value any) int { return len(name) + len(`,"":`) + size(value) }

// extraction lets the rows in, whole and in order; they outrank controls,
// regions and prose (EXTR-10, EXTR-11).
func (f *fitting) extraction() {
	if f.d.Extraction == nil {
		return
	}
	x := *f.d.Extraction
	rows := x.Rows
	x.Rows, x.OmittedRows, x.ByteLimitReached = []observe.Row{}, x.OmittedRows+len(rows), true
	if !f.take(member("extraction", x)) {
		f.v.ExtractionOmitted = true
		return
	}
	for _, r := range rows {
		if !f.take(size(r) + 1) {
			break
		}
		x.Rows = append(x.Rows, r)
	}
	x.OmittedRows -= len(x.Rows)
	x.ByteLimitReached = f.d.Extraction.ByteLimitReached || len(x.Rows) < len(rows)
	f.v.Extraction = &x
}

// element is the record as it would be written. A list of options that is
// longer than a quarter of the budget is cut from its end, and says so; what
// is selected stays.
func (f *fitting) element(e observe.Element) (Element, int) {
	x := Element{Element: e, stated: f.o.Version.AtLeast(contract.V190)}
	if x.stated {
		x.State = f.d.States[e.Ref]
	}
	cost := x.size() + 1
	if len(x.Options) == 0 || cost <= f.o.Budget/4 {
		return x, cost
	}
	kept := slices.Clone(x.Options)
	for i := len(kept) - 1; i >= 0 && cost > f.o.Budget/4; i-- {
		if !kept[i].Selected {
			cost -= size(kept[i]) + 1
			kept = slices.Delete(kept, i, i+1)
		}
	}
	x.MoreOptions, x.Options = x.MoreOptions+len(x.Options)-len(kept), kept
	return x, x.size() + 1
}

// firstControl reserves room for the first control that can fit, and returns
// its place; len(elements) when none does (PROJ-02, TEXT-07).
func (f *fitting) firstControl() int {
	for i, e := range f.d.Elements {
		if f.change.has(e.Ref) {
			continue
		}
		_, cost := f.element(e)
		switch {
		case f.take(cost):
			return i
		case cost <= f.alone: // only the rows of an extraction are in its way
			return len(f.d.Elements)
		}
		f.v.ExpansionBlocked = blocked
	}
	return len(f.d.Elements)
}

// blocked declares that a control is too large for this budget. The gap is
// told, never skipped (EXP-10).
const blocked = "inline_control_too_large"

// controls lets in what follows the first, without a gap. Behind a control
// that is blocked there is no going on, so whatever fits is shown.
func (f *fitting) controls(first, forText int) {
	unchanged, gap := 0, false
	for i, e := range f.d.Elements {
		if f.change.has(e.Ref) {
			if !gap {
				unchanged++
				f.walked = i + 1
			}
			continue
		}
		x, cost := f.element(e)
		fits := i == first || i > first && cost <= f.room-forText
		if fits {
			if i != first {
				f.room -= cost
			}
			f.v.Elements = append(f.v.Elements, x)
			f.shown[e.Ref] = true
		}
		if gap = gap || !fits; !gap {
			f.walked = i + 1
		} else if f.v.ExpansionBlocked == "" {
			break
		}
	}
	f.v.OmittedElements = len(f.d.Elements) - len(f.v.Elements) - unchanged
	if f.change != nil {
		f.v.Unchanged = unchanged
	}
}

// next says how to read on: behind the last control without a gap, and with
// the browser's cursor only once the whole window was shown (EXP-09).
func (f *fitting) next(read int) {
	n := len(f.d.Elements)
	switch {
	case f.v.ExpansionBlocked != "":
	case f.walked < n && f.walked > 0:
		f.v.NextObserve = &NextObserve{After: f.d.Elements[f.walked-1].Ref}
	case f.walked == n && f.d.Coverage != nil && f.d.Coverage.NextCursor != "":
		f.v.NextObserve = &NextObserve{Cursor: f.d.Coverage.NextCursor}
		if !f.small {
			f.v.Coverage.NextCursor = f.d.Coverage.NextCursor
		}
	}
	f.v.NextText = f.nextText(read, false)
	if read == 0 && f.reading() && len(f.d.Text) > f.textFrom() {
		f.v.TextBlocked, f.v.NextText = true, nil
	}
}

// seen is what the agent knows now: what this answer shows, and what it knew
// and is unchanged.
func (f *fitting) seen(read int) Shown {
	s := Shown{document: f.d, query: f.o.Query, elements: f.shown, regions: map[string]bool{}, text: f.textFrom() + read}
	for _, r := range f.v.Regions {
		s.regions[r.Ref] = true
	}
	if f.change != nil {
		maps.Copy(s.elements, f.change.elements)
		maps.Copy(s.regions, f.change.regions)
	}
	return s
}
