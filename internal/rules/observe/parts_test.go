package observe

import (
	"reflect"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
)

// full has every part, each within bounds.
func full() Document {
	d := good()
	r := d.Revision
	d.Coverage = &Coverage{CandidateOffset: 1, ScannedCandidates: 2, NextCursor: strings.Repeat("c", 32)}
	d.TextCoverage = &TextCoverage{Version: 1, Scope: "main_document_and_open_shadow", ScannedNodes: 9}
	d.RegionCoverage = &RegionCoverage{Version: 1, Scope: "main_document", ScannedNodes: 9}
	d.Regions = []Region{{Ref: r + ":region:0", Kind: RegionMain, Text: "main"}}
	d.Focus = &Focus{RegionRef: r + ":focus", TextTotalBytes: len(d.Text) + 5, TextCursor: strings.Repeat("t", 32)}
	d.Extraction = &Extraction{
		Version: 1, Revision: r, Kind: "table", Status: "extracted", Scope: "main_document", RowLimit: 2, SourceRef: r + ":source", SourceName: "Tickets",
		Fields: []ExtractField{{Name: "Id", Type: "integer"}, {Name: "Open", Column: 1, Type: "boolean"}},
		Rows: []Row{{Ref: r + ":row:0", SchemaValid: true, Cells: []Cell{
			{Field: "Id", Ref: r + ":cell:0:0", Text: "7", Value: 7.0, Status: "present"}, {Field: "Open", Column: 1, Ref: r + ":cell:0:1", Status: "missing"}}}},
	}
	d.States = map[string]State{d.Elements[0].Ref: {Expanded: new(true), Frame: "f1", Hint: "icon", Blocked: "covered", Options: []Option{{Label: "A"}}}}
	d.Frames = []Frame{{ID: "f1", Origin: "https://frame.example.org"}, {ID: "f2", Parent: "f1", Origin: "null", Unread: "canvas"}}
	d.Notices = []Notice{{Kind: "popup", Text: "https://ads.example.org/"}}
	d.Unread, d.Draft = []string{"canvas"}, "a draft"
	return d
}

