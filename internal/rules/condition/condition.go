// Package condition says what an agent expects to see, and whether it is
// there: the predicate of wait_for and of postcondition, its evaluation over
// one observation, and when another look may begin (COND-01 to COND-05,
// EVID-01 to EVID-04, section 2.1 of the requirements). A condition is about
// what is visible; it proves no cause and authorizes nothing.
package condition

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// Bounds of a condition.
const (
	MaxTimeout     = 5000 // milliseconds
	DefaultTimeout = 2000
	MaxEvidence    = 512 // characters of a text
	maxCell        = 256 // characters of a wanted cell
)

// Condition is one predicate about a control (Role and Name) or one Evidence,
// and optionally evidence of failure.
type Condition struct {
	Role      string    `json:"role,omitempty"`
	Name      *string   `json:"name,omitempty"` // nil with Evidence only
	Disabled  *bool     `json:"disabled,omitempty"`
	Checked   *bool     `json:"checked,omitempty"`
	Evidence  *Evidence `json:"evidence,omitempty"`
	Failure   *Evidence `json:"failure_evidence,omitempty"`
	TimeoutMS int       `json:"timeout_ms"` // 0 to 5000
}

// Evidence kinds.
const (
	Text     = "text"     // one complete rendered line
	Region   = "region"   // one complete region
	Location = "location" // the exact address of the page
	Row      = "row"      // one row of a collection
)

// Evidence is something visible. Which members it has, its Kind says.
type Evidence struct {
	Kind       string             `json:"kind"`
	Text       string             `json:"text,omitempty"`        // text, region
	RegionKind observe.RegionKind `json:"region_kind,omitempty"` // region
	URL        string             `json:"url,omitempty"`         // location; canonical after Validate
	Collection string             `json:"collection_kind,omitempty"`
	Index      int                `json:"index,omitempty"`
	Fields     []Field            `json:"fields,omitempty"`
	RowLimit   int                `json:"row_limit,omitempty"`
}

// Field is a wanted cell. Value is a string, a float64 or a bool, as Type says.
type Field struct {
	Name   string `json:"name"`
	Column int    `json:"column"`
	Type   string `json:"type"`
	Value  any    `json:"value"`
}

// Validate checks the shape and bounds, and makes the address canonical. It
// returns fault.ArgumentsInvalid.
func (c *Condition) Validate() error {
	control := c.Role != "" || c.Name != nil || c.Disabled != nil || c.Checked != nil
	switch {
	case control == (c.Evidence != nil):
		return invalid("A condition has either role and name of an element, or evidence.")
	case control && (c.Role == "" || c.Name == nil):
		return invalid("A condition about an element has its role and its name.")
	case !characters(c.Role, 64) || c.Name != nil && !characters(*c.Name, observe.MaxName):
		return invalid("role is at most 64 characters and name at most 1024.")
	case c.TimeoutMS < 0 || c.TimeoutMS > MaxTimeout:
		return invalid("timeout_ms is from 0 to 5000.")
	case c.Failure != nil && c.Failure.Kind == Row:
		return invalid("failure_evidence is a text, a region or a location.")
	}
	for _, e := range []*Evidence{c.Evidence, c.Failure} {
		if e == nil {
			continue
		}
		if err := e.validate(); err != nil {
			return err
		}
	}
	return nil
}

func (e *Evidence) validate() error {
	text, region, location, row := e.Text != "", e.RegionKind != "", e.URL != "", e.Collection != "" || len(e.Fields) > 0 || e.Index != 0 || e.RowLimit != 0
	fits := false
	switch e.Kind {
	case Text:
		fits = text && !region && !location && !row
	case Region:
		fits = text && region && !location && !row && slices.Contains(observe.RegionKinds(), e.RegionKind)
	case Location:
		fits = location && !text && !region && !row
	case Row:
		fits = row && !text && !region && !location
	}
	if !fits {
		return invalid("Evidence is a text; a region_kind with a text; a location's url; or a row's collection_kind and fields.")
	}
	switch e.Kind {
	case Location:
		u, err := site.ParseURL(e.URL)
		if err != nil {
			return invalid("The url of a location is a public https address.")
		}
		e.URL = u.String()
	case Row:
		return e.row()
	default:
		if !characters(e.Text, MaxEvidence) || fold(e.Text) == "" {
			return invalid("The text of evidence is 1 to 512 characters and not blank.")
		}
	}
	return nil
}

func (e *Evidence) row() error {
	if e.Collection == "articles" {
		return invalid("collection_kind is table, list or form.")
	}
	if err := (observe.Query{Extract: new(e.Extract("x"))}).Validate(); err != nil {
		return err
	}
	for _, f := range e.Fields {
		fits := false
		switch v := f.Value.(type) {
		case string:
			fits = f.Type == "string" && v != "" && characters(v, maxCell)
		case bool:
			fits = f.Type == "boolean"
		case float64:
			fits = f.Type == "number" || f.Type == "integer" && v > -1<<53 && v < 1<<53 && v == float64(int64(v))
		}
		if !fits {
			return invalid("The value of a field is what its type says: 1 to 256 characters, a number, an exact whole number, or true or false.")
		}
	}
	return nil
}

// Extract is the request that reads the rows of a row's collection.
func (e *Evidence) Extract(revision string) observe.ExtractQuery {
	x := observe.ExtractQuery{Revision: revision, Kind: e.Collection, Index: e.Index, RowLimit: e.RowLimit}
	for _, f := range e.Fields {
		x.Fields = append(x.Fields, observe.ExtractField{Name: f.Name, Column: f.Column, Type: f.Type, Required: true})
	}
	return x
}

// NeedsRows reports whether the condition is about a row, which only an
// extraction shows.
func (c *Condition) NeedsRows() bool { return c.Evidence != nil && c.Evidence.Kind == Row }

func characters(s string, most int) bool {
	return utf8.ValidString(s) && utf8.RuneCountInString(s) <= most
}

func fold(s string) string { return strings.Join(strings.Fields(s), " ") }

func invalid(public string) error {
	return fault.New(fault.ArgumentsInvalid, public+" Nothing was done.")
}
