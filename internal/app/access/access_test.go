package access_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/app/access"
	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/device"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
	"github.com/chaperone-agents/chaperone/internal/store"
	"github.com/chaperone-agents/chaperone/internal/store/sqlite"
)

var (
	ana  = caller.Scope{Tenant: "local", Principal: "ana"}
	ben  = caller.Scope{Tenant: "local", Principal: "ben"}
	byMe = caller.Caller{Scope: ana, Role: caller.Owner, Device: "0123456789abcdef0123456789abcdef"}
)

// house is an Access over a real store, with a clock that the test moves.
type house struct {
	*access.Access
	t     *testing.T
	store *watched
	dir   string
	now   time.Time
}

// watched counts write transactions and fails what it is told to.
type watched struct {
	store.Store
	writes     atomic.Int64
	failAppend error
	failAll    error
	failReads  error
	failWrites error
}

func (w *watched) Tx(ctx context.Context, scope caller.Scope, fn func(store.Tx) error) error {
	w.writes.Add(1)
	if err := errors.Join(w.failAll, w.failWrites); err != nil {
		return err
	}
	return w.Store.Tx(ctx, scope, func(tx store.Tx) error { return fn(failing{tx, w}) })
}

func (w *watched) Device(ctx context.Context, fingerprint string) (device.Device, error) {
	if err := errors.Join(w.failAll, w.failReads); err != nil {
		return device.Device{}, err
	}
	return w.Store.Device(ctx, fingerprint)
}

type failing struct {
	store.Tx
	w *watched
}

