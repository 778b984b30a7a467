package consequence

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode"
)

// words holds one vocabulary per language; words/README.md describes the form.
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
	inside mask // any part of a word
}

// find returns what is in a text that fold made.
func (t *terms) find(text string) mask {
	var hits mask
	for i := range len(text) {
		if text[i] == ' ' || text[i]&0xC0 == 0x80 {
			continue
		}
		begins := i == 0 || text[i-1] == ' '
		at := int32(0)
		for j, r := range text[i:] {
			to, ok := t.next[edge{at, r}]
			if !ok {
				break
			}
			at = to
			n := &t.nodes[at]
			hits |= n.inside
			if begins {
				hits |= n.prefix
				if n.exact != 0 && ends(text[i+j:], r) {
					hits |= n.exact
				}
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

// load reads the embedded vocabularies. They are part of the program, so a
// mistake in them ends it; a test reads them first.
func load() *terms {
	t, err := read(words)
	if err != nil {
		panic(err)
	}
	return t
}

func read(files fs.FS) (*terms, error) {
	t := &terms{next: map[edge]int32{}, nodes: make([]node, 1), routine: map[string]bool{}}
	names, err := fs.Glob(files, "words/*.txt")
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("consequence: no vocabulary: %w", err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("consequence: %w", err)
		}
		if err := t.language(string(text)); err != nil {
			return nil, fmt.Errorf("consequence: %s: %w", path.Base(name), err)
		}
	}
	return t, nil
}

// language adds one vocabulary: lines of a kind, a colon and terms.
func (t *terms) language(text string) error {
	var before []string
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
			m := bit(Consequence(kind))
			switch {
			case fold(term) == "":
				return fmt.Errorf("line %d has an empty term", n+1)
			case kind == "inflect" && term == "english":
				english = true
			case kind == "before":
				before = append(before, term)
			case kind == "routine":
				t.routine[fold(term)] = true
			case kind == "segment":
				t.add(term, segment, english, before)
			case m != 0:
				t.add(term, m, english, before)
			default:
				return fmt.Errorf("line %d: there is no %q", n+1, kind)
			}
		}
	}
	return nil
}

// add puts every form of a term into the tree.
func (t *terms) add(term string, m mask, english bool, before []string) {
	bare := strings.Trim(term, "*")
	forms := []string{bare}
	if english {
		forms = inflected(bare)
	}
	for _, b := range before {
		forms = append(forms, b+bare)
	}
	for _, f := range forms {
		plain := fold(f)
		for _, look := range []string{plain, mapped(plain, false), mapped(plain, true)} {
			// A word of another script keeps a letter of it, or it would be
			// some Latin word.
			if look != plain && latin(look) && !latin(plain) {
				continue
			}
			n := &t.nodes[t.node(look)]
			switch {
			case strings.HasPrefix(term, "*"):
				n.inside |= m
			case strings.HasSuffix(term, "*"):
				n.prefix |= m
			default:
				n.exact |= m
			}
		}
	}
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
