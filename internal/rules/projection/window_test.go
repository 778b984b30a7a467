package projection

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/chaperone-agents/chaperone/internal/rules/condition"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

const revision = "00112233445566778899aabbccddeeff"

var words = rapid.OneOf(rapid.StringN(0, 30, -1), rapid.SampledFrom([]string{"Save", "次へ進む", "التالي", `Choose "yes" \ continue`, "a\nb\tc", "\x01\x02", "<b>&"}))

// everything draws a document with every part that there can be, within bounds.
func everything(t *rapid.T) observe.Document {
	d := observe.Document{
		URL: "https://wiki.example.org/" + strings.Repeat("p", rapid.IntRange(0, 1500).Draw(t, "path")), Title: words.Draw(t, "title"), Revision: revision,
		Text: rapid.StringN(0, 4000, 20_000).Draw(t, "text"), Readiness: observe.DOMQuiet, States: map[string]observe.State{},
	}
	for i := range rapid.IntRange(0, 60).Draw(t, "elements") {
		e := observe.Element{Ref: fmt.Sprintf("%s:%d", revision, i), Role: "button", Name: words.Draw(t, "name") + strings.Repeat("n", rapid.SampledFrom([]int{0, 0, 0, 200, 900}).Draw(t, "long"))}
		if rapid.Bool().Draw(t, "checkable") {
			e.Checked = new(rapid.Bool().Draw(t, "checked"))
		}
		d.Elements = append(d.Elements, e)
		if rapid.Bool().Draw(t, "stated") {
			s := observe.State{Required: true, Expanded: new(false), Hint: "icon", Blocked: "covered"}
			for range rapid.SampledFrom([]int{0, 0, 3, 64}).Draw(t, "options") {
				s.Options = append(s.Options, observe.Option{Label: words.Draw(t, "option"), Selected: rapid.Bool().Draw(t, "selected")})
			}
			d.States[e.Ref] = s
		}
	}
	if rapid.Bool().Draw(t, "coverage") {
		d.Coverage = &observe.Coverage{ScannedCandidates: len(d.Elements), ScanLimitReached: rapid.Bool().Draw(t, "limit")}
		if d.Coverage.ScanLimitReached {
			d.Coverage.NextCursor = strings.Repeat("c", rapid.SampledFrom([]int{32, 128}).Draw(t, "cursor"))
		}
		d.TextCoverage = &observe.TextCoverage{Version: 1, Scope: "main_document_and_open_shadow", ScannedNodes: 100, ScannedTextCharacters: 1000}
		d.RegionCoverage = &observe.RegionCoverage{Version: 1, Scope: "main_document", ScannedNodes: 100}
		for i := range rapid.IntRange(0, observe.MaxRegions).Draw(t, "regions") {
			d.Regions = append(d.Regions, observe.Region{Ref: fmt.Sprintf("%s:region:%d", revision, i), Kind: observe.RegionSection, Text: strings.Repeat("r", rapid.IntRange(0, 512).Draw(t, "region"))})
		}
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "frames") {
		d.Frames = append(d.Frames, observe.Frame{ID: fmt.Sprintf("f%d", i), Origin: "https://frame.example.org"})
	}
	for range rapid.IntRange(0, 3).Draw(t, "notices") {
		d.Notices = append(d.Notices, observe.Notice{Kind: "popup", Text: words.Draw(t, "notice")})
	}
	if len(d.Frames) > 0 && len(d.Elements) > 0 {
		s := d.States[d.Elements[0].Ref]
		s.Frame = "f0"
		d.States[d.Elements[0].Ref] = s
	}
	if rapid.Bool().Draw(t, "unread") {
		d.Unread = []string{"canvas"}
	}
	if rapid.Bool().Draw(t, "draft") {
		d.Draft = words.Draw(t, "draft text")
	}
	switch rapid.SampledFrom([]string{"", "focus", "extraction"}).Draw(t, "mode") {
	case "focus":
		d.Focus = &observe.Focus{RegionRef: revision + ":focus", TextTotalBytes: len(d.Text) + rapid.IntRange(0, 50).Draw(t, "behind"), TextCursor: strings.Repeat("t", 32)}
	case "extraction":
		x := &observe.Extraction{Version: 1, Revision: revision, Kind: "table", Status: "extracted", Scope: "main_document", RowLimit: 50, Fields: []observe.ExtractField{{Name: "Name", Type: "string"}}}
		for i := range rapid.IntRange(0, 50).Draw(t, "rows") {
			x.Rows = append(x.Rows, observe.Row{Ref: fmt.Sprintf("%s:row:%d", revision, i), SchemaValid: true, Cells: []observe.Cell{
				{Field: "Name", Ref: fmt.Sprintf("%s:cell:%d:0", revision, i), Text: words.Draw(t, "cell"), Value: "x", Status: "present"}}})
		}
		d.Extraction = x
	}
	return d
}

