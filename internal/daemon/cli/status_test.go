package cli

import (
	"errors"
	"fmt"
	"testing"

	"github.com/chaperone-agents/chaperone/client"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
)

// The table has every code of the closed list and no other, and only the exit
// statuses that docs/operations.md lists (CODE-01).
func TestEveryCodeHasAnExitStatus(t *testing.T) {
	for _, code := range fault.Codes() {
		if s, ok := statuses[code]; !ok || s < 1 || s > 7 {
			t.Errorf("%s has exit status %d", code, s)
		}
	}
	if len(statuses) != len(fault.Codes()) {
		t.Errorf("%d statuses for %d codes", len(statuses), len(fault.Codes()))
	}
	for _, c := range []struct {
		err  error
		want int
	}{
		{errors.New("plain"), 1},
		{errNo{"no"}, 7},
		{fault.New("made.up", "?"), 1},
		{fault.New(fault.NotFound, "?"), 3},
		{fmt.Errorf("around: %w", fault.New(fault.Conflict, "?")), 5},
		{&client.Refusal{Code: string(fault.Forbidden)}, 4},
		{&client.Refusal{Code: "made.up"}, 1},
	} {
		if got := status(c.err); got != c.want {
			t.Errorf("%v: exit status %d, want %d", c.err, got, c.want)
		}
	}
}
