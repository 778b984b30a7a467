package observe

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of parts that only validation names.
const (
	maxCell    = MaxCellText
	maxUnread  = 16
	maxOrigin  = 300  // characters
	maxDraft   = 4096 // characters
	maxScroll  = 10_000_000
	tokenShort = 32
	tokenLong  = 128
)

// word is how a browser names one of a closed list of reasons: it cannot carry
// a page's text.
var word = regexp.MustCompile(`^[a-z][a-z_]{0,31}$`)

// parts checks everything of a document beyond its controls and text (section
// 2.1 of the requirements, BND-01), and returns what is wrong in our own
// words.
func (d Document) parts(elements map[string]bool) string {
	switch {
	case d.Interruption != "" && d.Interruption != NeedsUser:
		return "its interruption is unknown"
	case d.Interruption != "" && (len(d.Elements) > 0 || len(d.Regions) > 0 || d.Focus != nil):
		return "it is interrupted and has controls, regions or a focus"
	case !bounded(d.Draft, maxDraft):
		return "its draft is out of bounds"
	}
	for _, why := range []string{
		d.Coverage.check(), d.TextCoverage.check(len(d.Text)), d.regions(elements), d.Focus.check(d.Revision, len(d.Text)),
		d.Extraction.check(d.Revision), d.frames(), d.states(elements),
	} {
		if why != "" {
			return why
		}
	}
	return ""
}

func (c *Coverage) check() string {
	if c == nil {
		return ""
	}
	if !within(c.CandidateOffset, MaxCandidateOffset) || !within(c.ScannedCandidates, MaxScanned) || c.NextCursor != "" && !token(c.NextCursor, tokenShort, tokenLong) {
		return "its coverage is out of bounds"
	}
	return ""
}

func (c *TextCoverage) check(text int) string {
	if c == nil {
		return ""
	}
	if c.Version != 1 || !word.MatchString(c.Scope) || !within(c.ScannedNodes, MaxScannedNodes) || !within(c.ScannedTextCharacters, MaxText) ||
		c.OmittedTextBytes < 0 || c.OmittedTextBytes+text > MaxText {
		return "its text coverage is out of bounds"
	}
	return ""
}

func (d Document) regions(elements map[string]bool) string {
	if c := d.RegionCoverage; c != nil {
		if c.Version != 1 || !word.MatchString(c.Scope) || !within(c.ScannedNodes, MaxScannedNodes) || !within(c.OmittedRegions, MaxScannedNodes) {
			return "its region coverage is out of bounds"
		}
	} else if len(d.Regions) > 0 {
		return "it has regions without saying how they were looked for"
	}
	if len(d.Regions) > MaxRegions {
		return "it has too many regions"
	}
	seen := map[string]bool{}
	for _, r := range d.Regions {
		if !bounded(r.Ref, MaxRef) || !strings.HasPrefix(r.Ref, d.Revision+":region:") || seen[r.Ref] || elements[r.Ref] {
			return "a region's reference is not of this revision"
		}
		if !slices.Contains(RegionKinds(), r.Kind) || !bounded(r.Text, MaxRegionText) {
			return "a region's kind or text is out of bounds"
		}
		seen[r.Ref] = true
	}
	return ""
}

func (f *Focus) check(revision string, text int) string {
	if f == nil {
		return ""
	}
	if f.RegionRef != revision+":focus" || !within(f.TextOffset, MaxText) || !within(f.TextTotalBytes, MaxText) ||
		f.TextOffset+text > f.TextTotalBytes || !token(f.TextCursor, tokenShort, 64) {
		return "its focus is out of bounds"
	}
	return ""
}

func (x *Extraction) check(revision string) string {
	if x == nil {
		return ""
	}
	known := slices.Contains([]string{"extracted", "not_found", "unsupported_structure"}, x.Status)
	request := ExtractQuery{Revision: x.Revision, Kind: x.Kind, Index: x.Index, Fields: x.Fields, RowLimit: x.RowLimit}
	switch {
	case x.Version != 1 || x.Revision != revision || !known || request.validate() != nil || !word.MatchString(x.Scope):
		return "its extraction is not of this revision or of no known kind"
	case !within(x.SourceNodes, MaxScannedNodes) || !within(x.RowNodes, MaxScanned) || x.OmittedRows < 0 || !bounded(x.SourceName, maxCell) || len(x.Rows) > x.RowLimit:
		return "its extraction is out of bounds"
	case x.SourceRef != "" && (!strings.HasPrefix(x.SourceRef, revision+":") || !bounded(x.SourceRef, MaxRef)):
		return "its extraction's reference is not of this revision"
	}
	for _, r := range x.Rows {
		if !strings.HasPrefix(r.Ref, revision+":row:") || !bounded(r.Ref, MaxRef) || len(r.Cells) != len(x.Fields) {
			return "an extracted row is not of this revision, or has missing cells"
		}
		for i, c := range r.Cells {
			if !strings.HasPrefix(c.Ref, revision+":cell:") || !bounded(c.Ref, MaxRef) || c.Field != x.Fields[i].Name || c.Column != x.Fields[i].Column ||
				!bounded(c.Text, maxCell) || !c.typed(x.Fields[i].Type) {
				return "an extracted cell is out of bounds"
			}
		}
	}
	return ""
}

