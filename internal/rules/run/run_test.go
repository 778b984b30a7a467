package run

import (
	"testing"
	"time"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// REL-01, GATE-07: an effect that may have been sent is uncertain; nothing
// turns a known outcome into another.
func TestAbandoned(t *testing.T) {
	for _, x := range []struct {
		before Outcome
		sent   time.Time
		want   Outcome
	}{
		{Running, time.Time{}, Failed}, {Running, now, Uncertain},
		{Succeeded, now, Succeeded}, {Failed, now, Failed}, {Uncertain, now, Uncertain}, {Succeeded, time.Time{}, Succeeded},
	} {
		got := Invocation{Outcome: x.before, EffectSentAt: x.sent}.Abandoned(now)
		if got.Outcome != x.want || got.FinishedAt.IsZero() != (x.before != Running) {
			t.Errorf("%s, sent %v: %+v", x.before, x.sent, got)
		}
	}
}

func TestLive(t *testing.T) {
	if !(Session{}).Live() || (Session{EndedAt: now}).Live() {
		t.Error("a session is live until it has ended")
	}
}
