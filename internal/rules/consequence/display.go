package consequence

import (
	"slices"
	"strings"
)

// The controls that change the direction of text, and those that end it.
const (
	lre, rle, pdf, lro, rlo = 0x202A, 0x202B, 0x202C, 0x202D, 0x202E
	lri, rli, fsi, pdi      = 0x2066, 0x2067, 0x2068, 0x2069

	maxDepth = 125 // of the Unicode bidirectional algorithm; deeper ones have no effect
)

// displayed returns the text in the order in which right-to-left overrides show
// it. A run lasts until its own closing control or the end of the paragraph;
// what another control opens inside keeps its order.
func displayed(text string) string {
	if !strings.ContainsRune(text, rlo) {
		return text
	}
	v := view{out: make([]rune, 0, len(text))}
	for _, r := range text {
		switch r {
		case lre, rle, lro, rlo, lri, rli, fsi:
			v.open(r == rlo, r >= lri)
		case pdf:
			v.close(false)
		case pdi:
			v.close(true)
		case '\n', '\r', 0x1C, 0x1D, 0x1E, 0x85, 0x2029:
			v.end()
			v.out = append(v.out, r)
		default:
			v.out = append(v.out, r)
		}
	}
	v.end()
	return string(v.out)
}

// view is a text on its way to the screen.
type view struct {
	out    []rune
	levels []level // the changes of direction that are open
	deeper int     // those beyond maxDepth
}

type level struct {
	start    int // in out
	reversed bool
	isolate  bool
}

func (v *view) open(reversed, isolate bool) {
	if len(v.levels) == maxDepth {
		v.deeper++
		return
	}
	v.levels = append(v.levels, level{len(v.out), reversed, isolate})
}

// close ends the innermost level; an isolate ends with all that is open in it,
// and only by its own control.
func (v *view) close(isolate bool) {
	switch {
	case v.deeper > 0:
		v.deeper--
	case isolate:
		if slices.ContainsFunc(v.levels, func(l level) bool { return l.isolate }) {
			for !v.pop() {
			}
		}
	case len(v.levels) > 0 && !v.levels[len(v.levels)-1].isolate:
		v.pop()
	}
}

func (v *view) end() {
	for len(v.levels) > 0 {
		v.pop()
	}
	v.deeper = 0
}

// pop ends one level and reports whether it was an isolate. A stretch is turned
// around where its direction differs from that around it, which is turned as a
// whole later.
func (v *view) pop() bool {
	last := len(v.levels) - 1
	l := v.levels[last]
	v.levels = v.levels[:last]
	if around := last > 0 && v.levels[last-1].reversed; l.reversed != around {
		slices.Reverse(v.out[l.start:])
	}
	return l.isolate
}