// typed reports whether value and status of the cell fit its column's type.
func (c Cell) typed(kind string) bool {
	switch c.Status {
	case "missing", "invalid", "truncated":
		return c.Value == nil
	case "present":
	default:
		return false
	}
	switch v := c.Value.(type) {
	case string:
		return kind == "string" && bounded(v, maxCell)
	case bool:
		return kind == "boolean"
	case float64:
		return kind == "number" || kind == "integer" && v == float64(int64(v)) && v > -1<<53 && v < 1<<53
	case int, int64:
		return kind == "integer" || kind == "number"
	}
	return false
}

func (d Document) frames() string {
	if len(d.Frames) > MaxFrames || len(d.Notices) > MaxNotices || len(d.Unread) > maxUnread {
		return "it has too many frames or notices"
	}
	ids := map[string]bool{"": true}
	for _, f := range d.Frames {
		if f.ID == "" || !bounded(f.ID, 16) || ids[f.ID] || !bounded(f.Parent, 16) || !bounded(f.Origin, maxOrigin) || !bounded(f.Name, 128) ||
			f.Unread != "" && !word.MatchString(f.Unread) {
			return "a frame is out of bounds"
		}
		ids[f.ID] = true
	}
	for _, f := range d.Frames {
		if !ids[f.Parent] {
			return "a frame has no parent"
		}
	}
	for _, s := range d.States {
		if !ids[s.Frame] {
			return "an element is in a frame that is not there"
		}
	}
	for _, n := range d.Notices {
		if !word.MatchString(n.Kind) || !bounded(n.Text, 256) {
			return "a notice is out of bounds"
		}
	}
	for _, u := range d.Unread {
		if !word.MatchString(u) {
			return "what it cannot read is not one word"
		}
	}
	return ""
}

func (d Document) states(elements map[string]bool) string {
	for ref, s := range d.States {
		switch {
		case !elements[ref]:
			return "a state is of no element"
		case len(s.Options) > MaxOptions || !within(s.MoreOptions, maxScroll) || !within(s.Rows, maxScroll):
			return "an element's options or rows are out of bounds"
		case !bounded(s.Hint, MaxHint) || s.Blocked != "" && !word.MatchString(s.Blocked):
			return "an element's hint is out of bounds"
		}
		for _, o := range s.Options {
			if !bounded(o.Label, 256) {
				return "an option's label is out of bounds"
			}
		}
	}
	return ""
}

func within(n, most int) bool { return n >= 0 && n <= most }

func token(s string, least, most int) bool {
	return len(s) >= least && len(s) <= most && utf8.ValidString(s)
}

// clone shares nothing that can be written to.
func clone(d Document) Document {
	d.Elements, d.Facts, d.States = slices.Clone(d.Elements), maps.Clone(d.Facts), maps.Clone(d.States)
	for i, e := range d.Elements {
		d.Elements[i].Checked = copied(e.Checked)
	}
	for ref, f := range d.Facts {
		d.Facts[ref] = f.cloned()
	}
	for ref, s := range d.States {
		s.Expanded, s.Selected, s.Filled, s.Options = copied(s.Expanded), copied(s.Selected), copied(s.Filled), slices.Clone(s.Options)
		d.States[ref] = s
	}
	d.Coverage, d.TextCoverage, d.RegionCoverage, d.Focus = copied(d.Coverage), copied(d.TextCoverage), copied(d.RegionCoverage), copied(d.Focus)
	d.Regions, d.Frames, d.Notices, d.Unread = slices.Clone(d.Regions), slices.Clone(d.Frames), slices.Clone(d.Notices), slices.Clone(d.Unread)
	if d.Extraction = copied(d.Extraction); d.Extraction != nil {
		x := d.Extraction
		x.Fields, x.Rows = slices.Clone(x.Fields), slices.Clone(x.Rows)
		for i, r := range x.Rows {
			x.Rows[i].Cells = slices.Clone(r.Cells)
		}
	}
	return d
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

// Number is the part of an element's ref that stays the same when the same
// element is observed again: of "{revision}:{number}" what is behind the
// colon. False for a ref of another revision or another form.
func Number(ref, revision string) (int, bool) {
	rest, ok := strings.CutPrefix(ref, revision+":")
	if !ok || rest == "" || len(rest) > 9 {
		return 0, false
	}
	n := 0
	for _, c := range rest {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	if rest != fmt.Sprint(n) {
		return 0, false
	}
	return n, true
}
