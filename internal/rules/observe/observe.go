// Package observe is what may be known of a page: a bounded, validated record
// without markup, values, headers, cookies or storage (CAP-04, CAP-05,
// BND-01). Everything in it was written by a website and is untrusted
// (TRUST-01). Facts describe elements beside it (FACT-01 to FACT-05).
package observe

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"unicode/utf8"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
)

// Bounds of an observation; text is counted in bytes of UTF-8, names and
// titles in characters.
const (
	MaxText     = 262_144
	MaxElements = 256
	MaxTitle    = 1024
	MaxName     = 1024
	MaxRole     = 64
	MaxRef      = 128
)

// FieldKind says what a control would do with text; the closed set of section
// 2.3 of the requirements.
type FieldKind string

// Field kinds.
const (
	FieldNone         FieldKind = "none"
	FieldText         FieldKind = "text"
	FieldSearch       FieldKind = "search"
	FieldMultiline    FieldKind = "multiline"
	FieldEditable     FieldKind = "editable"
	FieldChoice       FieldKind = "choice"
	FieldSelect       FieldKind = "select"
	FieldCustomChoice FieldKind = "custom_choice"
	FieldEmail        FieldKind = "email"
	FieldTelephone    FieldKind = "telephone"
	FieldURL          FieldKind = "url"
	FieldNumber       FieldKind = "number"
	FieldDate         FieldKind = "date"
	FieldIdentity     FieldKind = "identity"
	FieldPayment      FieldKind = "payment"
	FieldPassword     FieldKind = "password"
	FieldOneTimeCode  FieldKind = "one_time_code"
	FieldFile         FieldKind = "file"
	FieldOther        FieldKind = "other"
)

// FieldKinds lists the kinds of field.
func FieldKinds() []FieldKind {
	return []FieldKind{
		FieldNone, FieldText, FieldSearch, FieldMultiline, FieldEditable, FieldChoice, FieldSelect, FieldCustomChoice,
		FieldEmail, FieldTelephone, FieldURL, FieldNumber, FieldDate, FieldIdentity, FieldPayment, FieldPassword,
		FieldOneTimeCode, FieldFile, FieldOther,
	}
}

// Credential reports whether an agent may never type into such a field (DENY-03).
func (k FieldKind) Credential() bool { return k == FieldPassword || k == FieldOneTimeCode }

// Readiness says how the wait before an observation ended (SETL-03).
type Readiness string

const (
	DOMQuiet     Readiness = "dom_quiet"
	BoundExpired Readiness = "bound_expired"
)

// Element is one control of the page.
type Element struct {
	Ref      string `json:"ref"`
	Role     string `json:"role"`
	Name     string `json:"name"`
	Disabled bool   `json:"disabled"`
	Checked  *bool  `json:"checked"` // nil where the notion does not apply
}

// Document is an observation on its way between programs.
type Document struct {
	URL           string           `json:"url"`
	Title         string           `json:"title"`
	Revision      string           `json:"revision"`
	Text          string           `json:"text"`
	TextTruncated bool             `json:"text_truncated,omitempty"`
	Elements      []Element        `json:"elements"`
	MoreElements  bool             `json:"more_elements,omitempty"` // a control was left out by a bound
	Readiness     Readiness        `json:"readiness,omitempty"`
	Facts         map[string]Facts `json:"facts,omitempty"` // by element ref

	Coverage       *Coverage        `json:"coverage,omitempty"`
	TextCoverage   *TextCoverage    `json:"text_coverage,omitempty"`
	Regions        []Region         `json:"regions,omitempty"`
	RegionCoverage *RegionCoverage  `json:"region_coverage,omitempty"`
	Focus          *Focus           `json:"focus,omitempty"`
	Extraction     *Extraction      `json:"extraction,omitempty"`
	Interruption   string           `json:"interruption,omitempty"` // NeedsUser or empty
	States         map[string]State `json:"states,omitempty"`       // 1.9.0, by element ref
	Frames         []Frame          `json:"frames,omitempty"`       // 1.9.0
	Notices        []Notice         `json:"notices,omitempty"`      // 1.9.0, since the previous observation
	Unread         []string         `json:"unread,omitempty"`       // 1.9.0: what cannot be read here: canvas, plugin, closed_shadow, svg_text, frames (those beyond the bound)
	Draft          string           `json:"draft,omitempty"`        // confirmed draft, at most 4096 characters (DRAFT-02)
}

