package lease

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// LEASE-02, RENEW-01: fifteen minutes a step, sixty in all.
func TestDeadline(t *testing.T) {
	for _, x := range []struct{ age, wanted, want time.Duration }{
		{0, time.Minute, time.Minute}, {0, MaxStep, MaxStep}, {0, MaxStep + 1, MaxStep}, {0, 24 * time.Hour, MaxStep},
		{50 * time.Minute, time.Hour, 10 * time.Minute}, {45 * time.Minute, time.Hour, MaxStep}, {60 * time.Minute, time.Hour, 0},
		{2 * time.Hour, time.Hour, -time.Hour}, {0, -time.Minute, -time.Minute},
	} {
		if got := Deadline(now.Add(-x.age), now, now.Add(x.wanted)).Sub(now); got != x.want {
			t.Errorf("aged %v, wanting %v: %v", x.age, x.wanted, got)
		}
	}
}

func TestDeadlineProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.Int64Range(-1e6, 1e6)
		at := now.Add(time.Duration(seconds.Draw(t, "now")) * time.Second)
		wanted := now.Add(time.Duration(seconds.Draw(t, "wanted")) * time.Second)
		d := Deadline(now, at, wanted)
		if d.After(wanted) || d.After(at.Add(MaxStep)) || d.After(now.Add(MaxLife)) {
			t.Fatalf("%v is over a bound", d)
		}
		if d != wanted && d != at.Add(MaxStep) && d != now.Add(MaxLife) {
			t.Fatalf("%v is none of the bounds", d)
		}
	})
}

// LEASE-07: the proof of holding a lease is made for one operation of a live one.
func TestHold(t *testing.T) {
	h, err := Hold("ref", 1, now.Add(1), now)
	if err != nil || !h.Valid() || h.Ref() != "ref" || h.Sequence() != 1 || !h.Expires().Equal(now.Add(1)) {
		t.Errorf("%+v, %v", h, err)
	}
	if _, err := Hold(strings.Repeat("r", MaxRef), 1<<40, now.Add(1), now); err != nil {
		t.Errorf("at the bounds: %v", err)
	}
	for what, f := range map[string]func() (Held, error){
		"expired":      func() (Held, error) { return Hold("ref", 1, now, now) },
		"no expiry":    func() (Held, error) { return Hold("ref", 1, time.Time{}, now) },
		"no reference": func() (Held, error) { return Hold("", 1, now.Add(1), now) },
		"a long one":   func() (Held, error) { return Hold(strings.Repeat("r", MaxRef+1), 1, now.Add(1), now) },
		"number 0":     func() (Held, error) { return Hold("ref", 0, now.Add(1), now) },
		"number -1":    func() (Held, error) { return Hold("ref", -1, now.Add(1), now) },
	} {
		if h, err := f(); !fault.Is(err, fault.ProfileUnavailable) || h.Valid() {
			t.Errorf("%s: %+v, %v", what, h, err)
		}
	}
	if (Held{}).Valid() {
		t.Error("the zero proof is valid")
	}
}

func TestEphemeral(t *testing.T) {
	if !(Key{RunID: "r"}).Ephemeral() || (Key{ProfileID: "p"}).Ephemeral() {
		t.Error("a lease is ephemeral exactly if it has no profile (EPH-01)")
	}
}
