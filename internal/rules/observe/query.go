package observe

import (
	"regexp"
	"unicode/utf8"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
)

var columnName = regexp.MustCompile(`^[A-Za-z]\w{0,63}$`)

// Validate checks the shape and bounds of a query. It returns
// fault.ArgumentsInvalid.
func (q Query) Validate() error {
	modes := 0
	for _, set := range []bool{q.After != "", q.Cursor != "", q.Region != nil, q.Extract != nil, q.Text != nil} {
		if set {
			modes++
		}
	}
	switch {
	case modes > 1:
		return badQuery("An observation takes one of after, cursor, region_ref, extract and text_offset.")
	case len(q.After) > MaxRef || !utf8.ValidString(q.After):
		return badQuery("after is an element's ref of the newest observation.")
	case q.Cursor != "" && (len(q.Cursor) < 32 || len(q.Cursor) > 128 || !utf8.ValidString(q.Cursor)):
		return badQuery("cursor is the one that the newest observation gave.")
	}
	if r := q.Region; r != nil {
		if !isRef(r.Ref) || !isRef(r.Revision) || !isOffset(r.TextOffset) || len(r.TextCursor) > 64 {
			return badQuery("A focused read takes region_ref and expected_revision of the newest observation, and the text_offset it gave.")
		}
	}
	if t := q.Text; t != nil && (!isRef(t.Revision) || !isOffset(t.Offset)) {
		return badQuery("text_offset goes with the expected_revision of the newest observation.")
	}
	if q.Extract != nil {
		return q.Extract.validate()
	}
	return nil
}

func (x ExtractQuery) validate() error {
	known := x.Kind == "table" || x.Kind == "list" || x.Kind == "form" || x.Kind == "articles"
	switch {
	case !known || !isRef(x.Revision):
		return badQuery("extract takes expected_revision and a kind: table, list, form or articles.")
	case x.Index < 0 || x.Index > 15 || x.RowLimit < 1 || x.RowLimit > MaxRows:
		return badQuery("extract takes an index from 0 to 15 and a row_limit from 1 to 50.")
	case len(x.Fields) < 1 || len(x.Fields) > MaxColumns:
		return badQuery("extract takes one to eight fields.")
	}
	seen := map[string]bool{}
	for _, f := range x.Fields {
		typed := f.Type == "string" || f.Type == "integer" || f.Type == "number" || f.Type == "boolean"
		if !columnName.MatchString(f.Name) || seen[f.Name] || !typed || f.Column < 0 || f.Column > 15 {
			return badQuery("A field has a name of its own, a column from 0 to 15 and a type: string, integer, number or boolean.")
		}
		seen[f.Name] = true
	}
	return nil
}

func isRef(s string) bool     { return s != "" && len(s) <= MaxRef && utf8.ValidString(s) }
func isOffset(n int) bool     { return n >= 0 && n <= MaxText }
func badQuery(s string) error { return fault.New(fault.ArgumentsInvalid, s+" Nothing was done.") }
