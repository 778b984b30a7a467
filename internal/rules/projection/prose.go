package projection

import (
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// label sets room aside for one region, so that a focused read can be found
// next; in a small budget it is no more than a label (SMALL-02).
func (f *fitting) label() {
	for _, r := range f.d.Regions {
		if f.change.hasRegion(r.Ref) {
			continue
		}
		if f.small {
			if cut := cutBytes(r.Text, smallLabel); cut != r.Text {
				r.Text, r.TextTruncated = cut, true
			}
		}
		if f.take(member("regions", []observe.Region{r})) {
			f.v.Regions = append(f.v.Regions, r)
		}
		return
	}
}

// headings lets in address and title, and from 1.9.0 on what the browser
// stopped, what cannot be read, the frames and the confirmed draft. What does
// not fit is named or counted.
func (f *fitting) headings() {
	if f.take(escaped(f.d.URL)) {
		f.v.URL = f.d.URL
	} else {
		f.v.OmittedFields = append(f.v.OmittedFields, "url")
	}
	if f.take(escaped(f.d.Title)) {
		f.v.Title = f.d.Title
	} else {
		f.v.OmittedFields = append(f.v.OmittedFields, "title")
	}
	if !f.o.Version.AtLeast(contract.V190) {
		return
	}
	b := f.v.Beyond
	if len(f.d.Unread) > 0 {
		if f.take(member("unread", f.d.Unread)) {
			b.Unread = f.d.Unread
		} else {
			f.v.OmittedFields = append(f.v.OmittedFields, "unread")
		}
	}
	b.Notices, b.OmittedNotices = whole(f, "notices", f.d.Notices, f.room/2)
	if f.d.Draft != "" {
		if f.take(member("draft", f.d.Draft)) {
			b.Draft = f.d.Draft
		} else {
			f.v.OmittedFields = append(f.v.OmittedFields, "draft")
		}
	}
	b.Frames, b.OmittedFrames = whole(f, "frames", f.d.Frames, f.room/8)
}

// whole lets in records from the first on, within most bytes.
func whole[T any](f *fitting, name string, records []T, most int) (in []T, omitted int) {
	used := 0
	for _, r := range records {
		cost := size(r) + 1
		if len(in) == 0 {
			cost = member(name, []T{r})
		}
		if used+cost > most || !f.take(cost) {
			break
		}
		used += cost
		in = append(in, r)
	}
	return in, len(records) - len(in)
}

// regions lets in further regions, whole and in order of importance, within a
// third of the budget (REGN-07).
func (f *fitting) regions(forText int) {
	most := f.o.Budget / 3
	shown := map[string]bool{}
	for _, r := range f.v.Regions {
		shown[r.Ref] = true
	}
	unchanged := 0
	for _, r := range f.d.Regions {
		if shown[r.Ref] {
			continue
		}
		if f.change.hasRegion(r.Ref) {
			unchanged++
			continue
		}
		cost := size(r) + 1
		if len(f.v.Regions) == 0 {
			cost = member("regions", []observe.Region{r})
		}
		if cost > most || cost > f.room-forText {
			break
		}
		most -= cost
		f.room -= cost
		f.v.Regions = append(f.v.Regions, r)
	}
	f.v.OmittedRegions = len(f.d.Regions) - len(f.v.Regions) - unchanged
	if f.v.Beyond != nil {
		f.v.UnchangedRegions = unchanged
	}
}

// reading reports whether text is what the call asked for.
func (f *fitting) reading() bool {
	q := f.o.Query
	return q.Text != nil || q.Region != nil && f.d.Focus != nil
}

// textFrom is where in the document's text this answer begins.
func (f *fitting) textFrom() int {
	if f.change == nil {
		return 0
	}
	return f.change.text
}

// textShare is what controls and regions leave to the text.
func (f *fitting) textShare() int {
	text := escaped(f.d.Text[f.textFrom():])
	switch {
	case f.reading():
		return min(text, f.room*3/4)
	case f.d.Extraction != nil:
		return 0
	case len(f.d.Regions) > 0:
		return min(text, f.room, f.o.Budget/8)
	}
	return min(text, f.room, f.o.Budget/4)
}

// text fills what is left, and returns how many bytes of the text are shown.
func (f *fitting) text() int {
	rest := f.d.Text[f.textFrom():]
	f.v.Text = prefix(rest, f.room)
	f.room -= escaped(f.v.Text)
	f.v.OmittedText = len(rest) - len(f.v.Text)
	return len(f.v.Text)
}

// nextText continues exactly where the text that was shown ended: in the
// focused region, or from 1.9.0 on in the page (FOC-03, SMALL-03). longest is
// the longest one that there can be.
func (f *fitting) nextText(read int, longest bool) *NextText {
	end := f.textFrom() + read
	if x := f.d.Focus; x != nil {
		if longest {
			end = x.TextTotalBytes - 1 - x.TextOffset
		}
		if x.TextOffset+end >= x.TextTotalBytes {
			return nil
		}
		return &NextText{RegionRef: x.RegionRef, Revision: f.d.Revision, TextOffset: x.TextOffset + end, TextCursor: x.TextCursor}
	}
	if !f.o.Version.AtLeast(contract.V190) {
		return nil
	}
	begin := 0
	if q := f.o.Query.Text; q != nil {
		begin = q.Offset
	}
	if longest {
		end = len(f.d.Text) - 1
	}
	if end < 0 || end >= len(f.d.Text) {
		return nil
	}
	return &NextText{Revision: f.d.Revision, TextOffset: begin + end}
}
