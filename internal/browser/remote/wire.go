// Package remote is the isolated browser service at the other end of a Unix
// socket: Client is a browser.Service for the orchestrator, and the types are
// the bodies that both ends of the wire use (PSM-12, LIFE-04, LHTTP-01,
// SHTTP-01, SHTTP-02, UPL-08, REL-01, section 2.9 of the requirements).
package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/rules/constraint"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// Host is the Host header of every request: the listener is a socket file and
// answers to no network name.
const Host = "browserd"

// Bounds of bodies, in bytes.
const (
	MaxRequest     = 64 << 10
	MaxControl     = 64 << 10  // an answer about a profile or a sign-in
	MaxObservation = 640 << 10 // an answer with an observation, or with a picture
	MaxUpload      = 7 << 20   // the body of :upload, and of nothing else (UPL-08)
)

// Scope is the owner in every body that names one.
type Scope struct {
	TenantID    string `json:"tenant_id"`
	PrincipalID string `json:"principal_id"`
}

// Caller is the scope as a value of the program.
func (s Scope) Caller() caller.Scope {
	return caller.Scope{Tenant: s.TenantID, Principal: s.PrincipalID}
}

func scopeOf(s caller.Scope) Scope { return Scope{TenantID: s.Tenant, PrincipalID: s.Principal} }

// ProvisionRequest is the body of POST /v1/browser-profiles:provision.
type ProvisionRequest struct {
	ProfileID string `json:"profile_id"`
	Scope
	AllowedOrigins []string `json:"allowed_origins"`
}

// ProvisionAnswer is its answer, with status 201.
type ProvisionAnswer struct {
	ProviderName string `json:"provider_name"`
	ProviderRef  string `json:"provider_ref"`
	KeyVersion   string `json:"encryption_key_version"`
}

// ProfileRequest is the body of POST /v1/browser-profiles/{id}:revoke and
// :delete; the answer is 204.
type ProfileRequest struct {
	ProfileID string `json:"profile_id"`
	Scope
	ProviderRef string `json:"provider_ref"`
}

// AcquireRequest is the body of POST /v1/browser-sessions:acquire. An
// ephemeral browser has neither profile_id nor provider_ref.
type AcquireRequest struct {
	ProfileID string `json:"profile_id"`
	Scope
	ProviderRef    string    `json:"provider_ref"`
	AllowedOrigins []string  `json:"allowed_origins"`
	RunID          string    `json:"run_id"`
	Attempt        int       `json:"attempt_number"`
	DeadlineAt     time.Time `json:"deadline_at"`
	Headed         bool      `json:"headed"`
	Specified      bool      `json:"specified,omitempty"` // observe as contracts before 1.9.0
}

// LeaseAnswer answers acquire and renew.
type LeaseAnswer struct {
	LeaseRef  string    `json:"lease_ref"`
	ExpiresAt time.Time `json:"expires_at"`
	Sequence  int64     `json:"sequence"`
}

// RenewRequest is the body of POST /v1/browser-sessions:renew.
type RenewRequest struct {
	LeaseRef   string    `json:"lease_ref"`
	DeadlineAt time.Time `json:"deadline_at"`
}

// LeaseRequest is the body of :close; close answers 204.
type LeaseRequest struct {
	LeaseRef string `json:"lease_ref"`
}

// ObserveRequest is the body of :observe (EXP-04, EXTR-04).
type ObserveRequest struct {
	LeaseRef string        `json:"lease_ref"`
	Query    observe.Query `json:"query,omitzero"`
}

// NavigateRequest is the body of :navigate. Like observe and act it is
// answered with an observe.Document.
type NavigateRequest struct {
	LeaseRef string   `json:"lease_ref"`
	URL      site.URL `json:"url"`
}

// ActRequest is the body of :act.
type ActRequest struct {
	LeaseRef string          `json:"lease_ref"`
	Sequence int64           `json:"sequence"`
	Action   json.RawMessage `json:"action"`

	Constraint *constraint.Constraint `json:"constraint,omitempty"` // CONS-01
}

// UploadRequest is the body of :upload.
type UploadRequest struct {
	LeaseRef string          `json:"lease_ref"`
	Sequence int64           `json:"sequence"`
	Action   json.RawMessage `json:"action"` // the tool's arguments
	Image    UploadImage     `json:"image"`
}

// UploadImage is an image on the wire.
type UploadImage struct {
	Filename  string        `json:"filename"` // the image's identifier with the ending of its type
	MediaType artifact.Type `json:"media_type"`
	SHA256    string        `json:"sha256"`
	Data      []byte        `json:"data_base64"`
}

// PictureRequest is the body of :picture.
type PictureRequest struct {
	LeaseRef string `json:"lease_ref"`
	Revision string `json:"expected_revision"`
	Ref      string `json:"ref"`
}

// PictureAnswer answers :picture.
type PictureAnswer struct {
	JPEG   []byte      `json:"jpeg_base64"`
	Width  int         `json:"width"`
	Height int         `json:"height"`
	Box    browser.Box `json:"box"`
}

// BeginRequest is the body of POST /v1/browser-authentications:begin.
type BeginRequest struct {
	ProfileID string `json:"profile_id"`
	Scope
	ProviderRef string   `json:"provider_ref"`
	LoginURL    site.URL `json:"login_url"`
	Mode        string   `json:"mode"` // "remote"
}

// BeginAnswer is its answer, with status 201. launch_url carries the
// capability and is in no other answer.
type BeginAnswer struct {
	CeremonyID string          `json:"ceremony_id"`
	Status     ceremony.Status `json:"status"`
	ExpiresAt  time.Time       `json:"expires_at"`
	LaunchURL  string          `json:"launch_url"`
}

// CeremonyRequest is the body of :status and :cancel; cancel answers 204.
type CeremonyRequest struct {
	CeremonyID string `json:"ceremony_id"`
	Scope
}

// StatusAnswer answers :status.
type StatusAnswer struct {
	Status ceremony.Status `json:"status"`
}

// ProfileKey is the Idempotency-Key of a lifecycle operation.
func ProfileKey(profileID, operation string) string {
	return fmt.Sprintf("browser-profile:%s:%s", profileID, operation)
}

// AcquireKey is the Idempotency-Key of acquire.
func AcquireKey(profileID, runID string, attempt int) string {
	return fmt.Sprintf("browser-session:%s:%s:%d:acquire", profileID, runID, attempt)
}

// LeaseKey is the Idempotency-Key of renew and close.
func LeaseKey(ref, operation string) string {
	return fmt.Sprintf("browser-session:%s:%s", short(ref), operation)
}

// ActKey is the Idempotency-Key of act number sequence, which may be an upload.
func ActKey(ref string, sequence int64) string {
	return fmt.Sprintf("browser-session:%s:act:%d", short(ref), sequence)
}

// CeremonyKey is the Idempotency-Key of begin, with the profile's id, and of
// cancel, with the ceremony's.
func CeremonyKey(id, operation string) string {
	return fmt.Sprintf("browser-authentication:%s:%s", id, operation)
}

// short names a lease without being its reference.
func short(ref string) string {
	sum := sha256.Sum256([]byte(ref))
	return hex.EncodeToString(sum[:])[:24]
}
