// Package pagejs is the JavaScript that enters pages: one observation in one
// pass, the checks before an act, and the comparisons after it (OBS-01 to
// OBS-06, EXP-05 to EXP-08, NAME-01, CAP-04, CAP-05, CLK-01, DENY-03, SETL-01),
// and the readings of text, regions, collections and drafts (TEXT-01 to
// TEXT-04, REGN-02 to REGN-04, FOC-05, EXTR-05 to EXTR-07, ART-01 to ART-04,
// DRAFT-03). It runs in an isolated world, where a page's patched prototypes do
// not reach, takes its arguments as data, and never lets the value of a field
// out.
package pagejs

import (
	"embed"
	"strings"

	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

//go:embed js/*.js
var files embed.FS

// order is the order in which the files see each other.
var order = []string{"dom", "look", "visible", "field", "name", "controls", "state", "frames", "text", "regions", "focus", "articles", "extract", "extras", "facts", "likeness",
	"observe", "target", "assess", "guard", "edit", "draft", "upload", "settle", "challenge", "storage"}

// Function is a function of the kit.
type Function string

// The functions of the kit, with argument and result as JSON.
const (
	Observe        Function = "observe"        // ObserveArgs -> Page
	OpenRoots      Function = "openRoots"      // called with closed shadow roots, not with text
	Nodes          Function = "nodes"          // called with numbers, answers with the elements themselves
	Through        Function = "through"        // ThroughArgs -> Target; where a point of a frame is in the document around it
	Forget         Function = "forget"         // {} -> null; no reference is live any more
	Names          Function = "names"          // {} -> names of labelled nodes, for tests
	Assess         Function = "assess"         // TargetArgs -> Assessment; what a constraint is judged by
	Locate         Function = "locate"         // TargetArgs -> Target
	Aim            Function = "aim"            // TargetArgs -> Target; arms the click guard
	Disarm         Function = "disarm"         // {} -> Verdict
	FocusFor       Function = "focusFor"       // TargetArgs -> Target; nothing but the focus
	Prepare        Function = "prepare"        // TargetArgs -> Target; selects the old text, arms the key guard
	Fill           Function = "fill"           // TargetArgs -> Target; sets the value of a picker
	Choose         Function = "choose"         // TargetArgs -> Target
	ConfirmText    Function = "confirmText"    // TargetArgs -> bool
	ConfirmChecked Function = "confirmChecked" // TargetArgs -> bool
	Kept           Function = "kept"           // TargetArgs -> bool
	Quiet          Function = "quiet"          // QuietArgs -> bool
	Ready          Function = "ready"          // {} -> bool; the document is parsed
	KeepDraft      Function = "keepDraft"      // TargetArgs -> bool; binds the draft receipt to that editor
	Challenge      Function = "challenge"      // ChallengeArgs -> bool
	ReadStorage    Function = "readStorage"    // {} -> []browser.Item
	WriteStorage   Function = "writeStorage"   // {items} -> int
	HasStorage     Function = "hasStorage"     // {} -> bool
)

// Invoke calls a function of the kit: its this is the object that Source
// evaluates to. Text goes both ways, so that a result is decoded once.
const Invoke = `function (name, argument) {
  return Promise.resolve(this[name](JSON.parse(argument))).then((result) => JSON.stringify(result));
}`

// Source is an expression that evaluates to the kit.
func Source() string {
	var b strings.Builder
	b.WriteString("(() => {\n'use strict';\n")
	for _, name := range order {
		body, err := files.ReadFile("js/" + name + ".js")
		if err != nil {
			panic("pagejs: " + err.Error()) // the files are embedded: only a broken build gets here
		}
		b.Write(body)
	}
	b.WriteString("return Object.freeze({ observe, openRoots, nodes, through, names, forget, assess, locate, aim, disarm, focusFor, prepare, fill, choose, confirmText, confirmChecked, kept, keepDraft,\n" +
		"  quiet, ready, receiver, receives, pictured, screenSize, challenge, readStorage, writeStorage, hasStorage });\n})()")
	return b.String()
}

// ObserveArgs names the revision that the handles of the observation get, and
// the part of the page that it is about.
type ObserveArgs struct {
	Revision   string       `json:"revision"`
	Offset     int          `json:"offset,omitempty"`    // of the window of candidates
	Anchor     int          `json:"anchor,omitempty"`    // number of the element that must be at the offset
	Specified  bool         `json:"specified,omitempty"` // the candidates of the contract before 1.9.0 only
	Focus      *FocusArgs   `json:"focus,omitempty"`
	Regions    bool         `json:"regions,omitempty"`    // look for regions, too
	Challenges bool         `json:"challenges,omitempty"` // a sign-in challenge ends the reading
	Extract    *ExtractArgs `json:"extract,omitempty"`
	Draft      string       `json:"draft,omitempty"` // to be compared with its editor
}

// Page is what Observe saw of one document.
type Page struct {
	Challenged bool     `json:"challenged"` // and nothing else is here
	Gone       bool     `json:"gone"`       // the region in focus is not what it was, and nothing else is here
	Moved      bool     `json:"moved"`      // the anchor is not where it was, and nothing else is here
	URL        string   `json:"url"`
	Origin     string   `json:"origin"` // "null" for an opaque one
	Title      string   `json:"title"`
	Entries    []Entry  `json:"entries"`
	Scanned    int      `json:"scanned"` // candidates that were looked at
	Limited    bool     `json:"limited"` // ... and there are more
	Next       int      `json:"next"`    // position at which the next window begins, or -1
	Unread     []string `json:"unread"`
	Suspects   []int    `json:"suspects"` // elements that may have a closed shadow root
	Cost       Cost     `json:"cost"`
	Extras
}

// Cost is where the time of an observation went, in milliseconds of the
// page's own clock.
type Cost struct {
	Survey   float64 `json:"survey"`   // the walk over the markup
	Select   float64 `json:"select"`   // the looks of what is in the window
	Describe float64 `json:"describe"` // names and states
	Extras   float64 `json:"extras"`   // text, regions, collections
	Visited  int     `json:"visited"`  // elements of the walk
}

// Entry is one control or frame. Its number names it for as long as its
// document lives.
type Entry struct {
	Number    int           `json:"number"`
	Position  int           `json:"position"` // among the candidates
	Frame     *Frame        `json:"frame"`    // nil for a control, of which the rest tells
	Role      string        `json:"role"`
	Name      string        `json:"name"`
	Disabled  bool          `json:"disabled"`
	Checked   *bool         `json:"checked"`
	FieldKind string        `json:"fieldKind"`
	Text      string        `json:"text"`
	Context   string        `json:"context"`
	State     observe.State `json:"state"`
	Facts     *Facts        `json:"facts"` // nil for a frame, and when there was no time for them
}

// Facts are what the page says of a control beyond its name (FACT-03 to
// FACT-10). Addresses are here as the browser resolves them.
type Facts struct {
	Labels   map[observe.Source]string `json:"labels"`
	Cut      bool                      `json:"cut"`
	Links    []string                  `json:"links"`
	Forms    []string                  `json:"forms"` // method, a space, address
	Opaque   bool                      `json:"opaque"`
	Download bool                      `json:"download"`
}

// Frame is a frame as the document around it shows it.
type Frame struct {
	Title   string `json:"title"`
	Blocked string `json:"blocked"`
}

// TargetArgs names an element and what is about to be done to it.
type TargetArgs struct {
	Revision string `json:"revision"`
	Index    int    `json:"index"`
	Kind     string `json:"kind,omitempty"`
	Key      string `json:"key,omitempty"`
	Text     string `json:"text"`             // type; may be empty
	Value    string `json:"value"`            // select; may be empty
	Judged   bool   `json:"judged,omitempty"` // by a constraint: the element must be as it was assessed
}

// Assessment is the live element, or the reason why there is none.
type Assessment struct {
	Reason  Reason   `json:"reason"`
	Entry            // without number, position and state
	Options []string `json:"options"` // texts of those that the selection could choose
	Partial bool     `json:"partial"` // they are not all that there are
	URL     string   `json:"url"`     // of the element's document
}

// ThroughArgs is a point of a frame's document; with Types, the document
// around it is armed as by Aim.
type ThroughArgs struct {
	Number int      `json:"number"`
	X      float64  `json:"x"`
	Y      float64  `json:"y"`
	Types  []string `json:"types,omitempty"`
}

// Target is an element that can be acted on, or the reason why not.
type Target struct {
	Reason  Reason  `json:"reason"`
	Passing bool    `json:"passing"` // the reason may go away by itself
	Done    bool    `json:"done"`    // the wanted state is there already
	Picker  bool    `json:"picker"`  // it takes a whole value, as a date does, and no keys
	Kept    bool    `json:"kept"`    // the page has been changed, and the change held
	Hosts   []int   `json:"hosts"`   // elements under the point that may have a closed shadow root
	X       float64 `json:"x"`
	Y       float64 `json:"y"`
}

// Verdict is what the guard saw.
type Verdict struct {
	Seen    bool `json:"seen"`
	Blocked bool `json:"blocked"`
}

// QuietArgs bounds a wait, in milliseconds.
type QuietArgs struct {
	StillMs int64 `json:"stillMs"`
	BoundMs int64 `json:"boundMs"`
}

// Reason is why an element is refused.
type Reason string

// The reasons.
const (
	Stale      Reason = "stale"
	Unknown    Reason = "unknown"
	Gone       Reason = "gone"
	Changed    Reason = "changed"
	Invisible  Reason = "invisible"
	Disabled   Reason = "disabled"
	Inert      Reason = "inert"
	Moving     Reason = "moving"
	NoPointer  Reason = "no_pointer"
	Covered    Reason = "covered"
	Credential Reason = "credential"
	NotTypable Reason = "not_typable"
	NotSelect  Reason = "not_select"
	NotChoice  Reason = "not_choice"
	ReadOnly   Reason = "read_only"
	External   Reason = "external"
	File       Reason = "file"
	OneLine    Reason = "one_line"
	NotADate   Reason = "not_a_date"
	TooLong    Reason = "too_long"
	NoFocus    Reason = "no_focus"
	NoOption   Reason = "no_option"
	TwoOptions Reason = "two_options"
)
