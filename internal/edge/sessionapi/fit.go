package sessionapi

import (
	"bytes"
	"encoding/json"
	"maps"
	"unicode/utf8"

	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// maxFacts bounds the facts of one observation, in bytes of JSON (section 2.1).
const maxFacts = 64 << 10

// fit encodes an observation in at most limit bytes. Facts go first, then
// elements from the end, then text; what was left out is marked.
func fit(d observe.Document, limit int) ([]byte, error) {
	d, err := cutFacts(d)
	if err != nil {
		return nil, err
	}
	body, err := encode(d)
	if err != nil || len(body) <= limit {
		return body, err
	}
	over := len(body) - limit
	d.MoreElements = true
	for over > 0 && len(d.Elements) > 0 {
		last := d.Elements[len(d.Elements)-1]
		b, err := encode(last)
		if err != nil {
			return nil, err
		}
		over -= len(b)
		delete(d.Facts, last.Ref)
		d.Elements = d.Elements[:len(d.Elements)-1]
	}
	for {
		if body, err = encode(d); err != nil || len(body) <= limit {
			return body, err
		}
		d.Text, d.TextTruncated = halve(d.Text), true
	}
}

// cutFacts keeps the facts of the first elements whole and drops the others.
// The map is new: the caller's is not changed.
func cutFacts(d observe.Document) (observe.Document, error) {
	whole, err := encode(d.Facts)
	if err != nil {
		return d, err
	}
	if len(whole) <= maxFacts {
		d.Facts = maps.Clone(d.Facts)
		return d, nil
	}
	kept, size := make(map[string]observe.Facts), 0
	for _, e := range d.Elements {
		f, ok := d.Facts[e.Ref]
		if !ok {
			continue
		}
		b, err := encode(f)
		if err != nil {
			return d, err
		}
		if size += len(b) + len(e.Ref) + 4; size > maxFacts {
			break
		}
		kept[e.Ref] = f
	}
	d.Facts = kept
	return d, nil
}

func halve(s string) string {
	n := len(s) / 2
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// encode is JSON without HTML escapes, which would triple a page of markup.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}
