package consequence

import (
	"slices"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// CLS-02, FACT-05: all that the facts say of an element is classified, and a
// target that is not whole or leads elsewhere is never routine.
func TestOfElement(t *testing.T) {
	e := observe.Element{Role: "button", Name: "Next"}
	f := observe.Facts{FieldKind: observe.FieldNone, Text: "Go", Context: "Lesson", Labels: map[observe.Source]string{observe.Tooltip: "On"},
		Link: &observe.Target{SameOrigin: true, Segment: "a"}, Form: &observe.Target{SameOrigin: true, Segment: "b"}}
	s := OfElement("click", e, f, []string{"o"})
	if s.Act != "click" || s.Role != "button" || !slices.Equal(s.Labels, []string{"Next", "Go", "On"}) || s.Context != "Lesson" ||
		!slices.Equal(s.Options, []string{"o"}) || !slices.Equal(s.Segments, []string{"a", "b"}) || s.Download || s.Incomplete {
		t.Errorf("%+v", s)
	}
	plain := observe.Facts{FieldKind: observe.FieldNone}
	if c := Classify(OfElement("click", e, plain, nil)); c != Routine {
		t.Fatalf("a routine element is %s", c)
	}
	for what, change := range map[string]func(*observe.Facts){
		"a label that was cut": func(f *observe.Facts) { f.Cut = true },
		"an opaque link":       func(f *observe.Facts) { f.Link = observe.Opaque() },
		"a sensitive form":     func(f *observe.Facts) { f.Form = &observe.Target{SameOrigin: true, Sensitive: true} },
		"another origin":       func(f *observe.Facts) { f.Link = &observe.Target{Segment: "x"} },
		"no field kind":        func(f *observe.Facts) { f.FieldKind = "" },
		"a download":           func(f *observe.Facts) { f.Download = true },
	} {
		f := plain
		change(&f)
		if c := Classify(OfElement("click", e, f, nil)); c == Routine {
			t.Errorf("%s is routine", what)
		}
	}
}
