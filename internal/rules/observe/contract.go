package observe

// This file is the observation contract beyond controls and text: what can be
// asked for (Query) and what an answer may carry. Shapes and bounds are those of
// section 2.1 of the requirements; what goes beyond the specification is marked
// 1.9.0 and is additive.

// Bounds of the contract.
const (
	MaxCandidateOffset = 65_536
	MaxScanned         = 4096
	MaxRegions         = 32
	MaxRegionText      = 512  // characters
	MaxScannedNodes    = 8192 // of a text, region or collection scan
	MaxRows            = 50
	MaxColumns         = 8
	MaxCellText        = 256 // characters
	MaxOptions         = 64  // of one select (1.9.0)
	MaxFrames          = 64  // (1.9.0)
	MaxNotices         = 16  // dialogs, popups and downloads of one observation (1.9.0)
	MaxHint            = 120 // characters (1.9.0)
)

// Query says which part of the page to observe. The zero Query is the plain
// observation. At most one member is set (EXP-01, EXTR-01, FOC-01).
type Query struct {
	After   string        `json:"after,omitempty"`   // element ref of the current revision; the window begins behind it
	Cursor  string        `json:"cursor,omitempty"`  // next_cursor of the current coverage
	Region  *RegionQuery  `json:"region,omitempty"`  // a focused read
	Extract *ExtractQuery `json:"extract,omitempty"` // a collection
	Text    *TextQuery    `json:"text,omitempty"`    // the page's text from an offset on (1.9.0)
}

// RegionQuery reads one region of the current revision (FOC-01).
type RegionQuery struct {
	Ref        string `json:"region_ref"`
	Revision   string `json:"expected_revision"`
	TextOffset int    `json:"text_offset,omitempty"` // bytes of UTF-8
	TextCursor string `json:"text_cursor,omitempty"` // of the captured text, needed with an offset
}

// TextQuery continues the page's text (1.9.0).
type TextQuery struct {
	Revision string `json:"expected_revision"`
	Offset   int    `json:"text_offset"` // bytes of UTF-8 of the captured text
}

// ExtractQuery reads a table, list, form or the articles in view (EXTR-02, ART-01).
type ExtractQuery struct {
	Revision string         `json:"expected_revision"`
	Kind     string         `json:"kind"`  // table, list, form, articles
	Index    int            `json:"index"` // 0 to 15 among visible collections
	Fields   []ExtractField `json:"fields"`
	RowLimit int            `json:"row_limit"` // 1 to 50
}

// ExtractField is a wanted column.
type ExtractField struct {
	Name     string `json:"name"`   // a letter and up to 63 word characters
	Column   int    `json:"column"` // 0 to 15
	Type     string `json:"type"`   // string, integer, number, boolean
	Required bool   `json:"required"`
}

// Coverage says which candidates an observation looked at (EXP-08).
type Coverage struct {
	CandidateOffset   int    `json:"candidate_offset"`
	ScannedCandidates int    `json:"scanned_candidates"`
	NextCursor        string `json:"next_cursor,omitempty"` // 32 to 128 characters; empty when the scan reached the end
	ScanLimitReached  bool   `json:"scan_limit_reached"`
}

// TextCoverage says how the text was read (TEXT-05).
type TextCoverage struct {
	Version               int    `json:"version"` // 1
	Scope                 string `json:"scope"`   // main_document_and_open_shadow; 1.9.0 adds all_readable_frames
	ScannedNodes          int    `json:"scanned_nodes"`
	ScannedTextCharacters int    `json:"scanned_text_characters"` // UTF-16 units
	NodeLimitReached      bool   `json:"node_limit_reached"`
	TextLimitReached      bool   `json:"text_limit_reached"`
	OmittedTextBytes      int    `json:"omitted_text_bytes"`
}

// RegionKind in priority order (REGN-02, FOC-05).
type RegionKind string

const (
	RegionDialog  RegionKind = "dialog"
	RegionAlert   RegionKind = "alert"
	RegionStatus  RegionKind = "status"
	RegionForm    RegionKind = "form"
	RegionMain    RegionKind = "main"
	RegionSection RegionKind = "section"
	RegionHeading RegionKind = "heading"
)

// RegionKinds lists the kinds in the order in which they are kept.
func RegionKinds() []RegionKind {
	return []RegionKind{RegionDialog, RegionAlert, RegionStatus, RegionForm, RegionMain, RegionSection, RegionHeading}
}

// Region is a part of the page, for reading only (REGN-06). Its ref is
// "{revision}:region:{i}".
type Region struct {
	Ref           string     `json:"ref"`
	Kind          RegionKind `json:"kind"`
	Text          string     `json:"text"`
	TextTruncated bool       `json:"text_truncated"`
}

// RegionCoverage says how regions were looked for (REGN-05).
type RegionCoverage struct {
	Version          int    `json:"version"` // 1
	Scope            string `json:"scope"`   // main_document
	ScannedNodes     int    `json:"scanned_nodes"`
	ScanLimitReached bool   `json:"scan_limit_reached"`
	OmittedRegions   int    `json:"omitted_regions"`
}

