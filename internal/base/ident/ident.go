// Package ident makes the random identifiers of the system: UUIDs for records
// that outsiders may name, and unguessable tokens for capabilities.
package ident

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"

	"github.com/google/uuid"
)

// New returns a random (version 4) UUID in its lower-case hyphenated form.
func New() string { return uuid.NewString() }

// Derived returns the UUID (version 5) that belongs to the parts: the same
// parts always give the same one, and no two lists of parts share one.
func Derived(parts ...string) string {
	var name []byte
	for _, p := range parts {
		name = binary.AppendUvarint(name, uint64(len(p)))
		name = append(name, p...)
	}
	return uuid.NewSHA1(uuid.NameSpaceOID, name).String()
}

// Valid reports whether s is a UUID in the lower-case hyphenated form, the
// only spelling that routes and records accept.
func Valid(s string) bool {
	u, err := uuid.Parse(s)
	return err == nil && u.String() == s
}

// Token returns a capability of n random bytes in unpadded base64url.
func Token(n int) string { return base64.RawURLEncoding.EncodeToString(random(n)) }

// Hex returns n random bytes in lower-case hexadecimal.
func Hex(n int) string { return hex.EncodeToString(random(n)) }

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // crypto/rand.Read never fails: it ends the program instead
	return b
}
