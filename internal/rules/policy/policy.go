// Package policy decides what a prepared call needs: nothing, the owner, or
// that it cannot be (POL-01, SCRL-01, SCRL-02, TOOL-06, UPL-05). It is deterministic
// and denies what it does not know.
package policy

import (
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
)

// Version names the policy that made a decision.
const Version = "default-2"

// Verdict of a decision. The zero Verdict denies.
type Verdict int

const (
	Deny Verdict = iota
	Ask          // an owner's approval, or a grant
	Allow
)

// Decision is a verdict and, for a denial, the refusal to show.
type Decision struct {
	Verdict Verdict
	Refusal *fault.Error
}

// Decide applies the default policy to a call of a session that is bound to
// origins: reads on allowed origins and scrolls of 1 to 2000 pixels are
// allowed, every other act, every upload and an address that names an act asks, everything unknown is denied.
func Decide(r action.Request, origins site.Origins) Decision {
	switch r.Tool {
	case action.Observe:
		return Decision{Verdict: Allow}
	case action.Navigate:
		if !origins.Has(r.URL.Origin()) {
			return deny(fault.URLDisallowed, "That origin is not one this session may open. Nothing was requested; stay on the session's origins.")
		}
		if namesAct(r.URL) {
			return Decision{Verdict: Ask}
		}
		return Decision{Verdict: Allow}
	case action.Upload: // UPL-05: one approval each, and no grant
		return Decision{Verdict: Ask}
	case action.Act:
		switch r.Action.Kind {
		case action.Scroll:
			if d := r.Action.DeltaY; d != nil && *d != 0 && *d >= -action.MaxScroll && *d <= action.MaxScroll {
				return Decision{Verdict: Allow}
			}
			return deny(fault.ActionNotAllowed, "A scroll is 1 to 2000 pixels up or down. Nothing was sent.")
		case action.Click, action.Type, action.Select, action.Check, action.Press:
			return Decision{Verdict: Ask}
		}
	}
	return deny(fault.ActionNotAllowed, "The policy does not know this call. Nothing was sent.")
}

func deny(code fault.Code, public string) Decision {
	return Decision{Verdict: Deny, Refusal: fault.New(code, public)}
}
