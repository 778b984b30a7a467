package consequence

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// words holds one vocabulary per language: lines of "kind: term, term", where the
// kind is a consequence, "routine" for labels that are routine as a whole, or
// "segment" for areas of a site that no grant covers. A term is a word or a
// phrase:
//
//	word    stands alone
//	word*   begins a word (inflection)
//	*word   ends a word (compounds)
//	*word*  stands anywhere in one (compounds, and writing without spaces)
//
// "before: a, b" names what may be written to the front of any word, and
// "inflect: english" adds the forms of inflected. Case, accents and marks make
// no difference.
//
//go:embed words/*.txt
var words embed.FS

// segment is the bit of what makes a path sensitive and is no consequence of
// its own.
const segment mask = 1 << 15

// terms are all vocabularies as one tree of characters. All are tried on every
// text: a page may mix languages, and may lie about its own.
type terms struct {
	next    map[edge]int32
	nodes   []node
	before  []string // what may be written to the front of a word
	routine map[string]bool
}

type edge struct {
	node int32
	r    rune
}

// node is where a term ends.
type node struct {
	exact  mask // a whole word, or phrase
	prefix mask // how a word begins
	suffix mask // how a word ends
	inside mask // any part of a word
}

// find returns what is in a text that fold made.
func (t *terms) find(text string) mask {
	var hits mask
	for i := range len(text) {
		switch {
		case text[i] == ' ' || text[i]&0xC0 == 0x80:
		case i > 0 && text[i-1] != ' ':
			hits |= t.walk(text[i:], false)
		default:
			hits |= t.walk(text[i:], true)
			for _, b := range t.before {
				if rest, ok := strings.CutPrefix(text[i:], b); ok {
					hits |= t.walk(rest, true)
				}
			}
		}
	}
	return hits
}

// walk returns the terms that the text begins with; whole says that a word
// begins there.
func (t *terms) walk(text string, whole bool) mask {
	var hits mask
	at := int32(0)
	for i, r := range text {
		to, ok := t.next[edge{at, r}]
		if !ok {
			break
		}
		at = to
		n := &t.nodes[at]
		hits |= n.inside
		if whole {
			hits |= n.prefix
		}
		if n.exact|n.suffix != 0 && ends(text[i:], r) {
			hits |= n.suffix
			if whole {
				hits |= n.exact
			}
		}
	}
	return hits
}

// ends reports whether a word ends after r, with which rest begins.
func ends(rest string, r rune) bool {
	n := len(string(r))
	return len(rest) <= n || rest[n] == ' '
}

// load reads the embedded vocabularies. They are part of the program, and a
// mistake in them ends it when it starts, as it ends the tests.
func load() *terms {
	t := newTerms()
	files, err := words.ReadDir("words")
	if err != nil {
		panic(fmt.Errorf("consequence: %w", err))
	}
	for _, f := range files {
		text, err := words.ReadFile("words/" + f.Name())
		if err == nil {
			err = t.language(string(text))
		}
		if err != nil {
			panic(fmt.Errorf("consequence: %s: %w", f.Name(), err))
		}
	}
	return t
}

func newTerms() *terms {
	return &terms{next: make(map[edge]int32, 1<<15), nodes: make([]node, 1, 1<<15), routine: map[string]bool{}}
}

// language adds one vocabulary.
func (t *terms) language(text string) error {
	english := false
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		kind, list, ok := strings.Cut(line, ":")
		if !ok {
			return fmt.Errorf("line %d has no kind", n+1)
		}
		for term := range strings.SplitSeq(list, ",") {
			term = strings.TrimSpace(term)
			text, m := fold(term), bit(Consequence(kind))
			switch {
			case text == "":
				return fmt.Errorf("line %d has an empty term", n+1)
			case kind == "inflect" && text == "english":
				english = true
			case kind == "before":
				t.before = append(t.before, text)
			case kind == "routine":
				t.routine[text] = true
			case kind == "segment":
				t.add(text, placeOf(term), segment)
			case m != 0 && english:
				for _, form := range inflected(text) {
					t.add(form, placeOf(term), m)
				}
			case m != 0:
				t.add(text, placeOf(term), m)
			default:
				return fmt.Errorf("line %d: there is no %q", n+1, kind)
			}
		}
	}
	return nil
}

// place is where in a word a term stands.
type place struct{ begins, ends bool }

// placeOf reads the asterisks: word* begins one, *word ends one.
func placeOf(term string) place {
	return place{begins: strings.HasSuffix(term, "*"), ends: strings.HasPrefix(term, "*")}
}

// add puts a folded term into the tree.
func (t *terms) add(text string, p place, m mask) {
	for _, look := range looksOf(text) {
		n := &t.nodes[t.node(look)]
		switch p {
		case place{begins: true, ends: true}:
			n.inside |= m
		case place{begins: true}:
			n.prefix |= m
		case place{ends: true}:
			n.suffix |= m
		default:
			n.exact |= m
		}
	}
}

// looksOf returns a folded term and how it reads with look-alikes taken for the
// letters they look like: a text with a few foreign letters reads alike.
func looksOf(plain string) []string {
	out := []string{plain}
	for _, look := range []string{mapped(plain, false), mapped(plain, true)} {
		// A word of another script keeps a letter of it, or it would be some
		// Latin word.
		if !slices.Contains(out, look) && (latin(plain) || !latin(look)) {
			out = append(out, look)
		}
	}
	return out
}

// node returns where the text ends in the tree.
func (t *terms) node(text string) int32 {
	at := int32(0)
	for _, r := range text {
		to, ok := t.next[edge{at, r}]
		if !ok {
			to = int32(len(t.nodes))
			t.nodes = append(t.nodes, node{})
			t.next[edge{at, r}] = to
		}
		at = to
	}
	return at
}

// latin reports whether all letters are Latin.
func latin(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r) }) < 0
}