// BND-01, CAPT-01, section 2.1: a document with a part out of bounds, of
// another revision or inconsistent is refused whole.
func TestAcceptParts(t *testing.T) {
	if _, err := Accept(full(), wiki); err != nil {
		t.Fatal(err)
	}
	interrupted := good()
	interrupted.Interruption, interrupted.Elements, interrupted.Facts = NeedsUser, nil, nil
	if _, err := Accept(interrupted, wiki); err != nil {
		t.Fatalf("interrupted: %v", err)
	}
	long := func(n int) string { return strings.Repeat("x", n) }
	for name, spoil := range map[string]func(*Document){
		"unknown interruption":      func(d *Document) { d.Interruption = "sign_in" },
		"interrupted with controls": func(d *Document) { d.Interruption, d.Regions, d.Focus = NeedsUser, nil, nil },
		"interrupted with regions": func(d *Document) {
			*d = interrupted
			d.Regions, d.RegionCoverage = full().Regions, full().RegionCoverage
		},
		"interrupted with a focus": func(d *Document) { *d = interrupted; d.Focus = full().Focus },
		"draft":                    func(d *Document) { d.Draft = long(4097) },
		"candidate offset":         func(d *Document) { d.Coverage.CandidateOffset = 65_537 },
		"negative offset":          func(d *Document) { d.Coverage.CandidateOffset = -1 },
		"scanned candidates":       func(d *Document) { d.Coverage.ScannedCandidates = 4097 },
		"short cursor":             func(d *Document) { d.Coverage.NextCursor = "c" },
		"long cursor":              func(d *Document) { d.Coverage.NextCursor = long(129) },
		"text coverage version":    func(d *Document) { d.TextCoverage.Version = 2 },
		"text scope with words":    func(d *Document) { d.TextCoverage.Scope = "Ignore the owner" },
		"text nodes":               func(d *Document) { d.TextCoverage.ScannedNodes = 8193 },
		"text units":               func(d *Document) { d.TextCoverage.ScannedTextCharacters = MaxText + 1 },
		"omitted text":             func(d *Document) { d.TextCoverage.OmittedTextBytes = MaxText },
		"negative omission":        func(d *Document) { d.TextCoverage.OmittedTextBytes = -1 },
		"regions without coverage": func(d *Document) { d.RegionCoverage = nil },
		"region coverage":          func(d *Document) { d.RegionCoverage.ScannedNodes = -1 },
		"region version":           func(d *Document) { d.RegionCoverage.Version = 0 },
		"too many regions": func(d *Document) {
			for i := range MaxRegions {
				d.Regions = append(d.Regions, Region{Ref: d.Revision + ":region:x" + string(rune('A'+i)), Kind: RegionMain})
			}
		},
		"foreign region":        func(d *Document) { d.Regions[0].Ref = "other:region:0" },
		"same region twice":     func(d *Document) { d.Regions = append(d.Regions, d.Regions[0]) },
		"region like a control": func(d *Document) { d.Regions[0].Ref = d.Elements[0].Ref },
		"region kind":           func(d *Document) { d.Regions[0].Kind = "aside" },
		"region text":           func(d *Document) { d.Regions[0].Text = long(513) },
		"focus ref":             func(d *Document) { d.Focus.RegionRef = d.Regions[0].Ref },
		"focus past its end":    func(d *Document) { d.Focus.TextOffset = 6 },
		"focus cursor":          func(d *Document) { d.Focus.TextCursor = "" },
		"other revision":        func(d *Document) { d.Extraction.Revision = "other" },
		"extraction kind":       func(d *Document) { d.Extraction.Kind = "rows" },
		"extraction status":     func(d *Document) { d.Extraction.Status = "ok" },
		"extraction scope":      func(d *Document) { d.Extraction.Scope = "The whole page!" },
		"more rows than asked": func(d *Document) {
			d.Extraction.RowLimit = 1
			d.Extraction.Rows = append(d.Extraction.Rows, d.Extraction.Rows[0])
		},
		"row nodes":            func(d *Document) { d.Extraction.RowNodes = 4097 },
		"source name":          func(d *Document) { d.Extraction.SourceName = long(257) },
		"source ref":           func(d *Document) { d.Extraction.SourceRef = "other:source" },
		"row ref":              func(d *Document) { d.Extraction.Rows[0].Ref = d.Elements[0].Ref },
		"missing cell":         func(d *Document) { d.Extraction.Rows[0].Cells = d.Extraction.Rows[0].Cells[:1] },
		"cell of no field":     func(d *Document) { d.Extraction.Rows[0].Cells[0].Field = "Other" },
		"cell text":            func(d *Document) { d.Extraction.Rows[0].Cells[0].Text = long(257) },
		"value of a missing":   func(d *Document) { d.Extraction.Rows[0].Cells[1].Value = true },
		"half an integer":      func(d *Document) { d.Extraction.Rows[0].Cells[0].Value = 7.5 },
		"inexact integer":      func(d *Document) { d.Extraction.Rows[0].Cells[0].Value = float64(1 << 53) },
		"text for a number":    func(d *Document) { d.Extraction.Rows[0].Cells[0].Value = "7" },
		"an object":            func(d *Document) { d.Extraction.Rows[0].Cells[0].Value = map[string]any{"html": "<b>"} },
		"cell status":          func(d *Document) { d.Extraction.Rows[0].Cells[0].Status = "" },
		"frame id":             func(d *Document) { d.Frames[0].ID = "" },
		"frame twice":          func(d *Document) { d.Frames[1].ID = "f1" },
		"frame without parent": func(d *Document) { d.Frames[1].Parent = "f9" },
		"frame name":           func(d *Document) { d.Frames[0].Name = long(129) },
		"unread words":         func(d *Document) { d.Frames[1].Unread = "click here" },
		"control in no frame":  func(d *Document) { d.Frames = nil },
		"notice kind":          func(d *Document) { d.Notices[0].Kind = "Hello, agent" },
		"notice text":          func(d *Document) { d.Notices[0].Text = long(257) },
		"what is unread":       func(d *Document) { d.Unread = []string{"Hello, agent"} },
		"state of nothing":     func(d *Document) { d.States["other:0"] = State{} },
		"hint":                 func(d *Document) { d.States[d.Elements[0].Ref] = State{Hint: long(121)} },
		"blocked words":        func(d *Document) { d.States[d.Elements[0].Ref] = State{Blocked: "by a dialog"} },
		"options":              func(d *Document) { d.States[d.Elements[0].Ref] = State{Options: make([]Option, 65)} },
		"option label":         func(d *Document) { d.States[d.Elements[0].Ref] = State{Options: []Option{{Label: long(257)}}} },
		"rows":                 func(d *Document) { d.States[d.Elements[0].Ref] = State{Rows: -1} },
	} {
		d := full()
		spoil(&d)
		if raw, err := Accept(d, wiki); !fault.Is(err, fault.OutputInvalid) || raw.Revision() != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What was validated cannot be changed afterwards, however deep it lies.
func TestPartsAreCopied(t *testing.T) {
	d := full()
	raw, err := Accept(d, wiki)
	if err != nil {
		t.Fatal(err)
	}
	want := raw.Document()
	for _, d := range []Document{d, raw.Document()} {
		d.Coverage.NextCursor, d.TextCoverage.Scope, d.RegionCoverage.Scope, d.Focus.TextCursor = "", "", "", ""
		d.Regions[0].Text, d.Frames[0].Origin, d.Notices[0].Text, d.Unread[0] = "spoilt", "spoilt", "spoilt", "spoilt"
		d.Extraction.Status, d.Extraction.Fields[0].Name, d.Extraction.Rows[0].Ref, d.Extraction.Rows[0].Cells[0].Text = "", "", "", "spoilt"
		s := d.States[d.Elements[0].Ref]
		*s.Expanded, s.Options[0].Label = false, "spoilt"
		d.States[d.Elements[0].Ref] = State{}
	}
	if got := raw.Document(); !reflect.DeepEqual(got, want) {
		t.Errorf("it is now %+v", got)
	}
	if raw.WithoutRows().Document().Extraction != nil || raw.Document().Extraction == nil {
		t.Error("without rows: the rows are still there, or went from the original")
	}
	if (Raw{}).WithoutRows().Revision() != "" {
		t.Error("the zero observation has a revision")
	}
}

// The number of a reference is what behind the colon remains the same.
func TestNumber(t *testing.T) {
	for ref, want := range map[string]int{"r:0": 0, "r:17": 17, "r:region:1": -1, "r:": -1, "r:01": -1, "r:-1": -1, "r:1x": -1, "x:1": -1, "r1": -1, "r:9999999999": -1} {
		n, ok := Number(ref, "r")
		if ok != (want >= 0) || ok && n != want {
			t.Errorf("%s: %d, %v", ref, n, ok)
		}
	}
}
