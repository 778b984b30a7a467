package ownerapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/client"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// API-01, API-02, API-03: the life of a profile through the contract's client.
func TestProfileLife(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	key := client.CreateProfileParams{IdempotencyKey: "key-0001"}
	body := client.CreateProfileJSONRequestBody{AllowedOrigins: []string{"https://Wiki.Example.org/"}}
	made, err := h.api.CreateProfileWithResponse(ctx, &key, body)
	h.status("create", err, made.StatusCode(), 201, made.Body)
	id := made.JSON201.Id
	if made.JSON201.AllowedOrigins[0] != wiki || made.JSON201.Status != client.ProfileStatus(profile.AuthenticationRequired) {
		t.Errorf("created: %s", made.Body)
	}
	again, err := h.api.CreateProfileWithResponse(ctx, &key, body)
	h.status("repeat", err, again.StatusCode(), 201, again.Body)
	if again.JSON201.Id != id {
		t.Error("repeating made another profile")
	}
	other := client.CreateProfileJSONRequestBody{AllowedOrigins: []string{"https://other.example.org"}}
	reused, err := h.api.CreateProfileWithResponse(ctx, &key, other)
	h.status("reused key", err, reused.StatusCode(), 409, reused.Body)

	begun, err := h.api.BeginCeremonyWithResponse(ctx, id, client.BeginCeremonyJSONRequestBody{})
	h.status("begin", err, begun.StatusCode(), 201, begun.Body)
	if cc := begun.HTTPResponse.Header.Get("Cache-Control"); cc != "private, no-store" {
		t.Errorf("Cache-Control: %q", cc)
	}
	_, capability, _ := strings.Cut(begun.JSON201.LaunchUrl, "#")
	second, err := h.api.BeginCeremonyWithResponse(ctx, id, client.BeginCeremonyJSONRequestBody{})
	h.status("second begin", err, second.StatusCode(), 409, second.Body)

	waiting, err := h.api.GetCeremonyWithResponse(ctx, begun.JSON201.Id)
	h.status("status", err, waiting.StatusCode(), 200, waiting.Body)
	shown, err := h.api.GetProfileWithResponse(ctx, id)
	h.status("get", err, shown.StatusCode(), 200, shown.Body)
	if shown.JSON200.OpenCeremony == nil || shown.JSON200.OpenCeremony.Id != begun.JSON201.Id {
		t.Errorf("no open sign-in in %s", shown.Body)
	}
	list, err := h.api.ListProfilesWithResponse(ctx)
	h.status("list", err, list.StatusCode(), 200, list.Body)
	if capability == "" || strings.Contains(string(waiting.Body)+string(shown.Body)+string(list.Body)+h.log.String(), capability) { // CER-02
		t.Error("the capability is in more than the answer that began the sign-in")
	}
	h.service.Finish(begun.JSON201.Id, ceremony.Ready)
	done, err := h.api.GetCeremonyWithResponse(ctx, begun.JSON201.Id)
	h.status("outcome", err, done.StatusCode(), 200, done.Body)
	if done.JSON200.Status != client.CeremonyStatusReady {
		t.Errorf("outcome: %s", done.Body)
	}
	cancelled, err := h.api.CancelCeremonyWithResponse(ctx, begun.JSON201.Id)
	h.status("late cancel", err, cancelled.StatusCode(), 200, cancelled.Body)
	if cancelled.JSON200.Status != client.CeremonyStatusReady {
		t.Errorf("a late cancel made it %s", cancelled.JSON200.Status)
	}

	early, err := h.api.DeleteProfileWithResponse(ctx, id)
	h.status("early delete", err, early.StatusCode(), 409, early.Body)
	revoked, err := h.api.RevokeProfileWithResponse(ctx, id)
	h.status("revoke", err, revoked.StatusCode(), 200, revoked.Body)
	gone, err := h.api.DeleteProfileWithResponse(ctx, id)
	h.status("delete", err, gone.StatusCode(), 204, gone.Body)
	if h.service.Has(id) {
		t.Error("material is left")
	}
	absent, err := h.api.GetProfileWithResponse(ctx, id)
	h.status("deleted", err, absent.StatusCode(), 404, absent.Body)
	var refusal *client.Refusal
	if err := client.Check(absent.StatusCode(), absent.JSONDefault); !errors.As(err, &refusal) || refusal.Code != "not_found" || refusal.Message == "" {
		t.Errorf("the client says %v", err)
	}
}

