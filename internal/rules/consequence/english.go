package consequence

import "strings"

// inflected returns an English word in the forms its endings give it, and a
// phrase with its first word in those forms. Some are no words, which does no
// harm; irregular forms stand in the vocabulary.
func inflected(term string) []string {
	word, rest, phrase := strings.Cut(term, " ")
	if phrase {
		rest = " " + rest
	}
	stems := []string{word} // take every ending
	var out []string
	last := word[len(word)-1]
	switch {
	case last == 'e':
		out = append(out, word[:len(word)-1]+"ing")
	case last == 'y' && len(word) > 2 && !vowel(word[len(word)-2]):
		y := word[:len(word)-1]
		out = append(out, y+"ies", y+"ied", y+"ier", y+"iers")
	case len(word) > 2 && !vowel(last) && vowel(word[len(word)-2]) && !vowel(word[len(word)-3]):
		stems = append(stems, word+string(last))
	}
	for _, stem := range stems {
		for _, ending := range []string{"", "s", "es", "d", "ed", "ing", "r", "er", "ers"} {
			out = append(out, stem+ending)
		}
	}
	if last == 'e' {
		out = append(out, word+"rs")
	}
	for i := range out {
		out[i] += rest
	}
	return out
}

func vowel(c byte) bool { return strings.IndexByte("aeiou", c) >= 0 }
