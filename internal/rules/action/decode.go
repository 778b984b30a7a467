package action

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"

	"github.com/chaperone-agents/chaperone/internal/rules/condition"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// decode reads exactly one JSON object whose members have exactly the known
// names, each at most once; nothing at all counts as the empty object, and a
// null as an absent member.
func decode(raw json.RawMessage, into any, known ...string) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	if trimmed := bytes.TrimSpace(raw); trimmed[0] != '{' {
		return invalid("The arguments are not an object.")
	}
	if err := members(raw, known); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(into); err != nil {
		return invalid("The arguments have a wrong type; see the tool's schema.")
	}
	if _, err := d.Token(); err != io.EOF {
		return invalid("There is something behind the arguments.")
	}
	return nil
}

// members refuses a member that is unknown or named twice. encoding/json would
// take the last one, in any letter case and with look-alikes such as a long s,
// where another reader takes the first.
func members(raw json.RawMessage, known []string) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return invalid("The arguments are not JSON.")
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return invalid("The arguments are not JSON.")
		}
		name, _ := t.(string)
		if !slices.Contains(known, name) || seen[name] {
			return invalid("The arguments have an unknown member, or one that is named twice; see the tool's schema.")
		}
		seen[name] = true
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			return invalid("The arguments are not JSON.")
		}
	}
	return nil
}

// absent reports whether an optional member is not there.
func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// decodeCondition reads a wait_for or a postcondition.
func decodeCondition(raw json.RawMessage) (*condition.Condition, error) {
	if absent(raw) {
		return nil, nil
	}
	a := struct {
		Role      *string         `json:"role"`
		Name      *string         `json:"name"`
		Disabled  *bool           `json:"disabled"`
		Checked   *bool           `json:"checked"`
		TimeoutMS *int            `json:"timeout_ms"`
		Evidence  json.RawMessage `json:"evidence"`
		Failure   json.RawMessage `json:"failure_evidence"`
	}{}
	if err := decode(raw, &a, "role", "name", "disabled", "checked", "timeout_ms", "evidence", "failure_evidence"); err != nil {
		return nil, err
	}
	c := &condition.Condition{Name: a.Name, Disabled: a.Disabled, Checked: a.Checked, TimeoutMS: or(a.TimeoutMS, condition.DefaultTimeout)}
	if a.Role != nil {
		if *a.Role == "" {
			return nil, invalid("role is not empty.")
		}
		c.Role = *a.Role
	}
	var err error
	if c.Evidence, err = decodeEvidence(a.Evidence); err != nil {
		return nil, err
	}
	if c.Failure, err = decodeEvidence(a.Failure); err != nil {
		return nil, err
	}
	return c, c.Validate()
}

func decodeEvidence(raw json.RawMessage) (*condition.Evidence, error) {
	if absent(raw) {
		return nil, nil
	}
	a := struct {
		Kind       string             `json:"kind"`
		Text       string             `json:"text"`
		RegionKind observe.RegionKind `json:"region_kind"`
		URL        string             `json:"url"`
		Collection string             `json:"collection_kind"`
		Index      int                `json:"index"`
		Fields     []json.RawMessage  `json:"fields"`
		RowLimit   *int               `json:"row_limit"`
	}{}
	if err := decode(raw, &a, "kind", "text", "region_kind", "url", "collection_kind", "index", "fields", "row_limit"); err != nil {
		return nil, err
	}
	e := &condition.Evidence{Kind: a.Kind, Text: a.Text, RegionKind: a.RegionKind, URL: a.URL, Collection: a.Collection, Index: a.Index}
	switch {
	case a.RowLimit != nil && *a.RowLimit < 1:
		return nil, invalid("row_limit is from 1 to 50.")
	case a.RowLimit != nil:
		e.RowLimit = *a.RowLimit
	case a.Kind == condition.Row:
		e.RowLimit = defaultRows
	}
	for _, f := range a.Fields {
		x := struct {
			Name   string `json:"name"`
			Column *int   `json:"column"`
			Type   string `json:"type"`
			Value  any    `json:"value"`
		}{}
		if err := decode(f, &x, "name", "column", "type", "value"); err != nil {
			return nil, err
		}
		if x.Column == nil {
			return nil, invalid("A field has a column.")
		}
		e.Fields = append(e.Fields, condition.Field{Name: x.Name, Column: *x.Column, Type: x.Type, Value: x.Value})
	}
	return e, nil
}

// defaultRows is the row limit of a call that names none.
const defaultRows = 20

func decodeExtract(raw json.RawMessage) (*observe.ExtractQuery, error) {
	if absent(raw) {
		return nil, nil
	}
	a := struct {
		Revision string            `json:"expected_revision"`
		Kind     string            `json:"kind"`
		Index    int               `json:"index"`
		Fields   []json.RawMessage `json:"fields"`
		RowLimit *int              `json:"row_limit"`
	}{}
	if err := decode(raw, &a, "expected_revision", "kind", "index", "fields", "row_limit"); err != nil {
		return nil, err
	}
	q := &observe.ExtractQuery{Revision: a.Revision, Kind: a.Kind, Index: a.Index, RowLimit: or(a.RowLimit, defaultRows)}
	for _, f := range a.Fields {
		x := struct {
			Name     string `json:"name"`
			Column   *int   `json:"column"`
			Type     string `json:"type"`
			Required *bool  `json:"required"`
		}{}
		if err := decode(f, &x, "name", "column", "type", "required"); err != nil {
			return nil, err
		}
		if x.Column == nil {
			return nil, invalid("A field has a column.")
		}
		q.Fields = append(q.Fields, observe.ExtractField{Name: x.Name, Column: *x.Column, Type: x.Type, Required: or(x.Required, true)})
	}
	return q, nil
}

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
