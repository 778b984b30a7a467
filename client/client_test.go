package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chaperone-agents/chaperone/client"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
)

func open(t *testing.T, h http.HandlerFunc) *client.ClientWithResponses {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := client.New(client.Config{BaseURL: s.URL, Credential: secret.NewText("apd1.planted")})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// AIP-59: the credential goes to the address it was given for, and nowhere else.
func TestCredentialFollowsNoRedirect(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	var got string
	c := open(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	answer, err := c.ListProfilesWithResponse(t.Context())
	if err != nil || answer.StatusCode() != http.StatusTemporaryRedirect || elsewhere.Load() != 0 {
		t.Errorf("status %v, %v; followed %d times", answer, err, elsewhere.Load())
	}
	if got != "Bearer apd1.planted" {
		t.Errorf("Authorization: %q", got)
	}
	if client.Check(answer.StatusCode(), answer.JSONDefault) == nil {
		t.Error("a redirect counts as a success")
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	for _, c := range []client.Config{
		{}, {BaseURL: "http://127.0.0.1:1"}, {BaseURL: "http://127.0.0.1:1", Credential: secret.Text{}},
		{BaseURL: "127.0.0.1:1", Credential: secret.NewText("x")}, {BaseURL: "file:///x", Credential: secret.NewText("x")},
	} {
		if _, err := client.New(c); err == nil {
			t.Errorf("%q accepted", c.BaseURL)
		}
	}
}

// API-01: a refusal keeps its code and its sentence.
func TestRefusals(t *testing.T) {
	c := open(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusConflict)
		fmt.Fprint(w, `{"error":{"code":"conflict","message":"Not now.","retryable":true}}`)
	})
	answer, err := c.StopWithResponse(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var refusal *client.Refusal
	if err := client.Check(answer.StatusCode(), answer.JSONDefault); !errors.As(err, &refusal) ||
		*refusal != (client.Refusal{Status: 409, Code: "conflict", Message: "Not now.", Retryable: true}) || err.Error() != "Not now." {
		t.Errorf("%+v", err)
	}
	if err := c.Events(t.Context(), 0, nil); !errors.As(err, &refusal) || refusal.Code != "conflict" {
		t.Errorf("events: %v", err)
	}
	if err := client.Check(502, nil); !strings.Contains(err.Error(), "502") {
		t.Errorf("an answer of somebody else: %v", err)
	}
}

// API-01: the stream is resumed by number, bounded, and ends as its reader wants.
func TestEvents(t *testing.T) {
	c := open(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, ": open\n\nid: 8\nevent: audit\ndata: {\"number\":8,\"kind\":%q,\"subject\":\"s\"}\n\n", r.Header.Get("Last-Event-ID"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	var got client.Event
	if err := c.Events(ctx, 7, func(e client.Event) error { got = e; cancel(); return nil }); err != nil {
		t.Errorf("a stream that its reader closed: %v", err)
	}
	if got != (client.Event{Number: 8, Kind: "7", Subject: "s"}) {
		t.Errorf("%+v", got)
	}
	enough := errors.New("enough")
	if err := c.Events(t.Context(), -1, func(client.Event) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
	flood := open(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "data: "+strings.Repeat("x", 1<<20)) })
	if err := flood.Events(t.Context(), -1, func(client.Event) error { return nil }); err == nil {
		t.Error("an endless line was read")
	}
	broken := open(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "data: {\n\n") })
	if err := broken.Events(t.Context(), -1, func(client.Event) error { return nil }); err == nil {
		t.Error("an event that is not JSON was accepted")
	}
}
