package constraint

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/consequence"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// Reason is why a constraint does not cover an act (section 2.7). The empty
// Reason is none.
type Reason string

// The reasons, in the order in which they are looked for.
const (
	Unavailable      Reason = "unavailable" // the constraint is not consistent
	Expired          Reason = "expired"
	FactsUnavailable Reason = "facts_unavailable" // not all is known of the element
	OutsideOrigin    Reason = "outside_origin"
	OutsidePrefix    Reason = "outside_prefix"
	SensitivePath    Reason = "sensitive_path"
	Unnamed          Reason = "unnamed_element"
	Disabled         Reason = "element_disabled"
	FieldNotCovered  Reason = "field_not_covered"
	TextTooLong      Reason = "text_too_long"
	TextNotCovered   Reason = "text_not_covered"
	LinkOutside      Reason = "link_outside_prefix"
	FormOutside      Reason = "form_outside_prefix"
	NoFocus          Reason = "focus_not_held" // live only: key or text would go elsewhere
)

// Excluded is the reason that an act has a consequence above the ceiling.
func Excluded(c consequence.Consequence) Reason { return "excluded." + Reason(c) }

// Subject is the element that an act is for, as it was observed or as it is.
type Subject struct {
	URL     string // of the page
	Framed  bool   // the element is in a frame, which no constraint covers
	Element observe.Element
	Facts   observe.Facts
	Options []string // texts of the options that a selection could choose
	Partial bool     // there are more of those than were read, or none is known
}

// Consequence is what the act may lead to.
func (s Subject) Consequence(a action.Action) consequence.Consequence {
	f := s.Facts
	if !activates(a) {
		f.Link, f.Form = nil, nil
	}
	of := consequence.OfElement(string(a.Kind), s.Element, f, s.Options)
	of.Incomplete = of.Incomplete || s.Partial
	return consequence.Classify(of)
}

// activates reports whether the act may follow a link or send a form: any click
// on something in a form does, and Enter and Space, whatever its role (TGC-05).
func activates(a action.Action) bool {
	return a.Kind == action.Click || a.Kind == action.Check || a.Kind == action.Press && a.Key != nil && (*a.Key == "Enter" || *a.Key == "Space")
}

// Fields that the kinds of act cover (TGC-02, TGC-04, section 2.7).
var (
	typable     = []observe.FieldKind{observe.FieldText, observe.FieldSearch, observe.FieldMultiline}
	pressable   = append([]observe.FieldKind{observe.FieldNone, observe.FieldEditable}, typable...)
	unclickable = []observe.FieldKind{
		observe.FieldPassword, observe.FieldOneTimeCode, observe.FieldPayment, observe.FieldIdentity, observe.FieldEmail,
		observe.FieldTelephone, observe.FieldFile, observe.FieldURL, observe.FieldOther,
	}
)

// Refuses says why the constraint does not cover the act on the subject at
// that time, or "" when it does.
func (c Constraint) Refuses(a action.Action, s Subject, now time.Time) Reason {
	if c.Validate() != nil {
		return Unavailable
	}
	if !now.Before(c.ExpiresAt) {
		return Expired
	}
	if s.Facts.FieldKind == "" || s.Facts.Cut || s.Partial {
		return FactsUnavailable
	}
	if s.Framed {
		return OutsideOrigin
	}
	if r := c.Admits(s.URL); r != "" {
		return r
	}
	if a.Kind != action.Scroll && strings.TrimSpace(s.Element.Name) == "" {
		return Unnamed
	}
	if of := s.Consequence(a); of.Named() || of == consequence.Unknown && c.Ceiling != consequence.Unknown {
		return Excluded(of)
	}
	switch {
	case s.Element.Disabled:
		return Disabled
	case !coversField(a.Kind, s.Facts.FieldKind):
		return FieldNotCovered
	}
	if a.Kind == action.Type {
		switch {
		case a.Value == nil || utf8.RuneCountInString(*a.Value) > c.MaxText:
			return TextTooLong
		case !plain(*a.Value):
			return TextNotCovered
		}
	}
	switch {
	case activates(a) && !c.leadsInside(s.Facts.Link):
		return LinkOutside
	case activates(a) && !c.leadsInside(s.Facts.Form):
		return FormOutside
	}
	return ""
}

func coversField(k action.Kind, field observe.FieldKind) bool {
	switch k {
	case action.Click:
		return slices.Contains(observe.FieldKinds(), field) && !slices.Contains(unclickable, field)
	case action.Type:
		return slices.Contains(typable, field)
	case action.Select:
		return field == observe.FieldSelect
	case action.Check:
		return field == observe.FieldChoice
	case action.Press:
		return slices.Contains(pressable, field)
	case action.Scroll:
		return true
	}
	return false
}

func (c Constraint) leadsInside(t *observe.Target) bool {
	return t == nil || t.SameOrigin && !t.Sensitive && (c.Prefix == "" || "/"+t.Segment == c.Prefix)
}

// plain reports whether a text is of the kind that may be typed without being
// shown to the owner first: no address, no long number, no secret (TGC-03).
func plain(text string) bool {
	digits := 0
	folded := strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Cf, r):
			return -1
		case r >= '！' && r <= '～': // full width
			return r - '！' + '!'
		}
		return r
	}, text)
	for _, r := range folded {
		if !unicode.IsNumber(r) {
			digits = 0
		} else if digits++; digits == 4 {
			return false
		}
	}
	low := strings.ToLower(folded)
	return !strings.ContainsAny(low, "@﹫") && !strings.Contains(low, "://") && !strings.Contains(low, "www.") && !approval.LooksSecret(folded)
}

// Seen is the subject of an act as the orchestrator has observed it (TGC-07).
// False when the observation does not have the element.
func Seen(a action.Action, raw observe.Raw) (Subject, bool) {
	e, f, ok := raw.Find(a.Ref)
	d := raw.Document()
	if !ok || a.ExpectedRevision != d.Revision {
		return Subject{}, false
	}
	state := d.States[a.Ref]
	s := Subject{URL: d.URL, Framed: state.Frame != "", Element: e, Facts: f}
	if a.Kind == action.Select && a.Value != nil {
		// Values are not observed: what is chosen by its value is the worker's to read.
		wanted := strings.Join(strings.Fields(*a.Value), " ")
		s.Options = []string{wanted}
		for _, o := range state.Options {
			if o.Label == wanted {
				s.Options = append(s.Options, o.Label)
			}
		}
	}
	return s, true
}
