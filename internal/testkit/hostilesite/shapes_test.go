package hostilesite_test

import (
	"testing"

	"github.com/chaperone-agents/chaperone/internal/testkit/hostilesite"
)

// shape tries one shape and says what was wrong.
func (b *bench) shape(t testing.TB, s hostilesite.Shape) error {
	t.Helper()
	kind, target := s.Kind, s.Target
	if kind == "" {
		kind = "click"
	}
	if target == "" {
		target = "Save"
	}
	more := map[string]any{}
	switch kind {
	case "press":
		more["key"] = s.Value
	case "type", "select":
		more["value"] = s.Value
	}
	answer, id := b.do(t, s.Body, s.Later, kind, target, more)
	if s.Done && answer.Code != "" {
		t.Errorf("an honest page: %s %s", answer.Code, answer.Message)
	}
	if err := b.verdict(s.Name, id, answer, s.Silent); err != nil {
		return err
	}
	t.Logf("%q, the site saw %q", answer.Code, b.site.Effects(id))
	return nil
}

// Every shape ends with the approved effect, or a refusal and no effect, or an
// honest "unknown" and at most one; nothing else on the page is touched, nothing
// forbidden is connected to, and no yes is used twice (OBS-01, CAP-06, CLK-01 to
// CLK-03, GUARD-01 to GUARD-04, POP-01, DENY-03, DENY-04, REL-01, GATE-07).
func TestShapes(t *testing.T) {
	for _, s := range hostilesite.Shapes() {
		t.Run(s.Name, func(t *testing.T) {
			if err := shared.shape(t, s); err != nil {
				t.Error(err)
			}
		})
	}
}
