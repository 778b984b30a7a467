package consequence

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// expectation is one row of the suite that every classifier must pass.
type expectation struct {
	rule string // what it is about; a broken classifier names the rule it breaks
	s    Subject
	want Consequence
}

func click(labels ...string) Subject {
	return Subject{Act: "click", Role: "button", Labels: labels, Field: observe.FieldNone}
}

func navigate(path string) Subject {
	return Subject{Act: "navigate", Field: observe.FieldNone, Segments: strings.Split(strings.TrimPrefix(path, "/"), "/")}
}

// suite is every table of these tests as one list.
func suite() []expectation {
	var all []expectation
	for _, part := range [][]expectation{
		englishRows(), lookRows(), writingRows(), languageRows(), kindRows(), sourceRows(), routineRows(), segmentRows(),
	} {
		all = append(all, part...)
	}
	return all
}

// passes reports whether the classifier gets every row of a rule right.
func passes(rows []expectation, rule string, classify func(Subject) Consequence) bool {
	return !slices.ContainsFunc(rows, func(e expectation) bool { return e.rule == rule && classify(e.s) != e.want })
}

// CLS-01, CLS-02, CLS-04, CLS-05, CLS-07, and section 2.6.
func TestSuite(t *testing.T) {
	for _, e := range suite() {
		if got := Classify(e.s); got != e.want {
			t.Errorf("%s: %s, want %s: %.200s", e.rule, got, e.want, fmt.Sprintf("%+v", e.s))
		}
	}
}

// CLS-01: the set is closed, and what is not in it is gated.
func TestClosedSet(t *testing.T) {
	named := 0
	for _, c := range All() {
		if c.Named() {
			named++
		}
	}
	if len(All()) != 12 || named != 10 || Routine.Named() || Unknown.Named() {
		t.Errorf("%d consequences, %d named", len(All()), named)
	}
	if !Consequence("").Named() || !Consequence("harmless").Named() {
		t.Error("a value outside the set is not gated")
	}
}