func options(t *rapid.T) Options {
	o := Options{
		Version: rapid.SampledFrom([]contract.Version{contract.V170, contract.V180, contract.V190}).Draw(t, "version"),
		Budget:  rapid.OneOf(rapid.IntRange(1024, 2048), rapid.IntRange(1024, 20_000)).Draw(t, "budget"),
	}
	if rapid.Bool().Draw(t, "condition") {
		o.Condition = &condition.Result{Status: condition.NotObserved, Scope: condition.Scope, Observations: 21, ElapsedMS: 5000}
	}
	return o
}

// PROJ-01, PROJ-02, EXTR-10, TEXT-07, SMALL-01: for any observation and any
// budget from 1,024 bytes on the answer fits, is valid JSON with the exact
// revision, has whole records in order, and its counts add up.
func TestWindowProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, o := everything(t), options(t)
		v, _, err := Project(accept(t, d), o)
		if err != nil {
			t.Fatal(err)
		}
		b := encode(t, v)
		if len(b) > o.Budget || !json.Valid(b) || !utf8.Valid(b) {
			t.Fatalf("%d bytes in a budget of %d: %s", len(b), o.Budget, b)
		}
		if v.omitted {
			t.Fatalf("nothing at all fits into %d bytes", o.Budget)
		}
		d = forVersion(d, o.Version)
		if v.Revision != revision || v.Trust != Trust || v.Condition != o.Condition {
			t.Fatalf("%s", b)
		}
		if v.OmittedElements != len(d.Elements)-len(v.Elements) || v.OmittedRegions != len(d.Regions)-len(v.Regions) || v.OmittedText != len(d.Text)-len(v.Text) || !strings.HasPrefix(d.Text, v.Text) {
			t.Fatalf("%d of %d elements, %d omitted; %d of %d regions, %d omitted; %d bytes omitted", len(v.Elements), len(d.Elements), v.OmittedElements, len(v.Regions), len(d.Regions), v.OmittedRegions, v.OmittedText)
		}
		next := 0
		for _, e := range v.Elements {
			i := slices.IndexFunc(d.Elements[next:], func(x observe.Element) bool { return x.Ref == e.Ref })
			if i < 0 || d.Elements[next+i].Name != e.Name {
				t.Fatalf("%+v is changed or out of order", e)
			}
			if i > 0 && v.ExpansionBlocked == "" {
				t.Fatalf("%d controls were skipped silently", i)
			}
			next += i + 1
		}
		if (v.URL == "") != slices.Contains(v.OmittedFields, "url") || d.Title != v.Title && !slices.Contains(v.OmittedFields, "title") {
			t.Fatalf("what is left out is not named: %v", v.OmittedFields)
		}
		if x := d.Extraction; x != nil && !v.ExtractionOmitted {
			if v.Extraction.OmittedRows != len(x.Rows)-len(v.Extraction.Rows) || v.Extraction.ByteLimitReached != (len(v.Extraction.Rows) < len(x.Rows)) {
				t.Fatalf("%d rows of %d, %d omitted", len(v.Extraction.Rows), len(x.Rows), v.Extraction.OmittedRows)
			}
		}
		if len(d.Elements) > 0 && len(v.Elements) == 0 && v.ExpansionBlocked == "" && d.Extraction == nil {
			t.Fatal("a control fits and none is there")
		}
		if again, _, _ := Project(accept(t, d), o); string(encode(t, again)) != string(b) {
			t.Fatal("the projection is not deterministic")
		}
	})
}

