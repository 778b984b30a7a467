// Package action is what an agent can ask for: the tools, their arguments in
// every published version, and the digest that an approval is bound to
// (TOOL-02 to TOOL-05, TOOL-10, PAGE-01, EXP-01, EXTR-01, EXTR-02, COND-01,
// FOC-01, UPL-01, section 2.1 of the requirements). Everything here is pure.
package action

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/condition"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// Tool is the stable name of a tool.
type Tool string

const (
	Navigate Tool = contract.Navigate // open one allowed public HTTPS URL
	Observe  Tool = contract.Observe  // read the current page, or a part of it
	Act      Tool = contract.Act      // one click, type, select, check, press or scroll
	Upload   Tool = contract.Upload   // one image into one file control
)

// Tools lists the tools in the order in which they are advertised.
func Tools() []Tool { return []Tool{Navigate, Observe, Act, Upload} }

// Writes reports whether a call of the tool can have an effect that is not to
// be repeated (TOOL-04, TOOL-05).
func (t Tool) Writes() bool { return t == Act || t == Upload }

// Kind is the kind of an act.
type Kind string

const (
	Click  Kind = "click"
	Type   Kind = "type"
	Select Kind = "select"
	Check  Kind = "check"
	Press  Kind = "press"
	Scroll Kind = "scroll"
)

// Attach is the kind of what an upload does; no act can be of it.
const Attach Kind = "upload"

// Kinds lists the kinds of act.
func Kinds() []Kind { return []Kind{Click, Type, Select, Check, Press, Scroll} }

