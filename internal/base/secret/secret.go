// Package secret holds values that must never reach a log, an error, a record
// or a page by accident. Printing or encoding one yields a mask; reading one
// takes a call that names it.
package secret

import (
	"crypto/subtle"
	"fmt"
	"log/slog"
)

const mask = "[secret]"

// Text is a secret string.
type Text struct{ value string }

// NewText wraps a secret string.
func NewText(value string) Text { return Text{value: value} }

// Reveal returns the secret. Each call is a place to review.
func (t Text) Reveal() string { return t.value }

// Empty reports whether there is no secret.
func (t Text) Empty() bool { return t.value == "" }

// Equal compares in constant time.
func (t Text) Equal(other string) bool {
	return subtle.ConstantTimeCompare([]byte(t.value), []byte(other)) == 1
}

func (Text) String() string               { return mask }
func (Text) GoString() string             { return mask }
func (Text) Format(f fmt.State, _ rune)   { fmt.Fprint(f, mask) }
func (Text) MarshalText() ([]byte, error) { return []byte(mask), nil }
func (Text) LogValue() slog.Value         { return slog.StringValue(mask) }

// Bytes is a secret byte string.
type Bytes struct{ value []byte }

// NewBytes wraps secret bytes; it keeps the slice, so the caller must not reuse it.
func NewBytes(value []byte) Bytes { return Bytes{value: value} }

// Reveal returns the secret bytes, not a copy. Each call is a place to review.
func (b Bytes) Reveal() []byte { return b.value }

// Len is the number of secret bytes.
func (b Bytes) Len() int { return len(b.value) }

// Wipe overwrites the bytes with zeros.
func (b Bytes) Wipe() { clear(b.value) }

func (Bytes) String() string               { return mask }
func (Bytes) GoString() string             { return mask }
func (Bytes) Format(f fmt.State, _ rune)   { fmt.Fprint(f, mask) }
func (Bytes) MarshalText() ([]byte, error) { return []byte(mask), nil }
func (Bytes) LogValue() slog.Value         { return slog.StringValue(mask) }
