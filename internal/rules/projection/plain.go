// Package projection turns a validated observation into what a model may see,
// within a byte budget: whole element records, an exact revision, valid JSON
// and counts of what was left out (PROJ-01, PROJ-02). It is the only way from
// observe.Raw to an encoder.
package projection

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// Trust is the label of every byte that a website wrote (TRUST-01).
const Trust = "external_untrusted"

// MinBudget is the smallest budget that holds any revision (PROJ-02).
const MinBudget = 1024

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
	OmittedURL      bool              `json:"omitted_url,omitempty"`
	OmittedTitle    bool              `json:"omitted_title,omitempty"`
	OmittedElements int               `json:"omitted_elements,omitempty"`
	OmittedText     int               `json:"omitted_text_bytes,omitempty"`
	More            bool              `json:"more_on_page,omitempty"` // the page has more than an observation can hold
}

// Project fits the observation into budget bytes of compact JSON, written
// without HTML escaping. In order of importance: the revision, one whole
// element, the URL, the title, more elements in page order as far as three
// quarters of the room while there is text to show, and text. What does not
// fit is left out whole, except text, which is cut between characters. A
// budget under MinBudget is taken for MinBudget.
func Project(raw observe.Raw, budget int) View {
	d := raw.Document()
	v := View{
		Revision: d.Revision, Elements: []observe.Element{}, Trust: Trust, Readiness: d.Readiness,
		OmittedURL: d.URL != "", OmittedTitle: d.Title != "", OmittedElements: len(d.Elements), OmittedText: len(d.Text),
		More: d.TextTruncated || d.MoreElements,
	}
	room := max(budget, MinBudget) - size(v)
	costs := make([]int, len(d.Elements)) // with the comma
	for i, e := range d.Elements {
		costs[i] = size(e) + 1
	}
	first := slices.IndexFunc(costs, func(n int) bool { return n <= room })
	if first >= 0 {
		room -= costs[first]
	}
	if n := escaped(d.URL); n <= room {
		v.URL, v.OmittedURL, room = d.URL, false, room-n
	}
	if n := escaped(d.Title); n <= room {
		v.Title, v.OmittedTitle, room = d.Title, false, room-n
	}
	forText := min(escaped(d.Text), room/4)
	for i, e := range d.Elements {
		if i != first {
			if costs[i] > room-forText {
				continue
			}
			room -= costs[i]
		}
		v.Elements = append(v.Elements, e)
	}
	v.Text = prefix(d.Text, room)
	v.OmittedElements = len(d.Elements) - len(v.Elements)
	v.OmittedText = len(d.Text) - len(v.Text)
	return v
}

// prefix is the longest prefix of whole characters whose JSON fits into room bytes.
func prefix(s string, room int) string {
	for i, r := range s {
		if room -= width(r); room < 0 {
			return s[:i]
		}
	}
	return s
}

// width is the number of bytes of r in JSON.
func width(r rune) int {
	switch {
	case r == '"', r == '\\', r == '\n', r == '\r', r == '\t', r == '\b', r == '\f':
		return 2
	case r < ' ', r == '\u2028', r == '\u2029':
		return 6
	}
	return utf8.RuneLen(r)
}

// escaped is the number of bytes of s in JSON, without its quotes.
func escaped(s string) int {
	n := 0
	for _, r := range s {
		n += width(r)
	}
	return n
}

// size is the number of bytes of v in JSON.
func size(v any) int {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return 1 << 30 // cannot happen for these types; nothing would fit
	}
	return b.Len() - 1 // Encode ends with a line break
}
