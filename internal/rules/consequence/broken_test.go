package consequence

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// broken is a classifier with one rule wrong, and a rule of the suite that must
// say so.
type broken struct {
	name, caught string
	classify     func(Subject) Consequence
}

// blind is the classifier that sees only what edit leaves of a subject.
func blind(edit func(*Subject)) func(Subject) Consequence {
	return func(s Subject) Consequence {
		edit(&s)
		return Classify(s)
	}
}

// reading is the classifier that reads texts in another way.
func reading(read func(string) []string) func(Subject) Consequence {
	c := &classifier{terms: standard.terms, read: read}
	return c.classify
}

// vocabulary is the classifier that knows other terms.
func vocabulary(edit func(name, text string) string) func(Subject) Consequence {
	t := newTerms()
	files, err := words.ReadDir("words")
	if err != nil {
		panic(err)
	}
	for _, f := range files {
		text, err := words.ReadFile("words/" + f.Name())
		if err == nil {
			err = t.language(edit(f.Name(), string(text)))
		}
		if err != nil {
			panic(err)
		}
	}
	c := &classifier{terms: t, read: readings}
	return c.classify
}

// without drops the characters for which drop holds, before reading.
func without(drop func(rune) bool) func(Subject) Consequence {
	return reading(func(s string) []string {
		return readings(strings.Map(func(r rune) rune {
			if drop(r) {
				return -1
			}
			return r
		}, s))
	})
}

