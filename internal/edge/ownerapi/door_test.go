package ownerapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/chaperone-agents/chaperone/api"
	"github.com/chaperone-agents/chaperone/internal/app/owner"
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
)

// The door: every way to knock that is not the owner's is refused before a handler.
func TestDoor(t *testing.T) {
	h := newHouse(t)
	id := h.ready(ana)
	_, agent, err := h.owner.CreateSession(t.Context(), ana, owner.NewSession{ProfileID: id})
	if err != nil {
		t.Fatal(err)
	}
	bearer := func(c string) func(*http.Request) { return func(r *http.Request) { r.Header.Set("Authorization", c) } }
	also := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { h.asAna(r); r.Header.Set(name, value) }
	}
	revoke := "/v1/browser-profiles/" + id + "/revoke"
	for name, try := range map[string]struct {
		edit   func(*http.Request)
		status int
	}{
		"no credential":      {nil, 401},
		"empty bearer":       {bearer("Bearer "), 401},
		"other scheme":       {bearer("Basic " + h.ana.Reveal()), 401},
		"wrong mac":          {bearer("Bearer " + h.ana.Reveal()[:len(h.ana.Reveal())-4] + "AAAA"), 401},
		"unknown device":     {bearer("Bearer apd1.00000000000000000000000000000000." + strings.Repeat("A", 43)), 401},
		"agent's device":     {bearer("Bearer " + agent.Reveal()), 403},
		"foreign host":       {func(r *http.Request) { h.asAna(r); r.Host = "rebound.example.org" }, 421},
		"foreign origin":     {also("Origin", "https://evil.example.org"), 403},
		"null origin":        {also("Origin", "null"), 403},
		"other port":         {also("Origin", "http://127.0.0.1:1"), 403},
		"cross-site":         {also("Sec-Fetch-Site", "cross-site"), 403},
		"same-site":          {also("Sec-Fetch-Site", "same-site"), 403},
		"cookie without key": {func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "chaperone_console", Value: "AAAA"}) }, 401},
	} {
		a := h.raw("POST", revoke, "", try.edit)
		if a.status != try.status || a.code() == "" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	p, err := h.owner.Profile(t.Context(), ana, id)
	if err != nil || p.Status != profile.Ready {
		t.Errorf("the profile is %s, %v", p.Status, err)
	}
	for name, try := range map[string]struct {
		method, path, body, media string
		status                    int
	}{
		"no such route":  {"GET", "/v1/nothing", "", "", 404},
		"no such method": {"PUT", "/v1/browser-profiles", "", "", 404},
		"no key":         {"POST", "/v1/browser-profiles", `{"allowed_origins":["https://a.example.org"]}`, "application/json", 400},
		"form":           {"POST", "/v1/console-session", "code=1", "application/x-www-form-urlencoded", 415},
		"text":           {"POST", "/v1/console-session", `{"code":"1"}`, "text/plain", 415},
		"two values":     {"POST", "/v1/agent-sessions", `{} {}`, "application/json", 400},
		"unknown member": {"POST", "/v1/agent-sessions", `{"tenant":"other"}`, "application/json", 400},
		"wrong type":     {"POST", "/v1/agent-sessions", `{"headed":"yes"}`, "application/json", 400},
		"no body":        {"POST", "/v1/agent-sessions", "", "application/json", 400},
		"too large":      {"POST", "/v1/agent-sessions", `{"name":"` + strings.Repeat("x", 65<<10) + `"}`, "application/json", 413},
		"limit":          {"GET", "/v1/audit?limit=201", "", "", 400},
		"after":          {"GET", "/v1/audit?after=-1", "", "", 400},
		"status":         {"GET", "/v1/approvals?status=planted-secret", "", "", 400},
	} {
		a := h.raw(try.method, try.path, try.body, func(r *http.Request) { h.asAna(r); r.Header.Set("Content-Type", try.media) })
		if a.status != try.status || a.code() == "" || strings.Contains(a.body, "planted-secret") {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}

func TestHealth(t *testing.T) {
	h := newHouse(t)
	for _, path := range []string{"/health/live", "/health/ready"} {
		if a := h.raw("GET", path, "", nil); a.status != 204 {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	h.store.Close()
	if a := h.raw("GET", "/health/ready", "", nil); a.status != 500 || strings.Contains(a.body, "sql") {
		t.Errorf("ready without a store: %d %s", a.status, a.body)
	}
	if a := h.raw("GET", "/health/live", "", nil); a.status != 204 {
		t.Errorf("live: %d", a.status)
	}
}

// The console: a code works once; neither half of a session works alone.
func TestConsoleSession(t *testing.T) {
	h := newHouse(t)
	made, err := h.api.CreateConsoleLoginWithResponse(t.Context())
	h.status("code", err, made.StatusCode(), 201, made.Body)
	code := made.JSON201.Code
	if made.JSON201.LoginUrl != h.url+"/#code="+code || made.HTTPResponse.Header.Get("Cache-Control") != "private, no-store" {
		t.Errorf("%s", made.Body)
	}
	wrong := h.raw("POST", "/v1/console-session", `{"code":"AAAA-AAAA-AAAA-AAAA"}`, nil)
	if wrong.status != 401 || wrong.header.Get("Set-Cookie") != "" {
		t.Errorf("wrong code: %d %v", wrong.status, wrong.header)
	}
	in := h.raw("POST", "/v1/console-session", `{"code":"`+code+`"}`, nil)
	if in.status != 201 {
		t.Fatalf("%d %s", in.status, in.body)
	}
	if again := h.raw("POST", "/v1/console-session", `{"code":"`+code+`"}`, nil); again.status != 401 {
		t.Errorf("the code worked twice: %d", again.status)
	}
	cookies := (&http.Response{Header: in.header}).Cookies()
	if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode || cookies[0].Path != "/v1/" || cookies[0].Domain != "" {
		t.Fatalf("cookie: %v", in.header["Set-Cookie"])
	}
	key := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(in.body), `{"page_key":"`), `"}`)
	console := func(cookie, key string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set("Origin", h.url)
			r.AddCookie(&http.Cookie{Name: cookies[0].Name, Value: cookie})
			if key != "" {
				r.Header.Set("X-Console-Key", key)
			}
		}
	}
	for name, try := range map[string]struct {
		cookie, key string
		status      int
	}{
		"both halves":  {cookies[0].Value, key, 200},
		"cookie only":  {cookies[0].Value, "", 401}, // CSRF, and other programs on this host
		"key as both":  {key, key, 401},
		"swapped":      {key, cookies[0].Value, 200}, // the halves are alike
		"broken":       {cookies[0].Value, flipped(key), 401},
		"not base64":   {"!" + cookies[0].Value[1:], key, 401},
		"enormous":     {strings.Repeat("A", 600), strings.Repeat("A", 600), 401},
		"cookie twice": {cookies[0].Value, cookies[0].Value, 401},
	} {
		if a := h.raw("GET", "/v1/browser-profiles", "", console(try.cookie, try.key)); a.status != try.status {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if strings.Contains(in.body+in.header.Get("Set-Cookie"), "apd1.") || strings.Contains(h.log.String(), code) || strings.Contains(h.log.String(), key) {
		t.Error("a credential, a code or a key is where it must not be")
	}
	out := h.raw("DELETE", "/v1/console-session", "", console(cookies[0].Value, key))
	if out.status != 204 || !strings.Contains(out.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("log out: %d %v", out.status, out.header)
	}
	if a := h.raw("GET", "/v1/browser-profiles", "", console(cookies[0].Value, key)); a.status != 401 {
		t.Errorf("after logging out: %d", a.status)
	}
}

// flipped is the key with another last character.
func flipped(key string) string {
	if strings.HasSuffix(key, "A") {
		return key[:len(key)-1] + "B"
	}
	return key[:len(key)-1] + "A"
}

// Every route of the contract but the login and the health checks wants an
// owner's credential (API-01).
func TestOnlyTheDoorBellIsOpen(t *testing.T) {
	h := newHouse(t)
	doc, err := openapi3.NewLoader().LoadFromData(api.Document())
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Errorf("the contract: %v", err)
	}
	_, agent, err := h.owner.CreateSession(t.Context(), ana, owner.NewSession{Origins: []string{wiki}})
	if err != nil {
		t.Fatal(err)
	}
	asAgent := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+agent.Reveal()) }
	open := 0
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			if operation.Security != nil && len(*operation.Security) == 0 {
				open++
				continue
			}
			path := strings.NewReplacer("{", "", "}", "").Replace(path)
			if a := h.raw(method, path, "", nil); a.status != 401 {
				t.Errorf("%s %s: %d without a credential", method, path, a.status)
			}
			if a := h.raw(method, path, "", asAgent); a.status != 403 { // TOOL-07
				t.Errorf("%s %s: %d for an agent", method, path, a.status)
			}
		}
	}
	if open != 3 {
		t.Errorf("%d open routes", open)
	}
}
