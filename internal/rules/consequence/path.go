package consequence

import "strings"

const (
	maxPath  = 8192 // bytes of a path
	maxCodes = 4    // how often one may be percent-encoded
)

// SensitiveSegment reports whether one path segment, as it is in the address,
// names an area that no grant covers: it hits the vocabulary or names an
// administrative, authentication, pricing or messaging area. What cannot be
// read is sensitive.
func SensitiveSegment(segment string) bool { return standard.sensitive(segment) }

// SensitivePath reports whether any segment of the path is sensitive.
func SensitivePath(path string) bool {
	if len(path) > maxPath {
		return true
	}
	for s := range strings.SplitSeq(path, "/") {
		if SensitiveSegment(s) {
			return true
		}
	}
	return false
}

// WithinPrefix reports whether the path is the prefix or below it, on segment
// boundaries and case-sensitive. A path with a dot segment, also a
// percent-encoded one, is inside no prefix, and nothing is inside a prefix that
// has one or does not begin with a slash.
func WithinPrefix(path, prefix string) bool {
	if !strings.HasPrefix(prefix, "/") || !strings.HasPrefix(path, "/") || len(path) > maxPath || dotted(prefix) || dotted(path) {
		return false
	}
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(prefix, "/"))
	return ok && (rest == "" || rest[0] == '/')
}

// dotted reports whether some server may read a dot segment in the path.
func dotted(path string) bool {
	forms, ok := unescaped(path)
	if !ok {
		return true
	}
	for _, f := range forms {
		for _, s := range strings.FieldsFunc(f, func(r rune) bool { return r == '/' || r == '\\' }) {
			if name, _, _ := strings.Cut(s, ";"); name == "." || name == ".." {
				return true
			}
		}
	}
	return false
}

func (c *classifier) sensitive(seg string) bool {
	f := found{left: maxAll}
	c.segment(&f, seg)
	return f.sensitive || f.currency || f.hits != 0 || f.excess
}

// unescaped returns the text and what percent-decoding it makes of it, again
// and again, and whether that came to an end.
func unescaped(s string) ([]string, bool) {
	forms := []string{s}
	for range maxCodes {
		d := unescape(s)
		if d == s {
			return forms, true
		}
		forms = append(forms, d)
		s = d
	}
	return forms, false
}

// unescape decodes what is a percent-encoded byte and leaves the rest.
func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			hi, lo := digit(s[i+1]), digit(s[i+2])
			if hi >= 0 && lo >= 0 {
				b = append(b, byte(hi<<4|lo))
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

func digit(c byte) int { return strings.IndexByte("0123456789abcdef", lower(c)) }

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// humps separates the words of a name like addToCart.
func humps(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if i > 0 && 'a' <= s[i-1] && s[i-1] <= 'z' && 'A' <= s[i] && s[i] <= 'Z' {
			b.WriteByte(' ')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
