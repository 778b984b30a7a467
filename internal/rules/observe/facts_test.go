package observe

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
)

// FACT-03, FACT-05, CAPT-01: facts out of bounds are no facts, and the whole
// observation is refused.
func TestFactsAreBounded(t *testing.T) {
	long := func(n int) string { return strings.Repeat("ü", n) }
	whole := Facts{FieldKind: FieldNone, Text: long(MaxLabel), Context: long(MaxContext), Labels: map[Source]string{},
		Link: &Target{SameOrigin: true, Segment: long(MaxSegment)}, Form: Opaque(), Download: true, Cut: true}
	for _, s := range Sources() {
		whole.Labels[s] = long(MaxLabel)
	}
	with := func(change func(*Facts)) Document {
		d := good()
		f := whole.cloned()
		change(&f)
		d.Facts["r1:0"] = f
		return d
	}
	if _, err := Accept(with(func(*Facts) {}), wiki); err != nil {
		t.Errorf("facts at every bound: %v", err)
	}
	for what, change := range map[string]func(*Facts){
		"a long label":         func(f *Facts) { f.Labels[Label] = long(MaxLabel + 1) },
		"a label of no source": func(f *Facts) { f.Labels["href"] = "x" },
		"a label that no text is": func(f *Facts) {
			f.Labels[Tooltip] = "\xff"
		},
		"a long text":          func(f *Facts) { f.Text = long(MaxLabel + 1) },
		"a long dialog name":   func(f *Facts) { f.Context = long(MaxContext + 1) },
		"a long link segment":  func(f *Facts) { f.Link.Segment = long(MaxSegment + 1) },
		"a long form segment":  func(f *Facts) { f.Form.Segment = long(MaxSegment + 1) },
		"a field of no kind":   func(f *Facts) { f.FieldKind = "" },
		"a field of new kinds": func(f *Facts) { f.FieldKind = "colour" },
	} {
		if _, err := Accept(with(change), wiki); !fault.Is(err, fault.OutputInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// CLS-02: every source counts, the name first, in the same order every time.
func TestLabelTexts(t *testing.T) {
	f := Facts{Text: "b", Labels: map[Source]string{VisibleText: "e", AriaLabel: "c", Label: "d"}}
	if got := f.LabelTexts("a"); !slices.Equal(got, []string{"a", "b", "c", "d", "e"}) {
		t.Errorf("%q", got)
	}
	if got := (Facts{}).LabelTexts(""); !slices.Equal(got, []string{""}) {
		t.Errorf("%q", got)
	}
}

// FACT-05: a target says nothing of its address, and what is not known of one
// is on no origin and sensitive.
func TestTargets(t *testing.T) {
	if o := Opaque(); o.SameOrigin || !o.Sensitive || o.Segment != "" {
		t.Errorf("%+v", o)
	}
	body, err := json.Marshal(Facts{FieldKind: FieldNone})
	if err != nil || string(body) != `{"field_kind":"none"}` {
		t.Errorf("facts with nothing to say are %s, %v", body, err)
	}
}

// What a reader of an observation does to its facts is not seen by another.
func TestFactsAreCopied(t *testing.T) {
	d := good()
	d.Facts["r1:0"] = Facts{FieldKind: FieldNone, Labels: map[Source]string{Label: "x"}, Link: &Target{SameOrigin: true}, Form: &Target{}}
	raw, err := Accept(d, wiki)
	if err != nil {
		t.Fatal(err)
	}
	_, f, _ := raw.Find("r1:0")
	mine := raw.Document().Facts["r1:0"]
	for _, other := range []Facts{d.Facts["r1:0"], mine} {
		other.Labels[Label], other.Link.Sensitive, other.Form.Sensitive = "y", true, true
	}
	if _, again, _ := raw.Find("r1:0"); again.Labels[Label] != "x" || again.Link.Sensitive || again.Form.Sensitive || f.Labels[Label] != "x" {
		t.Errorf("%+v", again)
	}
}
