package pipe

// maxParts is how many values the JSON of an observation has at most; one at
// every bound has about 80,000, most of them options.
const maxParts = 150_000

// parts counts the values in the JSON, at least: every one stands behind an
// opening bracket, a comma or nothing. A few bytes of it can stand for a large
// value, so an enemy's is counted before it is decoded.
func parts(body []byte) (n int) {
	quoted := false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == '[' || c == '{'):
			n++
		}
	}
	return n
}