// Keys lists the keys that press may name.
func Keys() []string {
	return []string{"Enter", "Escape", "Tab", "Space", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"}
}

// Bounds of an act's arguments.
const (
	MaxRef    = 128  // bytes of a revision or a reference
	MaxValue  = 4096 // characters of a value
	MaxScroll = 2000 // pixels, either direction
)

// Action is one validated act on one element of one revision.
type Action struct {
	Kind             Kind    `json:"kind"`
	ExpectedRevision string  `json:"expected_revision"`
	Ref              string  `json:"ref"`
	Value            *string `json:"value,omitempty"`   // type, select
	Key              *string `json:"key,omitempty"`     // press
	DeltaY           *int    `json:"delta_y,omitempty"` // scroll; pixels, positive is down
}

// Request is a validated tool call.
type Request struct {
	Tool   Tool
	URL    site.URL      // Navigate only
	Action Action        // Act; for an Upload, kind Attach with revision and reference
	Image  string        // Upload only: its identifier
	Query  observe.Query // Observe only

	Version   contract.Version     // of the tool; what its answer looks like
	Condition *condition.Condition // Observe: wait_for; Act: postcondition. It is never sent to the browser
	Offsets   Offsets              // Observe 1.1.0 only
	Since     string               // Observe 1.9.0 only: a revision

	// Digest is the hexadecimal SHA-256 of the tool name and the canonical
	// arguments, and of the image where one is bound; two calls are the same call exactly if their digests agree.
	Digest string
}

// Prepare validates the arguments of an operation as the isolated service
// takes it: those of contract 1.0.0, which are all that is ever dispatched of
// a navigation or an act.
func Prepare(tool Tool, arguments json.RawMessage) (Request, error) {
	if tool == Upload { // it has one version, in the newest set
		return PrepareFor(contract.Newest, tool, arguments)
	}
	return PrepareFor("1.0.0", tool, arguments)
}

// PrepareFor validates the arguments of a call strictly, by the version that
// the contract has of the tool: exactly the known members, the right types,
// within bounds. It returns fault.ArgumentsInvalid, or fault.URLDisallowed for
// a URL that can never be opened.
func PrepareFor(set contract.Set, tool Tool, arguments json.RawMessage) (Request, error) {
	v, ok := set.Of(string(tool))
	if !ok {
		return Request{}, invalid("There is no such tool.")
	}
	r := Request{Tool: tool, Version: v}
	var canonical any
	var err error
	switch tool {
	case Navigate:
		canonical, err = r.navigation(arguments)
	case Observe:
		canonical, err = r.observation(v, arguments)
	case Upload:
		r.Version, _ = set.Of(contract.Act) // it answers as an act does
		canonical, err = r.upload(arguments)
	default:
		canonical, err = r.act(v, arguments)
	}
	if err != nil {
		return Request{}, err
	}
	return r, r.seal(canonical)
}

// Read is the observation with the query, as part of a call that was allowed.
func Read(q observe.Query) (Request, error) {
	if err := q.Validate(); err != nil {
		return Request{}, err
	}
	r := Request{Tool: Observe, Query: q}
	return r, r.seal(q)
}

func (r *Request) navigation(arguments json.RawMessage) (any, error) {
	var a struct {
		URL *string `json:"url"`
	}
	if err := decode(arguments, &a, "url"); err != nil {
		return nil, err
	}
	if a.URL == nil {
		return nil, invalid("browser.navigate needs url.")
	}
	u, err := site.ParseURL(*a.URL)
	if err != nil {
		return nil, err
	}
	r.URL = u
	return map[string]string{"url": u.String()}, nil
}

func (r *Request) act(v contract.Version, arguments json.RawMessage) (any, error) {
	var a struct {
		Action
		Postcondition json.RawMessage `json:"postcondition"`
	}
	known := []string{"kind", "expected_revision", "ref", "value", "key", "delta_y"}
	if v.AtLeast(contract.V170) {
		known = append(known, "postcondition")
	}
	if err := decode(arguments, &a, known...); err != nil {
		return nil, err
	}
	if err := a.Action.Validate(); err != nil {
		return nil, err
	}
	c, err := decodeCondition(a.Postcondition)
	if err != nil {
		return nil, err
	}
	r.Action, r.Condition = a.Action, c
	return struct {
		Action
		Postcondition *condition.Condition `json:"postcondition,omitempty"`
	}{a.Action, c}, nil
}

func (r *Request) seal(canonical any) error {
	body, err := json.Marshal(canonical)
	if err != nil {
		return fault.Wrap(fault.Internal, "The call could not be prepared.", err)
	}
	sum := sha256.Sum256(append([]byte(string(r.Tool)+"\n"), body...))
	r.Digest = hex.EncodeToString(sum[:])
	return nil
}

// Validate checks the shape of an act: which members its kind takes, and their
// bounds. It returns fault.ArgumentsInvalid.
func (a Action) Validate() error {
	if a.ExpectedRevision == "" || len(a.ExpectedRevision) > MaxRef || a.Ref == "" || len(a.Ref) > MaxRef {
		return invalid("browser.act needs expected_revision and ref, as the last observation gave them.")
	}
	value, key, delta := false, false, false
	switch a.Kind {
	case Click, Check:
	case Type, Select:
		value = true
	case Press:
		key = true
	case Scroll:
		delta = true
	default:
		return invalid("kind is one of click, type, select, check, press, scroll.")
	}
	if (a.Value != nil) != value || (a.Key != nil) != key || (a.DeltaY != nil) != delta {
		return invalid("type and select take value and nothing else; press takes key; scroll takes delta_y; click and check take none of them.")
	}
	switch {
	case value && (utf8.RuneCountInString(*a.Value) > MaxValue || !utf8.ValidString(*a.Value) || strings.ContainsRune(*a.Value, 0)):
		return invalid("value is at most 4096 characters of text.")
	case key && !slices.Contains(Keys(), *a.Key):
		return invalid("key is one of " + strings.Join(Keys(), ", ") + ".")
	case delta && (*a.DeltaY == 0 || *a.DeltaY < -MaxScroll || *a.DeltaY > MaxScroll):
		return invalid("delta_y is a whole number of pixels from -2000 to 2000, not zero.")
	}
	return nil
}

func invalid(public string) error {
	return fault.New(fault.ArgumentsInvalid, public+" Nothing was done.")
}
