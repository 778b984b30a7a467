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
	var options []string
	if a.Kind == action.Select && a.Value != nil {
		options = chosen(*a.Value, s)
	}
	subject := consequence.OfElement(string(a.Kind), e, f, options)
	subject.Incomplete = subject.Incomplete || options != nil && s.MoreOptions > 0
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
