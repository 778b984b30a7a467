package sessionapi_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/app/browserd"
	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/browser/remote"
	"github.com/chaperone-agents/chaperone/internal/browser/servicetest"
	"github.com/chaperone-agents/chaperone/internal/edge/httpx"
	"github.com/chaperone-agents/chaperone/internal/edge/sessionapi"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/grant"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
	"github.com/chaperone-agents/chaperone/internal/rules/policy"
	"github.com/chaperone-agents/chaperone/internal/vault"
	"github.com/chaperone-agents/chaperone/internal/vault/keyring"
)

const credential = "planted-service-credential-0123456789abcdef"

// buffer is a log that tests read.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// rig is the isolated service behind its socket, and a client of it.
type rig struct {
	world   *fake.World
	service *browserd.Service
	client  *remote.Client
	socket  string
	log     *buffer
	ahead   atomic.Int64
}

func (r *rig) Now() time.Time          { return time.Now().Add(time.Duration(r.ahead.Load())) }
func (r *rig) Advance(d time.Duration) { r.ahead.Add(int64(d)) }

func newRig(t testing.TB) *rig {
	t.Helper()
	root := t.TempDir()
	keys, sealed := filepath.Join(root, "keys"), filepath.Join(root, "sealed")
	if err := keyring.Generate(keys); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(sealed, 0o700); err != nil {
		t.Fatal(err)
	}
	v, err := vault.Open(vault.Config{Dir: sealed, KeyDir: keys})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{world: &fake.World{}, socket: filepath.Join(root, "s"), log: &buffer{}}
	log := slog.New(slog.NewTextHandler(r.log, nil))
	r.service, err = browserd.New(browserd.Config{Vault: v, Launcher: r.world, CeremonyBase: "http://localhost:8788", Now: r.Now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	h, err := sessionapi.New(sessionapi.Config{Service: r.service, Credential: secret.NewText(credential), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", r.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := httpx.Server(h)
	served := make(chan struct{})
	go func() { defer close(served); server.Serve(l) }()
	t.Cleanup(func() {
		server.Close()
		<-served
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		r.service.Shutdown(ctx)
		v.Close()
	})
	r.client, err = remote.New(remote.Config{Socket: r.socket, Credential: secret.NewText(credential)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The service keeps the contract behind its socket too (GATE-01, PSM-12).
func TestServiceContractBehindTheSocket(t *testing.T) {
	servicetest.Run(t, func(t *testing.T) servicetest.Subject {
		r := newRig(t)
		return servicetest.Subject{Service: r.client, World: r.world, Now: r.Now, Advance: r.Advance}
	})
}

// raw sends one request as it is.
func (r *rig) raw(t *testing.T, method, path, body string, header map[string]string) (*http.Response, string) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", r.socket)
	}}}
	q, err := http.NewRequestWithContext(t.Context(), method, "http://browserd"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+credential)
	q.Header.Set("Content-Type", "application/json")
	for k, v := range header {
		switch {
		case k == "Host":
			q.Host = v
		case v == "":
			q.Header.Del(k)
		default:
			q.Header.Set(k, v)
		}
	}
	a, err := c.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a, string(b)
}

func provisionBody(id string) string {
	return `{"profile_id":"` + id + `","tenant_id":"local","principal_id":"ada","allowed_origins":["https://desk.practice.example"]}`
}

// pixel is the smallest PNG that counts as one.
const pixel = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00\x3a\x7e\x9b\x55"

// uploadBody is the body of an upload of data; its own checksum and name when
// none are given.
func uploadBody(ref, data, kind, sum, name string) string {
	const id = "3f0c1f9e-6a34-4b57-9a52-0d6c0c1f2a3b"
	if sum == "" {
		sum = artifact.Sum([]byte(data))
	}
	if name == "" {
		name = id + artifact.Type(kind).Extension()
	}
	return `{"lease_ref":"` + ref + `","sequence":1,"action":{"image_id":"` + id + `","expected_revision":"r","ref":"r:1"},"image":{"filename":"` + name +
		`","media_type":"` + kind + `","sha256":"` + sum + `","data_base64":"` + base64.StdEncoding.EncodeToString([]byte(data)) + `"}}`
}

// LHTTP-02 to LHTTP-05, SHTTP-01, UPL-08: what the door turns away, with its status;
// none of it reaches the core.
func TestDoor(t *testing.T) {
	r := newRig(t)
	id := ident.New()
	key := "browser-profile:" + id + ":provision"
	const provision = "/v1/browser-profiles:provision"
	big := `{"profile_id":"` + strings.Repeat("x", 70<<10) + `"}`
	ref := strings.Repeat("r", 43)
	upload := map[string]string{"Idempotency-Key": remote.ActKey(ref, 1)}
	for _, c := range []struct {
		name, method, path, body string
		header                   map[string]string
		status                   int
		code                     fault.Code
	}{
		{"another host", "POST", provision, provisionBody(id), map[string]string{"Host": "localhost"}, 421, fault.Forbidden},
		{"any origin", "POST", provision, provisionBody(id), map[string]string{"Origin": "http://browserd"}, 403, fault.Forbidden},
		{"null origin", "POST", provision, provisionBody(id), map[string]string{"Origin": "null"}, 403, fault.Forbidden},
		{"no credential", "POST", provision, provisionBody(id), map[string]string{"Authorization": ""}, 401, fault.Unauthenticated},
		{"wrong credential", "POST", provision, provisionBody(id), map[string]string{"Authorization": "Bearer " + credential + "x"}, 401, fault.Unauthenticated},
		{"no credential, unknown route", "GET", "/openapi.json", "", map[string]string{"Authorization": ""}, 401, fault.Unauthenticated},
		{"no credential, huge body", "POST", provision, big, map[string]string{"Authorization": ""}, 401, fault.Unauthenticated},
		{"no documentation", "GET", "/docs", "", nil, 404, fault.NotFound},
		{"no export", "POST", "/v1/browser-profiles/" + id + ":export", "{}", nil, 404, fault.NotFound},
		{"get", "GET", provision, "", nil, 404, fault.NotFound},
		{"form", "POST", provision, "a=b", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, 415, fault.UnsupportedMedia},
		{"oversized", "POST", provision, big, map[string]string{"Idempotency-Key": key}, 413, fault.PayloadTooLarge},
		{"not JSON", "POST", provision, "{", map[string]string{"Idempotency-Key": key}, 400, fault.MalformedRequest},
		{"extra member", "POST", provision, strings.Replace(provisionBody(id), "{", `{"admin":true,`, 1), map[string]string{"Idempotency-Key": key}, 400, fault.MalformedRequest},
		{"no idempotency key", "POST", provision, provisionBody(id), nil, 400, fault.MalformedRequest},
		{"another idempotency key", "POST", provision, provisionBody(id), map[string]string{"Idempotency-Key": key + "x"}, 400, fault.MalformedRequest},
		{"no scope", "POST", provision, strings.Replace(provisionBody(id), `"ada"`, `""`, 1), map[string]string{"Idempotency-Key": key}, 400, fault.MalformedRequest},
		{"private origin", "POST", provision, strings.Replace(provisionBody(id), "desk.practice.example", "localhost", 1), map[string]string{"Idempotency-Key": key}, 400, fault.MalformedRequest},
		{"route and body differ", "POST", "/v1/browser-profiles/" + id + ":revoke", `{"profile_id":"` + ident.New() + `","tenant_id":"local","principal_id":"ada","provider_ref":"` + ref + `"}`,
			map[string]string{"Idempotency-Key": "browser-profile:" + id + ":revoke"}, 400, fault.MalformedRequest},
		{"unknown profile", "POST", "/v1/browser-profiles/" + id + ":revoke", `{"profile_id":"` + id + `","tenant_id":"local","principal_id":"ada","provider_ref":"` + ref + `"}`,
			map[string]string{"Idempotency-Key": "browser-profile:" + id + ":revoke"}, 409, fault.ProfileUnavailable},
		{"short lease reference", "POST", "/v1/browser-sessions:observe", `{"lease_ref":"short"}`, nil, 400, fault.MalformedRequest},
		{"unknown lease", "POST", "/v1/browser-sessions:observe", `{"lease_ref":"` + ref + `"}`, nil, 409, fault.ProfileUnavailable},
		{"act without its number", "POST", "/v1/browser-sessions:act", `{"lease_ref":"` + ref + `","sequence":0,"action":{}}`, map[string]string{"Idempotency-Key": remote.ActKey(ref, 0)}, 400, fault.MalformedRequest},
		{"act under no real constraint", "POST", "/v1/browser-sessions:act", `{"lease_ref":"` + ref + `","sequence":1,"action":{"kind":"click","expected_revision":"r","ref":"r:0"},"constraint":{"grant_kind":"task"}}`, map[string]string{"Idempotency-Key": remote.ActKey(ref, 1)}, 400, fault.MalformedRequest},
		{"act that is none", "POST", "/v1/browser-sessions:act", `{"lease_ref":"` + ref + `","sequence":1,"action":{"kind":"rob"}}`, map[string]string{"Idempotency-Key": remote.ActKey(ref, 1)}, 422, fault.ArgumentsInvalid},
		{"act over 64 KiB", "POST", "/v1/browser-sessions:act", big, nil, 413, fault.PayloadTooLarge},
		{"picture over 64 KiB", "POST", "/v1/browser-sessions:picture", big, nil, 413, fault.PayloadTooLarge},
		{"picture of no revision", "POST", "/v1/browser-sessions:picture", `{"lease_ref":"` + ref + `","expected_revision":"","ref":"r:1"}`, nil, 400, fault.MalformedRequest},
		{"upload over 7 MiB", "POST", "/v1/browser-sessions:upload", `{"lease_ref":"` + strings.Repeat("x", 7<<20) + `"}`, nil, 413, fault.PayloadTooLarge},
		{"upload of a page", "POST", "/v1/browser-sessions:upload", uploadBody(ref, "<!doctype html>", "image/png", "", ""), upload, 400, fault.MalformedRequest},
		{"upload of another type", "POST", "/v1/browser-sessions:upload", uploadBody(ref, pixel, "image/webp", "", ""), upload, 400, fault.MalformedRequest},
		{"upload with another checksum", "POST", "/v1/browser-sessions:upload", uploadBody(ref, pixel, "image/png", artifact.Sum(nil), ""), upload, 400, fault.MalformedRequest},
		{"upload under another name", "POST", "/v1/browser-sessions:upload", uploadBody(ref, pixel, "image/png", "", "../passwd.png"), upload, 400, fault.MalformedRequest},
		{"upload without its number", "POST", "/v1/browser-sessions:upload", uploadBody(ref, pixel, "image/png", "", ""), nil, 400, fault.MalformedRequest},
		{"upload to no lease", "POST", "/v1/browser-sessions:upload", uploadBody(ref, pixel, "image/png", "", ""), upload, 409, fault.ProfileUnavailable},
		{"file address", "POST", "/v1/browser-sessions:navigate", `{"lease_ref":"` + ref + `","url":"file:///etc/passwd"}`, nil, 400, fault.MalformedRequest},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, body := r.raw(t, c.method, c.path, c.body, c.header)
			var e httpx.ErrorBody
			if err := json.Unmarshal([]byte(body), &e); err != nil || a.StatusCode != c.status || e.Error.Code != c.code {
				t.Errorf("status %d, body %s", a.StatusCode, body)
			}
			if a.StatusCode == 401 && a.Header.Get("WWW-Authenticate") != "Bearer" {
				t.Error("no WWW-Authenticate")
			}
		})
	}
	if log := r.log.String(); strings.Contains(log, credential) || strings.Contains(log, id) || strings.Contains(log, "ada") || strings.Contains(log, ref) {
		t.Errorf("the log has something of a request (LHTTP-05): %s", log)
	}
	// The one good request still works, so nothing above was refused by accident.
	if a, body := r.raw(t, "POST", provision, provisionBody(id), map[string]string{"Idempotency-Key": key}); a.StatusCode != 201 || strings.Contains(body, "cookie") {
		t.Errorf("provision: %d %s", a.StatusCode, body)
	}
	if r.world.Launched() != 0 {
		t.Error("a refused request started a browser")
	}
}

// LHTTP-03: a chunked body that never ends is cut at the bound, and without a
// credential nothing of it is read.
func TestChunkedBodies(t *testing.T) {
	r := newRig(t)
	send := func(head string) string {
		conn, err := net.Dial("unix", r.socket)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(time.Minute))
		io.WriteString(conn, "POST /v1/browser-profiles:provision HTTP/1.1\r\nHost: browserd\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"+head+"\r\n")
		go func() { // until the other side has had enough
			chunk := "1000\r\n" + strings.Repeat(" ", 0x1000) + "\r\n"
			for range 1000 {
				if _, err := io.WriteString(conn, chunk); err != nil {
					return
				}
			}
		}()
		b := make([]byte, 64)
		n, err := conn.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	if got := send("Authorization: Bearer " + credential + "\r\n"); !strings.HasPrefix(got, "HTTP/1.1 413") {
		t.Errorf("endless body: %q", got)
	}
	if got := send(""); !strings.HasPrefix(got, "HTTP/1.1 401") {
		t.Errorf("endless body without a credential: %q", got)
	}
}

// LHTTP-01, LHTTP-05: health needs no credential and tells nothing else.
func TestHealth(t *testing.T) {
	r := newRig(t)
	none := map[string]string{"Authorization": ""}
	for _, path := range []string{"/health/live", "/health/ready"} {
		if a, body := r.raw(t, "GET", path, "", none); a.StatusCode != 204 || body != "" {
			t.Errorf("%s: %d %s", path, a.StatusCode, body)
		}
	}
	r.service.Shutdown(t.Context())
	if a, _ := r.raw(t, "GET", "/health/ready", "", none); a.StatusCode != 503 {
		t.Errorf("ready after shutdown: %d", a.StatusCode)
	}
	if a, _ := r.raw(t, "GET", "/health/live", "", none); a.StatusCode != 204 {
		t.Errorf("live after shutdown: %d", a.StatusCode)
	}
}

// PSM-12, REL-02: an observation arrives whole; what a site or browser said in
// an error does not.
func TestObservationsAndErrorsCross(t *testing.T) {
	r := newRig(t)
	servicetest.Website(r.world)
	origins, err := site.ParseOrigins([]string{"https://desk.practice.example"})
	if err != nil {
		t.Fatal(err)
	}
	key := lease.Key{Scope: caller.Scope{Tenant: "local", Principal: "ada"}, RunID: "run", Attempt: 1, Origins: origins}
	l, err := r.client.Acquire(t.Context(), key, false, r.Now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	q, err := action.Prepare(action.Navigate, json.RawMessage(`{"url":"`+servicetest.Home+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := grant.FromPolicy(policy.Decision{Verdict: policy.Allow}, q)
	if err != nil {
		t.Fatal(err)
	}
	h, err := lease.Hold(l.Ref, 1, l.ExpiresAt, r.Now())
	if err != nil {
		t.Fatal(err)
	}
	d, err := r.client.Do(t.Context(), h, p, q)
	if err != nil || d.Title != "Desk" || d.Text != "Hello" || len(d.Elements) != 1 || len(d.Facts) != 1 {
		t.Errorf("the observation is %+v, %v", d, err)
	}
	r.world.OnLoad(func(context.Context, string) error { return io.ErrUnexpectedEOF })
	_, err = r.client.Do(t.Context(), h, p, q)
	if e := fault.Public(err); e.Code != fault.ProviderUnavailable || strings.Contains(e.Public, "EOF") || !e.Retryable {
		t.Errorf("a raw error crossed as %v", e)
	}
	r.world.OnLoad(func(context.Context, string) error {
		return fault.New(fault.SiteUnreachable, "The site did not answer.")
	})
	if _, err = r.client.Do(t.Context(), h, p, q); !fault.Is(err, fault.SiteUnreachable) {
		t.Errorf("a site that is down: %v", err) // weak spot 21: page and lease are kept
	}
	if _, err := r.client.Renew(t.Context(), l.Ref, r.Now().Add(time.Minute)); err != nil {
		t.Errorf("the lease is gone after an unreachable site: %v", err)
	}
}
