package hostilesite_test

import (
	"sync"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/testkit/hostilesite"
)

// lanes is how many agents work side by side: most of the time is waiting for
// what is in the way to go.
const lanes = 3

// shape tries one shape and says what was wrong.
func (l *lane) shape(t testing.TB, s hostilesite.Shape) error {
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
	answer, id := l.do(t, s.Body, s.Later, kind, target, more)
	if s.Done && answer.Code != "" {
		t.Errorf("an honest page: %s %s", answer.Code, answer.Message)
	}
	if err := l.verdict(t, s.Name, id, answer, s.Silent); err != nil {
		return err
	}
	t.Logf("%q, the site saw %q", answer.Code, l.site.Effects(id))
	return nil
}

// Every shape ends with the approved effect, or a refusal and no effect, or an
// honest "unknown" and at most one; nothing else on the page is touched, nothing
// forbidden is connected to, and no yes is used twice (OBS-01, CAP-06, CLK-01 to
// CLK-03, GUARD-01 to GUARD-04, POP-01, DENY-03, DENY-04, REL-01, GATE-07).
func TestShapes(t *testing.T) {
	shared.begin(t)
	shapes := make(chan hostilesite.Shape)
	var wait sync.WaitGroup
	for range lanes {
		l := &lane{bench: &shared}
		wait.Go(func() {
			for s := range shapes {
				t.Run(s.Name, func(t *testing.T) {
					if err := l.shape(t, s); err != nil {
						t.Error(err)
					}
				})
			}
			l.end()
		})
	}
	for _, s := range hostilesite.Shapes() {
		shapes <- s
	}
	close(shapes)
	wait.Wait()
}