// API-01: no view has a provider reference, a key version or a generation.
func TestViewsHideTheProvider(t *testing.T) {
	h := newHouse(t)
	id := h.ready(ana)
	var stored profile.Profile
	err := h.store.View(t.Context(), ana.Scope, func(tx store.Tx) (err error) { stored, err = tx.Profile(id); return err })
	if err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, path := range []string{"/v1/browser-profiles", "/v1/browser-profiles/" + id, "/v1/audit", "/v1/devices", "/v1/agent-sessions", "/v1/approvals"} {
		a := h.raw("GET", path, "", h.asAna)
		if a.status != 200 {
			t.Fatalf("%s: %d %s", path, a.status, a.body)
		}
		all += a.body
	}
	revoked := h.raw("POST", "/v1/browser-profiles/"+id+"/revoke", "", h.asAna)
	all += revoked.body
	mac := strings.Split(h.ana.Reveal(), ".")[2]
	for _, hidden := range []string{stored.ProviderRef, stored.KeyVersion + `"`, "provider", "key_version", "generation", "verifier", "tenant", "principal", mac} {
		if strings.Contains(all, hidden) {
			t.Errorf("an answer has %q", hidden)
		}
	}
	for _, hidden := range []string{stored.ProviderRef, mac} {
		if strings.Contains(h.log.String(), hidden) {
			t.Errorf("the log has %q", hidden)
		}
	}
}

// LURL-01: 400, a fixed message, nothing of the submitted address.
func TestLoginAddressRefusal(t *testing.T) {
	h := newHouse(t)
	id := h.ready(ana)
	a := h.raw("POST", "/v1/browser-profiles/"+id+"/authentication-ceremonies", `{"login_url":"https://www.wiki.example.org/planted-secret"}`, h.asAna)
	if a.status != 400 || a.code() != "malformed_request" || !strings.Contains(a.body, "leading www") {
		t.Errorf("%d %s", a.status, a.body)
	}
	for _, mode := range []string{"device", "anything"} { // API-03
		b := h.raw("POST", "/v1/browser-profiles/"+id+"/authentication-ceremonies", `{"mode":"`+mode+`"}`, h.asAna)
		if b.status != 400 || b.code() != "malformed_request" {
			t.Errorf("mode %s: %d %s", mode, b.status, b.body)
		}
		a.body += b.body
	}
	if strings.Contains(a.body+h.log.String(), "planted-secret") {
		t.Error("the submitted address is repeated")
	}
}

