// Package caller says who is asking. A Caller is always a parameter, never a
// context value, so that a function that acts for somebody says so in its
// signature (TOOL-07: none of this ever comes from a tool argument).
package caller

import "github.com/chaperone-agents/chaperone/internal/base/fault"

// Scope owns records: every record, key and query carries it, and a record of
// another scope is indistinguishable from one that does not exist (PSM-11).
type Scope struct {
	Tenant    string // 1 to 255 bytes
	Principal string // 1 to 255 bytes
}

// Valid reports whether both halves are present and bounded.
func (s Scope) Valid() bool {
	return s.Tenant != "" && len(s.Tenant) <= 255 && s.Principal != "" && len(s.Principal) <= 255
}

// Role is what a paired device may do. The zero Role may do nothing.
type Role string

const (
	// Owner devices (CLI, console) manage profiles and decide approvals.
	Owner Role = "owner"
	// Agent devices call the browser tools of one agent session and nothing else.
	Agent Role = "agent"
)

// Caller is an authenticated device acting for one scope.
type Caller struct {
	Scope
	Device  string // fingerprint of the local device, 32 hex characters
	Role    Role
	Session string // the one agent session an Agent device is bound to; empty for an Owner
}

// RequireOwner refuses everybody but an owner's device: Forbidden (TOOL-07).
func (c Caller) RequireOwner() error {
	if c.Role != Owner || !c.Scope.Valid() {
		return fault.New(fault.Forbidden, "Only the owner's devices may do this. Nothing was changed.")
	}
	return nil
}