// TOOL-10, TOOL-11: what 1.9.0 adds is in no answer of an older version.
func TestOlderVersionsHaveNothingNew(t *testing.T) {
	allowed := map[string]bool{}
	for _, name := range strings.Fields(`url title revision text elements content_trust readiness interruption coverage next_observe next_text text_coverage
		regions region_coverage focus extraction condition omitted_elements omitted_text_bytes omitted_regions omitted_fields expansion_blocked
		text_expansion_blocked extraction_omitted`) {
		allowed[name] = true
	}
	element := map[string]bool{"ref": true, "role": true, "name": true, "disabled": true, "checked": true}
	rapid.Check(t, func(t *rapid.T) {
		o := options(t)
		o.Version = rapid.SampledFrom([]contract.Version{contract.V170, contract.V180}).Draw(t, "old")
		v, _, err := Project(accept(t, everything(t)), o)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(encode(t, v), &m); err != nil {
			t.Fatal(err)
		}
		for name := range m {
			if !allowed[name] {
				t.Fatalf("%s has %s", o.Version, name)
			}
		}
		for _, e := range m["elements"].([]any) {
			e := e.(map[string]any)
			for name := range e {
				if !element[name] || len(e) != len(element) {
					t.Fatalf("an element has %v", e)
				}
			}
		}
		if next, ok := m["next_text"].(map[string]any); ok && next["region_ref"] == nil {
			t.Fatalf("the page's text is continued: %v", next)
		}
	})
}

// still is a page that does not change, read through windows as a browser does.
type still struct {
	controls []observe.Element // with a name only
	text     string
	window   int
	reads    int
	at       int // position of the newest window
}

func (s *still) read(next *NextObserve, text *NextText, focus bool) observe.Document {
	s.reads++
	rev := fmt.Sprintf("%032d", s.reads)
	at := 0
	switch {
	case next != nil && next.Cursor != "":
		fmt.Sscanf(next.Cursor, "%032d", &at)
	case next != nil:
		n, ok := observe.Number(next.After, fmt.Sprintf("%032d", s.reads-1))
		if !ok {
			panic("after is not of the newest observation: " + next.After)
		}
		at = s.at + n + 1
	}
	s.at = at
	d := observe.Document{URL: "https://wiki.example.org/", Title: "T", Revision: rev, Text: s.text, Coverage: &observe.Coverage{CandidateOffset: at}}
	end := min(at+s.window, len(s.controls))
	for i := at; i < end; i++ {
		d.Elements = append(d.Elements, observe.Element{Ref: fmt.Sprintf("%s:%d", rev, i-at), Role: "link", Name: s.controls[i].Name})
	}
	if end < len(s.controls) {
		d.Coverage.NextCursor = fmt.Sprintf("%032d", end)
	}
	from := 0
	if text != nil {
		from = text.TextOffset
	}
	d.Text = s.text[from:]
	if focus {
		d.Focus = &observe.Focus{RegionRef: rev + ":focus", TextOffset: from, TextTotalBytes: len(s.text), TextCursor: fmt.Sprintf("%032d", s.reads)}
	}
	return d
}