// VIEW-02, VIEW-03, VIEW-04: what the owner is shown, and that an answer counts once.
func TestApprovals(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	asked := h.ask(ana, h.ready(ana))
	pending := client.ApprovalStatusPending
	list, err := h.api.ListApprovalsWithResponse(ctx, &client.ListApprovalsParams{Status: &pending})
	h.status("list", err, list.StatusCode(), 200, list.Body)
	if len(list.JSON200.Approvals) != 1 || list.JSON200.Approvals[0].Id != asked.ID || *list.JSON200.Approvals[0].View.Text != "hello" {
		t.Errorf("listed: %s", list.Body)
	}
	if strings.Contains(string(list.Body), asked.Digest) || strings.Contains(string(list.Body), "revision") || strings.Contains(string(list.Body), `"ref"`) {
		t.Errorf("shown: %s", list.Body)
	}
	done, err := h.api.ResolveApprovalWithResponse(ctx, asked.ID, client.ResolveApprovalJSONRequestBody{Decision: "approve_once"})
	h.status("approve", err, done.StatusCode(), 200, done.Body)
	twice, err := h.api.ResolveApprovalWithResponse(ctx, asked.ID, client.ResolveApprovalJSONRequestBody{Decision: "deny"})
	h.status("twice", err, twice.StatusCode(), 409, twice.Body)
	shown, err := h.api.GetApprovalWithResponse(ctx, asked.ID)
	h.status("get", err, shown.StatusCode(), 200, shown.Body)
	if shown.JSON200.Status != client.ApprovalStatusApproved {
		t.Errorf("after two answers it is %s", shown.JSON200.Status)
	}
	for _, body := range []string{`{"decision":"approve_for_task"}`, `{}`, `{"decision":"deny","more":1}`, `{"decision":"deny","reason":"` + strings.Repeat("x", 501) + `"}`} {
		if a := h.raw("POST", "/v1/approvals/"+asked.ID+"/resolve", body, h.asAna); a.status != 400 {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
}

// BIND-01 and the rest of the owner's routes.
func TestSessionsDevicesAuditStop(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	id, name := h.ready(ana), "writer"
	made, err := h.api.CreateSessionWithResponse(ctx, client.CreateSessionJSONRequestBody{ProfileId: &id, Name: &name})
	h.status("create", err, made.StatusCode(), 201, made.Body)
	if made.HTTPResponse.Header.Get("Cache-Control") != "private, no-store" || !strings.HasPrefix(made.JSON201.Credential, "apd1.") {
		t.Errorf("%v", made.HTTPResponse.Header)
	}
	sessions, err := h.api.ListSessionsWithResponse(ctx)
	h.status("sessions", err, sessions.StatusCode(), 200, sessions.Body)
	devices, err := h.api.ListDevicesWithResponse(ctx)
	h.status("devices", err, devices.StatusCode(), 200, devices.Body)
	if len(sessions.JSON200.Sessions) != 1 || len(devices.JSON200.Devices) != 2 || strings.Contains(string(sessions.Body)+string(devices.Body), "apd1.") {
		t.Errorf("%s %s", sessions.Body, devices.Body)
	}
	ended, err := h.api.EndSessionWithResponse(ctx, made.JSON201.SessionId)
	h.status("end", err, ended.StatusCode(), 204, ended.Body)

	again, err := h.api.CreateSessionWithResponse(ctx, client.CreateSessionJSONRequestBody{ProfileId: &id})
	h.status("create", err, again.StatusCode(), 201, again.Body)
	stopped, err := h.api.StopWithResponse(ctx)
	h.status("stop", err, stopped.StatusCode(), 200, stopped.Body)
	if stopped.JSON200.SessionsEnded != 1 {
		t.Errorf("%s", stopped.Body)
	}
	limit := 2
	tail, err := h.api.ListAuditWithResponse(ctx, &client.ListAuditParams{Limit: &limit})
	h.status("audit", err, tail.StatusCode(), 200, tail.Body)
	last := tail.JSON200.Entries[1]
	if last.Kind != "owner.stopped" || last.Number != tail.JSON200.Entries[0].Number+1 {
		t.Errorf("%s", tail.Body)
	}
	behind, err := h.api.ListAuditWithResponse(ctx, &client.ListAuditParams{After: &last.Number})
	h.status("audit", err, behind.StatusCode(), 200, behind.Body)
	if string(behind.Body) != `{"entries":[]}`+"\n" {
		t.Errorf("behind the last: %s", behind.Body)
	}

	extra := h.pair(ana)
	fingerprint := strings.Split(extra.Reveal(), ".")[1]
	out, err := h.api.RevokeDeviceWithResponse(ctx, fingerprint)
	h.status("revoke device", err, out.StatusCode(), 204, out.Body)
	refused, err := h.client(extra).ListProfilesWithResponse(ctx)
	h.status("revoked device", err, refused.StatusCode(), 401, refused.Body)
}

// PSM-11, API-02: another principal's records answer like absent ones, to the byte.
func TestForeignLooksAbsent(t *testing.T) {
	h := newHouse(t)
	id := h.ready(ana)
	asked := h.ask(ana, id)
	c, err := h.owner.BeginCeremony(t.Context(), ana, h.ready(ana), "")
	if err != nil {
		t.Fatal(err)
	}
	theirs := h.pair(ben)
	asBen := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+theirs.Reveal()) }
	const nobody = "00000000-0000-4000-8000-000000000000"
	for _, try := range []struct{ method, path, id, body string }{
		{"GET", "/v1/browser-profiles/*", id, ""}, {"DELETE", "/v1/browser-profiles/*", id, ""}, {"POST", "/v1/browser-profiles/*/revoke", id, ""},
		{"POST", "/v1/browser-profiles/*/authentication-ceremonies", id, "{}"}, {"GET", "/v1/browser-authentication-ceremonies/*", c.ID, ""},
		{"POST", "/v1/browser-authentication-ceremonies/*/cancel", c.ID, ""}, {"GET", "/v1/approvals/*", asked.ID, ""},
		{"POST", "/v1/approvals/*/resolve", asked.ID, `{"decision":"approve_once"}`}, {"DELETE", "/v1/agent-sessions/*", asked.SessionID, ""},
	} {
		foreign := h.raw(try.method, strings.Replace(try.path, "*", try.id, 1), try.body, asBen)
		absent := h.raw(try.method, strings.Replace(try.path, "*", nobody, 1), try.body, asBen)
		odd := h.raw(try.method, strings.Replace(try.path, "*", "not-an-id", 1), try.body, asBen)
		if foreign.status != 404 || foreign.body != absent.body || foreign.body != odd.body {
			t.Errorf("%s %s: %d %s, absent %s, odd %s", try.method, try.path, foreign.status, foreign.body, absent.body, odd.body)
		}
	}
	for path, empty := range map[string]string{
		"/v1/browser-profiles": `{"profiles":[]}`, "/v1/approvals": `{"approvals":[]}`, "/v1/agent-sessions": `{"sessions":[]}`,
	} {
		if a := h.raw("GET", path, "", asBen); strings.TrimSpace(a.body) != empty {
			t.Errorf("%s shows %s", path, a.body)
		}
	}
}

