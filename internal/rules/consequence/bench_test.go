package consequence

import "testing"

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		load()
	}
}
