// Package device is the local-device credential of AIP-59: what a client on
// this machine presents, and what is kept of it. A credential is
//
//	apd1.<fingerprint: 32 hex>.<base64url HMAC-SHA256(secret, "agentproto/local-device/v1|" + fingerprint)>
//
// It is shown once. The secret is forgotten when the credential is made; what
// is kept is a SHA-256 of the MAC, so a reader of the database cannot make the
// credential again.
package device

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
)

const (
	prefix = "apd1."
	label  = "agentproto/local-device/v1|"
)

// Device is a paired client.
type Device struct {
	caller.Scope
	Fingerprint string // 32 hex characters
	Name        string // 1 to 80 characters, the owner's
	Role        caller.Role
	SessionID   string // for an agent: the session it is bound to
	Verifier    []byte // SHA-256 of the credential's MAC
	CreatedAt   time.Time
	LastSeenAt  time.Time
	RevokedAt   time.Time // zero while it may be used
}

// Mint makes a device and its credential from 48 random bytes: 16 become the
// fingerprint, 32 the secret that is then forgotten.
func Mint(random [48]byte, d Device) (Device, secret.Text) {
	d.Fingerprint = hex.EncodeToString(random[:16])
	mac := hmac.New(sha256.New, random[16:])
	mac.Write([]byte(label + d.Fingerprint))
	sum := mac.Sum(nil)
	verifier := sha256.Sum256(sum)
	d.Verifier = verifier[:]
	return d, secret.NewText(prefix + d.Fingerprint + "." + base64.RawURLEncoding.EncodeToString(sum))
}

// Parse splits a presented credential into its fingerprint and its MAC. It
// returns fault.Unauthenticated for any other shape.
func Parse(credential secret.Text) (fingerprint string, mac []byte, err error) {
	rest, ok := strings.CutPrefix(credential.Reveal(), prefix)
	fingerprint, encoded, ok2 := strings.Cut(rest, ".")
	mac, decodeErr := base64.RawURLEncoding.Strict().DecodeString(encoded)
	raw, hexErr := hex.DecodeString(fingerprint)
	// The decoder skips line breaks; the length tells that there were none.
	if !ok || !ok2 || len(encoded) != base64.RawURLEncoding.EncodedLen(sha256.Size) || decodeErr != nil || hexErr != nil || len(mac) != sha256.Size || len(raw) != 16 || hex.EncodeToString(raw) != fingerprint {
		return "", nil, Refused()
	}
	return fingerprint, mac, nil
}

// Verify checks a presented MAC in constant time. Verify on the zero Device
// does the same work and fails, so an unknown fingerprint takes as long as a
// wrong MAC. It returns the caller, or fault.Unauthenticated without saying why.
func (d Device) Verify(mac []byte) (caller.Caller, error) {
	sum := sha256.Sum256(mac)
	kept := d.Verifier
	if len(kept) != sha256.Size {
		kept = make([]byte, sha256.Size)
	}
	same := subtle.ConstantTimeCompare(sum[:], kept) == 1
	if !same || len(d.Verifier) != sha256.Size || !d.RevokedAt.IsZero() || !d.Scope.Valid() {
		return caller.Caller{}, Refused()
	}
	return caller.Caller{Scope: d.Scope, Device: d.Fingerprint, Role: d.Role, Session: d.SessionID}, nil
}

// Refused is the one answer to every failed authentication.
func Refused() error {
	return fault.New(fault.Unauthenticated, "This needs the credential of a paired device. Nothing was done.")
}
