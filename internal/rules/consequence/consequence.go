// Package consequence says what an act on a website may lead to, from what the
// page says about the element: one pure, deny-biased function that the
// orchestrator applies to the observation and the worker to the live page
// (CLS-01, CLS-02, CLS-03, and sections 2.6 of the requirements).
//
// A website writes everything that is read here. It can push an act up to a
// named consequence, never down: each text only adds hits (CLS-04, CLS-08).
// What it cannot read, a label in pixels or in a language without a vocabulary,
// is unknown and not routine; the limits of a grant are then the boundary
// (CLS-06).
package consequence

import (
	"math/bits"
	"slices"

	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// Consequence is what an act may lead to; the set is closed (CLS-01).
type Consequence string

// The consequences. Those before Routine are named: no grant covers them, and
// each such act needs a fresh approval (CLS-07, SG-10).
const (
	Payment              Consequence = "payment"
	Purchase             Consequence = "purchase"
	AuthenticationChange Consequence = "authentication_change"
	AccountRecovery      Consequence = "account_recovery"
	SecurityChange       Consequence = "security_change"
	PermissionChange     Consequence = "permission_change"
	LegalAcceptance      Consequence = "legal_acceptance"
	Publication          Consequence = "publication"
	Destructive          Consequence = "destructive"
	FileTransfer         Consequence = "file_transfer"
	Routine              Consequence = "routine"
	Unknown              Consequence = "unknown"
)

// All lists the consequences: the named ones in the order in which they win
// over each other, then routine and unknown.
func All() []Consequence {
	return []Consequence{
		Payment, Purchase, AuthenticationChange, AccountRecovery, SecurityChange, PermissionChange,
		LegalAcceptance, Publication, Destructive, FileTransfer, Routine, Unknown,
	}
}

// Named reports whether every act of this kind needs a fresh approval. A value
// outside the set counts as named.
func (c Consequence) Named() bool { return c != Routine && c != Unknown }

// Subject is an act and what the page says about its element. Every text is
// the website's.
type Subject struct {
	Act      string            // click, type, select, check, press, scroll, upload, navigate
	Role     string            // of the element
	Labels   []string          // every label source of the element, the name first
	Context  string            // accessible name of the enclosing dialog
	Options  []string          // texts of the options that could be chosen
	Field    observe.FieldKind // FieldNone for what is no field and for navigation
	Download bool              // a link that saves what it leads to
	Segments []string          // path segments of every navigation target, as they are in the address

	// Incomplete says that the above is not all: a label was cut, a bound was
	// passed, or a target could not be read. Such an act is never routine.
	Incomplete bool
}

// Bounds of what is read of one subject, in bytes. The facts of an element are
// far below; what passes them is no honest element, and no grant covers it.
const (
	maxText = 4096
	maxAll  = 1 << 17
)

// Classify returns the consequence of the act. It answers alike wherever it
// runs, never panics, and its work is bounded whatever it is given.
func Classify(s Subject) Consequence { return standard.classify(s) }

// classifier is what the rules are made of.
type classifier struct {
	terms *terms
	read  func(string) []string // the readings of a text, normalised (CLS-05)
}

// standard is what every caller uses: a table, which nothing changes.
var standard = &classifier{terms: load(), read: readings}

func (c *classifier) classify(s Subject) Consequence {
	if named, ok := byKind(s); ok {
		return named
	}
	f := c.look(s)
	switch {
	case f.currency:
		return Payment
	case f.hits != 0:
		return f.hits.first()
	case f.excess:
		return SecurityChange
	case s.Incomplete || f.unread || f.sensitive || s.Field == "":
		return Unknown
	case s.Act == "scroll", c.routine(s):
		return Routine
	}
	return Unknown
}

// byKind decides what needs no words. A kind of field that is not known here
// is taken for one that holds something personal.
func byKind(s Subject) (Consequence, bool) {
	switch s.Field {
	case observe.FieldPassword, observe.FieldOneTimeCode:
		return AuthenticationChange, true
	case observe.FieldPayment:
		return Payment, true
	case observe.FieldIdentity, observe.FieldEmail, observe.FieldTelephone:
		return SecurityChange, true
	case observe.FieldFile:
		return FileTransfer, true
	case "", observe.FieldNone, observe.FieldText, observe.FieldSearch, observe.FieldMultiline, observe.FieldEditable,
		observe.FieldChoice, observe.FieldSelect, observe.FieldCustomChoice, observe.FieldURL, observe.FieldNumber,
		observe.FieldDate, observe.FieldOther:
	default:
		return SecurityChange, true
	}
	switch {
	case s.Download, s.Act == "upload":
		return FileTransfer, true
	case s.Role == "switch":
		return SecurityChange, true
	}
	return "", false
}

// found is what the texts of a subject hold.
type found struct {
	left      int // bytes that may still be read
	hits      mask
	currency  bool
	sensitive bool // a segment names an area of the site that no grant covers
	unread    bool // not UTF-8, or a script without a vocabulary
	excess    bool // a bound was passed
}

// look reads every text of the subject.
func (c *classifier) look(s Subject) found {
	f := found{left: maxAll}
	for _, text := range s.Labels {
		f.hits |= c.text(&f, text)
	}
	f.hits |= c.text(&f, s.Context)
	for _, seg := range s.Segments {
		c.segment(&f, seg)
	}
	for _, text := range s.Options {
		f.hits |= c.text(&f, text)
	}
	f.hits &^= segment
	return f
}

// text reads one text and returns what the vocabulary finds in it.
func (c *classifier) text(f *found, text string) mask {
	if text == "" {
		return 0
	}
	if n := min(maxText, f.left); len(text) > n {
		f.excess = true
		text = text[:n]
	}
	f.left -= len(text)
	f.unread = f.unread || unreadable(text)
	f.currency = f.currency || hasCurrency(text)
	var hits mask
	for _, r := range c.read(text) {
		hits |= c.terms.find(r)
	}
	return hits
}

// segment reads a path segment in every form that decoding gives it.
func (c *classifier) segment(f *found, seg string) {
	if len(seg) > maxText {
		f.excess = true
		seg = seg[:maxText]
	}
	forms, ok := unescaped(seg)
	f.excess = f.excess || !ok
	for _, form := range append(forms, humps(forms[len(forms)-1])) {
		hits := c.text(f, form)
		f.sensitive = f.sensitive || hits&segment != 0
		f.hits |= hits &^ segment
	}
}

// routine reports whether all label sources agree on one routine word (CLS-07).
func (c *classifier) routine(s Subject) bool {
	if s.Act != "click" || s.Role != "button" && s.Role != "link" || s.Field != observe.FieldNone || len(s.Options) > 0 {
		return false
	}
	one := ""
	for _, l := range s.Labels {
		if l == "" {
			continue
		}
		n := fold(l)
		if n == "" || one != "" && n != one || decorated(l) {
			return false
		}
		one = n
	}
	return c.terms.routine[one]
}

// mask is a set of named consequences, bit i for All()[i].
type mask uint16

// bit returns the set of one named consequence, or none.
func bit(c Consequence) mask {
	i := slices.Index(All(), c)
	if i < 0 || !c.Named() {
		return 0
	}
	return 1 << i
}

// first returns the member of a set, not empty, that wins.
func (m mask) first() Consequence { return All()[bits.TrailingZeros16(uint16(m))] }
