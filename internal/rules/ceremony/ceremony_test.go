package ceremony

import (
	"testing"
	"time"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// READY-01, READY-02: of the sixteen kinds of evidence exactly one is enough.
func TestReady(t *testing.T) {
	for bits := range 16 {
		e := Evidence{TextDuringChallenge: bits&1 != 0, ChallengeVisible: bits&2 != 0, OnAllowedOrigin: bits&4 != 0, StoragePresent: bits&8 != 0}
		if got, want := e.Ready(), bits == 1|4|8; got != want {
			t.Errorf("%+v is ready: %v", e, got)
		}
		// CER-07, READY-02: a challenge waits for the user, its absence alone says nothing.
		if want := map[bool]Status{true: NeedsUser, false: AuthenticationRequired}[e.ChallengeVisible]; e.Waiting() != want {
			t.Errorf("%+v waits as %s", e, e.Waiting())
		}
	}
}

// Section 2.1: the two waiting states change into each other and into an
// outcome; an outcome is final.
func TestTo(t *testing.T) {
	all := []Status{AuthenticationRequired, NeedsUser, Ready, Expired, Cancelled}
	for _, from := range all {
		for _, to := range append(all, "", "done") {
			got, changed := Ceremony{Status: from, UpdatedAt: now}.To(to, now.Add(1))
			want := !from.Terminal() && from != to && to.Known()
			if changed != want || want && (got.Status != to || !got.UpdatedAt.After(now)) || !want && (got.Status != from || !got.UpdatedAt.Equal(now)) {
				t.Errorf("%s to %q: %+v, %v", from, to, got, changed)
			}
		}
	}
	for s, terminal := range map[Status]bool{AuthenticationRequired: false, NeedsUser: false, Ready: true, Expired: true, Cancelled: true, "": false} {
		if s.Terminal() != terminal || s.Known() != (s != "") {
			t.Errorf("%q: terminal %v, known %v", s, s.Terminal(), s.Known())
		}
	}
}

// PSM-09, CER-03: agents are kept away while the ceremony waits and is in time.
func TestOpen(t *testing.T) {
	for _, x := range []struct {
		status Status
		at     time.Duration
		want   bool
	}{
		{AuthenticationRequired, 0, true}, {NeedsUser, Life - 1, true}, {NeedsUser, Life, false},
		{Ready, 0, false}, {Expired, 0, false}, {Cancelled, 0, false},
	} {
		if got := (Ceremony{Status: x.status, ExpiresAt: now.Add(Life)}).Open(now.Add(x.at)); got != x.want {
			t.Errorf("%s after %v is open: %v", x.status, x.at, got)
		}
	}
}
