package contract

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var publish = flag.Bool("publish", false, "add versions that are not in the golden file yet; never changes one that is")

const golden = "testdata/published.golden"

// TOOL-10: a published version stays registered with the schema it was
// published with. The file has one line for each: name, version, SHA-256 of
// the compact schema.
func TestPublishedVersionsNeverChange(t *testing.T) {
	want, err := os.ReadFile(golden)
	if err != nil && !*publish {
		t.Fatal(err)
	}
	pinned := map[string]string{}
	for line := range strings.Lines(string(want)) {
		f := strings.Fields(line)
		pinned[f[0]+" "+f[1]] = f[2]
	}
	var out bytes.Buffer
	registered := map[string]bool{}
	for _, tool := range Published() {
		var compact bytes.Buffer
		if err := json.Compact(&compact, tool.Schema); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(compact.Bytes())
		key, digest := tool.Name+" "+string(tool.Version), hex.EncodeToString(sum[:])
		fmt.Fprintln(&out, key, digest)
		registered[key] = true
		if old, ok := pinned[key]; ok && old != digest {
			t.Errorf("the schema of %s was changed after it was published", key)
		} else if !ok && !*publish {
			t.Errorf("%s is not in %s; run this test with -publish", key, golden)
		}
	}
	for key := range pinned {
		if !registered[key] {
			t.Errorf("%s is not registered any more", key)
		}
	}
	if *publish && !t.Failed() {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TOOL-10, TOOL-11: which set has which version.
func TestSets(t *testing.T) {
	want := map[Set]string{
		"1.0.0": "1.0.0 1.0.0 1.0.0", "1.1.0": "1.0.0 1.1.0 1.0.0", "1.7.0": "1.7.0 1.7.0 1.7.0",
		"1.8.0": "1.7.0 1.8.0 1.7.0", "1.9.0": "1.9.0 1.9.0 1.9.0 1.0.0",
	}
	if len(Sets()) != len(want) || !Newest.Known() || Sets()[len(want)-1] != Newest {
		t.Errorf("sets %v, newest %s", Sets(), Newest)
	}
	for set, versions := range want {
		var got []string
		for _, tool := range set.Tools() {
			got = append(got, string(tool.Version))
		}
		if strings.Join(got, " ") != versions {
			t.Errorf("set %s has %v", set, got)
		}
	}
	for _, bad := range []Set{"", "1.2.0", "1.9", "2.0.0"} {
		if _, ok := bad.Of(Observe); ok || bad.Known() || len(bad.Tools()) != 0 {
			t.Errorf("there is a set %q", bad)
		}
	}
	if _, ok := Newest.Of("browser.download"); ok {
		t.Error("there is a tool that is not there")
	}
	for _, set := range Sets() { // UPL-10: a frozen roster never grows
		if _, ok := set.Of(Upload); ok != (set == Newest) {
			t.Errorf("set %s has uploads: %v", set, ok)
		}
	}
	for i, v := range []Version{V100, V110, V170, V180, V190} {
		for j, w := range []Version{V100, V110, V170, V180, V190} {
			if v.AtLeast(w) != (i >= j) {
				t.Errorf("%s at least %s: %v", v, w, v.AtLeast(w))
			}
		}
	}
}

// TOOL-07: every schema is a closed object, all the way down, and names
// nothing that is the session's and not the model's to choose.
func TestSchemasAreClosed(t *testing.T) {
	for _, tool := range Published() {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(tool.Schema))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("schema.json", doc); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Compile("schema.json"); err != nil {
			t.Errorf("%s %s: %v", tool.Name, tool.Version, err)
		}
		var walk func(any)
		walk = func(v any) {
			switch v := v.(type) {
			case map[string]any:
				if v["type"] == "object" && v["additionalProperties"] != false {
					t.Errorf("%s %s: an object is open", tool.Name, tool.Version)
				}
				for name, x := range v {
					if slices.Contains([]string{"tenant", "principal", "profile", "device", "provider", "credential", "grant", "selector", "script"}, name) {
						t.Errorf("%s %s takes %s", tool.Name, tool.Version, name)
					}
					walk(x)
				}
			case []any:
				for _, x := range v {
					walk(x)
				}
			}
		}
		walk(doc)
		if tool.Title == "" || tool.Description == "" || tool.ReadOnly != (tool.Name == Navigate || tool.Name == Observe) {
			t.Errorf("%s %s is not described", tool.Name, tool.Version)
		}
	}
}

// What 1.9.0 adds is in no older version, and it takes everything that 1.8.0
// takes.
func TestAdditive(t *testing.T) {
	properties := func(name string, v Version) map[string]json.RawMessage {
		var s struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if err := json.Unmarshal(published(name, v).Schema, &s); err != nil {
			t.Fatal(err)
		}
		return s.Properties
	}
	newest := properties(Observe, V190)
	for name := range properties(Observe, V180) {
		if newest[name] == nil {
			t.Errorf("1.9.0 does not take %s", name)
		}
	}
	for _, v := range []Version{V170, V180} {
		if properties(Observe, v)["since"] != nil {
			t.Errorf("%s takes since", v)
		}
	}
	if newest["since"] == nil || len(newest) != len(properties(Observe, V180))+1 {
		t.Errorf("1.9.0 takes %d members", len(newest))
	}
}
