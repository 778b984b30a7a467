package action

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
)

var (
	cursor  = strings.Repeat("c", 32)
	extract = `{"extract":{"expected_revision":"r","kind":"%s","fields":[{"name":"Id","column":0,"type":"integer"}]}}`
	waitFor = `{"wait_for":{"role":"button","name":"Save","timeout_ms":100}}`
)

// modes is every way to observe, and the first version that has it.
var modes = []struct {
	args  string
	since contract.Version
}{
	{`{}`, contract.V100},
	{`{"after":"r:1"}`, contract.V170}, {`{"cursor":"` + cursor + `"}`, contract.V170},
	{`{"region_ref":"r:region:0","expected_revision":"r"}`, contract.V170},
	{`{"region_ref":"r:focus","expected_revision":"r","text_offset":100,"text_cursor":"` + cursor + `"}`, contract.V170},
	{fmt.Sprintf(extract, "table"), contract.V170}, {fmt.Sprintf(extract, "articles"), contract.V180},
	{waitFor, contract.V170},
	{`{"wait_for":{"evidence":{"kind":"row","collection_kind":"table","fields":[{"name":"Id","column":0,"type":"integer","value":7}]},"failure_evidence":{"kind":"text","text":"No"}}}`, contract.V170},
	{`{"text_offset":100,"expected_revision":"r"}`, contract.V190}, {`{"since":"r"}`, contract.V190},
}

// TOOL-10, EXP-01, FOC-01, EXTR-01, COND-01: each version takes its own ways
// to observe and no newer one; the schema agrees.
func TestObserveVersions(t *testing.T) {
	for _, set := range contract.Sets() {
		v, _ := set.Of(contract.Observe)
		for _, m := range modes {
			want := v.AtLeast(m.since) && (v != contract.V110 || m.since == contract.V100)
			r, err := PrepareFor(set, Observe, json.RawMessage(m.args))
			if (err == nil) != want || err != nil && !fault.Is(err, fault.ArgumentsInvalid) {
				t.Errorf("%s: %s: %v", v, m.args, err)
			}
			if err == nil && (r.Version != v || len(r.Digest) != 64) {
				t.Errorf("%s: %s: %+v", v, m.args, r)
			}
			if err == nil && !schemaTakes(t, contract.Observe, set, m.args) {
				t.Errorf("%s: the schema refuses %s", v, m.args)
			}
		}
	}
}

func schemaTakes(t *testing.T, tool string, set contract.Set, args string) bool {
	t.Helper()
	for _, x := range set.Tools() {
		if x.Name != tool {
			continue
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(x.Schema))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("s.json", doc); err != nil {
			t.Fatal(err)
		}
		s, err := c.Compile("s.json")
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(args))
		if err != nil {
			t.Fatal(err)
		}
		return s.Validate(value) == nil
	}
	return false
}

// What is not one exact way to observe is refused before anything happens.
func TestObserveRefuses(t *testing.T) {
	for _, args := range []string{
		`{"after":"r:1","cursor":"` + cursor + `"}`, `{"after":"r:1","since":"r"}`, `{"after":""}`, `{"after":"` + strings.Repeat("x", 129) + `"}`, `{"after":1}`,
		`{"cursor":"short"}`, `{"cursor":"` + strings.Repeat("c", 129) + `"}`, `{"selector":"#a"}`, `{"After":"r:1"}`, `{"after":"r:1","after":"r:2"}`,
		`{"region_ref":"r:region:0"}`, `{"expected_revision":"r"}`, `{"text_offset":1}`, `{"text_offset":-1,"expected_revision":"r"}`, `{"text_offset":262145,"expected_revision":"r"}`,
		`{"text_cursor":"` + cursor + `","text_offset":1,"expected_revision":"r"}`, `{"region_ref":"r:region:0","expected_revision":"r","wait_for":{"role":"a","name":"b"}}`,
		`{"wait_for":{}}`, `{"wait_for":[]}`, `{"wait_for":{"role":"","name":"x"}}`, `{"wait_for":{"role":"a","name":"b","timeout_ms":5001}}`, `{"wait_for":{"role":"a","name":"b","hidden":true}}`,
		`{"wait_for":{"evidence":{"kind":"text","text":"x","Text":"y"}}}`, `{"wait_for":{"evidence":{"kind":"row","collection_kind":"table","fields":[{"name":"A","type":"string","value":"x"}]}}}`,
		`{"wait_for":{"evidence":{"kind":"row","collection_kind":"table","row_limit":0,"fields":[{"name":"A","column":0,"type":"string","value":"x"}]}}}`,
		`{"wait_for":{"evidence":{"kind":"row","collection_kind":"table","fields":[{"name":"A","column":0,"type":"string","value":"x","required":true}]}}}`,
		`{"extract":{"expected_revision":"r","kind":"table","fields":[]}}`, `{"extract":{"expected_revision":"r","kind":"table","fields":[{"name":"1","column":0,"type":"string"}]}}`,
		`{"extract":{"expected_revision":"r","kind":"table","fields":[{"name":"A","type":"string"}]}}`, `{"extract":{"expected_revision":"r","kind":"table","fields":[{"name":"A","column":16,"type":"string"}]}}`,
		`{"extract":{"kind":"table","fields":[{"name":"A","column":0,"type":"string"}]}}`, `{"extract":{"expected_revision":"r","kind":"table","row_limit":51,"fields":[{"name":"A","column":0,"type":"string"}]}}`,
	} {
		if r, err := PrepareFor(contract.Newest, Observe, json.RawMessage(args)); !fault.Is(err, fault.ArgumentsInvalid) || r.Digest != "" {
			t.Errorf("%s: %+v, %v", args, r, err)
		}
	}
	if _, err := PrepareFor("2.0.0", Observe, nil); !fault.Is(err, fault.ArgumentsInvalid) {
		t.Errorf("an unknown contract: %v", err)
	}
}

