package remote_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser/remote"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/grant"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
	"github.com/chaperone-agents/chaperone/internal/rules/policy"
)

const credential = "planted-service-credential-0123456789abcdef"

// peer is a service that answers as a test tells it, and counts.
func peer(t *testing.T, answer http.HandlerFunc) (*remote.Client, *atomic.Int64) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int64
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		b, _ := io.ReadAll(r.Body) // a peer that answers early is not what is tested
		r.Body = io.NopCloser(bytes.NewReader(b))
		answer(w, r)
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	c, err := remote.New(remote.Config{Socket: socket, Credential: secret.NewText(credential), Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return c, &requests
}

// call does one observe and one act and returns both errors.
func call(t *testing.T, c *remote.Client) (read, act error) {
	t.Helper()
	now := time.Now()
	h, err := lease.Hold(strings.Repeat("r", 43), 1, now.Add(time.Hour), now)
	if err != nil {
		t.Fatal(err)
	}
	observe, err := action.Prepare(action.Observe, nil)
	if err != nil {
		t.Fatal(err)
	}
	permit, err := grant.FromPolicy(policy.Decision{Verdict: policy.Allow}, observe)
	if err != nil {
		t.Fatal(err)
	}
	_, read = c.Do(t.Context(), h, permit, observe)
	click, err := action.Prepare(action.Act, json.RawMessage(`{"kind":"click","expected_revision":"a","ref":"a:0"}`))
	if err != nil {
		t.Fatal(err)
	}
	permit, _, err = grant.FromApproval(approval.Approval{ID: "a", SessionID: "s", Digest: click.Digest, Status: approval.Approved, ExpiresAt: now.Add(time.Hour)}, "s", 0, click, now)
	if err != nil {
		t.Fatal(err)
	}
	_, act = c.Do(t.Context(), h, permit, click)
	return read, act
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func envelope(code, message string, retryable bool) string {
	b, _ := json.Marshal(map[string]any{"error": map[string]any{"code": code, "message": message, "retryable": retryable}})
	return string(b)
}

// Section 2.9, SHTTP-02, REL-01: what each answer means for a read and for an
// act. Each call reaches the service exactly once, whatever comes back.
func TestAnswers(t *testing.T) {
	drop := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			conn.Close()
		}
	}
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.Write([]byte(`{"url":`))
	}
	for _, c := range []struct {
		name      string
		answer    http.HandlerFunc
		read, act fault.Code
		retryable bool // the read
	}{
		{"no answer", drop, fault.ProviderUnavailable, fault.OutcomeUnknown, true},
		{"half an answer", cut, fault.ProviderUnavailable, fault.OutcomeUnknown, true},
		{"server error", says(500, envelope("internal_error", "x", false)), fault.ProviderUnavailable, fault.OutcomeUnknown, true},
		{"bad gateway", says(502, "oops"), fault.ProviderUnavailable, fault.OutcomeUnknown, true},
		{"time-out", says(408, ""), fault.ProviderUnavailable, fault.OutcomeUnknown, true},
		{"too many", says(429, ""), fault.ProviderUnavailable, fault.ProviderUnavailable, true},
		{"unauthorized", says(401, ""), fault.ProviderUnavailable, fault.ProviderUnavailable, false},
		{"forbidden", says(403, ""), fault.ProviderUnavailable, fault.ProviderUnavailable, false},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, fault.ProviderUnavailable, fault.OutcomeUnknown, true},
		{"known refusal", says(409, envelope("tool.browser.page_changed", "It changed.", false)), fault.PageChanged, fault.PageChanged, false},
		{"retryable refusal", says(409, envelope("tool.browser.provider_unavailable", "All are in use.", true)), fault.ProviderUnavailable, fault.ProviderUnavailable, true},
		{"unknown refusal", says(409, envelope("tool.browser.made_up", "x", true)), fault.ProfileUnavailable, fault.ProfileUnavailable, false},
		{"refusal of another family", says(409, envelope("authentication_error", "x", true)), fault.ProfileUnavailable, fault.ProfileUnavailable, false},
		{"refusal that is no JSON", says(409, "<html>"), fault.ProfileUnavailable, fault.ProfileUnavailable, false},
		{"arguments", says(422, envelope("tool.arguments_invalid", "x", false)), fault.ArgumentsInvalid, fault.ArgumentsInvalid, false},
		{"bad request", says(400, envelope("malformed_request", "x", false)), fault.ProviderUnavailable, fault.ProviderUnavailable, false},
		{"not JSON", says(200, "hello"), fault.OutputInvalid, fault.OutcomeUnknown, false},
		{"wrong types", says(200, `{"elements":7}`), fault.OutputInvalid, fault.OutcomeUnknown, false},
		{"too large", says(200, `{"text":"`+strings.Repeat("a", 700<<10)+`"}`), fault.OutputInvalid, fault.OutcomeUnknown, false},
		{"another media type", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") }, fault.OutputInvalid, fault.OutcomeUnknown, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, requests := peer(t, c.answer)
			read, act := call(t, client)
			if fault.CodeOf(read) != c.read || fault.Public(read).Retryable != c.retryable {
				t.Errorf("read: %v, retryable %v", read, fault.Public(read).Retryable)
			}
			if fault.CodeOf(act) != c.act {
				t.Errorf("act: %v", act)
			}
			if n := requests.Load(); n != 2 {
				t.Errorf("%d requests were sent for 2 calls", n)
			}
			if e := fault.Public(act); strings.Contains(e.Public, "oops") || strings.Contains(e.Public, "<html>") {
				t.Errorf("text of the other side is public: %s", e.Public)
			}
		})
	}
}

