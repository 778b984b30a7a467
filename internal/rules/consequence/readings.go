package consequence

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// readings returns the distinct normalised forms in which a person may read the
// text: as it is written and as it is displayed, and each of these with
// look-alikes taken for the Latin letters they resemble, with letters that are
// only set apart put together, and with numbers apart from letters (CLS-05).
func readings(text string) []string {
	var out []string
	add := func(s string) {
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	orders := []string{text}
	if d := displayed(text); d != text {
		orders = append(orders, d)
	}
	if t := tight(text); t != text {
		orders = append(orders, t)
	}
	for _, o := range orders {
		plain := fold(o)
		add(plain)
		first := mapped(plain, false)
		add(first)
		add(mapped(plain, true))
		add(together(plain))
		add(together(first))
		add(apart(plain))
	}
	return out
}

// tight takes out the narrow spaces: letters between them look like one word.
func tight(text string) string {
	if isASCII(text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if 0x2000 <= r && r <= 0x200A || r == 0x202F || r == 0x205F {
			return -1
		}
		return r
	}, text)
}

// together joins what is spelled out: three or more single letters in a row,
// or two East Asian characters.
func together(folded string) string {
	words := strings.Split(folded, " ")
	var b strings.Builder
	for i := 0; i < len(words); {
		j := i
		for j < len(words) && utf8.RuneCountInString(words[j]) == 1 {
			j++
		}
		r, _ := utf8.DecodeRuneInString(words[i])
		if n := j - i; n < 3 && (n < 2 || writing(r) == other) {
			j = i + 1
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		for _, w := range words[i:j] {
			b.WriteString(w)
		}
		i = j
	}
	return b.String()
}

// apart puts a space between letters and numbers: "eur100".
func apart(folded string) string {
	if strings.IndexFunc(folded, unicode.IsNumber) < 0 {
		return folded
	}
	var b strings.Builder
	last := ' '
	for _, r := range folded {
		if last != ' ' && r != ' ' && unicode.IsNumber(last) != unicode.IsNumber(r) {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
		last = r
	}
	return b.String()
}
