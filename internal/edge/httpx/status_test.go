package httpx

import (
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
)

// The table has every code of the closed list and no other; what is on no list
// is our own failure (CODE-01).
func TestEveryCodeHasAStatus(t *testing.T) {
	for _, code := range fault.Codes() {
		if s, ok := statuses[code]; !ok || s < 400 || s > 599 || Status(code) != s {
			t.Errorf("%s has status %d", code, s)
		}
	}
	if len(statuses) != len(fault.Codes()) {
		t.Errorf("%d statuses for %d codes", len(statuses), len(fault.Codes()))
	}
	if s := Status("made.up"); s != 500 {
		t.Errorf("an unknown code has status %d", s)
	}
}
