// Package projection turns a validated observation into what a model may see,
// within a byte budget: whole element records, an exact revision, valid JSON
// and counts of what was left out (OBS, PROJ-01). It is the only way from
// observe.Raw to an encoder.
package projection

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// Trust is the label of every byte that a website wrote (TRUST-01).
const Trust = "external_untrusted"

// View is the result envelope of a tool call. Omitted counts are zero when
// everything is there.
type View struct {
	URL             string            `json:"url"`
	Title           string            `json:"title"`
	Revision        string            `json:"revision"`
	Text            string            `json:"text"`
	Elements        []observe.Element `json:"elements"`
	Trust           string            `json:"content_trust"`
	Readiness       observe.Readiness `json:"readiness,omitempty"`
	OmittedElements int               `json:"omitted_elements,omitempty"`
	OmittedText     int               `json:"omitted_text_bytes,omitempty"`
	More            bool              `json:"more_on_page,omitempty"` // the page has more than an observation can hold
}

// Project fits the observation into budget bytes of compact JSON: first the
// elements in page order, at most three quarters of the room while there is
// text to show, then text. Revision and URL are never cut.
func Project(raw observe.Raw, budget int) View {
	d := raw.Document()
	v := View{
		URL: d.URL, Title: d.Title, Revision: d.Revision, Elements: []observe.Element{},
		Trust: Trust, Readiness: d.Readiness, More: d.TextTruncated || d.MoreElements,
		OmittedElements: len(d.Elements), OmittedText: len(d.Text),
	}
	room := budget - size(v)
	forElements := room
	forElements -= min(text(d.Text), room/4)
	for _, e := range d.Elements {
		n := size(e) + 1
		if n > forElements {
			break
		}
		forElements -= n
		room -= n
		v.Elements = append(v.Elements, e)
	}
	v.OmittedElements = len(d.Elements) - len(v.Elements)
	v.Text = prefix(d.Text, room)
	v.OmittedText = len(d.Text) - len(v.Text)
	return v
}

// prefix is the longest prefix of whole characters whose JSON fits into room bytes.
func prefix(s string, room int) string {
	for i, r := range s {
		if room -= escaped(r); room < 0 {
			return s[:i]
		}
	}
	return s
}

// escaped is the number of bytes of r in JSON as written without HTML escaping.
func escaped(r rune) int {
	switch {
	case r == '"', r == '\\', r == '\n', r == '\r', r == '\t', r == '\b', r == '\f':
		return 2
	case r < ' ', r == '\u2028', r == '\u2029':
		return 6
	}
	return utf8.RuneLen(r)
}

// text is the number of bytes of s in JSON, without its quotes.
func text(s string) int {
	n := 0
	for _, r := range s {
		n += escaped(r)
	}
	return n
}

func size(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return 1 << 30 // cannot happen for these types; nothing would fit
	}
	return len(b)
}
