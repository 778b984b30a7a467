package approval

import (
	"strings"

	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/consequence"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// classify says what the act may lead to, by what the observation says of the
// element (CLS-02, CLS-03).
func classify(a action.Action, e observe.Element, f observe.Facts, s observe.State) consequence.Consequence {
	subject := consequence.Subject{
		Act: string(a.Kind), Role: e.Role, Labels: f.LabelTexts(e.Name), Context: f.Context, Field: f.FieldKind, Download: f.Download, Incomplete: f.Cut,
	}
	for _, to := range []*observe.Target{f.Link, f.Form} {
		if to == nil {
			continue
		}
		if to.Segment != "" {
			subject.Segments = append(subject.Segments, to.Segment)
		}
		// Which segment is the sensitive one, or what else cannot be known of the
		// target, is not said.
		subject.Incomplete = subject.Incomplete || to.Sensitive && !consequence.SensitiveSegment(to.Segment)
	}
	if a.Kind == action.Select && a.Value != nil {
		subject.Options = chosen(*a.Value, s)
		subject.Incomplete = subject.Incomplete || s.MoreOptions > 0
	}
	return consequence.Classify(subject)
}

// chosen is what an act says of its option, and the labels of the options that
// it may mean: the one that it names, or any, as values are not observed.
func chosen(value string, s observe.State) []string {
	fold := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	all := []string{value}
	for _, o := range s.Options {
		if fold(o.Label) == fold(value) {
			return []string{value, o.Label}
		}
		all = append(all, o.Label)
	}
	return all
}