// EXP-09, EXP-10: following next_observe shows every control of an unchanged
// page exactly once and in order, under any budget; a control that no answer
// can hold is declared, and everything before it was shown.
func TestPagingCoversExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &still{window: rapid.SampledFrom([]int{1, 7, 256}).Draw(t, "window"), text: strings.Repeat("word ", rapid.IntRange(0, 500).Draw(t, "words"))}
		for i := range rapid.IntRange(0, 400).Draw(t, "controls") {
			long := rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 0, 80, 300, 1000}).Draw(t, "long")
			s.controls = append(s.controls, observe.Element{Name: fmt.Sprint(i, " ", strings.Repeat("ü", long))})
		}
		o := options(t)
		var names []string
		var next *NextObserve
		for range 2*len(s.controls) + 2 {
			v, _, err := Project(accept(t, s.read(next, nil, false)), o)
			if err != nil {
				t.Fatal(err)
			}
			if v.ExpansionBlocked != "" {
				if v.NextObserve != nil {
					t.Fatal("there is a way around a control that is blocked")
				}
				blockedAt := s.controls[len(names)]
				if cost := size(observe.Element{Ref: fmt.Sprintf("%032d:0", 1), Role: "link", Name: blockedAt.Name}); cost < o.Budget/4 {
					t.Fatalf("a control of %d bytes is called too large for %d", cost, o.Budget)
				}
				names = nil
				break
			}
			for _, e := range v.Elements {
				names = append(names, e.Name)
			}
			if next = v.NextObserve; next == nil {
				if len(names) != len(s.controls) {
					t.Fatalf("%d of %d controls were shown", len(names), len(s.controls))
				}
				break
			}
			if len(v.Elements) == 0 {
				t.Fatal("an answer shows nothing and goes on")
			}
		}
		for i, n := range names {
			if n != s.controls[i].Name {
				t.Fatalf("control %d is shown as %.40q", i, n)
			}
		}
	})
}

// FOC-03, SMALL-03: following next_text shows the text exactly, in a focused
// region in every version and of the page from 1.9.0 on.
func TestTextContinuesExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &still{window: 256, text: rapid.StringN(0, 3000, 12_000).Draw(t, "text")}
		for i := range rapid.IntRange(0, 40).Draw(t, "controls") {
			s.controls = append(s.controls, observe.Element{Name: fmt.Sprint(i)})
		}
		o := options(t)
		focus := o.Version != contract.V190 || rapid.Bool().Draw(t, "focus")
		var got strings.Builder
		var next *NextText
		for {
			if focus {
				o.Query = observe.Query{Region: &observe.RegionQuery{}}
			} else if next != nil {
				o.Query = observe.Query{Text: &observe.TextQuery{Offset: next.TextOffset}}
			}
			d := s.read(nil, next, focus)
			v, _, err := Project(accept(t, d), o)
			if err != nil || v.TextBlocked {
				t.Fatalf("%v, blocked %v", err, v.TextBlocked)
			}
			got.WriteString(v.Text)
			if next = v.NextText; next == nil {
				break
			}
			if next.TextOffset != got.Len() || next.Revision != d.Revision || focus != (next.RegionRef == d.Revision+":focus") || focus != (next.TextCursor != "") {
				t.Fatalf("after %d bytes the next request is %+v", got.Len(), next)
			}
		}
		if got.String() != s.text {
			t.Fatalf("%d bytes instead of %d", got.Len(), len(s.text))
		}
	})
}

// EXTR-11: the rows outrank controls, regions and prose.
func TestRowsFirst(t *testing.T) {
	d := desk(100, strings.Repeat("x", 5000))
	x := &observe.Extraction{Version: 1, Revision: "r1", Kind: "list", Status: "extracted", Scope: "main_document", RowLimit: 50, Fields: []observe.ExtractField{{Name: "A", Type: "string"}}}
	for i := range 50 {
		x.Rows = append(x.Rows, observe.Row{Ref: fmt.Sprintf("r1:row:%d", i), SchemaValid: true, Cells: []observe.Cell{{Field: "A", Ref: fmt.Sprintf("r1:cell:%d:0", i), Text: "some text", Value: "some text", Status: "present"}}})
	}
	d.Extraction = x
	v, _, err := Project(accept(t, d), Options{Version: contract.V180, Budget: 4096})
	if err != nil || len(v.Extraction.Rows) < 15 || len(v.Elements) > 1 || len(v.Text) > 200 {
		t.Errorf("%d rows, %d controls, %d bytes of text, %v", len(v.Extraction.Rows), len(v.Elements), len(v.Text), err)
	}
	if v.ExpansionBlocked != "" || v.NextObserve != nil && len(v.Elements) == 0 {
		t.Errorf("a control that rows displaced is called too large: %+v", v.Window)
	}
	// Rows that leave no room for a control leave no way around it either.
	d.Coverage = &observe.Coverage{NextCursor: strings.Repeat("c", 32)}
	d.Elements[0].Name = strings.Repeat("n", 900)
	displaced := 0
	for budget := 2049; budget < 6000; budget += 5 {
		v, _, err := Project(accept(t, d), Options{Version: contract.V180, Budget: budget})
		if err != nil {
			t.Fatal(err)
		}
		if len(v.Elements) == 0 && v.ExpansionBlocked == "" {
			displaced++
			if v.NextObserve != nil {
				t.Fatalf("in %d bytes no control is shown, and it goes on with %+v", budget, v.NextObserve)
			}
		}
	}
	if displaced == 0 {
		t.Error("no budget displaced the control")
	}
}