// Focus describes a focused read (FOC-03).
type Focus struct {
	RegionRef      string `json:"region_ref"` // "{revision}:focus"
	TextOffset     int    `json:"text_offset"`
	TextTotalBytes int    `json:"text_total_bytes"`
	TextCursor     string `json:"text_cursor"` // 32 to 64 characters
}

// Extraction is the answer to an ExtractQuery (EXTR-08, EXTR-10).
type Extraction struct {
	Version                int            `json:"version"` // 1
	Revision               string         `json:"revision"`
	Kind                   string         `json:"kind"`
	Index                  int            `json:"index"`
	Status                 string         `json:"status"` // extracted, not_found, unsupported_structure
	SourceRef              string         `json:"source_ref,omitempty"`
	SourceName             string         `json:"source_name,omitempty"` // at most 256 characters
	Fields                 []ExtractField `json:"fields"`
	Rows                   []Row          `json:"rows"`
	Scope                  string         `json:"scope"` // main_document, main_document_viewport_articles
	SourceNodes            int            `json:"source_nodes"`
	SourceScanLimitReached bool           `json:"source_scan_limit_reached"`
	RowNodes               int            `json:"row_nodes"`
	RowScanLimitReached    bool           `json:"row_scan_limit_reached"`
	RowLimit               int            `json:"row_limit"`
	OmittedRows            int            `json:"omitted_rows"`
	ByteLimitReached       bool           `json:"byte_limit_reached"`
}

// Row of an extraction; its ref is evidence and cannot be acted on.
type Row struct {
	Ref         string `json:"ref"`
	Cells       []Cell `json:"cells"`
	SchemaValid bool   `json:"schema_valid"`
}

// Cell of a row. Value is a string, a number or a boolean as its field's type
// says, and nil unless Status is present.
type Cell struct {
	Field  string `json:"field"`
	Column int    `json:"column"`
	Ref    string `json:"ref"`
	Text   string `json:"text"`
	Value  any    `json:"value"`
	Status string `json:"status"` // present, missing, invalid, truncated
}

// NeedsUser is the one value of Document.Interruption (CHAL-01).
const NeedsUser = "needs_user"

// Option of a native select (1.9.0).
type Option struct {
	Label    string `json:"label"` // at most 256 characters
	Selected bool   `json:"selected,omitempty"`
	Disabled bool   `json:"disabled,omitempty"`
}

// State is what else an agent needs to choose a control (1.9.0). Nothing in it
// tells a field's value or its length.
type State struct {
	Expanded    *bool    `json:"expanded,omitempty"`
	Selected    *bool    `json:"selected,omitempty"`
	Required    bool     `json:"required,omitempty"`
	Invalid     bool     `json:"invalid,omitempty"`
	Filled      *bool    `json:"filled,omitempty"` // a field that holds something
	ReadOnly    bool     `json:"readonly,omitempty"`
	Multiline   bool     `json:"multiline,omitempty"`
	Options     []Option `json:"options,omitempty"`
	MoreOptions int      `json:"more_options,omitempty"` // options beyond the first 64
	Hint        string   `json:"hint,omitempty"`         // what a nameless control looks like and where it stands
	Blocked     string   `json:"blocked,omitempty"`      // covered, inert, behind_dialog, offscreen_clipped: not usable now
	Rows        int      `json:"rows,omitempty"`         // of a scroller or grid, when the page states it
	Scrolls     bool     `json:"scrolls,omitempty"`      // an inner scroller: act scroll on this ref moves it
	Frame       string   `json:"frame,omitempty"`        // id in Document.Frames; empty for the main document
}

// Frame is a child document (1.9.0). Its origin is information and never
// authority.
type Frame struct {
	ID     string `json:"id"`               // "f1", …
	Parent string `json:"parent,omitempty"` // id of the frame around it; empty for the main document
	Origin string `json:"origin"`           // of its document; "null" for an opaque one
	Name   string `json:"name,omitempty"`   // title of the frame element, at most 128 characters
	Unread string `json:"unread,omitempty"` // why nothing of it is here: cross_process, timeout, plugin, canvas
}

// Notice reports something the browser stopped (1.9.0, issue of dialogs,
// popups and downloads).
type Notice struct {
	Kind string `json:"kind"`           // alert, confirm, prompt, beforeunload, popup, download
	Text string `json:"text,omitempty"` // the page's words or address, at most 256 characters
}

// Empty reports whether the state says nothing.
func (s State) Empty() bool {
	return s.Expanded == nil && s.Selected == nil && s.Filled == nil && !s.Required && !s.Invalid && !s.ReadOnly && !s.Multiline && len(s.Options) == 0 &&
		s.MoreOptions == 0 && s.Hint == "" && s.Blocked == "" && s.Rows == 0 && !s.Scrolls && s.Frame == ""
}
