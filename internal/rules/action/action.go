// Package action is what an agent can ask for: the three tools of this
// version, their arguments, and the digest that an approval is bound to
// (TOOL-02 to TOOL-04, section 2.1 of the requirements). Everything here is
// pure.
package action

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// Tool is the stable name of a tool.
type Tool string

const (
	Navigate Tool = "browser.navigate" // open one allowed public HTTPS URL
	Observe  Tool = "browser.observe"  // read the current page
	Act      Tool = "browser.act"      // one click, type, select, check, press or scroll
)

// Tools lists the tools in the order in which they are advertised.
func Tools() []Tool { return []Tool{Navigate, Observe, Act} }

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
	Action Action        // Act only
	Query  observe.Query // Observe only
	// Digest is the hexadecimal SHA-256 of the tool name and the canonical
	// arguments; two calls are the same call exactly if their digests agree.
	Digest string
}

// Prepare validates the arguments of a call strictly: exactly the known
// members, the right types, within bounds. It returns fault.ArgumentsInvalid,
// or fault.URLDisallowed for a URL that can never be opened.
func Prepare(tool Tool, arguments json.RawMessage) (Request, error) {
	r := Request{Tool: tool}
	var canonical any
	switch tool {
	case Navigate:
		var a struct {
			URL *string `json:"url"`
		}
		if err := decode(arguments, &a, "url"); err != nil {
			return Request{}, err
		}
		if a.URL == nil {
			return Request{}, invalid("browser.navigate needs url.")
		}
		u, err := site.ParseURL(*a.URL)
		if err != nil {
			return Request{}, err
		}
		r.URL, canonical = u, map[string]string{"url": u.String()}
	case Observe:
		if err := decode(arguments, &struct{}{}); err != nil {
			return Request{}, err
		}
		canonical = struct{}{}
	case Act:
		if err := decode(arguments, &r.Action, "kind", "expected_revision", "ref", "value", "key", "delta_y"); err != nil {
			return Request{}, err
		}
		if err := r.Action.Validate(); err != nil {
			return Request{}, err
		}
		canonical = r.Action
	default:
		return Request{}, invalid("There is no such tool.")
	}
	body, err := json.Marshal(canonical)
	if err != nil {
		return Request{}, fault.Wrap(fault.Internal, "The call could not be prepared.", err)
	}
	sum := sha256.Sum256(append([]byte(string(tool)+"\n"), body...))
	r.Digest = hex.EncodeToString(sum[:])
	return r, nil
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

// decode reads exactly one JSON object whose members have exactly the known
// names, each at most once; nothing at all counts as the empty object, and a
// null as an absent member.
func decode(raw json.RawMessage, into any, known ...string) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	if trimmed := bytes.TrimSpace(raw); trimmed[0] != '{' {
		return invalid("The arguments are not an object.")
	}
	if err := members(raw, known); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(into); err != nil {
		return invalid("The arguments have a wrong type; see the tool's schema.")
	}
	if _, err := d.Token(); err != io.EOF {
		return invalid("There is something behind the arguments.")
	}
	return nil
}

// members refuses a member that is unknown or named twice. encoding/json would
// take the last one, in any letter case and with look-alikes such as a long s,
// where another reader takes the first.
func members(raw json.RawMessage, known []string) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return invalid("The arguments are not JSON.")
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return invalid("The arguments are not JSON.")
		}
		name, _ := t.(string)
		if !slices.Contains(known, name) || seen[name] {
			return invalid("The arguments have an unknown member, or one that is named twice; see the tool's schema.")
		}
		seen[name] = true
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			return invalid("The arguments are not JSON.")
		}
	}
	return nil
}

func invalid(public string) error {
	return fault.New(fault.ArgumentsInvalid, public+" Nothing was done.")
}
