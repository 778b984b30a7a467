package constraint_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/consequence"
	"github.com/chaperone-agents/chaperone/internal/rules/constraint"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func origins(t testing.TB, list ...string) site.Origins {
	t.Helper()
	o, err := site.ParseOrigins(list)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func task(t testing.TB) constraint.Constraint {
	return constraint.Constraint{Kind: constraint.Task, Origins: origins(t, "https://learn.example"), Prefix: "/lesson",
		ExpiresAt: now.Add(time.Minute), Ceiling: consequence.Unknown, MaxText: constraint.MaxText}
}

func research(t testing.TB) constraint.Constraint {
	c := task(t)
	c.Kind, c.Prefix = constraint.Research, ""
	return c
}

func standing(t testing.TB) constraint.Constraint {
	return constraint.Constraint{Kind: constraint.Standing, Origins: origins(t, "https://learn.example", "https://other.example"),
		ExpiresAt: now.Add(time.Minute), Ceiling: consequence.Routine}
}

// Section 2.1, CONS-01: the members fit each other, or there is no constraint.
func TestValidate(t *testing.T) {
	for _, c := range []constraint.Constraint{task(t), research(t), standing(t)} {
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", c.Kind, err)
		}
		body, err := json.Marshal(c)
		var back constraint.Constraint
		if err != nil || json.Unmarshal(body, &back) != nil || !reflect.DeepEqual(back, c) {
			t.Errorf("%s came back as %+v, %v", body, back, err)
		}
	}
	for what, damage := range map[string]func(*constraint.Constraint){
		"no kind":             func(c *constraint.Constraint) { c.Kind = "" },
		"an unknown kind":     func(c *constraint.Constraint) { c.Kind = "follow" },
		"no origin":           func(c *constraint.Constraint) { c.Origins = nil },
		"two origins":         func(c *constraint.Constraint) { c.Origins = origins(t, "https://a.example", "https://b.example") },
		"an origin twice":     func(c *constraint.Constraint) { c.Origins = append(c.Origins, c.Origins[0]) },
		"no prefix":           func(c *constraint.Constraint) { c.Prefix = "" },
		"the whole site":      func(c *constraint.Constraint) { c.Prefix = "/" },
		"two segments":        func(c *constraint.Constraint) { c.Prefix = "/lesson/one" },
		"a slash at the end":  func(c *constraint.Constraint) { c.Prefix = "/lesson/" },
		"no slash":            func(c *constraint.Constraint) { c.Prefix = "lesson" },
		"a dot segment":       func(c *constraint.Constraint) { c.Prefix = "/%2e%2e" },
		"a sensitive segment": func(c *constraint.Constraint) { c.Prefix = "/settings" },
		"a long segment":      func(c *constraint.Constraint) { c.Prefix = "/" + strings.Repeat("a", 65) },
		"no expiry":           func(c *constraint.Constraint) { c.ExpiresAt = time.Time{} },
		"no ceiling":          func(c *constraint.Constraint) { c.Ceiling = "" },
		"a named ceiling":     func(c *constraint.Constraint) { c.Ceiling = consequence.Payment },
		"a low ceiling":       func(c *constraint.Constraint) { c.Ceiling = consequence.Routine },
		"no bound of text":    func(c *constraint.Constraint) { c.MaxText = 0 },
		"a high one":          func(c *constraint.Constraint) { c.MaxText = constraint.MaxText + 1 },
		"research with path":  func(c *constraint.Constraint) { c.Kind = constraint.Research },
		"standing with path":  func(c *constraint.Constraint) { *c = standing(t); c.Prefix = "/lesson" },
		"standing that types": func(c *constraint.Constraint) { *c = standing(t); c.MaxText = 1 },
		"standing and wide":   func(c *constraint.Constraint) { *c = standing(t); c.Ceiling = consequence.Unknown },
	} {
		c := task(t)
		damage(&c)
		if err := c.Validate(); !fault.Is(err, fault.ArgumentsInvalid) {
			t.Errorf("%s: %v", what, err)
		}
		if r := c.Refuses(action.Action{Kind: action.Scroll}, lesson(), now); r == "" {
			t.Errorf("%s covers an act", what)
		}
	}
	if r := (constraint.Constraint{}).Refuses(click(), lesson(), time.Time{}); r == "" {
		t.Error("the zero constraint covers an act")
	}
}

