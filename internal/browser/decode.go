package browser

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Bounds of a session's parts.
const (
	MaxCookies = 4096
	MaxOrigins = 256
	MaxItems   = 10_000 // of one origin
)

var errMaterial = errors.New("browser: that is no session within bounds")

// DecodeMaterial reads what Encode wrote. A page that took its worker over may
// have written it instead, and a few bytes of JSON can stand for a large value:
// each part is read by itself, and one over its bound ends the reading.
func DecodeMaterial(b []byte) (Material, error) {
	var m Material
	if len(b) > MaxMaterial {
		return m, fmt.Errorf("browser: a session of %d bytes is over the limit of %d", len(b), MaxMaterial)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	err := members(d, map[string]func() error{
		"cookies": func() error { return list(d, MaxCookies, &m.Cookies, d.Decode) },
		"origins": func() error {
			return list(d, MaxOrigins, &m.Origins, func(v any) error {
				s := v.(*Storage)
				return members(d, map[string]func() error{
					"origin": func() error { return d.Decode(&s.Origin) },
					"items":  func() error { return list(d, MaxItems, &s.Items, d.Decode) },
				})
			})
		},
	})
	if err != nil {
		return Material{}, err
	}
	if _, err := d.Token(); err != io.EOF {
		return Material{}, errMaterial
	}
	return m, nil
}

// members reads an object that has each of the members at most once.
func members(d *json.Decoder, known map[string]func() error) error {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errMaterial
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return errMaterial
		}
		text, _ := name.(string)
		read := known[text]
		if read == nil {
			return errMaterial
		}
		delete(known, text)
		if err := read(); err != nil {
			return errMaterial // a cause could quote the session
		}
	}
	_, err := d.Token()
	return err
}

// list appends what an array of at most max parts has; null is an empty one.
func list[T any](d *json.Decoder, max int, to *[]T, read func(any) error) error {
	switch t, err := d.Token(); {
	case err != nil:
		return err
	case t == nil:
		return nil
	case t != json.Delim('['):
		return errMaterial
	}
	*to = []T{}
	for d.More() {
		if len(*to) == max {
			return errMaterial
		}
		var v T
		if err := read(&v); err != nil {
			return err
		}
		*to = append(*to, v)
	}
	_, err := d.Token()
	return err
}
