package observe

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
)

var wiki = func() site.Origins {
	o, err := site.ParseOrigins([]string{"https://wiki.example.org"})
	if err != nil {
		panic(err) // the list is a constant
	}
	return o
}()

func good() Document {
	return Document{
		URL: "https://wiki.example.org/page", Title: "Page", Revision: "r1", Text: "Some text", Readiness: DOMQuiet,
		Elements: []Element{{Ref: "r1:0", Role: "button", Name: "Save"}, {Ref: "r1:1", Role: "checkbox", Name: "Agree", Checked: new(false)}},
		Facts:    map[string]Facts{"r1:0": {FieldKind: FieldNone, Text: "Save now", Context: "Dialog"}, "r1:1": {FieldKind: FieldChoice}},
	}
}

func TestAccept(t *testing.T) {
	raw, err := Accept(good(), wiki)
	if err != nil {
		t.Fatal(err)
	}
	e, f, ok := raw.Find("r1:0")
	if !ok || e.Name != "Save" || f.Text != "Save now" {
		t.Errorf("%+v, %+v, %v", e, f, ok)
	}
	for _, ref := range []string{"", "r1:2", "r1", "r2:0", "r1:0 "} {
		if _, _, ok := raw.Find(ref); ok {
			t.Errorf("there is an element %q", ref)
		}
	}
	full := good()
	full.Title, full.Text, full.Elements, full.Facts = strings.Repeat("ü", MaxTitle), strings.Repeat("x", MaxText), nil, map[string]Facts{}
	for i := range MaxElements {
		ref := fmt.Sprintf("r1:%d", i)
		full.Elements = append(full.Elements, Element{Ref: ref, Role: strings.Repeat("r", MaxRole), Name: strings.Repeat("ü", MaxName)})
		full.Facts[ref] = Facts{FieldKind: FieldKinds()[i%len(FieldKinds())], Text: strings.Repeat("ü", 256), Context: strings.Repeat("ü", 128)}
	}
	if _, err := Accept(full, wiki); err != nil {
		t.Errorf("a page at every bound: %v", err)
	}
}

