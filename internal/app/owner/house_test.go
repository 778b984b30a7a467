package owner_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/app/access"
	"github.com/chaperone-agents/chaperone/internal/app/notify"
	"github.com/chaperone-agents/chaperone/internal/app/owner"
	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
	"github.com/chaperone-agents/chaperone/internal/store"
	"github.com/chaperone-agents/chaperone/internal/store/sqlite"
)

var (
	ana = caller.Caller{Scope: caller.Scope{Tenant: "local", Principal: "ana"}, Role: caller.Owner, Device: "0123456789abcdef0123456789abcdef"}
	ben = caller.Caller{Scope: caller.Scope{Tenant: "local", Principal: "ben"}, Role: caller.Owner, Device: "fedcba9876543210fedcba9876543210"}
)

const wiki = "https://wiki.example.org"

// house is an Owner over a real store, the real Access and a fake isolated
// service, with a clock that the test moves.
type house struct {
	*owner.Owner
	t       *testing.T
	store   *faulty
	service *service
	access  *access.Access
	leases  *leases
	hub     *notify.Hub
	log     *bytes.Buffer

	mu  sync.Mutex
	now time.Time
}

// empty is a database with its schema and nothing in it; making it once saves
// most of the time of these tests.
var empty = sync.OnceValue(func() []byte {
	dir, err := os.MkdirTemp("", "owner-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "data", "chaperone.db")
	db, err := sqlite.Open(sqlite.Config{Path: path, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	if err := db.Close(); err != nil {
		panic(err)
	}
	body, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	return body
})

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, hub: notify.New(), log: &bytes.Buffer{}, now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "chaperone.db")
	if err := os.WriteFile(path, empty(), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(sqlite.Config{Path: path, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	h.store = &faulty{Store: db}
	h.service = &service{Service: &fake.Service{World: &fake.World{}, Now: h.clock}}
	h.leases = &leases{service: h.service}
	log := slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if h.access, err = access.New(access.Config{Store: h.store, Now: h.clock, Log: log}); err != nil {
		t.Fatal(err)
	}
	h.Owner, err = owner.New(owner.Config{Store: h.store, Service: h.service, Devices: h.access, Leases: h.leases, Hub: h.hub, Now: h.clock, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *house) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *house) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// faulty fails the transactions it is told to, counted from now.
type faulty struct {
	store.Store
	mu     sync.Mutex
	writes int
	failAt map[int]error // number of a write transaction
	views  error
}

func (f *faulty) failWrite(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failAt = map[int]error{f.writes + n: store.ErrUnavailable}
}

func (f *faulty) Tx(ctx context.Context, scope caller.Scope, fn func(store.Tx) error) error {
	f.mu.Lock()
	f.writes++
	err := f.failAt[f.writes]
	f.mu.Unlock()
	if err != nil {
		return fmt.Errorf("disk full: %w", err)
	}
	return f.Store.Tx(ctx, scope, fn)
}

func (f *faulty) View(ctx context.Context, scope caller.Scope, fn func(store.Tx) error) error {
	if f.views != nil {
		return f.views
	}
	return f.Store.View(ctx, scope, fn)
}

// service is the fake isolated service with a record of what it was asked.
type service struct {
	*fake.Service
	mu      sync.Mutex
	calls   []string
	opening func()             // runs while a sign-in browser starts
	begun   []browser.Ceremony // with launch addresses
	begin   error
}

func (s *service) note(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
}

func (s *service) count(call string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c == call {
			n++
		}
	}
	return n
}

func (s *service) Provision(ctx context.Context, scope caller.Scope, id string, origins site.Origins) (browser.Provisioned, error) {
	s.note("provision")
	return s.Service.Provision(ctx, scope, id, origins)
}

func (s *service) Revoke(ctx context.Context, scope caller.Scope, id, ref string) error {
	s.note("revoke")
	return s.Service.Revoke(ctx, scope, id, ref)
}

func (s *service) BeginCeremony(ctx context.Context, scope caller.Scope, id, ref string, login site.URL) (browser.Ceremony, error) {
	s.note("begin")
	if s.begin != nil {
		return browser.Ceremony{}, s.begin
	}
	c, err := s.Service.BeginCeremony(ctx, scope, id, ref, login)
	if s.opening != nil {
		s.opening()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.begun = append(s.begun, c)
	}
	return c, err
}

// leases stands for the broker; what it closed is in the service's record.
type leases struct {
	service *service
	err     error
	meet    chan struct{} // when not nil: closing takes until its twin is there
}

func (l *leases) CloseSession(ctx context.Context, _ caller.Scope, id string) error {
	if l.meet != nil {
		select {
		case l.meet <- struct{}{}:
		case <-l.meet:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	l.service.note("close " + id)
	return l.err
}

func (h *house) create(by caller.Caller, origins ...string) string {
	h.t.Helper()
	if len(origins) == 0 {
		origins = []string{wiki}
	}
	p, err := h.CreateProfile(h.t.Context(), by, ident.New(), origins)
	if err != nil {
		h.t.Fatal(err)
	}
	return p.ID
}

// ready is a profile that its owner has signed in to.
func (h *house) ready(by caller.Caller) string {
	h.t.Helper()
	id := h.create(by)
	h.signIn(by, id)
	return id
}

func (h *house) signIn(by caller.Caller, id string) {
	h.t.Helper()
	c, err := h.BeginCeremony(h.t.Context(), by, id, "")
	if err != nil {
		h.t.Fatal(err)
	}
	h.service.Finish(c.ID, ceremony.Ready)
	if got, err := h.Ceremony(h.t.Context(), by, c.ID); err != nil || got.Status != ceremony.Ready {
		h.t.Fatalf("sign-in is %s, %v", got.Status, err)
	}
}

func (h *house) session(by caller.Caller, profileID string) (run.Session, secret.Text) {
	h.t.Helper()
	s, credential, err := h.CreateSession(h.t.Context(), by, owner.NewSession{Name: "helper", ProfileID: profileID})
	if err != nil {
		h.t.Fatal(err)
	}
	return s, credential
}

// ask puts a question to the owner as the broker does.
func (h *house) ask(s run.Session) approval.Approval {
	h.t.Helper()
	a := approval.Approval{
		Scope: s.Scope, ID: ident.New(), SessionID: s.ID, ProfileID: s.ProfileID, Tool: action.Act, Digest: ident.Hex(32),
		Status: approval.Pending, Summary: "Click a button on wiki.example.org/", View: approval.View{View: approval.ViewID, Described: true, Kind: "click"},
		CreatedAt: h.clock(), ExpiresAt: h.clock().Add(approval.Life),
	}
	if s.ProfileID != "" {
		a.Generation = h.profile(s.Scope, s.ProfileID).Generation
	}
	if err := h.store.Store.Tx(h.t.Context(), s.Scope, func(tx store.Tx) error { return tx.InsertApproval(a) }); err != nil {
		h.t.Fatal(err)
	}
	return a
}

// The following read the store past the code under test.

func (h *house) read(scope caller.Scope, fn func(store.Tx) error) {
	h.t.Helper()
	if err := h.store.Store.View(h.t.Context(), scope, fn); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) profile(scope caller.Scope, id string) (p profile.Profile) {
	h.t.Helper()
	h.read(scope, func(tx store.Tx) (err error) { p, err = tx.Profile(id); return err })
	return p
}

func (h *house) approval(a approval.Approval) (got approval.Approval) {
	h.t.Helper()
	h.read(a.Scope, func(tx store.Tx) (err error) { got, err = tx.Approval(a.ID); return err })
	return got
}

func (h *house) trail(scope caller.Scope) (kinds []audit.Kind) {
	h.t.Helper()
	h.read(scope, func(tx store.Tx) error {
		entries, err := tx.Audit(0, 200)
		for _, e := range entries {
			kinds = append(kinds, e.Kind)
		}
		return err
	})
	return kinds
}

// everything is all that the scope owns, as text.
func (h *house) everything(scope caller.Scope) string {
	h.t.Helper()
	var b bytes.Buffer
	h.read(scope, func(tx store.Tx) error {
		ps, err := tx.Profiles(200)
		if err != nil {
			return err
		}
		ss, err := tx.Sessions("", false, 200)
		if err != nil {
			return err
		}
		as, err := tx.Approvals("", 200)
		if err != nil {
			return err
		}
		es, err := tx.Audit(0, 200)
		if err != nil {
			return err
		}
		for _, p := range ps {
			c, err := tx.LatestCeremony(p.ID)
			fmt.Fprintf(&b, "%+v %+v %v\n", p, c, err)
		}
		fmt.Fprintf(&b, "%+v\n%+v\n%+v\n", ss, as, es)
		return nil
	})
	return b.String()
}

func (h *house) has(scope caller.Scope, kind audit.Kind) bool {
	h.t.Helper()
	return slices.Contains(h.trail(scope), kind)
}

func want(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if !fault.Is(err, code) {
		t.Fatalf("got %v, want %s", err, code)
	}
}