func brokenClassifiers() []broken {
	all := []broken{
		{"answers unknown to everything", "words", func(Subject) Consequence { return Unknown }},
		{"answers routine where it does not know", "exactly", func(s Subject) Consequence {
			if c := Classify(s); c != Unknown {
				return c
			}
			return Routine
		}},
		{"reads the name only", "labels", blind(func(s *Subject) { s.Labels = s.Labels[:min(1, len(s.Labels))] })},
		{"skips the name", "words", blind(func(s *Subject) { s.Labels = s.Labels[min(1, len(s.Labels)):] })},
		{"does not read the dialog", "dialog", blind(func(s *Subject) { s.Context = "" })},
		{"does not read options", "options", blind(func(s *Subject) { s.Options = nil })},
		{"does not read the target", "segments", blind(func(s *Subject) { s.Segments = nil })},
		{"reads the first segment only", "navigation", blind(func(s *Subject) { s.Segments = s.Segments[:min(1, len(s.Segments))] })},
		{"lets a navigation pass", "navigation", func(s Subject) Consequence {
			if s.Act == "navigate" {
				return Unknown
			}
			return Classify(s)
		}},
		{"does not decode segments", "navigation", blind(func(s *Subject) {
			s.Segments = slices.Clone(s.Segments)
			for i := range s.Segments {
				s.Segments[i] = strings.ReplaceAll(s.Segments[i], "%", " ")
			}
		})},
		{"decodes segments once", "navigation", blind(func(s *Subject) {
			s.Segments = slices.Clone(s.Segments)
			for i := range s.Segments {
				s.Segments[i] = strings.ReplaceAll(unescape(s.Segments[i]), "%", " ")
			}
		})},
		{"ignores the kind of field", "field kind", blind(func(s *Subject) { s.Field = observe.FieldNone })},
		{"takes an unknown kind of field for none", "field kind", blind(func(s *Subject) {
			if !slices.Contains(observe.FieldKinds(), s.Field) {
				s.Field = observe.FieldNone
			}
		})},
		{"takes a missing kind of field for none", "routine field", blind(func(s *Subject) {
			if s.Field == "" {
				s.Field = observe.FieldNone
			}
		})},
		{"ignores downloads", "download", blind(func(s *Subject) { s.Download = false })},
		{"ignores uploads", "upload", blind(func(s *Subject) {
			if s.Act == "upload" {
				s.Act = "click"
			}
		})},
		{"ignores switches", "switch", blind(func(s *Subject) {
			if s.Role == "switch" {
				s.Role = "checkbox"
			}
		})},
		{"ignores that something is missing", "incomplete", blind(func(s *Subject) { s.Incomplete = false })},
		{"routine on any role", "routine role", blind(func(s *Subject) {
			if s.Act == "click" && s.Role != "switch" {
				s.Role = "button"
			}
		})},
		{"routine for any act", "routine act", blind(func(s *Subject) {
			if s.Act != "upload" && s.Act != "scroll" {
				s.Act = "click"
			}
		})},
		{"one routine source is enough", "agreement", blind(func(s *Subject) {
			if Classify(*s) == Unknown && Classify(Subject{Act: s.Act, Role: s.Role, Labels: s.Labels[:min(1, len(s.Labels))], Field: s.Field}) == Routine {
				s.Labels = s.Labels[:1]
			}
		})},
		{"sees no pictures", "pictures", blind(func(s *Subject) {
			s.Labels = slices.Clone(s.Labels)
			for i, l := range s.Labels {
				s.Labels[i] = strings.Map(func(r rune) rune {
					if unicode.In(r, unicode.So, unicode.Co, unicode.Bidi_Control) && !strings.ContainsRune("★", r) {
						return -1
					}
					return r
				}, l)
			}
		})},
		{"a scroll is always routine", "scroll", func(s Subject) Consequence {
			if s.Act == "scroll" {
				return Routine
			}
			return Classify(s)
		}},
		{"a scroll is never routine", "scroll", blind(func(s *Subject) {
			if s.Act == "scroll" {
				s.Act = "press"
			}
		})},
		{"the last category wins", "order", func(s Subject) Consequence {
			if _, ok := byKind(s); ok {
				return Classify(s)
			}
			f := standard.look(s)
			for i := len(All()) - 3; i >= 0 && !f.currency; i-- {
				if f.hits&(1<<i) != 0 {
					return All()[i]
				}
			}
			return Classify(s)
		}},
		{"stops reading and says nothing", "too long", blind(func(s *Subject) {
			s.Labels = slices.Clone(s.Labels)
			for i, l := range s.Labels {
				s.Labels[i] = l[:min(len(l), maxText)]
			}
		})},

		{"does not undo overrides", "overrides", reading(func(s string) []string {
			return readings(strings.NewReplacer("\u202e", "", "\u202d", "").Replace(s))
		})},
		{"reads only what is displayed", "overrides", reading(func(s string) []string { return readings(strings.ReplaceAll(displayed(s), "\u202e", "")) })},
		{"counts no nesting", "overrides", reading(func(s string) []string {
			return readings(strings.ReplaceAll(s, "\u202d", ""))
		})},
		{"an override ends with the text only", "overrides", without(func(r rune) bool { return r == '\u202c' || r == '\n' || r == '\u2029' })},
		{"keeps invisible characters", "invisible", reading(func(s string) []string {
			return readings(strings.Map(func(r rune) rune {
				if unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Bidi_Control, r) {
					return ' '
				}
				return r
			}, s))
		})},
		{"keeps marks", "marks", reading(func(s string) []string {
			return readings(strings.Map(func(r rune) rune {
				if unicode.IsMark(r) {
					return ' '
				}
				return r
			}, norm.NFKD.String(s)))
		})},
		{"no compatibility forms", "look-alikes", without(func(r rune) bool { return norm.NFKC.String(string(r)) != string(r) })},
		{"no look-alikes", "look-alikes", reading(func(s string) []string {
			return []string{fold(s), fold(displayed(s)), together(fold(s)), apart(fold(s))}
		})},
		{"no second look-alikes", "look-alikes", reading(func(s string) []string {
			plain := fold(s)
			return []string{plain, mapped(plain, false), mapped(fold(displayed(s)), false)}
		})},
		{"case matters", "words", reading(func(s string) []string {
			if strings.ToLower(s) != s {
				return nil
			}
			return readings(s)
		})},
		{"joins nothing", "set apart", reading(func(s string) []string {
			plain, shown := fold(s), fold(displayed(s))
			return []string{plain, mapped(plain, false), mapped(plain, true), apart(plain), shown, mapped(shown, false)}
		})},
		{"keeps numbers with letters", "numbers", without(unicode.IsNumber)},
		{"knows dollars and euros only", "currency", blind(func(s *Subject) {
			edit := func(texts []string) []string {
				texts = slices.Clone(texts)
				for i := range texts {
					texts[i] = strings.Map(func(r rune) rune {
						if unicode.Is(unicode.Sc, r) && r != '$' && r != '€' {
							return -1
						}
						return r
					}, texts[i])
				}
				return texts
			}
			s.Labels, s.Options = edit(s.Labels), edit(s.Options)
		})},
		{"knows no scripts", "scripts", func(s Subject) Consequence {
			strip := func(text string) string {
				return strings.Map(func(r rune) rune {
					if unicode.IsLetter(r) && !unicode.In(r, covered...) {
						return -1
					}
					return r
				}, text)
			}
			s.Labels, s.Segments = slices.Clone(s.Labels), slices.Clone(s.Segments)
			for i, l := range s.Labels {
				s.Labels[i] = strip(l)
			}
			for i, l := range s.Segments {
				s.Segments[i] = strip(l)
			}
			s.Context = strip(s.Context)
			return Classify(s)
		}},
		{"repairs what is not UTF-8", "not UTF-8", blind(func(s *Subject) {
			s.Labels = slices.Clone(s.Labels)
			for i, l := range s.Labels {
				s.Labels[i] = strings.ToValidUTF8(l, "")
			}
		})},

		{"no inflection", "inflection", vocabulary(func(_, text string) string { return strings.ReplaceAll(text, "inflect: english", "") })},
		{"no phrases", "phrases", vocabulary(func(name, text string) string {
			if name != "en.txt" {
				return text
			}
			return strings.NewReplacer("log in", "xlog", "sign in", "xsign", "check out", "xcheck").Replace(text)
		})},
		{"every term begins a word", "whole words", vocabulary(func(name, text string) string {
			if name == "en.txt" {
				return strings.NewReplacer("order,", "order*,", "pay,", "pay*,", "card,", "card*,").Replace(text)
			}
			return text
		})},
		{"no prefixes", "language ar", vocabulary(func(_, text string) string { return strings.ReplaceAll(text, "before:", "# before:") })},
		{"no routine labels", "routine", vocabulary(func(_, text string) string { return strings.ReplaceAll(text, "routine:", "# routine:") })},
		{"no areas of a site", "target", vocabulary(func(_, text string) string { return strings.ReplaceAll(text, "segment:", "# segment:") })},
	}
	for lang := range spoken {
		all = append(all, broken{"no " + lang, "language " + lang, vocabulary(func(name, text string) string {
			if name == lang+".txt" {
				return ""
			}
			return text
		})})
		if strings.Contains("de ru pl tr ja zh ko nl", lang) {
			all = append(all, broken{"whole words only in " + lang, "language " + lang, vocabulary(func(name, text string) string {
				if name == lang+".txt" {
					return strings.ReplaceAll(text, "*", "")
				}
				return text
			})})
		}
	}
	for i, c := range All()[:10] {
		all = append(all, broken{"no " + string(c), "words", func(s Subject) Consequence {
			if got := Classify(s); got != All()[i] {
				return got
			}
			return Unknown
		}})
	}
	return all
}

// CLS-01 to CLS-08: the suite catches each of these.
func TestBrokenClassifiers(t *testing.T) {
	rows := suite()
	for _, b := range brokenClassifiers() {
		if !slices.ContainsFunc(rows, func(e expectation) bool { return e.rule == b.caught }) {
			t.Errorf("there is no rule %q", b.caught)
		}
		if passes(rows, b.caught, b.classify) {
			t.Errorf("a classifier that %q passes the rule %q", b.name, b.caught)
		}
	}
}
