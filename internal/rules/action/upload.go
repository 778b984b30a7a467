package action

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
)

// uploadArguments are exactly those of browser.upload 1.0.0 (UPL-01, UPL-07).
type uploadArguments struct {
	Image            string `json:"image_id"`
	ExpectedRevision string `json:"expected_revision"`
	Ref              string `json:"ref"`
}

func (r *Request) upload(arguments []byte) (any, error) {
	var a uploadArguments
	if err := decode(arguments, &a, "image_id", "expected_revision", "ref"); err != nil {
		return nil, err
	}
	if !artifact.ValidID(a.Image) {
		return nil, invalid("image_id is the identifier of an image that the owner attached.")
	}
	if !bounded(a.ExpectedRevision) || !bounded(a.Ref) {
		return nil, invalid("browser.upload needs expected_revision and ref, as the last observation gave them.")
	}
	r.Image, r.Action = a.Image, Action{Kind: Attach, ExpectedRevision: a.ExpectedRevision, Ref: a.Ref}
	return a, nil
}

func bounded(s string) bool { return s != "" && len(s) <= MaxRef }

// Arguments are the canonical arguments of an Upload, for the wire.
func (r Request) Arguments() any {
	return uploadArguments{Image: r.Image, ExpectedRevision: r.Action.ExpectedRevision, Ref: r.Action.Ref}
}

// Bound is an upload that also means exactly the bytes with the checksum: what
// was approved for one image is not approved for another.
func (r Request) Bound(checksum string) Request {
	sum := sha256.Sum256([]byte(r.Digest + "\n" + checksum))
	r.Digest = hex.EncodeToString(sum[:])
	return r
}
