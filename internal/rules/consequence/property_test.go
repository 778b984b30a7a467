package consequence

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// texts are what labels are made of in the properties.
var texts = []string{
	"", "Continue", "Next", "Pay", "delete", "Weiter", "Löschen", "$", "支付", "ต่อไป", "\xff", "\u202eyap\u202c", "Details", "log", "in",
	"add to", "cart", "Удалить", "حذف", "삭제", "ログイン", "🗑", "2fa", "%41", "\u200b", "а", " ", "one", "time", "code",
}

func text(t *rapid.T, name string) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(texts), 0, 4).Draw(t, name), rapid.SampledFrom([]string{" ", "", "-", "\u2009"}).Draw(t, name+" glue"))
}

func subject(t *rapid.T) Subject {
	list := func(name string) []string {
		var out []string
		for range rapid.IntRange(0, 3).Draw(t, name) {
			out = append(out, text(t, name))
		}
		return out
	}
	return Subject{
		Act:  rapid.SampledFrom([]string{"click", "type", "select", "check", "press", "scroll", "upload", "navigate", "", "other"}).Draw(t, "act"),
		Role: rapid.SampledFrom([]string{"button", "link", "switch", "textbox", ""}).Draw(t, "role"), Labels: list("labels"),
		Context: text(t, "context"), Options: list("options"), Field: rapid.SampledFrom(append(observe.FieldKinds(), "", "other kind")).Draw(t, "field"),
		Download: rapid.Bool().Draw(t, "download"), Segments: list("segments"), Incomplete: rapid.Bool().Draw(t, "incomplete"),
	}
}

// rank orders answers from the least to the most guarded.
func rank(c Consequence) int {
	switch c {
	case Routine:
		return 0
	case Unknown:
		return 1
	}
	return 2
}

// more returns the subject with one thing added that a page can add.
func more(t *rapid.T, s Subject) Subject {
	extra := text(t, "extra")
	switch rapid.IntRange(0, 5).Draw(t, "where") {
	case 0:
		s.Labels = append(slices.Clone(s.Labels), extra)
	case 1:
		s.Labels = append([]string{extra}, s.Labels...)
	case 2:
		s.Options = append([]string{extra}, s.Options...)
	case 3:
		s.Segments = append([]string{extra}, s.Segments...)
	case 4:
		s.Context += " " + extra
	case 5:
		s.Incomplete, s.Download = true, true
	}
	return s
}

// CLS-04, CLS-08: what a page adds never makes an act less guarded, except that
// a label where there was none can make it routine.
func TestMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := subject(t)
		before := Classify(s)
		longer := more(t, s)
		after := Classify(longer)
		if before.Named() && !after.Named() {
			t.Fatalf("%s became %s: %+v, then %+v", before, after, s, longer)
		}
		readable := slices.ContainsFunc(s.Labels, func(l string) bool { return l != "" })
		if rank(after) < rank(before) && readable {
			t.Fatalf("%s became %s: %+v, then %+v", before, after, s, longer)
		}
	})
}

// CLS-03: the same answer again, whatever the order of the texts.
func TestDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := subject(t)
		want := Classify(s)
		r := s
		r.Labels, r.Options, r.Segments = slices.Clone(s.Labels), slices.Clone(s.Options), slices.Clone(s.Segments)
		slices.Reverse(r.Labels)
		slices.Reverse(r.Options)
		slices.Reverse(r.Segments)
		if got := Classify(r); got != want {
			t.Fatalf("%s, in another order %s: %+v", want, got, s)
		}
	})
}

// CLS-04: any input gets an answer from the set, and the bounded work of a
// text does not let more text hide a word.
func FuzzClassify(f *testing.F) {
	for _, s := range texts {
		f.Add("click", "button", s, "Continue", "wiki", "none")
	}
	f.Add("scroll", "region", "\u202e\u202e\u202dx\u202c\u2066\u2069\n", "\xff\xfe", "%25%32%35%zz", "select")
	f.Fuzz(func(t *testing.T, act, role, label, context, seg, field string) {
		s := Subject{Act: act, Role: role, Labels: []string{label}, Context: context, Segments: []string{seg}, Field: observe.FieldKind(field)}
		got := Classify(s)
		if !slices.Contains(All(), got) {
			t.Fatalf("%q is not in the set", got)
		}
		s.Labels = append(s.Labels, context)
		if again := Classify(s); got.Named() && !again.Named() {
			t.Fatalf("%s became %s", got, again)
		}
		if (SensitivePath("/a/"+seg) || strings.Contains(seg, "/")) != (SensitiveSegment(seg) || strings.Contains(seg, "/")) {
			t.Fatalf("%q is sensitive as a segment or as a path, not as both", seg)
		}
		if WithinPrefix(seg, context) && !strings.HasPrefix(seg, strings.TrimSuffix(context, "/")) {
			t.Fatalf("%q is not inside %q", seg, context)
		}
		if d := displayed(label); len(d) > 3*len(label) {
			t.Fatalf("%q became %q", label, d)
		}
	})
}
