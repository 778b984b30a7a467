package observe

import (
	"maps"
	"slices"
)

// Bounds of facts, in characters.
const (
	MaxLabel   = 256 // of a label source
	MaxContext = 128 // of a dialog's name
	MaxSegment = 64  // of the first segment of a target's path
)

// Source is where a label of an element comes from (FACT-03).
type Source string

// The sources of labels. The text inside the element has two readings: as a
// screen reader speaks it (Facts.Text) and as it stands on the screen.
const (
	AriaLabel   Source = "aria_label"
	LabelledBy  Source = "aria_labelledby"
	Label       Source = "label" // labels of the element, and all of the check boxes and radio buttons that a click on it would change
	Tooltip     Source = "title"
	Placeholder Source = "placeholder"
	Alternative Source = "alt" // of pictures in it
	Caption     Source = "value"
	VisibleText Source = "visible_text"
)

// Sources lists the sources of labels, in a fixed order.
func Sources() []Source {
	return []Source{AriaLabel, LabelledBy, Label, Tooltip, Placeholder, Alternative, Caption, VisibleText}
}

// Facts describe an element to the policy and the approval view; they are
// never shown to a model (FACT-01).
type Facts struct {
	FieldKind FieldKind         `json:"field_kind"`
	Text      string            `json:"text,omitempty"`             // visible text when it differs from the name, at most 256 characters
	Context   string            `json:"context,omitempty"`          // accessible name of the enclosing dialog, at most 128 characters
	Labels    map[Source]string `json:"labels,omitempty"`           // label sources that do not read as the name or as Text, each at most 256 characters
	Cut       bool              `json:"labels_truncated,omitempty"` // a label source is not here whole, the name and Text included
	Link      *Target           `json:"link_target,omitempty"`      // where links lead that a click on the element follows; nil if it follows none
	Form      *Target           `json:"form_target,omitempty"`      // where a form is sent that the element is part of; nil if it is in none
	Download  bool              `json:"download,omitempty"`         // a link that saves what it leads to
}

// Target is where an element leads. It never holds an address (FACT-05). Of
// several addresses it says what is true of each (FACT-09); of one that cannot
// be known or is no public HTTPS address, that it is on no origin and sensitive
// (FACT-07, FACT-10).
type Target struct {
	SameOrigin bool   `json:"same_origin"`             // with the page
	Segment    string `json:"first_segment,omitempty"` // of the path, when it is the same in all and at most 64 characters
	Sensitive  bool   `json:"sensitive_path"`          // some segment of some path is sensitive (TGC-06)
}

// Opaque is a target that cannot be known.
func Opaque() *Target { return &Target{Sensitive: true} }

// LabelTexts are the texts of all label sources of an element with the name,
// which is the first of them (CLS-02).
func (f Facts) LabelTexts(name string) []string {
	out := []string{name}
	if f.Text != "" {
		out = append(out, f.Text)
	}
	for _, s := range Sources() {
		if text := f.Labels[s]; text != "" {
			out = append(out, text)
		}
	}
	return out
}

// valid reports whether the facts are within their bounds.
func (f Facts) valid() bool {
	if !bounded(f.Text, MaxLabel) || !bounded(f.Context, MaxContext) || !slices.Contains(FieldKinds(), f.FieldKind) {
		return false
	}
	for source, text := range f.Labels {
		if !slices.Contains(Sources(), source) || !bounded(text, MaxLabel) {
			return false
		}
	}
	return f.Link.valid() && f.Form.valid()
}

func (t *Target) valid() bool { return t == nil || bounded(t.Segment, MaxSegment) }

// cloned shares nothing that can be written to.
func (f Facts) cloned() Facts {
	f.Labels, f.Link, f.Form = maps.Clone(f.Labels), copied(f.Link), copied(f.Form)
	return f
}
