// Package constraint is the limit that an act under a grant carries to the
// browser: where, what, and until when. The orchestrator applies it to the
// observation and the worker to the live page, and it is only ever a reason to
// refuse (CONS-01, CONS-02, TGC-01 to TGC-07, CLS-07, RES-03, FENCE-01).
package constraint

import (
	"strings"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/consequence"
)

// Kind is the kind of grant that an act rests on.
type Kind string

// The kinds.
const (
	Standing Kind = "standing" // routine acts on some origins
	Task     Kind = "task"     // ordinary acts below one path of one origin
	Research Kind = "research" // ordinary acts on one origin
)

// MaxText is how many characters may be typed at once under a task grant or
// for research (TGC-03).
const MaxText = 256

// Constraint limits one act. The zero Constraint covers nothing.
type Constraint struct {
	Kind      Kind                    `json:"grant_kind"`
	Origins   site.Origins            `json:"origins"`                       // 1 to 64; one unless standing
	Prefix    string                  `json:"path_prefix,omitempty"`         // task only: "/" and one segment that is not sensitive
	ExpiresAt time.Time               `json:"not_after"`                     // the act is sent before
	Ceiling   consequence.Consequence `json:"consequence_ceiling"`           // routine when standing, otherwise unknown
	MaxText   int                     `json:"max_text_characters,omitempty"` // MaxText unless standing, which has none
}

// Validate checks that the members fit each other (section 2.1). It returns
// fault.ArgumentsInvalid.
func (c Constraint) Validate() error {
	bad := func(what string) error {
		return fault.New(fault.ArgumentsInvalid, "The constraint is not consistent: "+what+". Nothing was sent.")
	}
	origins, err := site.ParseOrigins(c.Origins.Strings())
	switch {
	case err != nil || len(origins) != len(c.Origins):
		return bad("its origins are none, too many or not different")
	case c.ExpiresAt.IsZero():
		return bad("it does not expire")
	}
	wide := consequence.Unknown
	text, single := MaxText, true
	switch c.Kind {
	case Standing:
		wide, text, single = consequence.Routine, 0, false
	case Task:
		segment, ok := strings.CutPrefix(c.Prefix, "/")
		if !ok || segment == "" || len(segment) > 64 || strings.Contains(segment, "/") || !consequence.WithinPrefix(c.Prefix, c.Prefix) ||
			consequence.SensitiveSegment(segment) {
			return bad("its path is not one ordinary segment")
		}
	case Research:
	default:
		return bad("its kind is unknown")
	}
	switch {
	case c.Kind != Task && c.Prefix != "":
		return bad("only a task has a path")
	case single && len(c.Origins) != 1:
		return bad("it is for one origin")
	case c.Ceiling != wide || c.MaxText != text:
		return bad("its ceiling or its bound of text is not that of its kind")
	}
	return nil
}

// Fenced reports whether documents and pings are confined while the act runs
// and settles (FENCE-01).
func (c Constraint) Fenced() bool { return c.Kind == Task || c.Kind == Research }

// Admits says why an address is outside the constraint, or "" when it is inside.
func (c Constraint) Admits(address string) Reason {
	u, err := site.ParseURL(address)
	switch {
	case err != nil || !c.Origins.Has(u.Origin()):
		return OutsideOrigin
	case !consequence.WithinPrefix(u.Path(), c.root()):
		return OutsidePrefix
	case consequence.SensitivePath(u.Path()):
		return SensitivePath
	}
	return ""
}

// root is the path that everything must be below.
func (c Constraint) root() string {
	if c.Prefix == "" {
		return "/"
	}
	return c.Prefix
}
