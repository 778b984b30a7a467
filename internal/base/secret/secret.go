// Package secret holds values that must never reach a log, an error, a record
// or a page by accident (STORE-02, LHTTP-05). Printing or encoding one yields
// a mask; reading one takes a call that names it.
package secret

import (
	"crypto/subtle"
	"fmt"
	"log/slog"
)

const mask = "[secret]"

// Text is a secret string. Compare it with Equal, not with ==.
type Text struct {
	// A pointer, because fmt prints the unexported fields of a surrounding
	// struct without asking Format; of a pointer it shows only the address.
	value *string
}

// NewText wraps a secret string.
func NewText(value string) Text { return Text{value: &value} }

// Reveal returns the secret. Each call is a place to review.
func (t Text) Reveal() string {
	if t.value == nil {
		return ""
	}
	return *t.value
}

// Empty reports whether there is no secret.
func (t Text) Empty() bool { return t.Reveal() == "" }

// Equal compares in constant time. An empty secret equals nothing, so that a
// missing credential opens nothing.
func (t Text) Equal(other string) bool {
	return !t.Empty() && subtle.ConstantTimeCompare([]byte(t.Reveal()), []byte(other)) == 1
}

func (Text) String() string               { return mask }
func (Text) GoString() string             { return mask }
func (Text) Format(f fmt.State, _ rune)   { fmt.Fprint(f, mask) }
func (Text) MarshalText() ([]byte, error) { return []byte(mask), nil }
func (Text) LogValue() slog.Value         { return slog.StringValue(mask) }

// Bytes is a secret byte string.
type Bytes struct {
	// Two pointers, because fmt shows what a pointer to a slice points to when
	// the verb does not fit.
	value **[]byte
}

// NewBytes wraps secret bytes; it keeps the slice, so the caller must not reuse it.
func NewBytes(value []byte) Bytes { return Bytes{value: new(&value)} }

// Reveal returns the secret bytes, not a copy. Each call is a place to review.
func (b Bytes) Reveal() []byte {
	if b.value == nil {
		return nil
	}
	return **b.value
}

// Len is the number of secret bytes.
func (b Bytes) Len() int { return len(b.Reveal()) }

// Wipe overwrites the bytes with zeros.
func (b Bytes) Wipe() { clear(b.Reveal()) }

func (Bytes) String() string               { return mask }
func (Bytes) GoString() string             { return mask }
func (Bytes) Format(f fmt.State, _ rune)   { fmt.Fprint(f, mask) }
func (Bytes) MarshalText() ([]byte, error) { return []byte(mask), nil }
func (Bytes) LogValue() slog.Value         { return slog.StringValue(mask) }