// FENCE-01, section 2.6: path rules of addresses.
func TestAdmits(t *testing.T) {
	for address, want := range map[string]constraint.Reason{
		"https://learn.example/lesson":                       "",
		"https://learn.example/lesson/3?next=4#top":          "",
		"https://learn.example/lessons":                      constraint.OutsidePrefix,
		"https://learn.example/Lesson/3":                     constraint.OutsidePrefix,
		"https://learn.example/":                             constraint.OutsidePrefix,
		"https://learn.example/lesson/%2e%2e/x":              constraint.OutsidePrefix,
		"https://learn.example/lesson/%252E%252e/x":          constraint.OutsidePrefix,
		"https://learn.example/lesson/3/delete":              constraint.SensitivePath,
		"https://learn.example/lesson/%63heckout":            constraint.SensitivePath,
		"https://other.example/lesson":                       constraint.OutsideOrigin,
		"https://learn.example.other.example/lesson":         constraint.OutsideOrigin,
		"https://user@learn.example/lesson":                  constraint.OutsideOrigin,
		"http://learn.example/lesson":                        constraint.OutsideOrigin,
		"javascript:alert(1)":                                constraint.OutsideOrigin,
		"data:text/html,<p>":                                 constraint.OutsideOrigin,
		"about:blank":                                        constraint.OutsideOrigin,
		"":                                                   constraint.OutsideOrigin,
		"https://learn.example/" + strings.Repeat("a", 9000): constraint.OutsideOrigin,
	} {
		if got := task(t).Admits(address); got != want {
			t.Errorf("%.60s: %q, want %q", address, got, want)
		}
	}
	if got := research(t).Admits("https://learn.example/anything"); got != "" {
		t.Errorf("research: %q", got)
	}
	if !task(t).Fenced() || !research(t).Fenced() || standing(t).Fenced() {
		t.Error("not the right kinds are fenced")
	}
}

func click() action.Action { return action.Action{Kind: action.Click} }

func lesson() constraint.Subject {
	return constraint.Subject{
		URL:     "https://learn.example/lesson/3",
		Element: observe.Element{Role: "button", Name: "Continue"},
		Facts:   observe.Facts{FieldKind: observe.FieldNone},
	}
}

