// Package browser holds the two ports of the browser runtime. Service is the
// isolated browser service as the orchestrator sees it; Page is one browser as
// that service sees it. Each exists as the real thing, as the other end of a
// process boundary, and as a fake; browsertest holds all of them to one
// contract (GATE-01).
package browser

import (
	"context"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/rules/constraint"
	"github.com/chaperone-agents/chaperone/internal/rules/grant"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// Service is the isolated browser service: the lifecycle of sealed profiles
// (PSM-12, HCP-02), leases with their operations (SHTTP-01), and sign-in
// ceremonies (CER-05). Errors are fault.Errors with a code of the tool family.
type Service interface {
	// Provision creates sealed material for the profile; repeating it with the
	// same scope and origins returns the same reference (LIFE-01).
	Provision(ctx context.Context, scope caller.Scope, profileID string, origins site.Origins) (Provisioned, error)
	// Revoke persists the fence and closes every live browser of the profile
	// before it returns (LEASE-09). Repeating it is not an error.
	Revoke(ctx context.Context, scope caller.Scope, profileID, ref string) error
	// Delete removes the material of a revoked profile. Repeating it is not an error.
	Delete(ctx context.Context, scope caller.Scope, profileID, ref string) error

	// Acquire returns the live lease of the key or starts a browser for it.
	Acquire(ctx context.Context, key lease.Key, headed bool, deadline time.Time) (Lease, error)
	Renew(ctx context.Context, ref string, deadline time.Time) (Lease, error)
	// CloseLease ends the browser; a healthy profile lease is sealed first.
	// Closing an unknown lease is not an error.
	CloseLease(ctx context.Context, ref string) error

	// Do carries out one call under a lease and a permit: navigate, observe or
	// act, then settles and observes. It refuses an invalid held or a permit
	// that is not for the request's digest before anything leaves the process.
	// The permit's constraint goes with an act; an act that it does not cover
	// uses up no number (CONS-04).
	Do(ctx context.Context, held lease.Held, permit grant.Permit, r action.Request) (observe.Document, error)
	// Upload is Do for an upload, whose image travels beside the request
	// (UPL-07). The bytes are checked again before they leave and where they
	// arrive (UPL-08).
	Upload(ctx context.Context, held lease.Held, permit grant.Permit, r action.Request, image artifact.Payload) (observe.Document, error)
	// Picture shows the surroundings of an element of the newest observation as
	// they are now. It sends nothing and uses up no number. PageChanged when the
	// page or the element is not what it was.
	Picture(ctx context.Context, held lease.Held, revision, ref string) (Picture, error)

	// BeginCeremony opens a headed browser at the login URL (CER-01).
	BeginCeremony(ctx context.Context, scope caller.Scope, profileID, ref string, login site.URL) (Ceremony, error)
	CeremonyStatus(ctx context.Context, scope caller.Scope, ceremonyID string) (ceremony.Status, error)
	CancelCeremony(ctx context.Context, scope caller.Scope, ceremonyID string) error
}

// Provisioned is what the orchestrator may know of sealed material.
type Provisioned struct {
	ProviderName string
	ProviderRef  string
	KeyVersion   string
}

// Lease is a live lease.
type Lease struct {
	Ref       string
	ExpiresAt time.Time
	Sequence  int64 // number of the next operation
}

// Ceremony is a begun sign-in. LaunchURL carries the capability in its
// fragment and exists only in this answer (CER-02).
type Ceremony struct {
	ID        string
	Status    ceremony.Status
	ExpiresAt time.Time
	LaunchURL secret.Text
}

// Launcher starts browsers.
type Launcher interface {
	// Launch returns a browser with one blank page that can reach nothing but
	// its egress. It returns fault.ProviderUnavailable when there is no
	// Chromium, no display, or no isolation.
	Launch(ctx context.Context, spec Spec) (Page, error)
}

// Spec says what a browser is for.
type Spec struct {
	Tenant  string       // for the egress audit line
	Origins site.Origins // where the main frame may go
	Headed  bool         // under a private display; never a silent fallback (HEAD-01)
	// Challenges: a page that asks for its owner yields fault.NeedsUser and
	// nothing of what it shows (CHAL-01). True for the leases of a profile.
	Challenges bool
	// Specified: only the candidates of contracts before 1.9.0, of the main
	// document (section 2.3).
	Specified bool
}

// Page is one browser with one page. Its methods are not safe for concurrent
// use except Close, Done, Input and Frames. After Done is closed every method
// fails with fault.ProviderUnavailable, or OutcomeUnknown if an input was
// possibly sent.
type Page interface {
	// Restore loads a session before the first navigation.
	Restore(ctx context.Context, m Material) error
	// Navigate opens the URL, waits until the page settles, and observes it.
	Navigate(ctx context.Context, u site.URL) (observe.Document, error)
	// Observe reads the part of the page that the query names, as it is.
	// PageChanged when the query is about a revision that is not the newest.
	Observe(ctx context.Context, q observe.Query) (observe.Document, error)
	// Act sends one input to the element of the last observation, settles and
	// observes. PageChanged, ElementNotFound and ActionNotAllowed mean that
	// nothing was sent; OutcomeUnknown that something may have been. With a
	// constraint, the live element must be covered by it: GrantNotApplicable
	// means that nothing was sent and no reference is live any more (CONS-01 to
	// CONS-04).
	Act(ctx context.Context, a action.Action, c *constraint.Constraint) (observe.Document, error)
	// Upload gives the image to a file input of the main document, or to the one
	// that a click on the element asks for, then settles and observes (UPL-02 to
	// UPL-04, UPL-09). Errors are those of Act.
	Upload(ctx context.Context, a action.Action, image artifact.Payload) (observe.Document, error)
	// Picture shows the surroundings of an element of the newest observation.
	// It sends nothing to the page, and does not scroll it.
	Picture(ctx context.Context, revision, ref string) (Picture, error)
	// Capture reads the session of the allowed origins. It fails rather than
	// return a part of one.
	Capture(ctx context.Context) (Material, error)

	// Evidence is what READY-01 needs to know of the page now;
	// TextDuringChallenge is the ceremony's to fill in.
	Evidence(ctx context.Context) (ceremony.Evidence, error)
	// Frames streams pictures of the page until ctx ends or the browser does;
	// slow receivers lose pictures, never the latest.
	Frames(ctx context.Context) (<-chan Frame, error)
	// Input sends one event of the owner's to the page.
	Input(ctx context.Context, in Input) error

	// Done is closed when the browser has gone, for whatever reason.
	Done() <-chan struct{}
	// Close ends the browser and everything it left behind.
	Close() error
}

// Frame is one picture of the page.
type Frame struct {
	JPEG   []byte
	Width  int // of the page, in CSS pixels; Input coordinates are in these
	Height int
}

// Input is one event of a remote sign-in: a click, a text, or a key.
type Input struct {
	Kind string `json:"kind"`           // click, text, key
	X    int    `json:"x,omitempty"`    // 0 to 8192, click only
	Y    int    `json:"y,omitempty"`    // 0 to 8192, click only
	Text string `json:"text,omitempty"` // at most 4096 characters, text only; a secret
	Key  string `json:"key,omitempty"`  // one of InputKeys, key only
}

// InputKeys lists the keys of a remote sign-in.
func InputKeys() []string {
	return []string{"Enter", "Escape", "Tab", "Backspace", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"}
}