// Raw is a validated observation. It cannot be encoded, and prints as a mask:
// what an agent may see of it is projection's to decide, and no log may have it.
type Raw struct {
	// Two pointers, because fmt shows what a pointer to a struct points to
	// when the verb does not fit.
	document **Document
}

// Accept validates a document that another program reported, and keeps a copy.
// A document out of bounds, off the allowed origins or inconsistent yields
// fault.OutputInvalid and no observation (CAPT-01).
func Accept(d Document, allowed site.Origins) (Raw, error) {
	u, err := site.ParseURL(d.URL)
	if err != nil || !allowed.Has(u.Origin()) {
		return Raw{}, refuse("its address is outside the allowed origins")
	}
	switch {
	case !bounded(d.Title, MaxTitle) || !utf8.ValidString(d.Text) || len(d.Text) > MaxText:
		return Raw{}, refuse("its title or text is out of bounds")
	case d.Revision == "" || !bounded(d.Revision, MaxRef) || len(d.Elements) > MaxElements:
		return Raw{}, refuse("its revision or number of elements is out of bounds")
	case d.Readiness != "" && d.Readiness != DOMQuiet && d.Readiness != BoundExpired:
		return Raw{}, refuse("its readiness is unknown")
	}
	refs := make(map[string]bool, len(d.Elements))
	for _, e := range d.Elements {
		if e.Ref == "" || !bounded(e.Ref, MaxRef) || !strings.HasPrefix(e.Ref, d.Revision+":") || refs[e.Ref] {
			return Raw{}, refuse("an element's reference is not of this revision")
		}
		if e.Role == "" || !bounded(e.Role, MaxRole) || !bounded(e.Name, MaxName) {
			return Raw{}, refuse("an element's role or name is out of bounds")
		}
		refs[e.Ref] = true
	}
	for ref, f := range d.Facts {
		if !refs[ref] || !f.valid() {
			return Raw{}, refuse("an element's facts are out of bounds")
		}
	}
	if why := d.parts(refs); why != "" {
		return Raw{}, refuse(why)
	}
	return Raw{document: new(new(clone(d)))}, nil
}

// Document is a copy of the validated record, for the projection and the
// approval view.
func (r Raw) Document() Document {
	if r.document == nil {
		return Document{}
	}
	return clone(**r.document)
}

// Revision is that of the document; empty for the zero Raw.
func (r Raw) Revision() string {
	if r.document == nil {
		return ""
	}
	return (*r.document).Revision
}

// WithoutRows is the observation without its extraction.
func (r Raw) WithoutRows() Raw {
	if r.document == nil {
		return r
	}
	d := clone(**r.document)
	d.Extraction = nil
	return Raw{document: new(new(d))}
}

// Find is the element with the reference, and its facts.
func (r Raw) Find(ref string) (Element, Facts, bool) {
	if r.document == nil {
		return Element{}, Facts{}, false
	}
	for _, e := range (*r.document).Elements {
		if e.Ref == ref {
			return e, (*r.document).Facts[ref], true
		}
	}
	return Element{}, Facts{}, false
}

// MarshalJSON always fails.
func (Raw) MarshalJSON() ([]byte, error) {
	return nil, errors.New("observe: a raw observation cannot be encoded; project it")
}

// MarshalText always fails.
func (Raw) MarshalText() ([]byte, error) { return Raw{}.MarshalJSON() }

func (Raw) String() string             { return "[observation]" }
func (Raw) GoString() string           { return "[observation]" }
func (Raw) Format(f fmt.State, _ rune) { fmt.Fprint(f, "[observation]") }
func (Raw) LogValue() slog.Value       { return slog.StringValue("[observation]") }

func bounded(s string, max int) bool {
	return utf8.ValidString(s) && utf8.RuneCountInString(s) <= max
}

func refuse(why string) error {
	return fault.New(fault.OutputInvalid, "The browser's observation was refused because "+why+". Observe again.")
}