// CONS-02, TGC-01 to TGC-06, CLS-07: what a task grant covers, and why not.
func TestTask(t *testing.T) {
	typing := func(text string) action.Action { return action.Action{Kind: action.Type, Value: &text} }
	press := func(key string) action.Action { return action.Action{Kind: action.Press, Key: &key} }
	choice := "second"
	selecting := action.Action{Kind: action.Select, Value: &choice}
	inside, outside := &observe.Target{SameOrigin: true, Segment: "lesson"}, &observe.Target{SameOrigin: true, Segment: "other"}
	field := func(k observe.FieldKind) func(*constraint.Subject) {
		return func(s *constraint.Subject) {
			s.Element = observe.Element{Role: "textbox", Name: "Answer"}
			s.Facts.FieldKind = k
		}
	}
	named := func(name string) func(*constraint.Subject) {
		return func(s *constraint.Subject) { s.Element.Name = name }
	}
	facts := func(change func(*observe.Facts)) func(*constraint.Subject) {
		return func(s *constraint.Subject) { change(&s.Facts) }
	}
	for _, x := range []struct {
		what string
		a    action.Action
		s    func(*constraint.Subject)
		want constraint.Reason
	}{
		{"a routine click", click(), nil, ""},
		{"an unknown click", click(), named("Der Hund bellt"), ""},
		{"a link inside", click(), facts(func(f *observe.Facts) { f.Link = inside }), ""},
		{"no facts", click(), facts(func(f *observe.Facts) { *f = observe.Facts{} }), constraint.FactsUnavailable},
		{"a label that was cut", click(), facts(func(f *observe.Facts) { f.Cut = true }), constraint.FactsUnavailable},
		{"another origin", click(), func(s *constraint.Subject) { s.URL = "https://other.example/lesson" }, constraint.OutsideOrigin},
		{"a frame", click(), func(s *constraint.Subject) { s.Framed = true }, constraint.OutsideOrigin},
		{"another path", click(), func(s *constraint.Subject) { s.URL = "https://learn.example/profile" }, constraint.OutsidePrefix},
		{"a sensitive path", click(), func(s *constraint.Subject) { s.URL = "https://learn.example/lesson/settings" }, constraint.SensitivePath},
		{"no name", click(), named(" "), constraint.Unnamed},
		{"a scroll without name", action.Action{Kind: action.Scroll}, named(""), ""},
		{"a named consequence", click(), named("Delete"), constraint.Excluded(consequence.Destructive)},
		{"one in another label", click(), facts(func(f *observe.Facts) { f.Labels = map[observe.Source]string{observe.Tooltip: "Buy now"} }), constraint.Excluded(consequence.Purchase)},
		{"one in the visible text", click(), facts(func(f *observe.Facts) { f.Text = "Pay" }), constraint.Excluded(consequence.Payment)},
		{"one in the dialog", click(), facts(func(f *observe.Facts) { f.Context = "Delete account" }), "excluded."},
		{"a download", click(), facts(func(f *observe.Facts) { f.Download = true }), constraint.Excluded(consequence.FileTransfer)},
		{"a scroll by a named one", action.Action{Kind: action.Scroll}, named("Delete"), constraint.Excluded(consequence.Destructive)},
		{"disabled", click(), func(s *constraint.Subject) { s.Element.Disabled = true }, constraint.Disabled},
		{"a link outside", click(), facts(func(f *observe.Facts) { f.Link = outside }), constraint.LinkOutside},
		{"a link off the origin", click(), facts(func(f *observe.Facts) { f.Link = &observe.Target{Segment: "lesson"} }), constraint.LinkOutside},
		{"a sensitive link", click(), facts(func(f *observe.Facts) { f.Link = &observe.Target{SameOrigin: true, Segment: "lesson", Sensitive: true} }), constraint.LinkOutside},
		{"an opaque one", click(), facts(func(f *observe.Facts) { f.Link = observe.Opaque() }), constraint.LinkOutside},
		{"a form outside", click(), facts(func(f *observe.Facts) { f.Form = outside }), constraint.FormOutside},
		{"Enter in a form outside", press("Enter"), facts(func(f *observe.Facts) { f.Form = outside }), constraint.FormOutside},
		{"Space on a link outside", press("Space"), facts(func(f *observe.Facts) { f.Link = outside }), constraint.LinkOutside},
		{"an arrow key there", press("ArrowDown"), facts(func(f *observe.Facts) { f.Form, f.Link = outside, outside }), ""},
		{"typing in a form outside", typing("two"), func(s *constraint.Subject) { field(observe.FieldText)(s); s.Facts.Form = outside }, ""},
		{"typing", typing("dwa psy"), field(observe.FieldText), ""},
		{"typing at the bound", typing(strings.Repeat("ż", constraint.MaxText)), field(observe.FieldMultiline), ""},
		{"typing over it", typing(strings.Repeat("ż", constraint.MaxText+1)), field(observe.FieldMultiline), constraint.TextTooLong},
		{"an address of mail", typing("a@b"), field(observe.FieldText), constraint.TextNotCovered},
		{"one in full width", typing("a＠b"), field(observe.FieldText), constraint.TextNotCovered},
		{"a URL", typing("ftp://x"), field(observe.FieldText), constraint.TextNotCovered},
		{"a web address", typing("WWW.x"), field(observe.FieldText), constraint.TextNotCovered},
		{"a long number", typing("it is 1234"), field(observe.FieldText), constraint.TextNotCovered},
		{"a long number in other digits", typing("١٢٣٤"), field(observe.FieldText), constraint.TextNotCovered},
		{"a hidden one", typing("12\u200b34"), field(observe.FieldText), constraint.TextNotCovered},
		{"a short number", typing("it is 123 or 456"), field(observe.FieldText), ""},
		{"a secret", typing("password: hunter"), field(observe.FieldText), constraint.TextNotCovered},
		{"typing nowhere", typing("x"), nil, constraint.FieldNotCovered},
		{"typing in an editor", typing("x"), field(observe.FieldEditable), constraint.FieldNotCovered},
		{"typing in a number field", typing("x"), field(observe.FieldNumber), constraint.FieldNotCovered},
		{"a password field", typing("x"), field(observe.FieldPassword), constraint.Excluded(consequence.AuthenticationChange)},
		{"a payment field", click(), field(observe.FieldPayment), constraint.Excluded(consequence.Payment)},
		{"a file field", click(), field(observe.FieldFile), constraint.Excluded(consequence.FileTransfer)},
		{"a field that nobody knows", click(), field(observe.FieldOther), constraint.FieldNotCovered},
		{"selecting", selecting, func(s *constraint.Subject) { field(observe.FieldSelect)(s); s.Options = []string{"second"} }, ""},
		{"a named option", selecting, func(s *constraint.Subject) { field(observe.FieldSelect)(s); s.Options = []string{"second", "Delete"} }, constraint.Excluded(consequence.Destructive)},
		{"options not all read", selecting, func(s *constraint.Subject) { field(observe.FieldSelect)(s); s.Partial = true }, constraint.FactsUnavailable},
		{"selecting elsewhere", selecting, field(observe.FieldCustomChoice), constraint.FieldNotCovered},
		{"checking", action.Action{Kind: action.Check}, field(observe.FieldChoice), ""},
		{"checking what is none", action.Action{Kind: action.Check}, field(observe.FieldCustomChoice), constraint.FieldNotCovered},
		{"a key on a select", press("ArrowDown"), field(observe.FieldSelect), constraint.FieldNotCovered},
		{"a key on a choice", press("Space"), field(observe.FieldChoice), constraint.FieldNotCovered},
		{"a key on a made choice", press("Space"), field(observe.FieldCustomChoice), constraint.FieldNotCovered},
		{"a key in an editor", press("Enter"), field(observe.FieldEditable), ""},
		{"an upload", action.Action{Kind: "upload"}, nil, constraint.Excluded(consequence.FileTransfer)},
		{"a kind that does not exist", action.Action{Kind: "drag"}, nil, constraint.FieldNotCovered},
	} {
		s := lesson()
		if x.s != nil {
			x.s(&s)
		}
		got := task(t).Refuses(x.a, s, now)
		if got != x.want && !(x.want == "excluded." && strings.HasPrefix(string(got), "excluded.")) {
			t.Errorf("%s: %q, want %q", x.what, got, x.want)
		}
	}
	c := task(t)
	if got := c.Refuses(click(), lesson(), c.ExpiresAt.Add(-time.Nanosecond)); got != "" {
		t.Errorf("just before it expires: %q", got)
	}
	if got := c.Refuses(click(), lesson(), c.ExpiresAt); got != constraint.Expired {
		t.Errorf("when it expires: %q", got)
	}
}

