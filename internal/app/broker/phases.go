package broker

import (
	"sync"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
)

// Diagnostics says where one call spent its time. It is made of closed lists
// and numbers: no text of a page, an error or an argument has a place in it
// (OPD-01 to OPD-03).
type Diagnostics struct {
	Version   int // 1
	Tool      action.Tool
	Phases    []Span // at most 64, in order of completion; nested ones overlap
	EndedAt   time.Time
	ElapsedMS int
	Truncated bool // phases were left out
	Category  Category
}

// Span is one phase of a call.
type Span struct {
	Phase     Phase
	Placement Placement
	Category  Category // NoFailure when it succeeded
	ElapsedMS int      // at most 600000
}

// Phase of a call, in the order of the flow.
type Phase uint8

// The phases.
const (
	PhasePrepare Phase = iota
	PhaseAwait
	PhaseAcquire
	PhasePermit
	PhaseDispatch
	PhaseRead
	PhaseRecord
	PhaseProject
)

func (p Phase) String() string {
	return name(int(p), "prepare", "await", "acquire", "permit", "dispatch", "read", "record", "project")
}

// Placement is where a phase ran.
type Placement uint8

// The placements.
const (
	Orchestrator Placement = iota
	Database
	Isolated
)

func (p Placement) String() string {
	return name(int(p), "orchestrator", "database", "isolated")
}

// Category of a failure (section 2.2 of the requirements).
type Category uint8

// The categories.
const (
	NoFailure Category = iota
	Permission
	InvalidArguments
	Missing
	Transport
	InvalidOutput
	UnknownOutcome
	Upstream
)

func (c Category) String() string {
	return name(int(c), "none", "permission", "invalid_arguments", "not_found", "transport", "output_invalid", "outcome_unknown", "upstream_error")
}

func name(i int, names ...string) string {
	if i < 0 || i >= len(names) {
		return "unknown"
	}
	return names[i]
}

func categoryOf(err error) Category {
	switch fault.CodeOf(err) {
	case "":
		return NoFailure
	case fault.ProfileUnavailable, fault.AuthenticationRequired, fault.NeedsUser, fault.Forbidden,
		fault.GrantNotApplicable, fault.ApprovalPending, fault.ApprovalDenied, fault.ApprovalExpired:
		return Permission
	case fault.PageChanged, fault.ActionNotAllowed, fault.ArgumentsInvalid, fault.RegionNotActionable, fault.FocusRequired:
		return InvalidArguments
	case fault.ElementNotFound:
		return Missing
	case fault.ProviderUnavailable:
		return Transport
	case fault.OutputInvalid:
		return InvalidOutput
	case fault.OutcomeUnknown:
		return UnknownOutcome
	}
	return Upstream
}

// Bounds of what is kept.
const (
	maxPhases  = 64
	maxElapsed = 600_000 // milliseconds
	maxTraces  = 256     // calls
)

// trace collects the phases of one call; it belongs to that call's goroutine
// and decides nothing (OPD-04).
type trace struct {
	began time.Time
	d     Diagnostics
}

func begin(tool action.Tool) *trace {
	switch tool {
	case action.Navigate, action.Observe, action.Act, action.Upload:
	default:
		tool = "" // a name that a client made up
	}
	return &trace{began: time.Now(), d: Diagnostics{Version: 1, Tool: tool}}
}

// start begins a phase; the returned function ends it and hands its error on.
func (t *trace) start(p Phase, at Placement) func(error) error {
	began := time.Now()
	return func(err error) error {
		if len(t.d.Phases) == maxPhases {
			t.d.Truncated = true
			return err
		}
		t.d.Phases = append(t.d.Phases, Span{Phase: p, Placement: at, Category: categoryOf(err), ElapsedMS: millis(began)})
		return err
	}
}

func millis(since time.Time) int { return int(min(time.Since(since).Milliseconds(), maxElapsed)) }

// ring keeps the newest traces.
type ring struct {
	mu   sync.Mutex
	kept []scoped
}

// scoped is a trace and whose call it was.
type scoped struct {
	caller.Scope
	d Diagnostics
}

// ended keeps the trace of a call.
func (b *Broker) ended(scope caller.Scope, t *trace, err error) {
	t.d.EndedAt, t.d.ElapsedMS, t.d.Category = b.Now(), millis(t.began), categoryOf(err)
	b.traces.mu.Lock()
	defer b.traces.mu.Unlock()
	if len(b.traces.kept) == maxTraces {
		b.traces.kept = append(b.traces.kept[:0], b.traces.kept[1:]...)
	}
	b.traces.kept = append(b.traces.kept, scoped{scope, t.d})
	b.Log.Debug("call ended", "tool", t.d.Tool, "category", t.d.Category, "elapsed_ms", t.d.ElapsedMS, "phases", len(t.d.Phases))
}

// Diagnostics lists the newest calls of the scope in this process, oldest
// first; at most 256.
func (b *Broker) Diagnostics(scope caller.Scope) []Diagnostics {
	b.traces.mu.Lock()
	defer b.traces.mu.Unlock()
	var out []Diagnostics
	for _, kept := range b.traces.kept {
		if kept.Scope == scope {
			out = append(out, kept.d)
		}
	}
	return out
}
