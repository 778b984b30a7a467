package consequence

import (
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// fields says what each kind of field decides; Unknown is nothing.
var fields = map[observe.FieldKind]Consequence{
	observe.FieldNone: Unknown, observe.FieldText: Unknown, observe.FieldSearch: Unknown, observe.FieldMultiline: Unknown,
	observe.FieldEditable: Unknown, observe.FieldChoice: Unknown, observe.FieldSelect: Unknown, observe.FieldCustomChoice: Unknown,
	observe.FieldURL: Unknown, observe.FieldNumber: Unknown, observe.FieldDate: Unknown, observe.FieldOther: Unknown,
	observe.FieldPassword: AuthenticationChange, observe.FieldOneTimeCode: AuthenticationChange, observe.FieldPayment: Payment,
	observe.FieldIdentity: SecurityChange, observe.FieldEmail: SecurityChange, observe.FieldTelephone: SecurityChange,
	observe.FieldFile: FileTransfer,
}

// kindRows are what needs no words.
func kindRows() []expectation {
	var out []expectation
	for kind, want := range fields {
		out = append(out, expectation{"field kind", Subject{Act: "type", Role: "textbox", Labels: []string{"Title"}, Field: kind}, want})
		if want != Unknown {
			out = append(out, expectation{"field kind", Subject{Act: "type", Role: "textbox", Labels: []string{"Delete, buy, share"}, Field: kind}, want})
		}
	}
	out = append(out,
		expectation{"field kind", Subject{Act: "type", Role: "textbox", Labels: []string{"Title"}, Field: "passport"}, SecurityChange},
		expectation{"download", Subject{Act: "click", Role: "link", Labels: []string{"Continue"}, Field: observe.FieldNone, Download: true}, FileTransfer},
		expectation{"download", Subject{Act: "click", Role: "link", Labels: []string{"Pay"}, Field: observe.FieldNone, Download: true}, FileTransfer},
		expectation{"upload", Subject{Act: "upload", Role: "button", Labels: []string{"Continue"}, Field: observe.FieldNone}, FileTransfer},
		expectation{"switch", Subject{Act: "click", Role: "switch", Labels: []string{"Dark"}, Field: observe.FieldNone}, SecurityChange},
		expectation{"switch", Subject{Act: "check", Role: "switch", Field: observe.FieldCustomChoice}, SecurityChange},
	)
	return out
}

// sourceRows: every text of the subject counts (CLS-02).
func sourceRows() []expectation {
	s := func(edit func(*Subject)) Subject {
		s := click("Continue")
		edit(&s)
		return s
	}
	return []expectation{
		{"labels", click("", "Pay"), Payment},
		{"labels", click("Continue", "Next", "Continue", "Delete"), Destructive},
		{"dialog", s(func(s *Subject) { s.Context = "Delete this page?" }), Destructive},
		{"dialog", s(func(s *Subject) { s.Context = "Checkout €5" }), Payment},
		{"options", Subject{Act: "select", Role: "combobox", Labels: []string{"Sort"}, Options: []string{"Date", "Delete all"}, Field: observe.FieldSelect}, Destructive},
		{"options", Subject{Act: "select", Role: "combobox", Labels: []string{"Sort"}, Options: []string{"Date"}, Field: observe.FieldSelect}, Unknown},
		{"segments", s(func(s *Subject) { s.Role, s.Segments = "link", []string{"lesson", "checkout"} }), Payment},
		{"incomplete", s(func(s *Subject) { s.Incomplete = true }), Unknown},
		{"incomplete", s(func(s *Subject) { s.Incomplete, s.Act, s.Role = true, "scroll", "region" }), Unknown},
		{"incomplete", s(func(s *Subject) { s.Incomplete, s.Labels = true, []string{"Pay"} }), Payment},
		{"too long", click(strings.Repeat("Continue ", 1<<17)), SecurityChange},
		{"too long", click(strings.Repeat("x", maxText+1)), SecurityChange},
		{"too long", click(strings.Repeat("x", maxText)), Unknown},
		{"too long", click(strings.Split(strings.Repeat("abcdefgh ", maxAll/8+9), " ")...), SecurityChange},
		{"too long", click("Pay " + strings.Repeat("x", 1<<20)), Payment},
		{"too long", s(func(s *Subject) { s.Segments = []string{strings.Repeat("%25", 1<<20)} }), SecurityChange},
	}
}

// routineRows: one routine word from all sources, on a button or link, and
// nothing that speaks against it (CLS-07).
func routineRows() []expectation {
	var out []expectation
	for _, l := range strings.Split("continue,done,finish,got it,next,practice,review,skip,start,try again", ",") {
		out = append(out, expectation{"routine", click(l), Routine}, expectation{"routine", click(strings.ToUpper(l)+"!", "  "+l+"…", ""), Routine},
			expectation{"routine", click(l + " →"), Routine}, expectation{"exactly", click(l + " it now then"), Unknown}, expectation{"exactly", click(l, "more"), Unknown},
			expectation{"exactly", click("the " + l), Unknown})
	}
	s := func(rule string, want Consequence, edit func(*Subject)) {
		s := click("Continue")
		edit(&s)
		out = append(out, expectation{rule, s, want})
	}
	s("routine", Routine, func(s *Subject) { s.Role = "link"; s.Segments = []string{"lesson", "2"} })
	s("routine", Routine, func(s *Subject) { s.Context = "Lesson 2" })
	s("agreement", Unknown, func(s *Subject) { s.Labels = []string{"Continue", "Next"} })
	s("agreement", Unknown, func(s *Subject) { s.Labels = []string{"Continue", "★"} })
	s("agreement", Unknown, func(s *Subject) { s.Labels = nil })
	s("agreement", Unknown, func(s *Subject) { s.Labels = []string{"", "…"} })
	s("pictures", Unknown, func(s *Subject) { s.Labels = []string{"Continue 🗑"} })
	s("pictures", Unknown, func(s *Subject) { s.Labels = []string{"Continue \ue900"} })
	s("pictures", Unknown, func(s *Subject) { s.Labels = []string{"Continue \u2067"} })
	s("routine act", Unknown, func(s *Subject) { s.Act = "press" })
	s("routine act", Unknown, func(s *Subject) { s.Act = "check" })
	s("routine act", Unknown, func(s *Subject) { s.Act = "" })
	s("routine role", Unknown, func(s *Subject) { s.Role = "menuitem" })
	s("routine role", Unknown, func(s *Subject) { s.Role = "" })
	s("routine field", Unknown, func(s *Subject) { s.Field = observe.FieldText })
	s("routine field", Unknown, func(s *Subject) { s.Field = "" })
	s("routine field", Unknown, func(s *Subject) { s.Options = []string{"a"} })
	for _, seg := range []string{"admin", "api", "auth", "oauth", "sso", "pricing", "plus", "inbox", "compose"} {
		s("target", Unknown, func(s *Subject) { s.Role = "link"; s.Segments = []string{"lesson", seg} })
	}
	out = append(out,
		expectation{"scroll", Subject{Act: "scroll", Role: "region", Field: observe.FieldNone}, Routine},
		expectation{"scroll", Subject{Act: "scroll", Role: "region", Labels: []string{"Timeline"}, Field: observe.FieldNone}, Routine},
		expectation{"scroll", Subject{Act: "scroll", Role: "region", Labels: []string{"Comments"}, Field: observe.FieldNone}, Publication},
	)
	return out
}

// CLS-02: a kind of field that is added elsewhere is decided here too.
func TestFieldKinds(t *testing.T) {
	for _, k := range observe.FieldKinds() {
		if want, ok := fields[k]; !ok {
			t.Errorf("nobody decided what %q is", k)
		} else if got := Classify(Subject{Act: "type", Role: "textbox", Field: k}); got != want {
			t.Errorf("%q: %s, want %s", k, got, want)
		}
	}
}