// PAGE-01: offsets, their defaults and their bounds.
func TestOffsets(t *testing.T) {
	for args, want := range map[string]Offsets{`{}`: {}, `{"element_offset":256,"text_offset":262144}`: {256, 262144}, `{"text_offset":5}`: {0, 5}} {
		if r, err := PrepareFor("1.1.0", Observe, json.RawMessage(args)); err != nil || r.Offsets != want {
			t.Errorf("%s: %+v, %v", args, r.Offsets, err)
		}
	}
	for _, args := range []string{`{"element_offset":257}`, `{"element_offset":-1}`, `{"text_offset":262145}`, `{"text_offset":1.5}`, `{"after":"r:1"}`} {
		if _, err := PrepareFor("1.1.0", Observe, json.RawMessage(args)); !fault.Is(err, fault.ArgumentsInvalid) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// EXTR-02, COND-01: what a call leaves out has its default.
func TestDefaults(t *testing.T) {
	r, err := PrepareFor(contract.Newest, Observe, json.RawMessage(fmt.Sprintf(extract, "list")))
	if err != nil || r.Query.Extract.RowLimit != 20 || r.Query.Extract.Index != 0 || !r.Query.Extract.Fields[0].Required {
		t.Errorf("%+v, %v", r.Query.Extract, err)
	}
	r, err = PrepareFor(contract.Newest, Observe, json.RawMessage(`{"wait_for":{"role":"button","name":""}}`))
	if err != nil || r.Condition.TimeoutMS != 2000 {
		t.Errorf("%+v, %v", r.Condition, err)
	}
}

// A postcondition is part of the call that the owner approves, and of nothing
// that is sent to the browser.
func TestPostcondition(t *testing.T) {
	const act = `{"kind":"click","expected_revision":"r","ref":"r:1"%s}`
	plain, err := PrepareFor(contract.Newest, Act, json.RawMessage(fmt.Sprintf(act, "")))
	if err != nil {
		t.Fatal(err)
	}
	with, err := PrepareFor(contract.Newest, Act, json.RawMessage(fmt.Sprintf(act, `,"postcondition":{"evidence":{"kind":"text","text":"Saved"}}`)))
	if err != nil || with.Condition == nil || with.Digest == plain.Digest {
		t.Fatalf("%+v, %v", with, err)
	}
	sent, err := json.Marshal(with.Action)
	if err != nil || strings.Contains(string(sent), "Saved") {
		t.Errorf("%s, %v", sent, err)
	}
	other, err := PrepareFor(contract.Newest, Act, json.RawMessage(fmt.Sprintf(act, `,"postcondition":{"evidence":{"kind":"text","text":"Saved."}}`)))
	if err != nil || other.Digest == with.Digest {
		t.Errorf("another postcondition is the same call: %v", err)
	}
	if _, err := PrepareFor("1.0.0", Act, json.RawMessage(fmt.Sprintf(act, `,"postcondition":{"role":"a","name":"b"}`))); !fault.Is(err, fault.ArgumentsInvalid) {
		t.Errorf("1.0.0 takes a postcondition: %v", err)
	}
	if !schemaTakes(t, contract.Act, contract.Newest, fmt.Sprintf(act, `,"postcondition":{"role":"a","name":"b"}`)) {
		t.Error("the schema refuses a postcondition")
	}
	same, err := Prepare(Act, json.RawMessage(fmt.Sprintf(act, "")))
	if err != nil || same.Digest != plain.Digest {
		t.Errorf("an act without one is another call to the isolated service: %v", err)
	}
}

// FuzzPrepareFor: whatever a version accepts, its schema accepts, and the same
// arguments are always the same call.
func FuzzPrepareFor(f *testing.F) {
	for i := range contract.Sets() {
		for _, m := range modes {
			f.Add(i, []byte(m.args))
		}
		f.Add(i, []byte(`{"element_offset":3,"text_offset":4}`))
	}
	f.Fuzz(func(t *testing.T, i int, args []byte) {
		sets := contract.Sets()
		set := sets[max(0, i)%len(sets)]
		r, err := PrepareFor(set, Observe, args)
		if err != nil {
			if !fault.Is(err, fault.ArgumentsInvalid) {
				t.Fatalf("%q: %v", args, err)
			}
			return
		}
		if again, err := PrepareFor(set, Observe, args); err != nil || again.Digest != r.Digest {
			t.Fatalf("%q: %v", args, err)
		}
		if err := r.Query.Validate(); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		if r.Condition != nil && r.Condition.Validate() != nil {
			t.Fatalf("%q: the condition is not valid", args)
		}
		// A schema counts characters where we count bytes, and takes no null for
		// an absent member.
		if len(bytes.TrimSpace(args)) == 0 || bytes.ContainsFunc(args, func(r rune) bool { return r > '~' }) || bytes.Contains(args, []byte("null")) || bytes.Contains(args, []byte(`\u`)) {
			return
		}
		if !schemaTakes(t, contract.Observe, set, string(args)) {
			t.Fatalf("the schema of %s refuses %s", set, args)
		}
	})
}