func (f failing) Append(e audit.Entry) (audit.Entry, error) {
	if f.w.failAppend != nil {
		return audit.Entry{}, f.w.failAppend
	}
	return f.Tx.Append(e)
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, dir: filepath.Join(t.TempDir(), "data"), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	s, err := sqlite.Open(sqlite.Config{Path: filepath.Join(h.dir, "chaperone.db"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	h.store = &watched{Store: s}
	h.Access = h.restarted()
	return h
}

// restarted is another Access over the same store.
func (h *house) restarted() *access.Access {
	a, err := access.New(access.Config{Store: h.store, Now: func() time.Time { return h.now }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		h.t.Fatal(err)
	}
	return a
}

func (h *house) pair(by caller.Caller, role caller.Role, session string) (device.Device, secret.Text) {
	h.t.Helper()
	d, credential, err := h.Pair(h.t.Context(), by, "laptop", role, session)
	if err != nil {
		h.t.Fatal(err)
	}
	return d, credential
}

func (h *house) session(scope caller.Scope) string {
	h.t.Helper()
	origins, err := site.ParseOrigins([]string{"https://wiki.example.org"})
	if err != nil {
		h.t.Fatal(err)
	}
	s := run.Session{Scope: scope, ID: ident.New(), Origins: origins, Contract: contract.Newest, CreatedAt: h.now}
	if err := h.store.Store.Tx(h.t.Context(), scope, func(tx store.Tx) error { return tx.InsertSession(s) }); err != nil {
		h.t.Fatal(err)
	}
	return s.ID
}

func (h *house) endSession(scope caller.Scope, id string) {
	h.t.Helper()
	if err := h.store.Store.Tx(h.t.Context(), scope, func(tx store.Tx) error { return tx.EndSession(id, h.now) }); err != nil {
		h.t.Fatal(err)
	}
}

// trail is the audit of the scope, read past the code under test.
func (h *house) trail(scope caller.Scope) (entries []audit.Entry) {
	h.t.Helper()
	err := h.store.Store.View(h.t.Context(), scope, func(tx store.Tx) (err error) {
		entries, err = tx.Audit(0, 200)
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return entries
}

func (h *house) devices(scope caller.Scope) (list []device.Device) {
	h.t.Helper()
	err := h.store.Store.View(h.t.Context(), scope, func(tx store.Tx) (err error) {
		list, err = tx.Devices(false, 200)
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return list
}

func (h *house) refused(a *access.Access, credential secret.Text) {
	h.t.Helper()
	who, err := a.Authenticate(h.t.Context(), credential)
	if who != (caller.Caller{}) || err == nil {
		h.t.Fatalf("accepted as %+v", who)
	}
	if got, want := fault.Public(err), fault.Public(device.Refused()); *got != *want {
		h.t.Fatalf("refused with %+v, want %+v: a refusal must not say why", got, want)
	}
}

func wantCode(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if !fault.Is(err, code) {
		t.Fatalf("got %v, want %s", err, code)
	}
}

// AIP-59: a paired device is who it is, and its pairing is on record.
func TestPairedDeviceAuthenticates(t *testing.T) {
	h := newHouse(t)
	d, credential := h.pair(byMe, caller.Owner, "")
	session := h.session(ana)
	agent, agentCredential := h.pair(byMe, caller.Agent, session)

	for want, credential := range map[caller.Caller]secret.Text{
		{Scope: ana, Device: d.Fingerprint, Role: caller.Owner}:                       credential,
		{Scope: ana, Device: agent.Fingerprint, Role: caller.Agent, Session: session}: agentCredential,
	} {
		who, err := h.restarted().Authenticate(t.Context(), credential)
		if err != nil || who != want {
			t.Errorf("got %+v, %v; want %+v", who, err, want)
		}
	}
	trail := h.trail(ana)
	if len(trail) != 2 {
		t.Fatalf("audit has %d entries, want 2", len(trail))
	}
	for i, subject := range []string{d.Fingerprint, agent.Fingerprint} {
		if e := trail[i]; e.Kind != audit.DevicePaired || e.Subject != subject || e.Device != byMe.Device || !e.At.Equal(h.now) {
			t.Errorf("audit entry %+v", e)
		}
	}
}

// AIP-59: what is stored cannot authenticate, in any spelling.
func TestCredentialIsNotStored(t *testing.T) {
	h := newHouse(t)
	_, credential := h.pair(byMe, caller.Owner, "")
	encoded := credential.Reveal()[strings.LastIndex(credential.Reveal(), ".")+1:]
	mac, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	err = filepath.WalkDir(h.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		for _, trace := range [][]byte{[]byte(encoded), mac, []byte(hex.EncodeToString(mac)), []byte(base64.StdEncoding.EncodeToString(mac))} {
			if bytes.Contains(body, trace) {
				t.Errorf("%s contains the credential", filepath.Base(path))
			}
		}
		if bytes.Contains(body, []byte(ana.Principal)) {
			found++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Fatal("the search looked at no file that holds the device")
	}
}

// AIP-59, PSM-11: every refusal is the same.
func TestRefusals(t *testing.T) {
	h := newHouse(t)
	d, credential := h.pair(byMe, caller.Owner, "")
	_, other := h.pair(byMe, caller.Owner, "")
	good := credential.Reveal()
	mac := good[strings.LastIndex(good, ".")+1:]
	otherMAC := other.Reveal()[strings.LastIndex(other.Reveal(), ".")+1:]
	for name, bad := range map[string]string{
		"empty":               "",
		"no prefix":           strings.TrimPrefix(good, "apd1."),
		"another prefix":      "apd2." + strings.TrimPrefix(good, "apd1."),
		"upper case":          strings.ToUpper(good),
		"with a space":        good + " ",
		"padded":              good + "=",
		"cut":                 good[:len(good)-1],
		"unknown fingerprint": "apd1." + ident.Hex(16) + "." + mac,
		"another's MAC":       "apd1." + d.Fingerprint + "." + otherMAC,
		"zero MAC":            "apd1." + d.Fingerprint + "." + base64.RawURLEncoding.EncodeToString(make([]byte, 32)),
		"verifier as MAC":     "apd1." + d.Fingerprint + "." + base64.RawURLEncoding.EncodeToString(d.Verifier),
	} {
		t.Run(name, func(t *testing.T) { h.refused(h.Access, secret.NewText(bad)) })
	}
	if _, err := h.Authenticate(t.Context(), credential); err != nil {
		t.Fatalf("the good one: %v", err)
	}
}

// A revoked device is refused at the next call, also by a process that saw it work.
func TestRevoke(t *testing.T) {
	h := newHouse(t)
	d, credential := h.pair(byMe, caller.Owner, "")
	if _, err := h.Authenticate(t.Context(), credential); err != nil {
		t.Fatal(err)
	}
	theirs := caller.Caller{Scope: ben, Role: caller.Owner}
	wantCode(t, h.Revoke(t.Context(), theirs, d.Fingerprint), fault.NotFound)
	wantCode(t, h.Revoke(t.Context(), byMe, ident.Hex(16)), fault.NotFound)
	if _, err := h.Authenticate(t.Context(), credential); err != nil {
		t.Fatalf("after another owner's attempt: %v", err)
	}
	for range 2 { // the second changes nothing
		if err := h.Revoke(t.Context(), byMe, d.Fingerprint); err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, h.Revoke(t.Context(), theirs, d.Fingerprint), fault.NotFound) // still not another's to know
	h.refused(h.Access, credential)
	if list, err := h.Devices(t.Context(), byMe); err != nil || len(list) != 0 {
		t.Errorf("devices after the revocation: %v, %v", list, err)
	}
	trail := h.trail(ana)
	if len(trail) != 2 || trail[1].Kind != audit.DeviceRevoked || trail[1].Subject != d.Fingerprint || trail[1].Device != byMe.Device {
		t.Errorf("audit %+v", trail)
	}
	if len(h.trail(ben)) != 0 {
		t.Error("the other owner's audit has entries")
	}
}

// TOOL-07: an agent's credential is worth nothing once its session ended.
func TestAgentDeviceEndsWithItsSession(t *testing.T) {
	h := newHouse(t)
	session := h.session(ana)
	_, credential := h.pair(byMe, caller.Agent, session)
	if _, err := h.Authenticate(t.Context(), credential); err != nil {
		t.Fatal(err)
	}
	h.endSession(ana, session)
	h.refused(h.Access, credential)
	if list, err := h.Devices(t.Context(), byMe); err != nil || len(list) != 0 {
		t.Errorf("devices after the session: %v, %v", list, err)
	}
	_, _, err := h.Pair(t.Context(), byMe, "late", caller.Agent, session)
	wantCode(t, err, fault.NotFound)
	_, _, err = h.Pair(t.Context(), caller.Caller{Scope: ben, Role: caller.Owner}, "foreign", caller.Agent, h.session(ana))
	wantCode(t, err, fault.NotFound)
	if n := len(h.devices(ana)) + len(h.devices(ben)); n != 1 {
		t.Errorf("%d devices were stored, want 1", n)
	}
}

func TestOnlyOwnersManageDevices(t *testing.T) {
	h := newHouse(t)
	d, _ := h.pair(byMe, caller.Owner, "")
	before := h.store.writes.Load()
	for _, by := range []caller.Caller{
		{}, {Scope: ana}, {Role: caller.Owner}, {Scope: ana, Role: "admin"},
		{Scope: ana, Role: caller.Agent, Session: h.session(ana)},
	} {
		_, _, err := h.Pair(t.Context(), by, "x", caller.Owner, "")
		wantCode(t, err, fault.Forbidden)
		_, err = h.Devices(t.Context(), by)
		wantCode(t, err, fault.Forbidden)
		wantCode(t, h.Revoke(t.Context(), by, d.Fingerprint), fault.Forbidden)
	}
	if h.store.writes.Load() != before {
		t.Error("something was written")
	}
}

func TestPairRefusesBadArguments(t *testing.T) {
	h := newHouse(t)
	session := h.session(ana)
	for name, bad := range map[string]struct {
		name    string
		role    caller.Role
		session string
	}{
		"no name":               {"", caller.Owner, ""},
		"blank name":            {"  ", caller.Owner, ""},
		"long name":             {strings.Repeat("ä", 81), caller.Owner, ""},
		"control character":     {"a\x1b[2Jb", caller.Owner, ""},
		"direction override":    {"a\u202eb", caller.Owner, ""},
		"not UTF-8":             {"a\xff", caller.Owner, ""},
		"no role":               {"a", "", ""},
		"unknown role":          {"a", "admin", ""},
		"owner with a session":  {"a", caller.Owner, session},
		"agent with no session": {"a", caller.Agent, ""},
	} {
		_, credential, err := h.Pair(t.Context(), byMe, bad.name, bad.role, bad.session)
		if !fault.Is(err, fault.MalformedRequest) || !credential.Empty() {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if len(h.devices(ana)) != 0 {
		t.Error("a device was stored")
	}
	if _, _, err := h.Pair(t.Context(), byMe, strings.Repeat("ä", 80), caller.Owner, ""); err != nil {
		t.Errorf("80 characters: %v", err)
	}
}

// Fail closed: no audit entry, no device.
func TestNothingHappensWithoutItsAudit(t *testing.T) {
	h := newHouse(t)
	d, credential := h.pair(byMe, caller.Owner, "")
	h.store.failAppend = errors.New("no audit today")
	if _, credential, err := h.Pair(t.Context(), byMe, "x", caller.Owner, ""); err == nil || !credential.Empty() {
		t.Error("a device was paired without an audit entry")
	}
	if len(h.devices(ana)) != 1 {
		t.Error("a device was stored without an audit entry")
	}
	if err := h.Revoke(t.Context(), byMe, d.Fingerprint); err == nil {
		t.Error("a revocation without an audit entry was reported as done")
	}
	h.store.failAppend = nil
	if _, err := h.Authenticate(t.Context(), credential); err != nil {
		t.Errorf("the device whose revocation failed: %v", err)
	}
}

// An unreadable store is not the caller's fault, and lets nobody in.
func TestUnavailableStore(t *testing.T) {
	h := newHouse(t)
	_, credential := h.pair(byMe, caller.Owner, "")
	h.store.failAll = store.ErrUnavailable
	who, err := h.Authenticate(t.Context(), credential)
	if who != (caller.Caller{}) {
		t.Errorf("let in as %+v", who)
	}
	wantCode(t, err, fault.Internal)
}

// LastSeenAt is written at most once a minute, so that reads stay reads.
func TestLastSeen(t *testing.T) {
	h := newHouse(t)
	_, credential := h.pair(byMe, caller.Owner, "")
	h.store.writes.Store(0)
	for _, step := range []struct {
		after  time.Duration
		writes int64
	}{{0, 1}, {time.Second, 1}, {58 * time.Second, 1}, {time.Second, 2}, {time.Second, 2}, {-time.Hour, 3}} {
		h.now = h.now.Add(step.after)
		if _, err := h.Authenticate(t.Context(), credential); err != nil {
			t.Fatal(err)
		}
		if n := h.store.writes.Load(); n != step.writes {
			t.Errorf("after %v: %d writes, want %d", step.after, n, step.writes)
		}
	}
	if got := h.devices(ana)[0].LastSeenAt; !got.Equal(h.now) {
		t.Errorf("last seen %v, want %v", got, h.now)
	}
}

// On a full disk the owner can still look, and stop things.
func TestUnnotedUseIsNoRefusal(t *testing.T) {
	h := newHouse(t)
	d, credential := h.pair(byMe, caller.Owner, "")
	h.store.failWrites = errFull
	if who, err := h.Authenticate(t.Context(), credential); err != nil || who.Device != d.Fingerprint {
		t.Errorf("got %+v, %v", who, err)
	}
}

func TestConfig(t *testing.T) {
	h := newHouse(t)
	for _, c := range []access.Config{{}, {Store: h.store}, {Log: slog.New(slog.DiscardHandler)}} {
		if _, err := access.New(c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}
