package projection

import (
	"unicode/utf8"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// Display caps of 1.1.0, in bytes of UTF-8 (PAGE-06).
const (
	pageTitle = 128
	pageName  = 256
	minText   = 512 // bytes kept for text, or a quarter of a smaller budget
)

// page is version 1.1.0: controls from one offset on and text from another, as
// complete JSON. Whoever begins at the last control reads text alone.
func page(d observe.Document, o Options) (View, error) {
	characters := utf8.RuneCountInString(d.Text)
	p := &Page{
		TotalElements: len(d.Elements), TotalText: characters,
		ElementOffset: o.Element, TextOffset: o.Text, NextElementOffset: new(observe.MaxElements), NextTextOffset: new(observe.MaxText),
	}
	v := View{URL: d.URL, Revision: d.Revision, Elements: []Element{}, Trust: Trust, Page: p}
	v.Title, p.TitleTruncated = ellipsis(d.Title, pageTitle)
	room := o.Budget - size(v) // with the longest offsets
	elements := d.Elements[min(o.Element, len(d.Elements)):]
	text := skip(d.Text, o.Text)
	forText := min(escaped(text), minText, o.Budget/4)
	if room < 0 {
		return View{}, tooSmall()
	}
	for _, e := range elements {
		shown := Element{Element: e}
		shown.Name, shown.NameTruncated = ellipsis(e.Name, pageName)
		cost := size(shown) + 1
		if cost > room-forText && (len(v.Elements) > 0 || cost > room) {
			break
		}
		room -= cost
		v.Elements = append(v.Elements, shown)
	}
	if len(elements) > 0 && len(v.Elements) == 0 {
		return View{}, tooSmall()
	}
	v.Text = prefix(text, room)
	p.NextElementOffset, p.NextTextOffset = nil, nil
	if n := len(v.Elements); n < len(elements) {
		p.NextElementOffset = new(o.Element + n)
	}
	if n := utf8.RuneCountInString(v.Text); len(v.Text) < len(text) {
		p.NextTextOffset = new(o.Text + n)
	}
	return v, nil
}

// skip is s without its first n characters.
func skip(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[i:]
		}
		n--
	}
	return ""
}

// ellipsis cuts s to most bytes, the mark of the cut included.
func ellipsis(s string, most int) (string, bool) {
	const mark = "…"
	if len(s) <= most {
		return s, false
	}
	return cutBytes(s, most-len(mark)) + mark, true
}

func tooSmall() error {
	return fault.New(fault.OutputInvalid, "The page's address and one whole control do not fit into an answer. Nothing else was done.")
}
