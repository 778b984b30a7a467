package action

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/chaperone-agents/chaperone/internal/rules/condition"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// Offsets is where a page of observe 1.1.0 begins (PAGE-01).
type Offsets struct {
	Element int `json:"element_offset"` // 0 to 256
	Text    int `json:"text_offset"`    // 0 to 262144 characters
}

// observation fills in what an observe call of the version asks for, and
// returns the canonical arguments.
func (r *Request) observation(v contract.Version, arguments json.RawMessage) (canonical any, err error) {
	switch {
	case v == contract.V100:
		return struct{}{}, decode(arguments, &struct{}{})
	case v == contract.V110:
		if err := decode(arguments, &r.Offsets, "element_offset", "text_offset"); err != nil {
			return nil, err
		}
		if r.Offsets.Element < 0 || r.Offsets.Element > observe.MaxElements || r.Offsets.Text < 0 || r.Offsets.Text > observe.MaxText {
			return nil, invalid("element_offset is from 0 to 256 and text_offset from 0 to 262144.")
		}
		return r.Offsets, nil
	}
	a := struct {
		After      *string         `json:"after"`
		Cursor     *string         `json:"cursor"`
		RegionRef  *string         `json:"region_ref"`
		Revision   *string         `json:"expected_revision"`
		TextOffset *int            `json:"text_offset"`
		TextCursor *string         `json:"text_cursor"`
		WaitFor    json.RawMessage `json:"wait_for"`
		Extract    json.RawMessage `json:"extract"`
		Since      *string         `json:"since"`
	}{}
	known := []string{"after", "cursor", "region_ref", "expected_revision", "text_offset", "text_cursor", "wait_for", "extract"}
	if v.AtLeast(contract.V190) {
		known = append(known, "since")
	}
	if err := decode(arguments, &a, known...); err != nil {
		return nil, err
	}
	text := a.RegionRef == nil && (a.Revision != nil || a.TextOffset != nil) // the page's text
	modes := 0
	for _, set := range []bool{a.After != nil, a.Cursor != nil, a.RegionRef != nil, text, !absent(a.WaitFor), !absent(a.Extract), a.Since != nil} {
		if set {
			modes++
		}
	}
	switch {
	case modes > 1:
		return nil, invalid("Observe in one way at a time: after, cursor, region_ref with expected_revision, wait_for, extract, or none of them.")
	case a.TextCursor != nil && a.RegionRef == nil || a.RegionRef != nil && a.Revision == nil:
		return nil, invalid("region_ref goes with expected_revision, and text_cursor with both.")
	case text && (!v.AtLeast(contract.V190) || a.Revision == nil || a.TextOffset == nil):
		return nil, invalid("text_offset and expected_revision go together, as next_text gave them.")
	}
	for _, s := range []*string{a.After, a.Cursor, a.RegionRef, a.Revision, a.Since, a.TextCursor} {
		if s != nil && (*s == "" || len(*s) > MaxRef || !utf8.ValidString(*s)) {
			return nil, invalid("References, revisions and cursors are copied from the newest observation.")
		}
	}
	if c := a.TextCursor; c != nil && (len(*c) < 32 || len(*c) > 64) {
		return nil, invalid("text_cursor is copied from next_text.")
	}
	q := observe.Query{After: or(a.After, ""), Cursor: or(a.Cursor, "")}
	r.Since = or(a.Since, "")
	switch {
	case a.RegionRef != nil:
		q.Region = &observe.RegionQuery{Ref: *a.RegionRef, Revision: *a.Revision, TextOffset: or(a.TextOffset, 0), TextCursor: or(a.TextCursor, "")}
	case text:
		q.Text = &observe.TextQuery{Revision: *a.Revision, Offset: *a.TextOffset}
	}
	if q.Extract, err = decodeExtract(a.Extract); err != nil {
		return nil, err
	}
	if q.Extract != nil && q.Extract.Kind == "articles" && !v.AtLeast(contract.V180) {
		return nil, invalid("extract takes a table, a list or a form.")
	}
	if err := q.Validate(); err != nil {
		return nil, err
	}
	if r.Condition, err = decodeCondition(a.WaitFor); err != nil {
		return nil, err
	}
	r.Query = q
	return struct {
		observe.Query
		WaitFor *condition.Condition `json:"wait_for,omitempty"`
		Since   string               `json:"since,omitempty"`
	}{q, r.Condition, r.Since}, nil
}
