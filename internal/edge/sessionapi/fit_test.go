package sessionapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// Section 2.1, 2.9: the largest observation fits the answer, stays valid, and
// says what was left out.
func TestFit(t *testing.T) {
	origins, err := site.ParseOrigins([]string{"https://desk.practice.example"})
	if err != nil {
		t.Fatal(err)
	}
	revision := strings.Repeat("a", 32)
	big := observe.Document{URL: "https://desk.practice.example/", Revision: revision, Text: strings.Repeat("\x01", observe.MaxText), Facts: map[string]observe.Facts{}}
	for i := range observe.MaxElements {
		ref := fmt.Sprintf("%s:%d", revision, i)
		big.Elements = append(big.Elements, observe.Element{Ref: ref, Role: "link", Name: strings.Repeat("😀", observe.MaxName)})
		big.Facts[ref] = observe.Facts{FieldKind: observe.FieldText, Text: strings.Repeat("ü", 256), Context: strings.Repeat("ü", 128)}
	}
	body, err := fit(big, 640<<10)
	if err != nil || len(body) > 640<<10 {
		t.Fatalf("%d bytes, %v", len(body), err)
	}
	var d observe.Document
	if err := json.Unmarshal(body, &d); err != nil {
		t.Fatal(err)
	}
	if _, err := observe.Accept(d, origins); err != nil {
		t.Errorf("the fitted observation is not valid: %v", err)
	}
	if !d.TextTruncated || !d.MoreElements {
		t.Error("nothing says what was left out")
	}
	if len(big.Elements) != observe.MaxElements || len(big.Facts) != observe.MaxElements {
		t.Error("the caller's observation was changed")
	}

	big.Text = "short"
	if body, err = fit(big, 4<<20); err != nil {
		t.Fatal(err)
	}
	d = observe.Document{}
	if err := json.Unmarshal(body, &d); err != nil || len(d.Elements) != observe.MaxElements || d.MoreElements {
		t.Errorf("%d elements, more %v, %v", len(d.Elements), d.MoreElements, err)
	}
	if n := len(d.Facts); n == 0 || n == observe.MaxElements {
		t.Errorf("facts of %d elements; the bound is 64 KiB", n)
	}
	if _, ok := d.Facts[d.Elements[0].Ref]; !ok {
		t.Error("the first element lost its facts")
	}
	markup := observe.Document{URL: big.URL, Revision: revision, Text: strings.Repeat("<&>", 80<<10)}
	if body, err = fit(markup, 640<<10); err != nil || strings.Contains(string(body), `\u003c`) {
		t.Errorf("markup is escaped, or %v", err)
	}
}
