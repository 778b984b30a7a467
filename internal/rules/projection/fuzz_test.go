package projection

import (
	"encoding/json"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// FuzzProject: whatever another program reports as an observation is refused,
// or projected into an answer that fits, in every version.
func FuzzProject(f *testing.F) {
	for _, s := range []string{
		`{"url":"https://wiki.example.org/","title":"T","revision":"r","text":"text","elements":[{"ref":"r:0","role":"button","name":"Save","disabled":false,"checked":null}]}`,
		`{"url":"https://wiki.example.org/","revision":"r","elements":[{"ref":"r:0","role":"a","name":""}],"states":{"r:0":{"options":[{"label":"A"}],"frame":"f1"}},"frames":[{"id":"f1","origin":"null"}],"notices":[{"kind":"popup"}],"unread":["canvas"],"draft":"d"}`,
		`{"url":"https://wiki.example.org/","revision":"r","text":"abc","focus":{"region_ref":"r:focus","text_offset":1,"text_total_bytes":9,"text_cursor":"00000000000000000000000000000000"},"coverage":{"next_cursor":"00000000000000000000000000000000"},"region_coverage":{"version":1,"scope":"main_document"},"regions":[{"ref":"r:region:0","kind":"main","text":"m"}]}`,
		`{"url":"https://wiki.example.org/","revision":"r","extraction":{"version":1,"revision":"r","kind":"table","status":"extracted","scope":"main_document","row_limit":2,"fields":[{"name":"A","column":0,"type":"integer"}],"rows":[{"ref":"r:row:0","cells":[{"field":"A","column":0,"ref":"r:cell:0:0","text":"7","value":7,"status":"present"}],"schema_valid":true}]}}`,
		`{"url":"https://wiki.example.org/","revision":"r","interruption":"needs_user"}`,
	} {
		f.Add([]byte(s), 1024)
		f.Add([]byte(s), 16_000)
	}
	origins, err := site.ParseOrigins([]string{"https://wiki.example.org"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte, budget int) {
		var d observe.Document
		if json.Unmarshal(body, &d) != nil {
			return
		}
		raw, err := observe.Accept(d, origins)
		if err != nil {
			if !fault.Is(err, fault.OutputInvalid) {
				t.Fatal(err)
			}
			return
		}
		budget = 1024 + max(budget, 0)%16_000
		var seen Shown
		for _, version := range []contract.Version{contract.V100, contract.V110, contract.V170, contract.V180, contract.V190, contract.V190} {
			o := Options{Version: version, Budget: budget, Since: seen.Revision(), Seen: seen}
			v, shown, err := Project(raw, o)
			if err != nil {
				if version != contract.V110 || !fault.Is(err, fault.OutputInvalid) {
					t.Fatal(err)
				}
				continue
			}
			b := encode(t, v)
			if len(b) > budget || !json.Valid(b) {
				t.Fatalf("%s: %d bytes in a budget of %d: %s", version, len(b), budget, b)
			}
			if version == contract.V190 {
				seen = shown
			}
		}
	})
}
