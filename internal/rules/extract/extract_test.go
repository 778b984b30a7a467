package extract

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

func page(t testing.TB) site.URL {
	t.Helper()
	u, err := site.ParseURL("https://wiki.example.org/list?page=2#top")
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// EXTR-09: JSON's grammar decides, in every locale, and nothing is rounded.
func TestValue(t *testing.T) {
	for _, c := range []struct {
		kind, text string
		want       any
		status     string
	}{
		{"string", "1,5", "1,5", Present}, {"string", " ", " ", Present},
		{"integer", "0", int64(0), Present}, {"integer", "-0", int64(0), Present}, {"integer", "9007199254740991", int64(1<<53 - 1), Present},
		{"integer", "-9007199254740991", int64(-(1<<53 - 1)), Present}, {"integer", "9007199254740992", nil, Invalid}, {"integer", "-9007199254740992", nil, Invalid},
		{"integer", "1.0", nil, Invalid}, {"integer", "1e3", nil, Invalid}, {"integer", "01", nil, Invalid}, {"integer", "+1", nil, Invalid}, {"integer", "1 000", nil, Invalid},
		{"integer", "1,000", nil, Invalid}, {"integer", "0x10", nil, Invalid}, {"integer", "1_000", nil, Invalid}, {"integer", "٣", nil, Invalid}, {"integer", " 1", nil, Invalid},
		{"integer", "99999999999999999999", nil, Invalid}, {"integer", "--1", nil, Invalid}, {"integer", "1\n", nil, Invalid},
		{"number", "1.5", 1.5, Present}, {"number", "-2.5e-3", -0.0025, Present}, {"number", "3", 3.0, Present}, {"number", "1E2", 100.0, Present},
		{"number", "1e400", nil, Invalid}, {"number", "1e16", nil, Invalid}, {"number", "9007199254740992", nil, Invalid}, {"number", "NaN", nil, Invalid}, {"number", "Infinity", nil, Invalid},
		{"number", ".5", nil, Invalid}, {"number", "5.", nil, Invalid}, {"number", "1,5", nil, Invalid}, {"number", "$3", nil, Invalid}, {"number", "3 %", nil, Invalid}, {"number", "0x1p4", nil, Invalid},
		{"boolean", "true", true, Present}, {"boolean", "false", false, Present}, {"boolean", "True", nil, Invalid}, {"boolean", "1", nil, Invalid}, {"boolean", "yes", nil, Invalid},
		{"other", "x", nil, Invalid},
	} {
		got, status := value(Text{Text: c.text}, c.kind)
		if !reflect.DeepEqual(got, c.want) || status != c.status {
			t.Errorf("%s %q = %v %s, want %v %s", c.kind, c.text, got, status, c.want, c.status)
		}
		if v, status := value(Text{Text: c.text, Truncated: true}, c.kind); v != nil || status != Truncated {
			t.Errorf("a truncated %q has the value %v (%s)", c.text, v, status)
		}
	}
	if v, _ := value(Text{Text: "-0"}, "number"); math.Signbit(v.(float64)) {
		t.Error("a negative zero")
	}
}

func query(kind string, fields ...observe.ExtractField) observe.ExtractQuery {
	return observe.ExtractQuery{Revision: "old", Kind: kind, Fields: fields, RowLimit: 50}
}

// EXTR-08: what makes a row invalid.
func TestRows(t *testing.T) {
	must, may := observe.ExtractField{Name: "a", Type: "integer", Required: true}, observe.ExtractField{Name: "b", Column: 3, Type: "string"}
	for _, c := range []struct {
		cells  []*Text
		status [2]string
		valid  bool
	}{
		{[]*Text{{Text: "1"}, {Text: "x"}}, [2]string{Present, Present}, true},
		{[]*Text{{Text: "1"}, nil}, [2]string{Present, Missing}, true},
		{[]*Text{{Text: "1"}, {}}, [2]string{Present, Missing}, true},
		{[]*Text{{Text: "1"}}, [2]string{Present, Missing}, true},
		{[]*Text{nil, {Text: "x"}}, [2]string{Missing, Present}, false},
		{[]*Text{{Text: "one"}, {Text: "x"}}, [2]string{Invalid, Present}, false},
		{[]*Text{{Text: "1"}, {Text: "x", Truncated: true}}, [2]string{Present, Truncated}, false},
		{nil, [2]string{Missing, Missing}, false},
	} {
		x := Build("r", page(t), query("table", must, may), Found{Status: Extracted, Rows: [][]*Text{c.cells}})
		r := x.Rows[0]
		if r.SchemaValid != c.valid || r.Cells[0].Status != c.status[0] || r.Cells[1].Status != c.status[1] {
			t.Errorf("%+v", r)
		}
		if r.Cells[1].Ref != "r:cell:0:3" || r.Cells[1].Field != "b" || r.Cells[1].Column != 3 {
			t.Errorf("%+v", r.Cells[1])
		}
	}
	for _, status := range []string{NotFound, Unsupported} {
		x := Build("r", page(t), query("table", must), Found{Status: status, Rows: [][]*Text{{{Text: "1"}}}})
		if len(x.Rows) != 0 || x.Rows == nil || (x.SourceRef == "") != (status == NotFound) {
			t.Errorf("%+v", x)
		}
	}
}

// EXTR-10: whole rows go first, and are counted.
func TestBounds(t *testing.T) {
	field := observe.ExtractField{Name: "a", Type: "string"}
	rows := make([][]*Text, 60)
	for i := range rows {
		rows[i] = []*Text{{Text: strings.Repeat("\u0001", 256)}} // six bytes each in JSON
	}
	x := Build("r", page(t), query("list", field), Found{Status: Extracted, Rows: rows, OmittedRows: 5})
	body, err := json.Marshal(x)
	if err != nil || len(body) > MaxBytes || !x.ByteLimitReached || len(x.Rows)+x.OmittedRows != 65 || len(x.Rows) < 15 {
		t.Errorf("%d bytes, %d rows, %d omitted, %v", len(body), len(x.Rows), x.OmittedRows, err)
	}
	for i := range rows {
		rows[i] = []*Text{{Text: "x"}}
	}
	if x := Build("r", page(t), query("list", field), Found{Status: Extracted, Rows: rows}); len(x.Rows) != 50 || x.OmittedRows != 10 || x.ByteLimitReached {
		t.Errorf("%d rows, %d omitted", len(x.Rows), x.OmittedRows)
	}
}

// ART-05: only such a link is evidence.
func TestEvidence(t *testing.T) {
	for link, want := range map[string]bool{
		"https://wiki.example.org/s/1": true, "https://wiki.example.org/@u/1": true, "https://WIKI.example.org:443/s": true,
		"https://wiki.example.org/s?": false, "https://wiki.example.org/s#": false, "https://wiki.example.org/s?a=1": false, "https://wiki.example.org/s#a": false,
		"http://wiki.example.org/s": false, "https://other.example.org/s": false, "https://wiki.example.org.evil.example/s": false,
		"https://u@wiki.example.org/s": false, "https://u:p@wiki.example.org/s": false, "https://wiki.example.org:8443/s": false, "javascript:1": false, "": false,
	} {
		x := Build("r", page(t), query("articles", observe.ExtractField{Name: "l", Column: 1, Type: "string"}), Found{Status: Extracted, Rows: [][]*Text{{{Text: link}}}})
		if got := x.Rows[0].Cells[0].Status == Present; got != want || !got && x.Rows[0].Cells[0].Text != "" {
			t.Errorf("%q: %+v", link, x.Rows[0].Cells[0])
		}
	}
	x := Build("r", page(t), query("list", observe.ExtractField{Name: "l", Column: 1, Type: "string"}), Found{Status: Extracted, Rows: [][]*Text{{{Text: "any text"}}}})
	if x.Scope != "main_document" || x.Rows[0].Cells[0].Status != Present {
		t.Errorf("%+v", x)
	}
}

// Whatever texts a page has, the answer is one that the contract's own
// validation takes, within its size.
func FuzzBuild(f *testing.F) {
	f.Add("table", "string", "text", uint8(3), 1, true, false)
	f.Add("articles", "integer", "https://wiki.example.org/s", uint8(60), 15, false, true)
	f.Add("list", "number", "-0", uint8(50), 0, true, true)
	f.Fuzz(func(t *testing.T, kind, typ, text string, rows uint8, column int, required, truncated bool) {
		q := observe.ExtractQuery{Revision: "old", Kind: kind, Fields: []observe.ExtractField{{Name: "a", Column: column, Type: typ, Required: required}}, RowLimit: 50}
		if (observe.Query{Extract: &q}).Validate() != nil {
			return
		}
		if !utf8.ValidString(text) || utf8.RuneCountInString(text) > observe.MaxCellText {
			return
		}
		found := Found{Status: Extracted, Rows: make([][]*Text, rows)}
		for i := range found.Rows {
			found.Rows[i] = []*Text{{Text: text, Truncated: truncated}}
		}
		u := page(t)
		x := Build("r", u, q, found)
		origins, err := site.ParseOrigins([]string{u.Origin().String()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := observe.Accept(observe.Document{URL: u.String(), Revision: "r", Extraction: &x}, origins); err != nil {
			t.Errorf("%v: %+v", err, x)
		}
		body, err := json.Marshal(x)
		if err != nil || len(body) > MaxBytes || len(x.Rows)+x.OmittedRows != int(rows) {
			t.Errorf("%d bytes, %d rows and %d omitted of %d: %v", len(body), len(x.Rows), x.OmittedRows, rows, err)
		}
		var back observe.Extraction
		if err := json.Unmarshal(body, &back); err != nil {
			t.Error(err)
		}
		if _, err := observe.Accept(observe.Document{URL: u.String(), Revision: "r", Extraction: &back}, origins); err != nil {
			t.Errorf("after its way between programs: %v", err)
		}
	})
}
