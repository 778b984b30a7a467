package approval

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func question() Approval {
	return Approval{ID: "a1", SessionID: "s1", Digest: "d1", Generation: 3, Status: Pending, CreatedAt: now, ExpiresAt: now.Add(Life)}
}

func decided(t *testing.T, d Decision) Approval {
	t.Helper()
	a, err := question().Decide(d, "", "device", now)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestDecide(t *testing.T) {
	a := decided(t, ApproveOnce)
	if a.Status != Approved || a.DecidedBy != "device" || !a.DecidedAt.Equal(now) {
		t.Errorf("%+v", a)
	}
	d, err := question().Decide(Deny, strings.Repeat("ü", 500), "device", now)
	if err != nil || d.Status != Denied || len([]rune(d.Reason)) != 500 {
		t.Errorf("%+v, %v", d, err)
	}
	for _, x := range []struct {
		what   string
		a      Approval
		d      Decision
		reason string
		at     time.Time
		code   fault.Code
		status Status
	}{
		{"an unknown decision", question(), "approve_always", "", now, fault.MalformedRequest, Pending},
		{"no decision", question(), "", "", now, fault.MalformedRequest, Pending},
		{"a long reason", question(), Deny, strings.Repeat("x", 501), now, fault.MalformedRequest, Pending},
		{"an approved one denied", a, Deny, "", now, fault.Conflict, Approved},
		{"an approved one approved", a, ApproveOnce, "", now, fault.Conflict, Approved},
		{"a denied one approved", d, ApproveOnce, "", now, fault.Conflict, Denied},
		{"a cancelled one approved", question().Cancel(), ApproveOnce, "", now, fault.Conflict, Cancelled},
		{"at expiry", question(), ApproveOnce, "", now.Add(Life), fault.Conflict, Expired},
	} {
		got, err := x.a.Decide(x.d, x.reason, "other", x.at)
		if !fault.Is(err, x.code) || got.Status != x.status || got.DecidedBy == "other" {
			t.Errorf("%s: %+v, %v", x.what, got, err)
		}
	}
	if got, err := question().Decide(ApproveOnce, "", "device", now.Add(Life-1)); err != nil || got.Status != Approved {
		t.Errorf("in the last moment: %v", err)
	}
}

// POL-02: an approval is good for its call, its session and its sign-in, once.
func TestUse(t *testing.T) {
	a := decided(t, ApproveOnce)
	used, err := a.Use("s1", "d1", 3, now.Add(time.Hour))
	if err != nil || used.Status != Used {
		t.Fatalf("%+v, %v", used, err)
	}
	for _, x := range []struct {
		what            string
		a               Approval
		session, digest string
		generation      int64
		at              time.Time
		code            fault.Code
	}{
		{"a second time", used, "s1", "d1", 3, now, fault.ApprovalExpired},
		{"another session", a, "s2", "d1", 3, now, fault.ApprovalExpired},
		{"another call", a, "s1", "d2", 3, now, fault.ApprovalExpired},
		{"no call", a, "s1", "", 3, now, fault.ApprovalExpired},
		{"another sign-in", a, "s1", "d1", 4, now, fault.ApprovalExpired},
		{"an earlier sign-in", a, "s1", "d1", 2, now, fault.ApprovalExpired},
		{"at expiry", a, "s1", "d1", 3, now.Add(Life), fault.ApprovalExpired},
		{"before the answer", question(), "s1", "d1", 3, now, fault.ApprovalPending},
		{"an unanswered one at expiry", question(), "s1", "d1", 3, now.Add(Life), fault.ApprovalExpired},
		{"a denied one", decided(t, Deny), "s1", "d1", 3, now, fault.ApprovalDenied},
		{"a cancelled one", a.Cancel(), "s1", "d1", 3, now, fault.ApprovalExpired},
		{"one without a status", Approval{SessionID: "s1", Digest: "d1", Generation: 3}, "s1", "d1", 3, now, fault.ApprovalExpired},
	} {
		got, err := x.a.Use(x.session, x.digest, x.generation, x.at)
		if !fault.Is(err, x.code) || got.Status == Used && x.a.Status != Used {
			t.Errorf("%s: %+v, %v", x.what, got, err)
		}
		if retry := fault.Public(err).Retryable; retry != (x.code == fault.ApprovalPending) {
			t.Errorf("%s: retryable is %v", x.what, retry)
		}
	}
}

func TestAtAndCancel(t *testing.T) {
	for status, want := range map[Status][2]Status{ // after expiry, after cancelling
		Pending: {Expired, Cancelled}, Approved: {Expired, Cancelled}, Used: {Used, Used},
		Denied: {Denied, Denied}, Expired: {Expired, Expired}, Cancelled: {Cancelled, Cancelled},
	} {
		a := question()
		a.Status = status
		if got := a.At(now.Add(Life)).Status; got != want[0] {
			t.Errorf("%s after expiry is %s", status, got)
		}
		if got := a.At(now.Add(Life - 1)).Status; got != status {
			t.Errorf("%s before expiry is %s", status, got)
		}
		if got := a.Cancel().Status; got != want[1] {
			t.Errorf("%s cancelled is %s", status, got)
		}
	}
}

// Whatever happens to a question, in any order and at any time, it authorizes
// at most one use, and none without an approving answer in time.
func TestOnceProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, at := question(), now
		uses, approved := 0, false
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			at = at.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "minutes")) * time.Minute)
			switch rapid.SampledFrom([]string{"approve", "deny", "use", "foreign", "cancel"}).Draw(t, "step") {
			case "approve":
				next, err := a.Decide(ApproveOnce, "", "x", at)
				approved = approved || err == nil
				a = next
			case "deny":
				a, _ = a.Decide(Deny, "", "x", at)
			case "use":
				next, err := a.Use("s1", "d1", 3, at)
				if err == nil {
					uses++
					if !approved || !at.Before(question().ExpiresAt) {
						t.Fatal("used without an answer, or too late")
					}
				}
				a = next
			case "foreign":
				if _, err := a.Use("s2", "d1", 3, at); err == nil {
					t.Fatal("used by another session")
				}
			case "cancel":
				a = a.Cancel()
			}
		}
		if uses > 1 {
			t.Fatalf("used %d times", uses)
		}
	})
}
