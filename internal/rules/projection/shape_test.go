package projection

import (
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/rules/condition"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// TOOL-10: what each published version answers to one page, to the byte. A
// version's line never changes.
func TestShapes(t *testing.T) {
	d := observe.Document{
		URL: "https://wiki.example.org/", Title: "T", Revision: "r1", Text: "a <b>", Readiness: observe.DOMQuiet,
		Elements: []observe.Element{
			{Ref: "r1:0", Role: "button", Name: "Save"}, {Ref: "r1:1", Role: "checkbox", Name: "Agree", Disabled: true, Checked: new(true)},
			{Ref: "r1:2", Role: "link", Name: "Framed"},
		},
		States:         map[string]observe.State{"r1:0": {Required: true}, "r1:2": {Frame: "f1"}},
		Frames:         []observe.Frame{{ID: "f1", Origin: "https://frame.example.org"}},
		Notices:        []observe.Notice{{Kind: "popup"}},
		Unread:         []string{"canvas"},
		Draft:          "d",
		Coverage:       &observe.Coverage{ScannedCandidates: 3, NextCursor: strings.Repeat("c", 32), ScanLimitReached: true},
		TextCoverage:   &observe.TextCoverage{Version: 1, Scope: "main_document_and_open_shadow", ScannedNodes: 5, ScannedTextCharacters: 5},
		Regions:        []observe.Region{{Ref: "r1:region:0", Kind: observe.RegionMain, Text: "main"}},
		RegionCoverage: &observe.RegionCoverage{Version: 1, Scope: "main_document", ScannedNodes: 5},
	}
	met := &condition.Result{Status: condition.Satisfied, Scope: condition.Scope, Observations: 1}
	const (
		old = `{"url":"https://wiki.example.org/","title":"T","revision":"r1","text":"a <b>","elements":[{"ref":"r1:0","role":"button","name":"Save","disabled":false,"checked":null},` +
			`{"ref":"r1:1","role":"checkbox","name":"Agree","disabled":true,"checked":true}],"content_trust":"external_untrusted"`
		window = `"coverage":{"scope":"provider_observation","scanned_candidates":3,"next_cursor":"cccccccccccccccccccccccccccccccc","scan_limit_reached":true},` +
			`"next_observe":{"cursor":"cccccccccccccccccccccccccccccccc"},"text_coverage":{"version":1,"scope":"main_document_and_open_shadow","scanned_nodes":5,"scanned_text_characters":5},` +
			`"regions":[{"ref":"r1:region:0","kind":"main","text":"main","text_truncated":false}],"region_coverage":{"version":1,"scope":"main_document","scanned_nodes":5},` +
			`"condition":{"status":"satisfied","scope":"observation_window","observations":1,"elapsed_ms":0}`
	)
	for version, want := range map[contract.Version]string{
		contract.V100: old + `,"readiness":"dom_quiet"}`,
		contract.V110: old + `,"total_elements":2,"total_text_characters":5,"element_offset":0,"text_offset":0,"next_element_offset":null,"next_text_offset":null}`,
		contract.V170: old + `,"readiness":"dom_quiet",` + window + `}`,
		contract.V180: old + `,"readiness":"dom_quiet",` + window + `}`,
		contract.V190: `{"url":"https://wiki.example.org/","title":"T","revision":"r1","text":"a <b>","elements":[{"ref":"r1:0","role":"button","name":"Save","disabled":false,"checked":null,"required":true},` +
			`{"ref":"r1:1","role":"checkbox","name":"Agree","disabled":true,"checked":true},{"ref":"r1:2","role":"link","name":"Framed","disabled":false,"checked":null,"frame":"f1"}],"content_trust":"external_untrusted",` +
			`"readiness":"dom_quiet",` + window + `,"frames":[{"id":"f1","origin":"https://frame.example.org"}],"notices":[{"kind":"popup"}],"unread":["canvas"],"draft":"d"}`,
	} {
		v, _, err := Project(accept(t, d), Options{Version: version, Condition: met})
		if got := string(encode(t, v)); err != nil || got != want {
			t.Errorf("%s, %v\n got %s\nwant %s", version, err, got, want)
		}
	}
}
