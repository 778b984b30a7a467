package projection

import (
	"reflect"
	"strings"

	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// change is what an agent knows already of a new observation, because it saw
// the same in an older one. A nil change is nothing.
type change struct {
	elements map[string]bool // refs of the new observation
	regions  map[string]bool
	text     int   // bytes from the beginning that it has read
	gone     []int // numbers that it saw and that are not there any more
}

func (c *change) has(ref string) bool       { return c != nil && c.elements[ref] }
func (c *change) hasRegion(ref string) bool { return c != nil && c.regions[ref] }

// since compares the observation with what was shown of the revision that the
// call names. It returns nil when they cannot be compared: the revision is not
// the newest that was shown, or either is not of the page from its beginning.
// An element is the same if its number, and everything shown of it, is the
// same; only what was shown counts as known, so nothing is ever skipped.
func since(d observe.Document, o Options) *change {
	old := o.Seen
	if old.Revision() != o.Since || !fromTheStart(old.document, old.query) || !fromTheStart(d, o.Query) || old.document.URL != d.URL {
		return nil
	}
	c := &change{elements: map[string]bool{}, regions: map[string]bool{}}
	known := map[int]observe.Element{}
	for _, e := range old.document.Elements {
		if n, ok := observe.Number(e.Ref, o.Since); ok && old.elements[e.Ref] {
			known[n] = e
		}
	}
	there := map[int]bool{}
	for _, e := range d.Elements {
		n, ok := observe.Number(e.Ref, d.Revision)
		if !ok {
			continue
		}
		there[n] = true
		if before, ok := known[n]; ok && same(before, e) && reflect.DeepEqual(old.document.States[before.Ref], d.States[e.Ref]) {
			c.elements[e.Ref] = true
		}
	}
	for _, e := range old.document.Elements {
		if n, ok := observe.Number(e.Ref, o.Since); ok && old.elements[e.Ref] && !there[n] {
			c.gone = append(c.gone, n)
		}
	}
	for i, r := range d.Regions {
		if i < len(old.document.Regions) {
			b := old.document.Regions[i]
			if old.regions[b.Ref] && b.Kind == r.Kind && b.Text == r.Text && b.TextTruncated == r.TextTruncated {
				c.regions[r.Ref] = true
			}
		}
	}
	c.text = common(old.document.Text, d.Text, old.text)
	return c
}

func fromTheStart(d observe.Document, q observe.Query) bool {
	return q == observe.Query{} && d.Interruption == "" && d.Focus == nil && d.Extraction == nil && (d.Coverage == nil || d.Coverage.CandidateOffset == 0)
}

func same(a, b observe.Element) bool {
	return a.Role == b.Role && a.Name == b.Name && a.Disabled == b.Disabled && reflect.DeepEqual(a.Checked, b.Checked)
}

// common is how many bytes of the texts agree from the beginning, of the read
// first bytes; where they part, the line begins again.
func common(before, now string, read int) int {
	read = min(read, len(before))
	n := 0
	for n < read && n < len(now) && before[n] == now[n] {
		n++
	}
	if n == read && (n < len(before) || len(before) == len(now)) {
		return n // all that was read stands
	}
	return strings.LastIndexByte(now[:n], '\n') + 1
}