// CLS-07: a standing grant is for routine acts only.
func TestStanding(t *testing.T) {
	s := lesson()
	if got := standing(t).Refuses(click(), s, now); got != "" {
		t.Errorf("a routine click: %q", got)
	}
	s.URL = "https://other.example/x"
	if got := standing(t).Refuses(click(), s, now); got != "" {
		t.Errorf("on its other origin: %q", got)
	}
	for what, change := range map[string]func(*constraint.Subject){
		"an unknown label":      func(s *constraint.Subject) { s.Element.Name = "Der Hund bellt" },
		"labels that differ":    func(s *constraint.Subject) { s.Facts.Labels = map[observe.Source]string{observe.Tooltip: "Next"} },
		"a label with a dollar": func(s *constraint.Subject) { s.Facts.Text = "Continue $" },
		"a sensitive target":    func(s *constraint.Subject) { s.Facts.Link = &observe.Target{SameOrigin: true, Sensitive: true} },
		"another role":          func(s *constraint.Subject) { s.Element.Role = "checkbox" },
	} {
		s := lesson()
		change(&s)
		if got := standing(t).Refuses(click(), s, now); got == "" {
			t.Errorf("%s is covered", what)
		}
	}
	text := "x"
	s = lesson()
	s.Facts.FieldKind = observe.FieldText
	if got := standing(t).Refuses(action.Action{Kind: action.Type, Value: &text}, s, now); got == "" {
		t.Error("typing is covered")
	}
}

