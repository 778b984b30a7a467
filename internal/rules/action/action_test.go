package action

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
)

// TOOL-02 to TOOL-04, section 2.1: what each tool takes.
func TestPrepare(t *testing.T) {
	act := func(more string) string { return `{"expected_revision":"r1","ref":"r1:3",` + more + `}` }
	for _, x := range []struct {
		tool Tool
		args string
	}{
		{Navigate, `{"url":"https://wiki.example.org/x?y#z"}`},
		{Observe, `{}`}, {Observe, ``}, {Observe, " \n"},
		{Act, act(`"kind":"click"`)}, {Act, act(`"kind":"check"`)}, {Act, act(`"kind":"click","value":null`)},
		{Act, act(`"kind":"type","value":"hello"`)}, {Act, act(`"kind":"type","value":""`)}, {Act, act(`"kind":"select","value":"Blue"`)},
		{Act, act(`"kind":"press","key":"Enter"`)}, {Act, act(`"kind":"press","key":"ArrowRight"`)},
		{Act, act(`"kind":"scroll","delta_y":-2000`)}, {Act, act(`"kind":"scroll","delta_y":1`)},
		{Act, act(`"kind":"type","value":"` + strings.Repeat("ü", MaxValue) + `"`)},
	} {
		r, err := Prepare(x.tool, json.RawMessage(x.args))
		if err != nil || r.Tool != x.tool || len(r.Digest) != 64 {
			t.Errorf("%s %.80s: %+v, %v", x.tool, x.args, r, err)
		}
	}
	r, err := Prepare(Act, json.RawMessage(act(`"kind":"type","value":"hello"`)))
	if err != nil || r.Action.Kind != Type || *r.Action.Value != "hello" || r.Action.Ref != "r1:3" || r.Action.ExpectedRevision != "r1" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestPrepareRefuses(t *testing.T) {
	act := func(more string) string { return `{"expected_revision":"r1","ref":"r1:3",` + more + `}` }
	long := strings.Repeat("x", MaxRef+1)
	for _, x := range []struct {
		tool Tool
		args string
	}{
		{"", `{}`}, {"browser.download", `{}`}, {"browser.act ", `{}`}, {"Browser.Act", `{}`},
		// not one object
		{Observe, `null`}, {Observe, `[]`}, {Observe, `"x"`}, {Observe, `1`}, {Observe, `{`}, {Observe, `{}{}`}, {Observe, `{} x`}, {Observe, `{},`},
		{Observe, "\ufeff{}"}, {Navigate, `{"url"}`}, {Navigate, `{"url":"https://a.example"`}, {Navigate, `{"url":"https://a.example",}`},
		// members
		{Observe, `{"x":1}`}, {Navigate, `{}`}, {Navigate, `{"url":null}`}, {Navigate, `{"url":1}`}, {Navigate, `{"url":["https://a.example"]}`},
		{Navigate, `{"URL":"https://a.example"}`}, {Navigate, `{"url":"https://a.example","profile":"x"}`},
		{Navigate, `{"url":"https://a.example","url":"https://b.example"}`}, {Navigate, `{"url":"https://a.example","\u0075rl":"https://b.example"}`},
		{Act, act(`"kind":"click","Kind":"type"`)}, {Act, act(`"kind":"click","expected_reviſion":"r2"`)}, {Act, act(`"kind":"click","\u212aind":"check"`)},
		{Act, act(`"kind":"click","tenant":"x"`)}, {Act, act(`"kind":"click","approval_id":"x"`)},
		// kinds and what they take
		{Act, `{}`}, {Act, act(`"kind":""`)}, {Act, act(`"kind":"hover"`)}, {Act, act(`"kind":"CLICK"`)}, {Act, act(`"kind":1`)},
		{Act, act(`"kind":"click","value":"x"`)}, {Act, act(`"kind":"click","key":"Enter"`)}, {Act, act(`"kind":"check","delta_y":1`)},
		{Act, act(`"kind":"type"`)}, {Act, act(`"kind":"type","value":null`)}, {Act, act(`"kind":"type","value":1`)}, {Act, act(`"kind":"type","value":"x","key":"Enter"`)},
		{Act, act(`"kind":"select"`)}, {Act, act(`"kind":"press"`)}, {Act, act(`"kind":"press","value":"Enter"`)}, {Act, act(`"kind":"scroll"`)},
		{Act, act(`"kind":"press","key":"F5"`)}, {Act, act(`"kind":"press","key":"enter"`)}, {Act, act(`"kind":"press","key":""`)}, {Act, act(`"kind":"press","key":"Control+Enter"`)},
		// bounds
		{Act, act(`"kind":"scroll","delta_y":0`)}, {Act, act(`"kind":"scroll","delta_y":2001`)}, {Act, act(`"kind":"scroll","delta_y":-2001`)},
		{Act, act(`"kind":"scroll","delta_y":1.5`)}, {Act, act(`"kind":"scroll","delta_y":1e2`)}, {Act, act(`"kind":"scroll","delta_y":"100"`)},
		{Act, act(`"kind":"scroll","delta_y":9223372036854775808`)},
		{Act, act(`"kind":"type","value":"` + strings.Repeat("ü", MaxValue+1) + `"`)}, {Act, act(`"kind":"type","value":"a\u0000b"`)},
		{Act, `{"kind":"click","ref":"r1:3"}`}, {Act, `{"kind":"click","expected_revision":"r1"}`}, {Act, `{"kind":"click","expected_revision":"","ref":"r1:3"}`},
		{Act, `{"kind":"click","expected_revision":"r1","ref":""}`}, {Act, `{"kind":"click","expected_revision":"r1","ref":"` + long + `"}`},
		{Act, `{"kind":"click","expected_revision":"` + long + `","ref":"r1:3"}`}, {Act, `{"kind":"click","expected_revision":"r1","ref":3}`},
	} {
		r, err := Prepare(x.tool, json.RawMessage(x.args))
		if !fault.Is(err, fault.ArgumentsInvalid) || r.Digest != "" {
			t.Errorf("%s %.80s: %+v, %v", x.tool, x.args, r, err)
		}
	}
	for _, u := range []string{"http://wiki.example.org", "https://user@wiki.example.org", "https://127.0.0.1", "file:///etc/passwd", ""} {
		args, _ := json.Marshal(map[string]string{"url": u})
		if r, err := Prepare(Navigate, args); !fault.Is(err, fault.URLDisallowed) || r.Digest != "" {
			t.Errorf("%s: %v", u, err)
		}
	}
}

// VIEW-03, POL-02: the digest is the call. Spelling does not matter, and any
// difference in meaning does.
func TestDigest(t *testing.T) {
	digest := func(tool Tool, args string) string {
		r, err := Prepare(tool, json.RawMessage(args))
		if err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		return r.Digest
	}
	same := [][2]string{
		{`{"kind":"type","expected_revision":"r","ref":"r:1","value":"a<b"}`, `{ "value":"a\u003cb", "ref":"r:1","expected_revision":"r","kind":"type","key":null }`},
		{`{"kind":"scroll","expected_revision":"r","ref":"r:1","delta_y":10}`, `{"delta_y":10,"kind":"scroll","ref":"r:1","expected_revision":"r"}`},
	}
	for _, x := range same {
		if digest(Act, x[0]) != digest(Act, x[1]) {
			t.Errorf("%s and %s are different calls", x[0], x[1])
		}
	}
	if digest(Navigate, `{"url":"HTTPS://Wiki.example.org:443/a"}`) != digest(Navigate, `{"url":"https://wiki.example.org/a"}`) {
		t.Error("two spellings of one address are different calls")
	}
	seen := map[string]string{}
	for _, x := range []struct {
		tool Tool
		args string
	}{
		{Observe, `{}`},
		{Navigate, `{"url":"https://wiki.example.org"}`}, {Navigate, `{"url":"https://wiki.example.org/"}`}, {Navigate, `{"url":"https://wiki.example.org/#a"}`},
		{Act, `{"kind":"click","expected_revision":"r","ref":"r:1"}`}, {Act, `{"kind":"check","expected_revision":"r","ref":"r:1"}`},
		{Act, `{"kind":"click","expected_revision":"s","ref":"r:1"}`}, {Act, `{"kind":"click","expected_revision":"r","ref":"r:2"}`},
		{Act, `{"kind":"type","expected_revision":"r","ref":"r:1","value":""}`}, {Act, `{"kind":"type","expected_revision":"r","ref":"r:1","value":" "}`},
		{Act, `{"kind":"select","expected_revision":"r","ref":"r:1","value":""}`},
		{Act, `{"kind":"press","expected_revision":"r","ref":"r:1","key":"Tab"}`}, {Act, `{"kind":"press","expected_revision":"r","ref":"r:1","key":"Enter"}`},
		{Act, `{"kind":"scroll","expected_revision":"r","ref":"r:1","delta_y":1}`}, {Act, `{"kind":"scroll","expected_revision":"r","ref":"r:1","delta_y":-1}`},
	} {
		d := digest(x.tool, x.args)
		if other, ok := seen[d]; ok {
			t.Errorf("%s and %s have one digest", other, x.args)
		}
		seen[d] = x.args
	}
}

// Acts that differ in any member have different digests, and an act survives
// its own encoding.
func TestDigestProperty(t *testing.T) {
	text := rapid.StringN(1, 8, -1)
	one := rapid.Custom(func(t *rapid.T) Action {
		a := Action{Kind: rapid.SampledFrom(Kinds()).Draw(t, "kind"), ExpectedRevision: text.Draw(t, "revision"), Ref: text.Draw(t, "ref")}
		switch a.Kind {
		case Type, Select:
			v := rapid.String().Filter(func(s string) bool { return !strings.ContainsRune(s, 0) }).Draw(t, "value")
			a.Value = &v
		case Press:
			k := rapid.SampledFrom(Keys()).Draw(t, "key")
			a.Key = &k
		case Scroll:
			d := rapid.IntRange(1, MaxScroll).Draw(t, "delta")
			a.DeltaY = &d
		}
		return a
	})
	rapid.Check(t, func(t *rapid.T) {
		var encoded [2]string
		var digests [2]string
		for i := range 2 {
			a := one.Draw(t, fmt.Sprint("act", i))
			b, err := json.Marshal(a)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Prepare(Act, b)
			if err != nil {
				t.Fatalf("%s: %v", b, err)
			}
			again, err := json.Marshal(r.Action)
			if err != nil || string(again) != string(b) {
				t.Fatalf("%s comes back as %s", b, again)
			}
			encoded[i], digests[i] = string(b), r.Digest
		}
		if (encoded[0] == encoded[1]) != (digests[0] == digests[1]) {
			t.Fatalf("%s and %s: digests %s and %s", encoded[0], encoded[1], digests[0], digests[1])
		}
	})
}

// The tool list is what the design says; nobody adds one in passing.
func TestTools(t *testing.T) {
	if got := fmt.Sprint(Tools()); got != "[browser.navigate browser.observe browser.act browser.upload]" {
		t.Error(got)
	}
	if got := fmt.Sprint(Kinds()); got != "[click type select check press scroll]" {
		t.Error(got)
	}
}

// Whatever is accepted is valid, stable, and says nothing that its JSON does
// not say under the exact member names.
func FuzzPrepare(f *testing.F) {
	f.Add(string(Act), []byte(`{"kind":"type","expected_revision":"r","ref":"r:1","value":"x"}`))
	f.Add(string(Act), []byte(`{"kind":"scroll","expected_revision":"r","ref":"r:1","delta_y":-7}`))
	f.Add(string(Act), []byte(`{"kind":"click","Kind":"type","expected_reviſion":"x"}`))
	f.Add(string(Navigate), []byte(`{"url":"https://wiki.example.org/"}`))
	f.Add(string(Observe), []byte(` {} `))
	f.Fuzz(func(t *testing.T, tool string, args []byte) {
		r, err := Prepare(Tool(tool), args)
		if err != nil {
			if c := fault.CodeOf(err); c != fault.ArgumentsInvalid && c != fault.URLDisallowed {
				t.Fatalf("%q: %v", args, err)
			}
			return
		}
		if len(strings.TrimSpace(string(args))) == 0 {
			return
		}
		var plain map[string]any
		if err := json.Unmarshal(args, &plain); err != nil {
			t.Fatalf("accepted %q: %v", args, err)
		}
		switch r.Tool {
		case Act:
			if r.Action.Validate() != nil || plain["kind"] != string(r.Action.Kind) || plain["ref"] != r.Action.Ref || plain["expected_revision"] != r.Action.ExpectedRevision {
				t.Fatalf("%q is read as %+v", args, r.Action)
			}
			again, err := json.Marshal(r.Action)
			if err != nil {
				t.Fatal(err)
			}
			if x, err := Prepare(Act, again); err != nil || x.Digest != r.Digest {
				t.Fatalf("%s is another call: %v", again, err)
			}
		case Navigate:
			if u, _ := plain["url"].(string); u == "" || r.URL.String() == "" {
				t.Fatalf("%q is read as %q", args, r.URL)
			}
		case Observe:
			if len(plain) != 0 {
				t.Fatalf("observe takes %v", plain)
			}
		default:
			t.Fatalf("accepted tool %q", r.Tool)
		}
	})
}
