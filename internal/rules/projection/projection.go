// Package projection turns a validated observation into what a model may see,
// within a byte budget: whole records, an exact revision, valid JSON, counts
// of what was left out and how to read on (PAGE-01 to PAGE-07, EXP-08 to
// EXP-10, REGN-07, EXTR-10, EXTR-11, TEXT-05 to TEXT-07, FOC-03, SMALL-01 to
// SMALL-03, PROJ-01 to PROJ-03, TRUST-01). It is the only way from observe.Raw
// to an encoder.
package projection

import (
	"encoding/json"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/condition"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// Trust is the label of every byte that a website wrote (TRUST-01).
const Trust = "external_untrusted"

// MinBudget is the smallest budget that every version works with (PROJ-02).
const MinBudget = 1024

// Options of a projection.
type Options struct {
	Version contract.Version // of the tool that answers
	Budget  int              // bytes of the answer; 0 means Budget(Version)
	Query   observe.Query    // what was asked for
	Element int              // element_offset of 1.1.0
	Text    int              // text_offset of 1.1.0, in characters
	// Since asks for what changed since Seen was shown (1.9.0).
	Since     string
	Seen      Shown
	Condition *condition.Result
}

// Budget is the default budget of a version, in bytes. From 1.7.0 on it is
// 4,000 tokens of four bytes; older ones keep what they were published with.
func Budget(v contract.Version) int {
	switch {
	case v.AtLeast(contract.V170):
		return 16_000
	case v == contract.V110:
		return 4096
	}
	return 64 << 10
}

// Shown is what of an observation an agent has seen; the next answer may leave
// it out. The zero Shown is nothing.
type Shown struct {
	document observe.Document
	query    observe.Query
	elements map[string]bool // by ref
	regions  map[string]bool // by ref
	text     int             // bytes from the beginning
}

// Revision is that of the observation that was shown.
func (s Shown) Revision() string { return s.document.Revision }

// View is the answer to a tool call. Which members it has, the version says;
// counts are zero when everything is there.
type View struct {
	URL       string            `json:"url"`
	Title     string            `json:"title"`
	Revision  string            `json:"revision"`
	Text      string            `json:"text"`
	Elements  []Element         `json:"elements"`
	Trust     string            `json:"content_trust"`
	Readiness observe.Readiness `json:"readiness,omitempty"`

	*Page                // 1.1.0
	*Window              // 1.7.0
	*Beyond              // 1.9.0
	OmittedURL      bool `json:"omitted_url,omitempty"`   // 1.0.0
	OmittedTitle    bool `json:"omitted_title,omitempty"` // 1.0.0
	OmittedElements int  `json:"omitted_elements,omitempty"`
	OmittedText     int  `json:"omitted_text_bytes,omitempty"`
	More            bool `json:"more_on_page,omitempty"` // 1.0.0: the page has more than an observation can hold

	// omitted says that not even the revision fits: nothing can be acted on.
	omitted bool
}

// Page is a slice of an observation (PAGE-03).
type Page struct {
	TitleTruncated    bool `json:"title_truncated,omitempty"`
	TotalElements     int  `json:"total_elements"`
	TotalText         int  `json:"total_text_characters"`
	ElementOffset     int  `json:"element_offset"`
	TextOffset        int  `json:"text_offset"`
	NextElementOffset *int `json:"next_element_offset"`
	NextTextOffset    *int `json:"next_text_offset"`
}

// Window is what 1.7.0 says of an observation besides its controls and text.
type Window struct {
	Interruption      string              `json:"interruption,omitempty"`
	Coverage          *Coverage           `json:"coverage,omitempty"`
	NextObserve       *NextObserve        `json:"next_observe,omitempty"`
	NextText          *NextText           `json:"next_text,omitempty"`
	TextCoverage      *TextCoverage       `json:"text_coverage,omitempty"`
	Regions           []observe.Region    `json:"regions,omitempty"`
	RegionCoverage    *RegionCoverage     `json:"region_coverage,omitempty"`
	Focus             *Focus              `json:"focus,omitempty"`
	Extraction        *observe.Extraction `json:"extraction,omitempty"`
	Condition         *condition.Result   `json:"condition,omitempty"`
	OmittedRegions    int                 `json:"omitted_regions,omitempty"`
	OmittedFields     []string            `json:"omitted_fields,omitempty"` // names of members left out whole
	ExpansionBlocked  string              `json:"expansion_blocked,omitempty"`
	TextBlocked       bool                `json:"text_expansion_blocked,omitempty"`
	ExtractionOmitted bool                `json:"extraction_omitted,omitempty"`
}

// Beyond is what 1.9.0 adds.
type Beyond struct {
	Frames         []observe.Frame  `json:"frames,omitempty"`
	Notices        []observe.Notice `json:"notices,omitempty"`
	Unread         []string         `json:"unread,omitempty"`
	Draft          string           `json:"draft,omitempty"`
	OmittedFrames  int              `json:"omitted_frames,omitempty"`
	OmittedNotices int              `json:"omitted_notices,omitempty"`

	Since            string `json:"since,omitempty"` // what follows differs from this revision
	Unchanged        int    `json:"unchanged,omitempty"`
	UnchangedRegions int    `json:"unchanged_regions,omitempty"`
	Gone             []int  `json:"gone,omitempty"`
	TextStartsAt     int    `json:"text_starts_at,omitempty"` // byte of the page's text at which text begins; what is before it is unchanged
	SinceUnavailable bool   `json:"since_unavailable,omitempty"`
}

// MarshalJSON writes the view, or the omission of the whole of it (PROJ-02).
func (v View) MarshalJSON() ([]byte, error) {
	if v.omitted {
		return compact(omission{Omitted: true, Reason: "inline_budget_too_small", Elements: []Element{}})
	}
	type plain View // without this method
	return compact(plain(v))
}

type omission struct {
	Omitted  bool      `json:"observation_omitted"`
	Reason   string    `json:"reason"`
	Elements []Element `json:"elements"`
}

// Element is one control. 1.9.0 adds the states and leaves out those that are
// false or unknown; the members of the earlier versions are always there.
type Element struct {
	observe.Element
	NameTruncated bool `json:"name_truncated,omitempty"` // 1.1.0
	observe.State      // 1.9.0
	stated        bool // the states are written
}

// MarshalJSON writes the element as its version does.
func (e Element) MarshalJSON() ([]byte, error) {
	if e.stated {
		return compact(struct {
			Ref      string `json:"ref"`
			Role     string `json:"role"`
			Name     string `json:"name"`
			Disabled bool   `json:"disabled"`
			Checked  *bool  `json:"checked"`
			observe.State
		}{e.Ref, e.Role, e.Name, e.Disabled, e.Checked, e.State})
	}
	return compact(struct {
		observe.Element
		NameTruncated bool `json:"name_truncated,omitempty"`
	}{e.Element, e.NameTruncated})
}

// size is size(e), without the second pass that an encoder makes over what
// MarshalJSON returned.
func (e Element) size() int {
	b, err := e.MarshalJSON()
	if err != nil {
		return 1 << 30 // as in size
	}
	return len(b)
}

// Project fits the observation into the budget. The error is
// fault.OutputInvalid, of 1.1.0 only (PAGE-07).
func Project(raw observe.Raw, o Options) (View, Shown, error) {
	if o.Budget == 0 {
		o.Budget = Budget(o.Version)
	}
	d := forVersion(raw.Document(), o.Version)
	switch {
	case o.Version.AtLeast(contract.V170):
		v, shown := window(d, o)
		return v, shown, nil
	case o.Version == contract.V110:
		v, err := page(d, o)
		return v, Shown{}, err
	case o.Version == contract.V100:
		return plain(d, o.Budget), Shown{}, nil
	}
	return View{}, Shown{}, fault.New(fault.Internal, "There is no such version of the tool.")
}

// forVersion leaves out what the version does not know.
func forVersion(d observe.Document, v contract.Version) observe.Document {
	if v.AtLeast(contract.V190) {
		return d
	}
	var own []observe.Element
	for _, e := range d.Elements {
		if d.States[e.Ref].Frame == "" {
			own = append(own, e)
		}
	}
	d.Elements, d.States, d.Frames, d.Notices, d.Unread, d.Draft = own, nil, nil, nil, nil, ""
	return d
}

var _, _ json.Marshaler = View{}, Element{}
