package consequence

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// fold normalises a text: compatibility forms, no invisible characters, no
// case, no marks; what is left are letters and numbers in words with one space
// between. Words end where Han, kana or Hangul meet another script, since those
// are written without spaces.
func fold(s string) string {
	if isASCII(s) {
		return foldASCII(s)
	}
	s = norm.NFKC.String(strings.Map(unboxed, s))
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Cf, r), r == tatweel:
			return -1
		case unicode.IsControl(r):
			return ' '
		}
		return r
	}, s)
	s = norm.NFKD.String(cases.Fold().String(s))
	var b strings.Builder
	b.Grow(len(s))
	space, last := true, other
	for _, r := range s {
		switch {
		case unicode.IsMark(r):
		case unicode.IsLetter(r) || unicode.IsNumber(r):
			if w := writing(r); w != last {
				if !space {
					b.WriteByte(' ')
				}
				last = w
			}
			b.WriteRune(r)
			space = false
		case !space:
			b.WriteByte(' ')
			space = true
		}
	}
	// The only thing that composes without marks are Hangul syllables.
	return norm.NFC.String(strings.TrimSuffix(b.String(), " "))
}

// tatweel only makes an Arabic word longer.
const tatweel = 'ـ'

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func foldASCII(s string) string {
	b := make([]byte, 0, len(s))
	space := true
	for i := range len(s) {
		switch c := s[i]; {
		case 'A' <= c && c <= 'Z':
			b, space = append(b, c|0x20), false
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			b, space = append(b, c), false
		case !space:
			b, space = append(b, ' '), true
		}
	}
	if n := len(b); n > 0 && b[n-1] == ' ' {
		b = b[:n-1]
	}
	return string(b)
}

// Kinds of writing that matter to where a word ends.
const (
	other = iota
	eastAsian
	hangul
)

func writing(r rune) int {
	switch {
	case r < 0x1100:
		return other
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana), r == 'ー':
		return eastAsian
	case unicode.Is(unicode.Hangul, r):
		return hangul
	}
	return other
}

// unboxed returns the letter inside a boxed or circled one that compatibility
// forms leave alone, and c for the Greek lunate sigma, which they would turn
// into a sigma of another look.
func unboxed(r rune) rune {
	if r == 'ϲ' || r == 'Ϲ' {
		return 'c'
	}
	for _, first := range []rune{0x1F150, 0x1F170, 0x1F1E6} {
		if first <= r && r < first+26 {
			return 'a' + r - first
		}
	}
	return r
}

func hasCurrency(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return unicode.Is(unicode.Sc, r) }) >= 0
}

// covered are the scripts that some vocabulary is written in; Common holds what
// all scripts share.
var covered = []*unicode.RangeTable{
	unicode.Latin, unicode.Common, unicode.Inherited, unicode.Cyrillic, unicode.Arabic, unicode.Han,
	unicode.Hiragana, unicode.Katakana, unicode.Hangul,
}

// unreadable reports whether the text is not UTF-8 or has a letter of a script
// without a vocabulary.
func unreadable(text string) bool {
	if isASCII(text) {
		return false
	}
	return !utf8.ValidString(text) || strings.IndexFunc(text, func(r rune) bool {
		return unicode.IsLetter(r) && !unicode.In(r, covered...)
	}) >= 0
}

// decorated reports whether a text shows more than its words: a picture, a
// private character, or an order that is not the written one. Arrows and
// punctuation say nothing.
func decorated(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool {
		switch {
		case r < 0x80:
			return false
		case 0x2190 <= r && r <= 0x21FF, 0x2798 <= r && r <= 0x27AF:
			return false
		}
		return unicode.In(r, unicode.So, unicode.Co, unicode.Bidi_Control) || unboxed(r) != r
	}) >= 0
}