// CLS-08, TGC-07: whatever a page adds to its element never makes a
// constraint cover an act that it did not cover before.
func TestPagesOnlyTakeAway(t *testing.T) {
	words := rapid.SampledFrom([]string{"", "Continue", "Delete", "Pay €5", "Weiter", "Next", "ответить"})
	targets := rapid.SampledFrom([]*observe.Target{nil, observe.Opaque(), {SameOrigin: true, Segment: "lesson"}, {SameOrigin: true}, {SameOrigin: true, Segment: "lesson", Sensitive: true}})
	kinds := rapid.SampledFrom(observe.FieldKinds())
	rapid.Check(t, func(r *rapid.T) {
		s := lesson()
		s.Element.Name, s.Facts.FieldKind = words.Draw(r, "name"), kinds.Draw(r, "field")
		s.Facts.Link, s.Facts.Form = targets.Draw(r, "link"), targets.Draw(r, "form")
		a := action.Action{Kind: rapid.SampledFrom(action.Kinds()).Draw(r, "kind"), Value: new("word"), Key: new("Enter")}
		c := rapid.SampledFrom([]constraint.Constraint{task(t), research(t), standing(t)}).Draw(r, "constraint")
		before := c.Refuses(a, s, now)
		s.Facts.Labels = map[observe.Source]string{rapid.SampledFrom(observe.Sources()).Draw(r, "source"): words.Draw(r, "label")}
		s.Facts.Context, s.Facts.Cut = words.Draw(r, "dialog"), rapid.Bool().Draw(r, "cut")
		s.Options = []string{words.Draw(r, "option")}
		if after := c.Refuses(a, s, now); before != "" && after == "" {
			r.Fatalf("refused for %q, and covered with more", before)
		}
	})
}

// TGC-07: what the orchestrator sees of an element is what the rule is about.
func TestSeen(t *testing.T) {
	d := observe.Document{
		URL: "https://learn.example/lesson/3", Revision: "r1",
		Elements: []observe.Element{{Ref: "r1:0", Role: "combobox", Name: "Word"}, {Ref: "r1:1", Role: "button", Name: "Continue"}},
		Facts:    map[string]observe.Facts{"r1:0": {FieldKind: observe.FieldSelect}, "r1:1": {FieldKind: observe.FieldNone}},
		States: map[string]observe.State{
			"r1:0": {Options: []observe.Option{{Label: "second one"}, {Label: "Delete"}}},
			"r1:1": {Frame: "f1"},
		},
		Frames: []observe.Frame{{ID: "f1", Origin: "https://learn.example"}},
	}
	raw, err := observe.Accept(d, origins(t, "https://learn.example"))
	if err != nil {
		t.Fatal(err)
	}
	of := func(ref, revision, value string) (constraint.Subject, bool) {
		return constraint.Seen(action.Action{Kind: action.Select, Ref: ref, ExpectedRevision: revision, Value: &value}, raw)
	}
	if s, ok := of("r1:0", "r1", " second  one"); !ok || s.Framed || s.Element.Name != "Word" || !slices.Equal(s.Options, []string{"second one", "second one"}) {
		t.Errorf("%+v, %v", s, ok)
	}
	if s, ok := of("r1:0", "r1", "v3"); !ok || !slices.Equal(s.Options, []string{"v3"}) {
		t.Errorf("%+v, %v", s, ok)
	}
	if s, ok := of("r1:1", "r1", ""); !ok || !s.Framed {
		t.Errorf("%+v, %v", s, ok)
	}
	for _, x := range [][2]string{{"r1:2", "r1"}, {"r1:0", "r2"}, {"", ""}} {
		if _, ok := of(x[0], x[1], ""); ok {
			t.Errorf("%q has a subject", x)
		}
	}
}
