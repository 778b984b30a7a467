package vault

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/base/site"
)

// MaxPlaintext is the largest session that is sealed, in bytes (STORE-06).
const MaxPlaintext = 64 << 20

const (
	format      = 1
	refBytes    = 32 // random bytes of a reference
	nonceSize   = 12
	tagSize     = 16
	maxMetadata = 64 << 10
	// maxEnvelope bounds a file before it is read: base64 of the largest
	// ciphertext, and its metadata.
	maxEnvelope = (MaxPlaintext+tagSize+2)/3*4 + maxMetadata
)

// metadata is everything of a profile that is not secret. Its JSON is the
// additional authenticated data of the seal, byte for byte (STORE-04).
type metadata struct {
	Format     int          `json:"format"`
	ProfileID  string       `json:"profile_id"`
	Tenant     string       `json:"tenant_id"`
	Principal  string       `json:"principal_id"`
	Ref        string       `json:"provider_ref"`
	Origins    site.Origins `json:"allowed_origins"` // ascending
	KeyVersion string       `json:"key_version"`
	Revoked    bool         `json:"revoked"`
}

// head is an envelope up to its ciphertext.
type head struct {
	Metadata metadata `json:"metadata"`
	Nonce    []byte   `json:"nonce"`
}

// envelope is one file: the JSON object of head, with one more member at the
// end, ciphertext. The large member is apart because a JSON parser would go
// over it several times.
type envelope struct {
	head
	sealed []byte // nonce, ciphertext and tag
}

const (
	ciphertextMember = `,"ciphertext":"`
	envelopeEnd      = `"}`
)

func (m metadata) scope() caller.Scope {
	return caller.Scope{Tenant: m.Tenant, Principal: m.Principal}
}

// valid checks everything but the key version, which the keyring checks.
func (m metadata) valid() error {
	switch {
	case m.Format != format:
		return fmt.Errorf("format %d is not known", m.Format)
	case !ident.Valid(m.ProfileID):
		return errors.New("the profile id is not a UUID")
	// JSON would replace invalid UTF-8, and two owners could become one.
	case !m.scope().Valid(), !utf8.ValidString(m.Tenant), !utf8.ValidString(m.Principal):
		return errors.New("the owner is out of bounds")
	case len(m.Origins) < 1, len(m.Origins) > 64:
		return errors.New("there are not 1 to 64 origins")
	}
	if raw, err := base64.RawURLEncoding.Strict().DecodeString(m.Ref); err != nil || len(raw) != refBytes {
		return errors.New("the reference has the wrong shape")
	}
	for i, o := range m.Origins {
		if o.Host() == "" || i > 0 && m.Origins[i-1].Host() >= o.Host() {
			return errors.New("an origin is empty, repeated or out of order")
		}
	}
	return nil
}

// fileName is where the profile with the reference is kept; the directory
// listing must not be a list of capabilities (STORE-09).
func fileName(ref string) string {
	sum := sha256.Sum256([]byte(ref))
	return hex.EncodeToString(sum[:]) + fileSuffix
}

const fileSuffix = ".profile"

// seal makes the file of a profile.
func seal(m metadata, plaintext []byte, key secret.Bytes) (data []byte, nonce string, err error) {
	aead, err := newAEAD(key)
	if err != nil {
		return nil, "", err
	}
	aad, err := json.Marshal(m)
	if err != nil {
		return nil, "", err
	}
	sealed := aead.Seal(nil, nil, plaintext, aad)
	h, err := json.Marshal(head{Metadata: m, Nonce: sealed[:nonceSize]})
	if err != nil {
		return nil, "", err
	}
	data = make([]byte, 0, len(h)+len(ciphertextMember)+base64.StdEncoding.EncodedLen(len(sealed)))
	data = append(append(data, h[:len(h)-1]...), ciphertextMember...)
	data = append(base64.StdEncoding.AppendEncode(data, sealed[nonceSize:]), envelopeEnd...)
	return data, string(sealed[:nonceSize]), nil
}

// parse reads an envelope in the one spelling that seal writes, so that no
// two readers can understand it differently: no unknown, repeated or missing
// member, no other order, no white space.
func parse(data []byte) (envelope, error) {
	var e envelope
	if len(data) > maxEnvelope {
		return e, errors.New("it is too large")
	}
	before, after, ok := bytes.Cut(data, []byte(ciphertextMember))
	text, ended := bytes.CutSuffix(after, []byte(envelopeEnd))
	if !ok || !ended || len(before) > maxMetadata {
		return e, errors.New("it is not an envelope")
	}
	h := append(bytes.Clone(before), '}')
	if json.Unmarshal(h, &e.head) != nil {
		return e, errors.New("it is not an envelope")
	}
	if err := e.Metadata.valid(); err != nil {
		return e, err
	}
	if again, err := json.Marshal(e.head); err != nil || !bytes.Equal(again, h) {
		return e, errors.New("it is not in canonical form")
	}
	sealed, err := base64.StdEncoding.Strict().AppendDecode(e.Nonce, text)
	size := len(sealed) - len(e.Nonce)
	// The decoder skips line breaks; the length tells that there were none.
	if err != nil || base64.StdEncoding.EncodedLen(size) != len(text) {
		return e, errors.New("its ciphertext is not base64")
	}
	if len(e.Nonce) != nonceSize || size < tagSize || size > MaxPlaintext+tagSize {
		return e, errors.New("its nonce or ciphertext is out of bounds")
	}
	e.sealed = sealed
	return e, nil
}

// open decrypts the envelope. The error says nothing about the content.
func (e envelope) open(key secret.Bytes) ([]byte, error) {
	aead, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	aad, err := json.Marshal(e.Metadata)
	if err != nil {
		return nil, err
	}
	plaintext, err := aead.Open(nil, nil, e.sealed, aad)
	if err != nil {
		return nil, errors.New("its tag does not verify: it was changed, or the key is another one")
	}
	return plaintext, nil
}

// newAEAD is AES-256-GCM with a random 96-bit nonce of the standard library's
// own making in front of the ciphertext.
func newAEAD(key secret.Bytes) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key.Reveal())
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
