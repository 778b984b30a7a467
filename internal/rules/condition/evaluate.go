package condition

import (
	"strings"
	"time"

	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// Status of a condition over one observation. Absence is never evidence of
// absence: what is not seen is NotObserved.
type Status string

const (
	Satisfied   Status = "satisfied"
	NotObserved Status = "not_observed"
	Ambiguous   Status = "ambiguous" // more than one match, or success and failure at once
	Failed      Status = "failed"    // the evidence of failure, and none of success
)

// Final reports whether another look cannot change the answer.
func (s Status) Final() bool { return s == Satisfied || s == Failed }

// Scope of every result: what was looked at is the observation's window.
const Scope = "observation_window"

// Result is what an agent is told.
type Result struct {
	Status       Status `json:"status"`
	Scope        string `json:"scope"`
	Observations int    `json:"observations"` // 1 to 21
	ElapsedMS    int    `json:"elapsed_ms"`   // 0 to 5000
}

// Evaluate looks for the condition in the main document of one observation.
func (c *Condition) Evaluate(d observe.Document) Status {
	success := NotObserved
	switch {
	case d.Interruption != "":
		return NotObserved
	case c.Evidence != nil:
		success = c.Evidence.find(d)
	default:
		success = c.control(d)
	}
	if c.Failure == nil {
		return success
	}
	switch c.Failure.find(d) {
	case Satisfied:
		if success == NotObserved {
			return Failed
		}
		return Ambiguous
	case Ambiguous:
		return Ambiguous
	}
	return success
}

// control wants exactly one control of the role and name, in the wanted state
// (COND-05).
func (c *Condition) control(d observe.Document) Status {
	var found []observe.Element
	for _, e := range d.Elements {
		if e.Role == c.Role && e.Name == *c.Name && d.States[e.Ref].Frame == "" {
			found = append(found, e)
		}
	}
	if len(found) == 1 {
		e := found[0]
		if c.Disabled != nil && e.Disabled != *c.Disabled || c.Checked != nil && (e.Checked == nil || *e.Checked != *c.Checked) {
			return NotObserved
		}
	}
	return count(len(found))
}

func (e *Evidence) find(d observe.Document) Status {
	n := 0
	switch e.Kind {
	case Text:
		want := fold(e.Text)
		for _, line := range lines(d) {
			if line == want {
				n++
			}
		}
	case Region:
		want := fold(e.Text)
		for _, r := range d.Regions {
			if r.Kind == e.RegionKind && !r.TextTruncated && fold(r.Text) == want {
				n++
			}
		}
	case Location:
		if d.URL == e.URL {
			n = 1
		}
	case Row:
		if x := d.Extraction; x != nil && x.Status == "extracted" && x.Kind == e.Collection && x.Index == e.Index {
			for _, r := range x.Rows {
				if e.matches(r) {
					n++
				}
			}
		}
	}
	return count(n)
}

func count(matches int) Status {
	switch matches {
	case 0:
		return NotObserved
	case 1:
		return Satisfied
	}
	return Ambiguous
}

// lines are the complete rendered lines: where the text was cut, the line at
// the cut is left out.
func lines(d observe.Document) []string {
	all := strings.Split(d.Text, "\n")
	cut := d.TextTruncated
	if c := d.TextCoverage; c != nil {
		cut = cut || c.TextLimitReached || c.NodeLimitReached || c.OmittedTextBytes > 0
	}
	if f := d.Focus; f != nil {
		cut = cut || f.TextOffset+len(d.Text) < f.TextTotalBytes
		if f.TextOffset > 0 {
			all = all[1:]
		}
	}
	if cut && len(all) > 0 {
		all = all[:len(all)-1]
	}
	for i, l := range all {
		all[i] = fold(l)
	}
	return all
}

// matches reports whether a row that is valid has every wanted value.
func (e *Evidence) matches(r observe.Row) bool {
	if !r.SchemaValid || len(r.Cells) != len(e.Fields) {
		return false
	}
	for i, f := range e.Fields {
		if c := r.Cells[i]; c.Status != "present" || c.Field != f.Name || c.Column != f.Column || plain(c.Value) != f.Value {
			return false
		}
	}
	return true
}

// plain is the value as JSON would bring it.
func plain(v any) any {
	switch n := v.(type) {
	case int:
		return float64(n)
	case int64:
		return float64(n)
	}
	return v
}

// Bounds of looking again (COND-02, EVID-04).
const (
	MaxReads = 21 // with the first
	Spacing  = 250 * time.Millisecond
)

// Again reports whether another look may begin now: elapsed of the timeout are
// gone, and the last look took last (COND-03). The estimate only ever stops;
// it never extends the deadline.
func (c *Condition) Again(elapsed, last time.Duration, reads int) bool {
	left := time.Duration(c.TimeoutMS)*time.Millisecond - elapsed
	return reads < MaxReads && left > 0 && left >= last
}
