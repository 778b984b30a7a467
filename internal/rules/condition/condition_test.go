package condition

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

func control(role, name string) *Condition { return &Condition{Role: role, Name: &name} }

func evidence(e Evidence) *Condition { return &Condition{Evidence: &e} }

var row = Evidence{Kind: Row, Collection: "table", RowLimit: 20, Fields: []Field{{Name: "Id", Column: 0, Type: "integer", Value: 7.0}, {Name: "State", Column: 1, Type: "string", Value: "open"}}}

// COND-01, EVID-02, section 2.1: what a condition may be.
func TestValidate(t *testing.T) {
	text, at := Evidence{Kind: Text, Text: "Saved"}, Evidence{Kind: Location, URL: "https://Wiki.example.org:443/done"}
	for name, good := range map[string]*Condition{
		"control": control("button", "Save"), "nameless control": control("button", ""), "control with states": {Role: "checkbox", Name: new("x"), Checked: new(true), Disabled: new(false), TimeoutMS: 5000},
		"text": evidence(text), "location": evidence(at), "region": evidence(Evidence{Kind: Region, RegionKind: "alert", Text: "Done"}), "row": evidence(row),
		"with failure": {Evidence: &text, Failure: &at}, "control with failure": {Role: "button", Name: new("x"), Failure: &text},
	} {
		if err := good.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if at.URL != "https://wiki.example.org/done" {
		t.Errorf("the address is %s", at.URL)
	}
	with := func(change func(*Evidence)) *Condition {
		e := row
		e.Fields = append([]Field(nil), row.Fields...)
		change(&e)
		return evidence(e)
	}
	for name, bad := range map[string]*Condition{
		"nothing": {}, "both": {Role: "button", Name: new("x"), Evidence: &text}, "role alone": {Role: "button"}, "name alone": {Name: new("x")},
		"state alone": {Checked: new(true)}, "state with evidence": {Evidence: &text, Checked: new(true)}, "failure alone": {Failure: &text},
		"long role": control(strings.Repeat("r", 65), "x"), "long name": control("r", strings.Repeat("n", 1025)), "late": {Role: "r", Name: new("x"), TimeoutMS: 5001},
		"early": {Role: "r", Name: new("x"), TimeoutMS: -1}, "failure is a row": {Evidence: &text, Failure: &row},
		"no kind": evidence(Evidence{Text: "x"}), "unknown kind": evidence(Evidence{Kind: "title", Text: "x"}), "blank text": evidence(Evidence{Kind: Text, Text: " \n"}),
		"long text": evidence(Evidence{Kind: Text, Text: strings.Repeat("x", 513)}), "text with url": evidence(Evidence{Kind: Text, Text: "x", URL: "https://a.example"}),
		"region without kind": evidence(Evidence{Kind: Region, Text: "x"}), "unknown region": evidence(Evidence{Kind: Region, RegionKind: "aside", Text: "x"}),
		"not public": evidence(Evidence{Kind: Location, URL: "http://a.example"}), "articles": with(func(e *Evidence) { e.Collection = "articles" }),
		"index": with(func(e *Evidence) { e.Index = 16 }), "limit": with(func(e *Evidence) { e.RowLimit = 51 }), "no fields": with(func(e *Evidence) { e.Fields = nil }),
		"half a number": with(func(e *Evidence) { e.Fields[0].Value = 7.5 }), "too exact": with(func(e *Evidence) { e.Fields[0].Value = float64(1 << 53) }),
		"empty string": with(func(e *Evidence) { e.Fields[1].Value = "" }), "long string": with(func(e *Evidence) { e.Fields[1].Value = strings.Repeat("x", 257) }),
		"wrong type": with(func(e *Evidence) { e.Fields[1].Value = true }), "no value": with(func(e *Evidence) { e.Fields[1].Value = nil }),
		"same name": with(func(e *Evidence) { e.Fields[1].Name = "Id" }), "row with text": with(func(e *Evidence) { e.Text = "x" }),
	} {
		if err := bad.Validate(); !fault.Is(err, fault.ArgumentsInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func page() observe.Document {
	return observe.Document{
		URL: "https://wiki.example.org/done", Revision: "r", Text: "Tickets\nSaved   at  noon\nTwice\nTwice\nlast",
		Elements: []observe.Element{
			{Ref: "r:0", Role: "button", Name: "Save"}, {Ref: "r:1", Role: "checkbox", Name: "Agree", Checked: new(true)},
			{Ref: "r:2", Role: "link", Name: "More"}, {Ref: "r:3", Role: "link", Name: "More"},
			{Ref: "r:4", Role: "button", Name: "Pay"}, {Ref: "r:5", Role: "button", Name: "Off", Disabled: true},
		},
		States: map[string]observe.State{"r:4": {Frame: "f1"}},
		Regions: []observe.Region{
			{Ref: "r:region:0", Kind: "alert", Text: "All good"}, {Ref: "r:region:1", Kind: "status", Text: "cut", TextTruncated: true},
			{Ref: "r:region:2", Kind: "heading", Text: "Same"}, {Ref: "r:region:3", Kind: "heading", Text: "Same"},
		},
		Extraction: &observe.Extraction{Kind: "table", Status: "extracted", Rows: []observe.Row{
			{SchemaValid: true, Cells: cells(7.0, "open")}, {SchemaValid: true, Cells: cells(int64(8), "open")}, {SchemaValid: false, Cells: cells(9.0, "open")},
			{SchemaValid: true, Cells: cells(10.0, "twice")}, {SchemaValid: true, Cells: cells(10.0, "twice")},
		}},
	}
}

func cells(id any, state string) []observe.Cell {
	return []observe.Cell{{Field: "Id", Column: 0, Value: id, Status: "present"}, {Field: "State", Column: 1, Value: state, Status: "present"}}
}

func wants(id float64, state string) Evidence {
	e := row
	e.Fields = []Field{{Name: "Id", Column: 0, Type: "integer", Value: id}, {Name: "State", Column: 1, Type: "string", Value: state}}
	return e
}

// COND-04, COND-05, EVID-01 to EVID-03.
func TestEvaluate(t *testing.T) {
	text := func(s string) *Evidence { return &Evidence{Kind: Text, Text: s} }
	region := func(kind observe.RegionKind, s string) *Condition {
		return evidence(Evidence{Kind: Region, RegionKind: kind, Text: s})
	}
	state := func(c *Condition, disabled, checked *bool) *Condition {
		c.Disabled, c.Checked = disabled, checked
		return c
	}
	failing := func(c *Condition, e *Evidence) *Condition { c.Failure = e; return c }
	for name, x := range map[string]struct {
		c    *Condition
		want Status
	}{
		"control": {control("button", "Save"), Satisfied}, "other role": {control("link", "Save"), NotObserved}, "other case": {control("button", "save"), NotObserved},
		"two controls": {control("link", "More"), Ambiguous}, "two controls in a state that neither has": {state(control("link", "More"), new(true), nil), Ambiguous},
		"in a frame": {control("button", "Pay"), NotObserved}, "checked": {state(control("checkbox", "Agree"), nil, new(true)), Satisfied},
		"not checked": {state(control("checkbox", "Agree"), nil, new(false)), NotObserved}, "cannot be checked": {state(control("button", "Save"), nil, new(false)), NotObserved},
		"disabled": {state(control("button", "Off"), new(true), nil), Satisfied}, "enabled": {state(control("button", "Off"), new(false), nil), NotObserved},
		"line": {evidence(*text("Saved at noon")), Satisfied}, "part of a line": {evidence(*text("Saved")), NotObserved}, "two lines": {evidence(*text("Twice")), Ambiguous},
		"region": {region("alert", "All  good"), Satisfied}, "other kind": {region("status", "All good"), NotObserved}, "cut region": {region("status", "cut"), NotObserved},
		"part of a region": {region("alert", "All"), NotObserved}, "two regions": {region("heading", "Same"), Ambiguous},
		"location": {evidence(Evidence{Kind: Location, URL: "https://wiki.example.org/done"}), Satisfied}, "elsewhere": {evidence(Evidence{Kind: Location, URL: "https://wiki.example.org/"}), NotObserved},
		"row": {evidence(wants(7, "open")), Satisfied}, "whole number": {evidence(wants(8, "open")), Satisfied}, "invalid row": {evidence(wants(9, "open")), NotObserved},
		"two rows": {evidence(wants(10, "twice")), Ambiguous}, "other value": {evidence(wants(7, "closed")), NotObserved},
		"failure alone": {failing(control("button", "Gone"), text("Saved at noon")), Failed}, "both": {failing(control("button", "Save"), text("Saved at noon")), Ambiguous},
		"failure and two matches": {failing(control("link", "More"), text("Saved at noon")), Ambiguous}, "ambiguous failure": {failing(control("button", "Save"), text("Twice")), Ambiguous},
		"no failure": {failing(control("button", "Save"), text("Lost")), Satisfied}, "neither": {failing(control("button", "Gone"), text("Lost")), NotObserved},
	} {
		if got := x.c.Evaluate(page()); got != x.want {
			t.Errorf("%s: %s, want %s", name, got, x.want)
		}
	}
	if !Satisfied.Final() || !Failed.Final() || Ambiguous.Final() || NotObserved.Final() {
		t.Error("which answers are final is wrong")
	}
}

// Where text was cut, the line at the cut proves nothing; a page that asks for
// its owner proves nothing at all.
func TestCutLines(t *testing.T) {
	first, last := evidence(Evidence{Kind: Text, Text: "Tickets"}), evidence(Evidence{Kind: Text, Text: "last"})
	for name, x := range map[string]struct {
		change      func(*observe.Document)
		first, last Status
	}{
		"whole":          {func(*observe.Document) {}, Satisfied, Satisfied},
		"truncated":      {func(d *observe.Document) { d.TextTruncated = true }, Satisfied, NotObserved},
		"text limit":     {func(d *observe.Document) { d.TextCoverage = &observe.TextCoverage{TextLimitReached: true} }, Satisfied, NotObserved},
		"node limit":     {func(d *observe.Document) { d.TextCoverage = &observe.TextCoverage{NodeLimitReached: true} }, Satisfied, NotObserved},
		"omitted":        {func(d *observe.Document) { d.TextCoverage = &observe.TextCoverage{OmittedTextBytes: 1} }, Satisfied, NotObserved},
		"focus begins":   {func(d *observe.Document) { d.Focus = &observe.Focus{TextTotalBytes: len(d.Text) + 1} }, Satisfied, NotObserved},
		"focus goes on":  {func(d *observe.Document) { d.Focus = &observe.Focus{TextOffset: 3, TextTotalBytes: len(d.Text) + 3} }, NotObserved, Satisfied},
		"focus is whole": {func(d *observe.Document) { d.Focus = &observe.Focus{TextTotalBytes: len(d.Text)} }, Satisfied, Satisfied},
		"interrupted":    {func(d *observe.Document) { d.Interruption = observe.NeedsUser }, NotObserved, NotObserved},
		"empty":          {func(d *observe.Document) { d.Text, d.TextTruncated = "", true }, NotObserved, NotObserved},
	} {
		d := page()
		x.change(&d)
		if a, b := first.Evaluate(d), last.Evaluate(d); a != x.first || b != x.last {
			t.Errorf("%s: first line %s, last line %s", name, a, b)
		}
	}
}

// COND-02, COND-03: no more than 21 looks, none that would end after the time
// is over as far as the last one tells, none once it is over.
func TestAgain(t *testing.T) {
	c := &Condition{TimeoutMS: 2000}
	const ms = time.Millisecond
	for _, x := range []struct {
		elapsed, last time.Duration
		reads         int
		want          bool
	}{
		{0, 0, 1, true}, {1500 * ms, 500 * ms, 5, true}, {1501 * ms, 500 * ms, 5, false}, {1999 * ms, 0, 20, true},
		{2000 * ms, 0, 2, false}, {2500 * ms, 0, 2, false}, {0, 0, 20, true}, {0, 0, 21, false}, {0, 3000 * ms, 1, false},
	} {
		if got := c.Again(x.elapsed, x.last, x.reads); got != x.want {
			t.Errorf("%s", fmt.Sprintf("after %v, %v each, %d looks: %v", x.elapsed, x.last, x.reads, got))
		}
	}
	if (&Condition{}).Again(0, 0, 1) {
		t.Error("a condition without time is looked for again")
	}
}

// What is extracted for a row is exactly its columns, all of them required.
func TestExtract(t *testing.T) {
	x := row.Extract("rev")
	if x.Revision != "rev" || x.Kind != "table" || x.RowLimit != 20 || len(x.Fields) != 2 || !x.Fields[1].Required || x.Fields[1].Column != 1 {
		t.Errorf("%+v", x)
	}
	if !evidence(row).NeedsRows() || control("a", "b").NeedsRows() || evidence(Evidence{Kind: Text}).NeedsRows() {
		t.Error("what needs rows is wrong")
	}
}