// The event stream wakes for every change of its scope, resumes behind a
// number, carries no content, and ends with its device.
func TestEvents(t *testing.T) {
	h := newHouse(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	extra := h.pair(ana)
	events := make(chan client.Event, 100)
	ended := make(chan error, 1)
	go func() {
		ended <- h.client(extra).Events(ctx, 0, func(e client.Event) error { events <- e; return nil })
	}()
	id := h.ready(ana)
	asked := h.ask(ana, id)
	h.ready(ben) // another scope: never seen
	if a := h.raw("POST", "/v1/approvals/"+asked.ID+"/resolve", `{"decision":"deny"}`, h.asAna); a.status != 200 {
		t.Fatal(a.body)
	}
	last, seen := int64(0), map[string]bool{}
	for !seen["approval.resolved"] {
		select {
		case e := <-events:
			if e.Number != last+1 {
				t.Fatalf("number %d after %d", e.Number, last)
			}
			last = e.Number
			seen[e.Kind] = true
		case <-ctx.Done():
			t.Fatalf("not woken; seen %v", seen)
		}
	}
	if !seen["browser.profile.created"] || !seen["device.paired"] {
		t.Errorf("seen: %v", seen)
	}
	h.raw("DELETE", "/v1/devices/"+strings.Split(extra.Reveal(), ".")[1], "", h.asAna)
	select {
	case err := <-ended:
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("ended with %v", err)
		}
	case <-ctx.Done():
		t.Error("the stream outlived its device")
	}
	if a := h.raw("GET", "/v1/events", "", func(r *http.Request) { h.asAna(r); r.Header.Set("Last-Event-ID", "x") }); a.status != 400 {
		t.Errorf("odd Last-Event-ID: %d", a.status)
	}
	if a := h.raw("GET", "/v1/events", "", nil); a.status != 401 {
		t.Errorf("without a credential: %d", a.status)
	}
}

// A store that fails answers 500 in our own words and changes nothing.
func TestStoreFailure(t *testing.T) {
	h := newHouse(t)
	h.store.Close()
	for _, path := range []string{"/v1/browser-profiles", "/v1/approvals"} {
		a := h.raw("GET", path, "", h.asAna)
		if a.status != 500 || a.code() != "internal_error" || strings.Contains(a.body, "sql") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if h.service.Leases() != 0 || len(h.service.World.Requests()) != 0 {
		t.Error("something was started")
	}
}
