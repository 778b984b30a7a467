package projection

import (
	"slices"

	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// plain is version 1.0.0. In order of importance: the revision, one whole
// element, the URL, the title, more elements in page order as far as three
// quarters of the room while there is text to show, and text. What does not
// fit is left out whole, except text, which is cut between characters. A
// budget under MinBudget is taken for MinBudget.
func plain(d observe.Document, budget int) View {
	v := View{
		Revision: d.Revision, Elements: []Element{}, Trust: Trust, Readiness: d.Readiness,
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
		v.Elements = append(v.Elements, Element{Element: e})
	}
	v.Text = prefix(d.Text, room)
	v.OmittedElements = len(d.Elements) - len(v.Elements)
	v.OmittedText = len(d.Text) - len(v.Text)
	return v
}
