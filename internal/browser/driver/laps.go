package driver

import (
	"log/slog"
	"time"
)

// levelTiming is below what a worker writes: figures are for benchmarks.
const levelTiming = slog.LevelDebug - 4

// laps say where the time of an act went: names and durations in turns, as a
// log takes them. Nothing of the page is in it.
type laps struct {
	last  time.Time
	parts []any
}

// end closes a part, which began when the one before it ended.
func (l *laps) end(part string) {
	now := time.Now()
	l.parts = append(l.parts, part, now.Sub(l.last))
	l.last = now
}
