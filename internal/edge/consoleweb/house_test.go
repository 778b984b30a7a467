package consoleweb_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/app/access"
	"github.com/chaperone-agents/chaperone/internal/app/artifacts"
	"github.com/chaperone-agents/chaperone/internal/app/broker"
	"github.com/chaperone-agents/chaperone/internal/app/notify"
	"github.com/chaperone-agents/chaperone/internal/app/owner"
	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/edge/consoleweb"
	"github.com/chaperone-agents/chaperone/internal/edge/httpx"
	"github.com/chaperone-agents/chaperone/internal/edge/ownerapi"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/store"
	"github.com/chaperone-agents/chaperone/internal/store/sqlite"
)

const wiki = "https://wiki.example.org"

var ana = caller.Caller{Scope: caller.Scope{Tenant: "local", Principal: "ana"}, Role: caller.Owner}

// house is the console and the owner API on one listener, over everything
// real but the isolated service.
type house struct {
	t       *testing.T
	url     string
	store   *sqlite.Store
	service *fake.Service
	access  *access.Access
	owner   *owner.Owner
	hub     *notify.Hub
	calls   *calls
	images  *artifacts.Artifacts
	server  *httptest.Server
	handler atomic.Pointer[http.ServeMux] // what listens now
}

type noLeases struct{}

func (noLeases) CloseSession(context.Context, caller.Scope, string) error { return nil }

// calls have a picture of the one question, if any.
type calls struct {
	mu      sync.Mutex
	id      string
	picture browser.Picture
}

func (c *calls) show(id string, p browser.Picture) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.id, c.picture = id, p
}

func (c *calls) Picture(_ context.Context, _ caller.Caller, id string) (browser.Picture, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id != c.id {
		return browser.Picture{}, fault.New(fault.NotFound, "There is no picture of this.")
	}
	return c.picture, nil
}

func (*calls) Diagnostics(caller.Scope) []broker.Diagnostics { return nil }

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, service: &fake.Service{World: &fake.World{}}, hub: notify.New(), calls: &calls{}}
	log := slog.New(slog.DiscardHandler)
	var err error
	if h.store, err = sqlite.Open(sqlite.Config{Path: filepath.Join(t.TempDir(), "data", "chaperone.db"), Log: log}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.store.Close() })
	if h.access, err = access.New(access.Config{Store: h.store, Log: log}); err != nil {
		t.Fatal(err)
	}
	h.owner, err = owner.New(owner.Config{Store: h.store, Service: h.service, Devices: h.access, Leases: noLeases{}, Hub: h.hub, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if h.images, err = artifacts.New(artifacts.Config{Store: h.store, Dir: filepath.Join(t.TempDir(), "images"), Log: log}); err != nil {
		t.Fatal(err)
	}
	h.server = httptest.NewUnstartedServer(nil)
	name := h.server.Listener.Addr().String()
	h.url = "http://" + name
	guard := httpx.Guard{Hosts: []string{name}, Origins: []string{h.url}}
	api, err := ownerapi.New(ownerapi.Config{Owner: h.owner, Access: h.access, Calls: h.calls, Images: h.images, Hub: h.hub, Console: h.url, Log: log, Guard: guard})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/v1/", api)
	mux.Handle("/health/", api)
	mux.Handle("/", consoleweb.New(consoleweb.Config{Guard: guard}))
	h.handler.Store(mux)
	h.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.handler.Load().ServeHTTP(w, r) })
	h.server.Start()
	t.Cleanup(h.server.Close)
	t.Cleanup(h.server.CloseClientConnections) // an open event stream would keep Close waiting
	return h
}

func (h *house) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// until polls a condition.
func (h *house) until(what string, ok func() bool) {
	h.t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			h.t.Fatalf("timed out: %s", what)
		}
	}
}

func (h *house) code() string { return h.access.NewLoginCode(ana.Scope).Reveal() }

func (h *house) create(origins ...string) string {
	h.t.Helper()
	p, err := h.owner.CreateProfile(h.t.Context(), ana, ident.New(), origins)
	h.must(err)
	return p.ID
}

func (h *house) ready(origins ...string) string {
	h.t.Helper()
	id := h.create(origins...)
	c, err := h.owner.BeginCeremony(h.t.Context(), ana, id, "")
	h.must(err)
	h.service.Finish(c.ID, ceremony.Ready)
	_, err = h.owner.Ceremony(h.t.Context(), ana, c.ID)
	h.must(err)
	return id
}

func (h *house) session(profileID, name string) string {
	h.t.Helper()
	s, _, err := h.owner.CreateSession(h.t.Context(), ana, owner.NewSession{ProfileID: profileID, Name: name})
	h.must(err)
	return s.ID
}

// ask puts a question to the owner as the broker does, audit entry and wake-up included.
func (h *house) ask(sessionID, profileID, summary string, view approval.View) string {
	h.t.Helper()
	p, err := h.owner.Profile(h.t.Context(), ana, profileID)
	h.must(err)
	now := time.Now()
	if view.View = approval.ViewID; view.Image != nil {
		view.View = approval.UploadViewID
	}
	a := approval.Approval{
		Scope: ana.Scope, ID: ident.New(), SessionID: sessionID, ProfileID: profileID, Generation: p.Generation, Tool: action.Act, Digest: ident.Hex(32),
		Status: approval.Pending, Summary: summary, View: view, CreatedAt: now, ExpiresAt: now.Add(approval.Life),
	}
	h.must(h.store.Tx(h.t.Context(), ana.Scope, func(tx store.Tx) error {
		if err := tx.InsertApproval(a); err != nil {
			return err
		}
		_, err := tx.Append(audit.Entry{Scope: ana.Scope, At: now, Kind: audit.ApprovalRequested, Subject: a.ID, Tool: string(a.Tool), Digest: a.Digest, Detail: "waiting"})
		return err
	}))
	h.hub.Changed(ana.Scope)
	return a.ID
}

func (h *house) status(approvalID string) approval.Status {
	h.t.Helper()
	a, err := h.owner.Approval(h.t.Context(), ana, approvalID)
	h.must(err)
	return a.Status
}