// REL-01: where nobody listens nothing was sent, and an act says so.
func TestNobodyListens(t *testing.T) {
	c, err := remote.New(remote.Config{Socket: filepath.Join(t.TempDir(), "none"), Credential: secret.NewText(credential)})
	if err != nil {
		t.Fatal(err)
	}
	read, act := call(t, c)
	for _, err := range []error{read, act} {
		if e := fault.Public(err); e.Code != fault.ProviderUnavailable || !e.Retryable || strings.Contains(e.Public, "/") {
			t.Errorf("%v", err)
		}
	}
}

// SHTTP-02: a caller that gives up in an act does not know its outcome.
func TestGivingUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	client, requests := peer(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	click, err := action.Prepare(action.Act, json.RawMessage(`{"kind":"click","expected_revision":"a","ref":"a:0"}`))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	permit, _, err := grant.FromApproval(approval.Approval{ID: "a", SessionID: "s", Digest: click.Digest, Status: approval.Approved, ExpiresAt: now.Add(time.Hour)}, "s", 0, click, now)
	if err != nil {
		t.Fatal(err)
	}
	h, err := lease.Hold(strings.Repeat("r", 43), 1, now.Add(time.Hour), now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Do(ctx, h, permit, click); !fault.Is(err, fault.OutcomeUnknown) || requests.Load() != 1 {
		t.Errorf("%v after %d requests", err, requests.Load())
	}
}

// HCP-03, LHTTP-02, section 2.9: what is on the wire.
func TestWire(t *testing.T) {
	type seen struct {
		r    *http.Request
		body map[string]any
	}
	requests := make(chan seen, 1)
	client, _ := peer(t, func(w http.ResponseWriter, r *http.Request) {
		s := seen{r: r}
		json.NewDecoder(r.Body).Decode(&s.body)
		requests <- s
		says(201, `{"provider_name":"hosted-isolated","provider_ref":"`+strings.Repeat("p", 43)+`","encryption_key_version":"k1"}`)(w, r)
	})
	origins, err := site.ParseOrigins([]string{"https://desk.practice.example"})
	if err != nil {
		t.Fatal(err)
	}
	id := ident.New()
	p, err := client.Provision(t.Context(), caller.Scope{Tenant: "local", Principal: "ada"}, id, origins)
	if err != nil || p.KeyVersion != "k1" {
		t.Fatalf("%+v, %v", p, err)
	}
	s := <-requests
	got, body := s.r, s.body
	if got.Method != "POST" || got.URL.Path != "/v1/browser-profiles:provision" || got.Host != "browserd" ||
		got.Header.Get("Authorization") != "Bearer "+credential || got.Header.Get("Idempotency-Key") != "browser-profile:"+id+":provision" ||
		got.Header.Get("Content-Type") != "application/json" || got.Header.Get("Origin") != "" {
		t.Errorf("%s %s %v", got.Method, got.URL, got.Header)
	}
	if len(body) != 4 || body["tenant_id"] != "local" || body["principal_id"] != "ada" || body["profile_id"] != id {
		t.Errorf("the body is %v", body)
	}
	if err := client.Revoke(t.Context(), caller.Scope{Tenant: "local", Principal: "ada"}, "../../etc", p.ProviderRef); !fault.Is(err, fault.ProfileUnavailable) {
		t.Errorf("an id that is a path: %v", err)
	}
}

// An answer out of bounds is not believed.
func TestAnswersOutOfBounds(t *testing.T) {
	client, _ := peer(t, says(200, `{"lease_ref":"short","expires_at":"2030-01-01T00:00:00Z","sequence":1}`))
	if _, err := client.Renew(t.Context(), strings.Repeat("r", 43), time.Now()); !fault.Is(err, fault.OutputInvalid) {
		t.Errorf("a short reference: %v", err)
	}
	client, _ = peer(t, says(200, `{"status":"signed_in"}`))
	if _, err := client.CeremonyStatus(t.Context(), caller.Scope{Tenant: "local", Principal: "ada"}, ident.New()); !fault.Is(err, fault.OutputInvalid) {
		t.Errorf("a status that does not exist: %v", err)
	}
	if _, err := remote.New(remote.Config{Socket: "relative", Credential: secret.NewText(credential)}); err == nil {
		t.Error("a relative socket was accepted")
	}
}
