package projection

import (
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// The members of a window as they are written. What is zero or false is left
// out and means just that (TEXT-06); the counters of a scan are left out in a
// small budget (SMALL-01).

// Coverage of the candidates (EXP-08). NextCursor is there only once every
// control of the window is.
type Coverage struct {
	Scope             string `json:"scope"` // provider_observation, focused_region
	CandidateOffset   int    `json:"candidate_offset,omitempty"`
	ScannedCandidates int    `json:"scanned_candidates,omitempty"`
	NextCursor        string `json:"next_cursor,omitempty"`
	ScanLimitReached  bool   `json:"scan_limit_reached,omitempty"`
}

// TextCoverage says how the text was read (TEXT-05).
type TextCoverage struct {
	Version               int    `json:"version"`
	Scope                 string `json:"scope"`
	ScannedNodes          int    `json:"scanned_nodes,omitempty"`
	ScannedTextCharacters int    `json:"scanned_text_characters,omitempty"`
	NodeLimitReached      bool   `json:"node_limit_reached,omitempty"`
	TextLimitReached      bool   `json:"text_limit_reached,omitempty"`
	OmittedTextBytes      int    `json:"omitted_text_bytes,omitempty"`
}

// RegionCoverage says how regions were looked for (REGN-05).
type RegionCoverage struct {
	Version          int    `json:"version"`
	Scope            string `json:"scope"`
	ScannedNodes     int    `json:"scanned_nodes,omitempty"`
	ScanLimitReached bool   `json:"scan_limit_reached,omitempty"`
	OmittedRegions   int    `json:"omitted_regions,omitempty"`
}

// Focus of a focused read (FOC-03).
type Focus struct {
	RegionRef      string `json:"region_ref"`
	TextOffset     int    `json:"text_offset,omitempty"`
	TextTotalBytes int    `json:"text_total_bytes,omitempty"`
	TextCursor     string `json:"text_cursor,omitempty"`
}

// NextObserve is the next request for controls (EXP-09).
type NextObserve struct {
	After  string `json:"after,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

// NextText is the next request for text: of the focused region, or from 1.9.0
// on of the page.
type NextText struct {
	RegionRef  string `json:"region_ref,omitempty"`
	Revision   string `json:"expected_revision"`
	TextOffset int    `json:"text_offset"`
	TextCursor string `json:"text_cursor,omitempty"`
}

// coverage fills in what the observation says of itself.
func (w *Window) coverage(d observe.Document, small bool) {
	w.Coverage = &Coverage{Scope: "provider_observation"}
	if d.Focus != nil {
		w.Coverage.Scope = "focused_region"
		w.Focus = &Focus{RegionRef: d.Focus.RegionRef}
		if !small {
			w.Focus = new(Focus(*d.Focus))
		}
	}
	if c := d.Coverage; c != nil {
		w.Coverage.CandidateOffset, w.Coverage.ScanLimitReached = c.CandidateOffset, c.ScanLimitReached
		if !small {
			w.Coverage.ScannedCandidates = c.ScannedCandidates
		}
	}
	if c := d.TextCoverage; c != nil {
		w.TextCoverage = new(TextCoverage(*c))
		if small {
			w.TextCoverage.ScannedNodes, w.TextCoverage.ScannedTextCharacters = 0, 0
		}
	}
	if c := d.RegionCoverage; c != nil {
		w.RegionCoverage = new(RegionCoverage(*c))
		if small {
			w.RegionCoverage.ScannedNodes = 0
		}
	}
}
