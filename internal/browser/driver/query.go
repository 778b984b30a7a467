package driver

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser/pagejs"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// reading is what continues the newest observation: the captured text, and the
// region in focus. It lives and dies with its revision (EXP-11, FOC-03).
type reading struct {
	text    string
	regions int
	focused bool
	offset  int    // of the text that was given out
	cursor  string // of the captured text of the region in focus
}

// plan is what one observation asks of the page, and what it expects.
type plan struct {
	args      pagejs.ObserveArgs
	from      path // where the window of controls begins
	extract   *observe.ExtractQuery
	before    reading // what is continued
	continued bool    // what was given out of the captured text must still be there
	offset    int
}

// plan turns a query into one, from what is known without asking the page. A
// refusal here leaves the newest observation as it is (FOC-09).
func (p *Page) plan(q observe.Query) (plan, error) {
	var out plan
	if err := q.Validate(); err != nil {
		return out, err
	}
	p.mu.Lock()
	revision, current := p.revision, p.reading
	p.mu.Unlock()
	switch {
	case q.Region != nil:
		return planRegion(*q.Region, revision, current)
	case q.Text != nil:
		if err := newest(q.Text.Revision, revision); err != nil {
			return out, err
		}
		out.keepFocus(revision, current)
		return out, out.continueAt(q.Text.Offset, current)
	case q.Extract != nil:
		if err := newest(q.Extract.Revision, revision); err != nil {
			return out, err
		}
		out.extract = q.Extract
		out.args.Extract = &pagejs.ExtractArgs{Kind: q.Extract.Kind, Index: q.Extract.Index, RowLimit: q.Extract.RowLimit}
		for _, f := range q.Extract.Fields {
			out.args.Extract.Columns = append(out.args.Extract.Columns, f.Column)
		}
	case q.After != "" || q.Cursor != "":
		p.mu.Lock()
		shown := p.view
		p.mu.Unlock()
		var err error
		out.from, err = shown.position(q, revision)
		out.keepFocus(revision, current)
		return out, err
	}
	return out, nil
}

// planRegion is a focused read (FOC-01 to FOC-04, FOC-08).
func planRegion(q observe.RegionQuery, revision string, current reading) (plan, error) {
	var out plan
	rest, ok := strings.CutPrefix(q.Ref, q.Revision+":")
	if err := newest(q.Revision, revision); err != nil || !ok {
		return out, newest("", revision)
	}
	if rest == "focus" && current.focused {
		out.keepFocus(revision, current)
		if q.TextCursor != "" && q.TextCursor != current.cursor {
			return out, newest("", revision)
		}
		if q.TextOffset == 0 {
			return out, nil
		}
		if q.TextCursor == "" {
			return out, needsFocus()
		}
		return out, out.continueAt(q.TextOffset, current)
	}
	if q.TextOffset != 0 {
		return out, needsFocus()
	}
	number, ok := strings.CutPrefix(rest, "region:")
	index, err := strconv.Atoi(number)
	if !ok || err != nil || index < 0 || index >= current.regions || strconv.Itoa(index) != number {
		return out, newest("", revision)
	}
	out.args.Focus = &pagejs.FocusArgs{Revision: revision, Region: index}
	return out, nil
}

// keepFocus stays in the region that the newest observation is of (FOC-02).
func (p *plan) keepFocus(revision string, current reading) {
	if current.focused {
		p.args.Focus = &pagejs.FocusArgs{Revision: revision, Region: -1}
	}
	p.before = current
}

// continueAt reads the captured text on from an offset in bytes.
func (p *plan) continueAt(offset int, current reading) error {
	if offset > len(current.text) || offset < len(current.text) && !utf8.RuneStart(current.text[offset]) {
		return fault.New(fault.ArgumentsInvalid, "text_offset is not one that the newest observation gave. Nothing was read.")
	}
	p.before, p.continued, p.offset = current, true, offset
	return nil
}

// goesOn reports whether reading on from the offset leaves no gap and repeats
// nothing. A focused reading wants all of its text as it was (FOC-03); that of a
// page, which may change at its end for ever, what was given out of it.
func (p plan) goesOn(text string) bool {
	if p.args.Focus != nil {
		return text == p.before.text
	}
	return strings.HasPrefix(text, p.before.text[:p.offset])
}

// newest refuses every revision but the newest (EXTR-03, FOC-04).
func newest(asked, revision string) error {
	if revision != "" && asked == revision {
		return nil
	}
	return fault.New(fault.PageChanged, "That is not of the newest observation. Nothing was read; observe again.")
}

func needsFocus() error {
	return fault.New(fault.FocusRequired, "A text_offset continues a focused reading. Nothing was read; read the region without text_offset first, then use the next_text it gives.")
}

// finish adds to d what the plan was about and the page answered, and returns
// the reading that d begins.
func (p plan) finish(d *observe.Document, u site.URL, seen pagejs.Page) (reading, error) {
	d.Text, d.TextTruncated = seen.Text, seen.TextNodeLimit || seen.TextLimit
	d.TextCoverage = &observe.TextCoverage{
		Version: 1, Scope: "main_document_and_open_shadow", ScannedNodes: seen.TextNodes,
		ScannedTextCharacters: seen.TextUnits, NodeLimitReached: seen.TextNodeLimit, TextLimitReached: seen.TextLimit,
	}
	for i, r := range seen.Regions {
		d.Regions = append(d.Regions, observe.Region{
			Ref: fmt.Sprintf("%s:region:%d", d.Revision, i), Kind: observe.RegionKind(r.Kind), Text: r.Text, TextTruncated: r.TextTruncated,
		})
	}
	d.RegionCoverage = &observe.RegionCoverage{
		Version: 1, Scope: "main_document", ScannedNodes: seen.RegionNodes, ScanLimitReached: seen.RegionLimit, OmittedRegions: seen.OmittedRegions,
	}
	next := reading{text: d.Text, regions: len(d.Regions), focused: p.args.Focus != nil, offset: p.offset}
	if p.continued && !p.goesOn(d.Text) {
		return next, fault.New(fault.PageChanged, "The text has changed since it was read. Observe again.")
	}
	if next.focused {
		next.cursor = ident.Hex(16)
		if d.Text == p.before.text && p.before.cursor != "" {
			next.cursor = p.before.cursor
		}
		d.Focus = &observe.Focus{RegionRef: d.Revision + ":focus", TextOffset: p.offset, TextTotalBytes: len(d.Text), TextCursor: next.cursor}
	}
	d.Text = d.Text[p.offset:]
	if p.extract != nil {
		if seen.Extraction == nil {
			return next, fault.New(fault.OutputInvalid, "The browser's observation was refused because it lacks the extraction. Observe again.")
		}
		d.Extraction = typed(d.Revision, u, *p.extract, *seen.Extraction)
	}
	return next, nil
}
