package ownerapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/client"
	"github.com/chaperone-agents/chaperone/internal/app/access"
	"github.com/chaperone-agents/chaperone/internal/app/artifacts"
	"github.com/chaperone-agents/chaperone/internal/app/broker"
	"github.com/chaperone-agents/chaperone/internal/app/notify"
	"github.com/chaperone-agents/chaperone/internal/app/owner"
	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/edge/httpx"
	"github.com/chaperone-agents/chaperone/internal/edge/ownerapi"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/store"
	"github.com/chaperone-agents/chaperone/internal/store/sqlite"
)

const wiki = "https://wiki.example.org"

var (
	ana = caller.Caller{Scope: caller.Scope{Tenant: "local", Principal: "ana"}, Role: caller.Owner}
	ben = caller.Caller{Scope: caller.Scope{Tenant: "local", Principal: "ben"}, Role: caller.Owner}
)

// house is the owner API on a real listener, over everything real but the
// isolated service.
type house struct {
	t       *testing.T
	url     string
	host    string
	store   *sqlite.Store
	service *fake.Service
	access  *access.Access
	owner   *owner.Owner
	calls   ended
	shown   pictures
	images  *artifacts.Artifacts
	files   string // where images are
	log     *buffer
	ana     secret.Text // credential of an owner's device
	api     *client.ClientWithResponses
}

// buffer is a log that can be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) { b.mu.Lock(); defer b.mu.Unlock(); return b.b.Write(p) }
func (b *buffer) String() string              { b.mu.Lock(); defer b.mu.Unlock(); return b.b.String() }

type noLeases struct{}

func (noLeases) CloseSession(context.Context, caller.Scope, string) error { return nil }

// ended is what the calls of every scope left behind.
type ended map[caller.Scope][]broker.Diagnostics

func (e ended) Diagnostics(s caller.Scope) []broker.Diagnostics { return e[s] }

// pictures are the pictures of questions, by id.
type pictures map[string]browser.Picture

func (p pictures) Picture(_ context.Context, by caller.Caller, id string) (browser.Picture, error) {
	if shown, ok := p[id]; ok && by.Scope == ana.Scope {
		return shown, nil
	}
	return browser.Picture{}, fault.New(fault.NotFound, "There is no picture of this.")
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, log: &buffer{}, calls: ended{}, shown: pictures{}, files: filepath.Join(t.TempDir(), "images"), service: &fake.Service{World: &fake.World{}}}
	log := slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	if h.store, err = sqlite.Open(sqlite.Config{Path: filepath.Join(t.TempDir(), "data", "chaperone.db"), Log: log}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.store.Close() })
	if h.access, err = access.New(access.Config{Store: h.store, Log: log}); err != nil {
		t.Fatal(err)
	}
	hub := notify.New()
	h.owner, err = owner.New(owner.Config{Store: h.store, Service: h.service, Devices: h.access, Leases: noLeases{}, Hub: hub, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if h.images, err = artifacts.New(artifacts.Config{Store: h.store, Dir: h.files, Log: log}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(nil)
	h.host = server.Listener.Addr().String()
	h.url = "http://" + h.host
	server.Config.Handler, err = ownerapi.New(ownerapi.Config{
		Owner: h.owner, Access: h.access, Calls: struct {
			ended
			pictures
		}{h.calls, h.shown}, Images: h.images, Hub: hub, Console: h.url, Log: log,
		Guard: httpx.Guard{Hosts: []string{h.host}, Origins: []string{h.url}},
	})
	if err != nil {
		t.Fatal(err)
	}
	server.Start()
	t.Cleanup(server.Close)
	h.ana = h.pair(ana)
	h.api = h.client(h.ana)
	return h
}

func (h *house) pair(by caller.Caller) secret.Text {
	h.t.Helper()
	_, credential, err := h.access.Pair(h.t.Context(), by, "laptop", caller.Owner, "")
	if err != nil {
		h.t.Fatal(err)
	}
	return credential
}

func (h *house) client(credential secret.Text) *client.ClientWithResponses {
	h.t.Helper()
	c, err := client.New(client.Config{BaseURL: h.url, Credential: credential})
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// answer is what came back, whole.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) code() string {
	var b client.Error
	json.Unmarshal([]byte(a.body), &b)
	return b.Error.Code
}

// raw sends a request that a well-behaved client would not.
func (h *house) raw(method, path, body string, edit func(*http.Request)) answer {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if edit != nil {
		edit(r)
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		h.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(b)}
}

func (h *house) asAna(r *http.Request) { r.Header.Set("Authorization", "Bearer "+h.ana.Reveal()) }

// ready makes a profile that is signed in.
func (h *house) ready(by caller.Caller) string {
	h.t.Helper()
	p, err := h.owner.CreateProfile(h.t.Context(), by, ident.New(), []string{wiki})
	if err != nil {
		h.t.Fatal(err)
	}
	c, err := h.owner.BeginCeremony(h.t.Context(), by, p.ID, "")
	if err != nil {
		h.t.Fatal(err)
	}
	h.service.Finish(c.ID, ceremony.Ready)
	if _, err := h.owner.Ceremony(h.t.Context(), by, c.ID); err != nil {
		h.t.Fatal(err)
	}
	return p.ID
}

// ask puts a question to the owner as the broker does.
func (h *house) ask(by caller.Caller, profileID string) approval.Approval {
	h.t.Helper()
	s, _, err := h.owner.CreateSession(h.t.Context(), by, owner.NewSession{ProfileID: profileID})
	if err != nil {
		h.t.Fatal(err)
	}
	p, err := h.owner.Profile(h.t.Context(), by, profileID)
	if err != nil {
		h.t.Fatal(err)
	}
	now := time.Now()
	a := approval.Approval{
		Scope: by.Scope, ID: ident.New(), SessionID: s.ID, ProfileID: profileID, Generation: p.Generation, Tool: action.Act, Digest: ident.Hex(32),
		Status: approval.Pending, Summary: "Type into a textbox on wiki.example.org/",
		View:      approval.View{View: approval.ViewID, Described: true, Kind: "type", PageOrigin: wiki, PagePath: "/", ElementName: "<b>Name</b>", Text: "hello"},
		CreatedAt: now, ExpiresAt: now.Add(approval.Life),
	}
	if err := h.store.Tx(h.t.Context(), by.Scope, func(tx store.Tx) error { return tx.InsertApproval(a) }); err != nil {
		h.t.Fatal(err)
	}
	return a
}

// status fails the test unless the answer has it.
func (h *house) status(what string, err error, got, want int, body []byte) {
	h.t.Helper()
	if err != nil || got != want {
		h.t.Fatalf("%s: status %d, want %d: %v %s", what, got, want, err, body)
	}
}
