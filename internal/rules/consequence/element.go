package consequence

import "github.com/chaperone-agents/chaperone/internal/rules/observe"

// OfElement is an act on an element with its facts, and with the texts of the
// options that could be chosen (CLS-02). Only the first path segment of a
// target is known outside the worker (FACT-05): what is sensitive behind it, or
// off the origin, makes the subject incomplete.
func OfElement(act string, e observe.Element, f observe.Facts, options []string) Subject {
	s := Subject{
		Act: act, Role: e.Role, Labels: f.LabelTexts(e.Name), Context: f.Context, Options: options,
		Field: f.FieldKind, Download: f.Download, Incomplete: f.Cut,
	}
	for _, t := range []*observe.Target{f.Link, f.Form} {
		if t == nil {
			continue
		}
		if t.Segment != "" {
			s.Segments = append(s.Segments, t.Segment)
		}
		s.Incomplete = s.Incomplete || t.Sensitive || !t.SameOrigin
	}
	return s
}
