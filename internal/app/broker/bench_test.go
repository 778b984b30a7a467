package broker_test

import (
	"testing"

	"github.com/chaperone-agents/chaperone/internal/rules/action"
)

// BenchmarkRead is what policy, store and audit add to a read: everything of a
// call but the browser.
func BenchmarkRead(b *testing.B) {
	bench := newBench(b, nil, nil)
	bench.open(b)
	for b.Loop() {
		if _, err := bench.call(action.Observe, struct{}{}); err != nil {
			b.Fatal(err)
		}
	}
}