// SMALL-02: in the smallest budget a region can still be found.
func TestSmallBudgetKeepsARegion(t *testing.T) {
	d := desk(40, strings.Repeat("word ", 2000))
	d.RegionCoverage = &observe.RegionCoverage{Version: 1, Scope: "main_document", ScannedNodes: 77}
	for i := range 5 {
		d.Regions = append(d.Regions, observe.Region{Ref: fmt.Sprintf("r1:region:%d", i), Kind: observe.RegionMain, Text: strings.Repeat("ü", 300)})
	}
	v, _, err := Project(accept(t, d), Options{Version: contract.V170, Budget: 1024})
	if err != nil || len(v.Regions) == 0 || len(v.Regions[0].Text) > smallLabel || !v.Regions[0].TextTruncated || len(v.Elements) == 0 || v.RegionCoverage.ScannedNodes != 0 {
		t.Errorf("%s, %v", encode(t, v), err)
	}
}

// PROJ-02: a revision is never shortened; when it does not fit, nothing that
// could be acted on is shown.
func TestWholeOmission(t *testing.T) {
	d := desk(3, "text")
	v, shown, err := Project(accept(t, d), Options{Version: contract.V190, Budget: 100})
	if err != nil || shown.Revision() != "" {
		t.Fatal(err)
	}
	if got := string(encode(t, v)); got != `{"observation_omitted":true,"reason":"inline_budget_too_small","elements":[]}` {
		t.Error(got)
	}
}

// The default answer is at most 4,000 tokens of four characters on any page,
// and a select with many options does not crowd out the page.
func TestDefaultBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := everything(t)
		if v, _, err := Project(accept(t, d), Options{Version: contract.V190}); err != nil || len(encode(t, v)) > 16_000 {
			t.Fatalf("%v, %d bytes", err, len(encode(t, v)))
		}
	})
	d := desk(2, "text")
	s := observe.State{}
	for i := range observe.MaxOptions {
		s.Options = append(s.Options, observe.Option{Label: strings.Repeat("o", 250), Selected: i == 60})
	}
	d.States = map[string]observe.State{"r1:0": s}
	v, _, err := Project(accept(t, d), Options{Version: contract.V190, Budget: 4096})
	if err != nil || len(v.Elements) != 2 {
		t.Fatalf("%d elements, %v", len(v.Elements), err)
	}
	got := v.Elements[0]
	if got.MoreOptions+len(got.Options) != observe.MaxOptions || !slices.ContainsFunc(got.Options, func(o observe.Option) bool { return o.Selected }) || size(got) > 1024 {
		t.Errorf("%d options, %d more, %d bytes", len(got.Options), got.MoreOptions, size(got))
	}
}

func BenchmarkWindow(b *testing.B) {
	d := desk(256, strings.Repeat("Some words of a page. ", 4000))
	d.Coverage = &observe.Coverage{}
	raw := accept(b, d)
	for b.Loop() {
		if _, _, err := Project(raw, Options{Version: contract.V190}); err != nil {
			b.Fatal(err)
		}
	}
}
