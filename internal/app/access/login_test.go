package access_test

import (
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/app/access"
	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
)

func (h *house) refusals(scope caller.Scope) (n int) {
	h.t.Helper()
	for _, e := range h.trail(scope) {
		if e.Kind == audit.LoginRefused {
			n++
		}
	}
	return n
}

func TestLogin(t *testing.T) {
	h := newHouse(t)
	code := h.NewLoginCode(ana).Reveal()
	if !regexp.MustCompile(`^[A-Z2-7]{4}(-[A-Z2-7]{4}){3}$`).MatchString(code) { // 16 characters of 5 bits
		t.Errorf("the code %q has another shape", code)
	}
	if code == h.NewLoginCode(ana).Reveal() {
		t.Error("two codes are the same")
	}
	credential, err := h.Login(t.Context(), code)
	if err != nil {
		t.Fatal(err)
	}
	who, err := h.Authenticate(t.Context(), credential)
	if err != nil || who.Scope != ana || who.Role != caller.Owner || who.Session != "" {
		t.Errorf("logged in as %+v, %v", who, err)
	}
	if trail := h.trail(ana); len(trail) != 1 || trail[0].Kind != audit.DevicePaired || trail[0].Subject != who.Device {
		t.Errorf("audit %+v", trail)
	}
	_, err = h.Login(t.Context(), code)
	wantCode(t, err, fault.Unauthenticated) // single use
	if h.refusals(ana) != 1 || len(h.devices(ana)) != 1 {
		t.Errorf("after the second use: %d refusals, %d devices", h.refusals(ana), len(h.devices(ana)))
	}
}

// TOOL-07: a console session ends with the program that made it, on record; the
// command line goes on.
func TestEndConsoles(t *testing.T) {
	h := newHouse(t)
	login := func(scope caller.Scope) secret.Text {
		credential, err := h.Login(t.Context(), h.NewLoginCode(scope).Reveal())
		if err != nil {
			t.Fatal(err)
		}
		return credential
	}
	first, second := login(ana), login(ana)
	_, kept, err := h.Pair(t.Context(), caller.Caller{Scope: ana, Role: caller.Owner}, "command line", caller.Owner, "")
	if err != nil {
		t.Fatal(err)
	}
	if h.Access, err = access.New(h.Config); err != nil { // the program is started again
		t.Fatal(err)
	}
	fresh := login(ana)
	for range 2 { // refused with the start, and on record
		for _, credential := range []secret.Text{first, second} {
			_, err := h.Authenticate(t.Context(), credential)
			wantCode(t, err, fault.Unauthenticated)
		}
		for _, credential := range []secret.Text{fresh, kept} {
			if _, err := h.Authenticate(t.Context(), credential); err != nil {
				t.Error(err)
			}
		}
		if err := h.EndConsoles(t.Context(), ana); err != nil {
			t.Fatal(err)
		}
	}
	revoked := 0
	for _, e := range h.trail(ana) {
		if e.Kind == audit.DeviceRevoked {
			revoked++
		}
	}
	if revoked != 2 {
		t.Errorf("%d audit entries", revoked)
	}
}

func TestLoginCodeAsTyped(t *testing.T) {
	h := newHouse(t)
	for _, typed := range []func(string) string{
		strings.ToLower,
		func(s string) string { return strings.ReplaceAll(s, "-", "") },
		func(s string) string { return " " + strings.ReplaceAll(s, "-", " ") + "\n" },
		func(s string) string { return strings.NewReplacer("O", "0", "I", "1", "B", "8").Replace(s) },
	} {
		if _, err := h.Login(t.Context(), typed(h.NewLoginCode(ana).Reveal())); err != nil {
			t.Error(err)
		}
	}
}

func TestLoginCodeExpires(t *testing.T) {
	h := newHouse(t)
	for after, works := range map[time.Duration]bool{10*time.Minute - 1: true, 10 * time.Minute: false} {
		code := h.NewLoginCode(ana).Reveal()
		h.now = h.now.Add(after)
		if _, err := h.Login(t.Context(), code); (err == nil) != works {
			t.Errorf("after %v: %v", after, err)
		}
	}
}

// Codes live in memory: another process, and this one after a restart, has none.
func TestLoginCodeDoesNotSurviveRestart(t *testing.T) {
	h := newHouse(t)
	code := h.NewLoginCode(ana).Reveal()
	_, err := h.restarted().Login(t.Context(), code)
	wantCode(t, err, fault.Unauthenticated)
}

func TestLoginCodeWorksOnceUnderConcurrency(t *testing.T) {
	h := newHouse(t)
	code := h.NewLoginCode(ana).Reveal()
	errs := make(chan error, 8)
	var all sync.WaitGroup
	for range cap(errs) {
		all.Go(func() { _, err := h.Login(t.Context(), code); errs <- err })
	}
	all.Wait()
	won := 0
	for range cap(errs) {
		if <-errs == nil {
			won++
		}
	}
	if won != 1 || len(h.devices(ana)) != 1 {
		t.Errorf("%d logins and %d devices from one code", won, len(h.devices(ana)))
	}
}

// Guessing: ten wrong codes in a minute close the door to every code, each of
// them is on record, and a flood adds no more records.
func TestWrongLoginCodes(t *testing.T) {
	h := newHouse(t)
	code := h.NewLoginCode(ana).Reveal()
	for _, wrong := range []string{"", "A", code[:len(code)-1], code + "A", strings.Repeat("A", 1<<16), "AAAA-AAAA-AAAA-AAAA"} {
		_, err := h.Login(t.Context(), wrong)
		wantCode(t, err, fault.Unauthenticated)
	}
	h.now = h.now.Add(30 * time.Second)
	for range 20 {
		_, err := h.Login(t.Context(), "AAAA-AAAA-AAAA-AAAA")
		wantCode(t, err, fault.Unauthenticated)
	}
	if n := h.refusals(ana); n != 10 {
		t.Errorf("%d refusals on record, want 10", n)
	}
	_, err := h.Login(t.Context(), code)
	wantCode(t, err, fault.Unauthenticated)
	if !fault.Public(err).Retryable {
		t.Error("the limit does not say that a later try may work")
	}
	if len(h.devices(ana)) != 0 {
		t.Error("a device was paired while the limit stood")
	}
	h.now = h.now.Add(30 * time.Second) // the first six are a minute old
	if _, err := h.Login(t.Context(), code); err != nil {
		t.Errorf("after a minute: %v", err)
	}
}

// A refusal that cannot be put on record is still a refusal.
func TestWrongLoginCodeWithoutAudit(t *testing.T) {
	h := newHouse(t)
	h.NewLoginCode(ana)
	h.store.failAppend = errFull
	credential, err := h.Login(t.Context(), "AAAA-AAAA-AAAA-AAAA")
	wantCode(t, err, fault.Unauthenticated)
	if !credential.Empty() {
		t.Error("a credential was handed out")
	}
}

// Unused codes are bounded: the newest sixteen work.
func TestLoginCodesAreBounded(t *testing.T) {
	h := newHouse(t)
	var codes []string
	for range 17 {
		codes = append(codes, h.NewLoginCode(ana).Reveal())
		h.now = h.now.Add(time.Second)
	}
	if _, err := h.Login(t.Context(), codes[0]); err == nil {
		t.Error("the replaced code still works")
	}
	for _, code := range codes[1:] {
		if _, err := h.Login(t.Context(), code); err != nil {
			t.Fatal(err)
		}
	}
}
