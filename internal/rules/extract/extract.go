// Package extract gives the bounded texts that were read of a table, list, form
// or list of articles their types (EXTR-06 to EXTR-10, ART-02, ART-05). It is
// strict on purpose: what is not plainly a value of the wanted type is invalid,
// and a valid row says nothing about truth (EXTR-09).
package extract

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// MaxBytes is the largest extraction, in bytes of JSON (EXTR-10).
const MaxBytes = 64 << 10

// maxExact is the largest integer that JSON's readers agree on, 2^53-1.
const maxExact = 1<<53 - 1

// Statuses of an extraction, and of a cell.
const (
	Extracted   = "extracted"
	NotFound    = "not_found"
	Unsupported = "unsupported_structure"

	Present   = "present"
	Missing   = "missing"
	Invalid   = "invalid"
	Truncated = "truncated"
)

// Found is what was read in the page: a status, texts, and what was scanned.
type Found struct {
	Status      string
	SourceName  string
	SourceNodes int
	SourceLimit bool
	RowNodes    int
	RowLimit    bool      // the scan for rows was cut
	Rows        [][]*Text // one per wanted field; nil is a cell that is not there
	OmittedRows int
}

// Text is the text of one cell.
type Text struct {
	Text      string
	Truncated bool
}

// Build makes the answer to q of what was found on the page at u. Rows that do
// not fit in MaxBytes are left out from the end, and counted.
func Build(revision string, u site.URL, q observe.ExtractQuery, f Found) observe.Extraction {
	x := observe.Extraction{
		Version: 1, Revision: revision, Kind: q.Kind, Index: q.Index, Status: f.Status, SourceName: f.SourceName,
		Fields: q.Fields, Rows: []observe.Row{}, Scope: "main_document", SourceNodes: f.SourceNodes,
		SourceScanLimitReached: f.SourceLimit, RowNodes: f.RowNodes, RowScanLimitReached: f.RowLimit,
		RowLimit: q.RowLimit, OmittedRows: f.OmittedRows,
	}
	if q.Kind == "articles" {
		x.Scope = "main_document_viewport_articles"
	}
	if f.Status != NotFound {
		x.SourceRef = revision + ":source"
	}
	if f.Status != Extracted {
		return x
	}
	size := encodedSize(x)
	for r, texts := range f.Rows {
		row := buildRow(revision, u, q, r, texts)
		size += encodedSize(row) + 1
		if size > MaxBytes || r == q.RowLimit {
			x.ByteLimitReached = size > MaxBytes
			x.OmittedRows += len(f.Rows) - r
			break
		}
		x.Rows = append(x.Rows, row)
	}
	return x
}

func buildRow(revision string, u site.URL, q observe.ExtractQuery, r int, texts []*Text) observe.Row {
	row := observe.Row{Ref: fmt.Sprintf("%s:row:%d", revision, r), Cells: make([]observe.Cell, len(q.Fields)), SchemaValid: true}
	for i, f := range q.Fields {
		c := observe.Cell{Field: f.Name, Column: f.Column, Ref: fmt.Sprintf("%s:cell:%d:%d", revision, r, f.Column), Status: Missing}
		if i < len(texts) && texts[i] != nil && texts[i].Text != "" && (q.Kind != "articles" || f.Column != 1 || evidence(u, texts[i].Text)) {
			c.Text = texts[i].Text
			c.Value, c.Status = value(*texts[i], f.Type)
		}
		if c.Status == Invalid || c.Status == Truncated || c.Status == Missing && f.Required {
			row.SchemaValid = false
		}
		row.Cells[i] = c
	}
	return row
}

// JSON's own grammar of numbers, which no locale changes.
var (
	integer = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,15})$`)
	number  = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
)

// value converts a text; what has no value of the type yields nil and why.
func value(t Text, kind string) (any, string) {
	if t.Truncated {
		return nil, Truncated
	}
	switch kind {
	case "string":
		return t.Text, Present
	case "boolean":
		if t.Text == "true" || t.Text == "false" {
			return t.Text == "true", Present
		}
	case "integer":
		if !integer.MatchString(t.Text) {
			break
		}
		if n, err := strconv.ParseInt(t.Text, 10, 64); err == nil && n >= -maxExact && n <= maxExact {
			return n, Present
		}
	case "number":
		if !number.MatchString(t.Text) {
			break
		}
		if n, err := strconv.ParseFloat(t.Text, 64); err == nil && math.Abs(n) <= maxExact {
			return n + 0, Present // a negative zero becomes zero
		}
	}
	return nil, Invalid
}

// evidence reports whether an article's link may be shown: public HTTPS, of the
// document's own origin, with neither credentials nor query nor fragment.
func evidence(page site.URL, link string) bool {
	u, err := site.ParseURL(link)
	return err == nil && u.Origin() == page.Origin() && !strings.ContainsAny(link, "?#")
}

func encodedSize(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return MaxBytes + 1 // no value of ours fails; one that did would not be shown
	}
	return len(b)
}
