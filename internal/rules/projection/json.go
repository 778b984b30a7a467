package projection

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// compact is v in compact JSON without HTML escaping.
func compact(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes()[:b.Len()-1], nil // Encode ends with a line break
}

// size is the number of bytes of v in JSON.
func size(v any) int {
	b, err := compact(v)
	if err != nil {
		return 1 << 30 // cannot happen for these types; nothing would fit
	}
	return len(b)
}

// prefix is the longest prefix of whole characters whose JSON fits into room bytes.
func prefix(s string, room int) string {
	for i, r := range s {
		if room -= width(r); room < 0 {
			return s[:i]
		}
	}
	return s
}

// width is the number of bytes of r in JSON.
func width(r rune) int {
	switch {
	case r == '"', r == '\\', r == '\n', r == '\r', r == '\t', r == '\b', r == '\f':
		return 2
	case r < ' ', r == '\u2028', r == '\u2029':
		return 6
	}
	return utf8.RuneLen(r)
}

// escaped is the number of bytes of s in JSON, without its quotes.
func escaped(s string) int {
	n := 0
	for _, r := range s {
		n += width(r)
	}
	return n
}

// cutBytes is the longest prefix of whole characters of at most most bytes.
func cutBytes(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