// CAPT-01, BND-01: a document that is out of bounds, off the origins or
// inconsistent is no observation.
func TestAcceptRefuses(t *testing.T) {
	for what, damage := range map[string]func(*Document){
		"no URL":                  func(d *Document) { d.URL = "" },
		"a plain HTTP URL":        func(d *Document) { d.URL = "http://wiki.example.org/" },
		"another origin":          func(d *Document) { d.URL = "https://evil.example/" },
		"a look-alike origin":     func(d *Document) { d.URL = "https://wiki.example.org.evil.example/" },
		"user information":        func(d *Document) { d.URL = "https://wiki.example.org@evil.example/" },
		"a blank page":            func(d *Document) { d.URL = "about:blank" },
		"a long title":            func(d *Document) { d.Title = strings.Repeat("x", MaxTitle+1) },
		"a title that is no text": func(d *Document) { d.Title = "\xff" },
		"a long text":             func(d *Document) { d.Text = strings.Repeat("x", MaxText+1) },
		"a text that is no text":  func(d *Document) { d.Text = "\xc3" },
		"no revision":             func(d *Document) { d.Revision = "" },
		"a long revision":         func(d *Document) { d.Revision = strings.Repeat("r", MaxRef+1) },
		"an unknown readiness":    func(d *Document) { d.Readiness = "soon" },
		"too many elements":       func(d *Document) { d.Elements = make([]Element, MaxElements+1) },
		"an element without ref":  func(d *Document) { d.Elements[0].Ref = "" },
		"a ref of another":        func(d *Document) { d.Elements[0].Ref = "r2:0" },
		"a ref that only begins":  func(d *Document) { d.Elements[0].Ref = "r12:0" },
		"a ref twice":             func(d *Document) { d.Elements[0].Ref = "r1:1" },
		"a long ref":              func(d *Document) { d.Elements[0].Ref = "r1:" + strings.Repeat("0", MaxRef) },
		"no role":                 func(d *Document) { d.Elements[0].Role = "" },
		"a long role":             func(d *Document) { d.Elements[0].Role = strings.Repeat("r", MaxRole+1) },
		"a long name":             func(d *Document) { d.Elements[0].Name = strings.Repeat("n", MaxName+1) },
		"a name that is no text":  func(d *Document) { d.Elements[0].Name = "\xff" },
		"facts of no element":     func(d *Document) { d.Facts["r1:9"] = Facts{FieldKind: FieldNone} },
		"no field kind":           func(d *Document) { d.Facts["r1:0"] = Facts{} },
		"an unknown field kind":   func(d *Document) { d.Facts["r1:0"] = Facts{FieldKind: "passw0rd"} },
		"a long fact":             func(d *Document) { d.Facts["r1:0"] = Facts{FieldKind: FieldNone, Text: strings.Repeat("x", 257)} },
		"a long context":          func(d *Document) { d.Facts["r1:0"] = Facts{FieldKind: FieldNone, Context: strings.Repeat("x", 129)} },
	} {
		d := good()
		damage(&d)
		raw, err := Accept(d, wiki)
		if !fault.Is(err, fault.OutputInvalid) || raw != (Raw{}) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := Accept(good(), nil); !fault.Is(err, fault.OutputInvalid) {
		t.Errorf("no allowed origins: %v", err)
	}
	// Every refused reason is in our own words.
	d := good()
	d.URL = "https://evil.example/<script>"
	if _, err := Accept(d, wiki); strings.Contains(err.Error(), "script") || strings.Contains(err.Error(), "evil") {
		t.Errorf("the refusal quotes the page: %v", err)
	}
}

// OBS, TRUST-01: only the projection shows an observation. It is in no
// encoding, no format and no log.
func TestRawIsOpaque(t *testing.T) {
	d := good()
	d.Text = "page-text-marker"
	raw, err := Accept(d, wiki)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := json.Marshal(raw); err == nil {
		t.Errorf("JSON: %s", b)
	}
	if b, err := json.Marshal(map[string]any{"x": []any{raw}}); err == nil {
		t.Errorf("JSON inside: %s", b)
	}
	if b, err := json.Marshal(map[Raw]int{raw: 1}); err == nil {
		t.Errorf("JSON key: %s", b)
	}
	var g bytes.Buffer
	if err := gob.NewEncoder(&g).Encode(raw); err == nil && strings.Contains(g.String(), "marker") {
		t.Errorf("gob: %q", g.String())
	}
	type holder struct {
		Raw Raw
		raw Raw
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{raw, &raw, holder{raw, raw}, []Raw{raw}} {
			if s := fmt.Sprintf(verb, v); strings.Contains(s, "marker") || strings.Contains(s, fmt.Sprintf("%x", "marker")) {
				t.Errorf("%s: %s", verb, s)
			}
		}
	}
	var b bytes.Buffer
	slog.New(slog.NewTextHandler(&b, nil)).Info("x", "raw", raw, "in", holder{raw, raw})
	slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "raw", raw, "in", holder{raw, raw})
	if strings.Contains(b.String(), "marker") {
		t.Errorf("log: %s", b.String())
	}
}

// What was validated cannot be changed afterwards, from either side.
func TestRawIsACopy(t *testing.T) {
	d := good()
	raw, err := Accept(d, wiki)
	if err != nil {
		t.Fatal(err)
	}
	spoil := func(d Document) {
		d.Elements[0].Name = "Delete everything"
		*d.Elements[1].Checked = true
		d.Facts["r1:0"] = Facts{FieldKind: FieldPassword}
	}
	spoil(d)
	spoil(raw.Document())
	if e, f, _ := raw.Find("r1:0"); e.Name != "Save" || f.FieldKind != FieldNone {
		t.Errorf("%+v, %+v", e, f)
	}
	if e, _, _ := raw.Find("r1:1"); *e.Checked {
		t.Error("a state was changed behind the validation")
	}
	var zero Raw
	if _, _, ok := zero.Find(""); ok || zero.Document().Revision != "" {
		t.Error("the zero observation has something")
	}
}

// DENY-03: agents never type into these, and into no other for that reason.
func TestCredential(t *testing.T) {
	for _, k := range FieldKinds() {
		if k.Credential() != (k == "password" || k == "one_time_code") {
			t.Errorf("%s: %v", k, k.Credential())
		}
	}
}
