// Package run is an agent's session and the calls it made: what it is bound
// to, and what is known of each effect (CAP-01, TOOL-07, TOOL-10,
// REL-01).
package run

import (
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
)

// Session binds one agent to exactly one profile, or to an ephemeral browser,
// and one set of origins. A trusted command makes it; no tool argument does.
type Session struct {
	caller.Scope
	ID        string
	ProfileID string       // empty for an ephemeral browser
	Origins   site.Origins // the profile's, or the ephemeral browser's own
	Headed    bool
	Contract  contract.Set // the versions of the tools; fixed when the session is made (TOOL-10)
	CreatedAt time.Time
	EndedAt   time.Time // zero while live
}

// Live reports whether the session may still call tools.
func (s Session) Live() bool { return s.EndedAt.IsZero() }

// Outcome of an invocation.
type Outcome string

const (
	Running   Outcome = "running"   // intent recorded, no outcome yet
	Succeeded Outcome = "succeeded" // the effect was dispatched and observed
	Failed    Outcome = "failed"    // refused or failed before anything was sent
	Uncertain Outcome = "uncertain" // possibly sent; never replayed
)

// Invocation is one tool call that passed authorization. EffectSentAt is set,
// in the transaction that consumed the authority, before anything is sent; an
// invocation that has it and no outcome is uncertain (REL-01, GATE-07).
type Invocation struct {
	caller.Scope
	ID           string
	SessionID    string
	Tool         action.Tool
	Digest       string
	ApprovalID   string // what authorized it; empty for reads and bounded scroll
	Outcome      Outcome
	Code         string // fault code; empty on success
	StartedAt    time.Time
	EffectSentAt time.Time // zero for reads
	FinishedAt   time.Time
}

// Abandoned is the outcome of an invocation whose process died: a possible
// effect stays uncertain, anything else failed. One that has its outcome
// keeps it.
func (i Invocation) Abandoned(now time.Time) Invocation {
	if i.Outcome != Running {
		return i
	}
	i.Outcome = Failed
	if !i.EffectSentAt.IsZero() {
		i.Outcome = Uncertain
	}
	i.FinishedAt = now
	return i
}
