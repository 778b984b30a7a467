// Package artifact is the images of an agent session: what counts as one, how
// long it may be used and by whom, and that its bytes are still those that the
// owner attached (UPL-02, UPL-03, UPL-06, UPL-07). Everything here is pure.
package artifact

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"regexp"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
)

// MaxSize is the largest image, in bytes.
const MaxSize = 5 << 20

// Life is how long an image may be used after it was attached.
const Life = 24 * time.Hour

// Quota bounds what one principal may have attached at once.
type Quota struct {
	Images int
	Bytes  int64
}

// DefaultQuota is 64 images of 100 MiB together.
func DefaultQuota() Quota { return Quota{Images: 64, Bytes: 100 << 20} }

// Takes reports whether size more bytes fit beside what is used already.
func (q Quota) Takes(used Use, size int64) bool {
	return used.Images < q.Images && size <= q.Bytes-used.Bytes
}

// Use is what a principal has attached.
type Use struct {
	Images int
	Bytes  int64
}

// Origin says where an image came from.
type Origin string

// Attached by the owner to one session; the only origin that may be uploaded.
const Attached Origin = "attached"

// Image is what is known of one image; its bytes are elsewhere.
type Image struct {
	caller.Scope
	ID        string
	SessionID string
	Origin    Origin
	Type      Type
	Size      int64
	Width     int    // pixels
	Height    int    // pixels
	SHA256    string // hexadecimal
	CreatedAt time.Time
	ExpiresAt time.Time
}

var idShape = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// ValidID reports whether s can be the identifier of an image: a UUID in lower
// case. It becomes the name of a file.
func ValidID(s string) bool { return idShape.MatchString(s) }

// Describe makes the record of data as the image id of the session. It returns
// fault.PayloadTooLarge, or fault.UnsupportedMedia for what is no image.
func Describe(scope caller.Scope, id, session string, data []byte, now time.Time, life time.Duration) (Image, error) {
	if len(data) > MaxSize {
		return Image{}, fault.New(fault.PayloadTooLarge, "An image has at most 5 MiB. Nothing was attached.")
	}
	f, ok := Read(data)
	if !ok {
		return Image{}, fault.New(fault.UnsupportedMedia, "That is no PNG, JPEG or WebP image. Nothing was attached.")
	}
	return Image{
		Scope: scope, ID: id, SessionID: session, Origin: Attached, Type: f.Type, Size: int64(len(data)),
		Width: f.Width, Height: f.Height, SHA256: Sum(data), CreatedAt: now, ExpiresAt: now.Add(life),
	}, nil
}

// Usable checks what a record alone can say: principal, session, origin and
// expiry (the first four of UPL-06).
func (i Image) Usable(scope caller.Scope, session string, now time.Time) bool {
	return i.Scope == scope && session != "" && i.SessionID == session && i.Origin == Attached && now.Before(i.ExpiresAt)
}

// Holds checks the bytes: size, signature and checksum (the rest of UPL-06).
func (i Image) Holds(data []byte) bool {
	f, ok := Read(data)
	return ok && i.Size == int64(len(data)) && f == Format{i.Type, i.Width, i.Height} && sameSum(i.SHA256, data)
}

// Payload is an image on its way to a file input. Only its holder can read the
// bytes; printing or encoding it yields a mask.
type Payload struct {
	ID     string
	Type   Type
	SHA256 string // hexadecimal
	Data   secret.Bytes
}

// Name is the name that the website sees: the identifier, never one that the
// owner or an agent chose.
func (p Payload) Name() string { return p.ID + p.Type.Extension() }

// Valid checks everything that can be checked without the record: each program
// that the bytes pass does so again (UPL-08).
func (p Payload) Valid() bool {
	data := p.Data.Reveal()
	f, ok := Read(data)
	return ValidID(p.ID) && len(data) <= MaxSize && ok && f.Type == p.Type && sameSum(p.SHA256, data)
}

// Sum is the hexadecimal SHA-256 of data.
func Sum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func sameSum(want string, data []byte) bool {
	return subtle.ConstantTimeCompare([]byte(want), []byte(Sum(data))) == 1
}
