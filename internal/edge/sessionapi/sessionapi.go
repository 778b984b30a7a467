// Package sessionapi is the door of the isolated browser service towards the
// orchestrator: the lifecycle of profiles, the data plane of leases, and the
// control of sign-ins, over HTTP on a Unix socket (HCP-01 to HCP-03, LIFE-04,
// LHTTP-01 to LHTTP-05, SHTTP-01, SHTTP-02, UPL-08, section 2.9 of the requirements).
// There is no route that returns a session, a key or a file.
package sessionapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/browser/remote"
	"github.com/chaperone-agents/chaperone/internal/edge/httpx"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/rules/constraint"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// Service is what the routes need of *browserd.Service: browser.Service with
// Dispatch in the place of Do, and so on, as held and permit do not cross the
// wire.
type Service interface {
	Provision(ctx context.Context, scope caller.Scope, profileID string, origins site.Origins) (browser.Provisioned, error)
	Revoke(ctx context.Context, scope caller.Scope, profileID, ref string) error
	Delete(ctx context.Context, scope caller.Scope, profileID, ref string) error
	Acquire(ctx context.Context, key lease.Key, headed bool, deadline time.Time) (browser.Lease, error)
	Renew(ctx context.Context, ref string, deadline time.Time) (browser.Lease, error)
	CloseLease(ctx context.Context, ref string) error
	Dispatch(ctx context.Context, ref string, sequence int64, r action.Request, c *constraint.Constraint) (observe.Document, error)
	DispatchUpload(ctx context.Context, ref string, sequence int64, r action.Request, image artifact.Payload) (observe.Document, error)
	PictureOf(ctx context.Context, ref, revision, element string) (browser.Picture, error)
	BeginCeremony(ctx context.Context, scope caller.Scope, profileID, ref string, login site.URL) (browser.Ceremony, error)
	CeremonyStatus(ctx context.Context, scope caller.Scope, ceremonyID string) (ceremony.Status, error)
	CancelCeremony(ctx context.Context, scope caller.Scope, ceremonyID string) error
	Ready() bool
}

// Config is everything the door needs. The keyring and the whole store were
// validated before a Service could exist, so readiness is the Service's.
type Config struct {
	Service    Service
	Credential secret.Text // 32 to 512 characters; what the orchestrator must show
	Log        *slog.Logger
}

// api holds the routes.
type api struct {
	service    Service
	credential secret.Text
	log        *slog.Logger
}

// route is one operation. It decodes and validates before it calls the core.
type route func(w http.ResponseWriter, r *http.Request) error

// New makes the handler, with the guard for its listener in front: the Host is
// remote.Host and no Origin is accepted, as no web page has business here.
func New(c Config) (http.Handler, error) {
	if n := len(c.Credential.Reveal()); c.Service == nil || c.Log == nil || n < 32 || n > 512 {
		return nil, errors.New("sessionapi: a service, a logger and a credential of 32 to 512 characters are needed")
	}
	a := &api{service: c.Service, credential: c.Credential, log: c.Log}
	routes := map[string]route{
		"/v1/browser-profiles:provision":     a.provision,
		"/v1/browser-sessions:acquire":       a.acquire,
		"/v1/browser-sessions:renew":         a.renew,
		"/v1/browser-sessions:navigate":      a.navigate,
		"/v1/browser-sessions:observe":       a.observe,
		"/v1/browser-sessions:act":           a.act,
		"/v1/browser-sessions:upload":        a.upload,
		"/v1/browser-sessions:picture":       a.picture,
		"/v1/browser-sessions:close":         a.closeLease,
		"/v1/browser-authentications:begin":  a.begin,
		"/v1/browser-authentications:status": a.status,
		"/v1/browser-authentications:cancel": a.cancel,
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health/live", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /health/ready", a.ready)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		// Authentication comes before everything that reads the request (LHTTP-03).
		if shown := httpx.Bearer(r); shown.Empty() || !a.credential.Equal(shown.Reveal()) {
			httpx.Fail(w, fault.New(fault.Unauthenticated, "The service credential is missing or wrong."))
			return
		}
		run := routes[r.URL.Path]
		if rest, ok := strings.CutPrefix(r.URL.Path, "/v1/browser-profiles/"); ok {
			run = a.profile(rest)
		}
		if run == nil || r.Method != http.MethodPost {
			httpx.Fail(w, fault.New(fault.NotFound, "There is no such route."))
			return
		}
		if err := run(w, r); err != nil {
			a.fail(w, r, err)
		}
	})
	return httpx.Guard{Hosts: []string{remote.Host}}.Wrap(a.contain(mux)), nil
}

// contain turns a panic into a plain refusal: its text could quote a request
// (LHTTP-05).
func (a *api) contain(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				a.log.Error("a request panicked")
				httpx.Fail(w, fault.New(fault.Internal, "The isolated browser service failed."))
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// fail answers with the public part of err; the log gets the code only.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	code := fault.CodeOf(err)
	_, operation, _ := strings.Cut(r.URL.Path, ":") // of a known route, so one of our own words
	a.log.Info("a request was refused", "operation", operation, "code", code)
	httpx.Fail(w, err)
}

func (a *api) ready(w http.ResponseWriter, _ *http.Request) {
	if !a.service.Ready() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// read decodes the body.
func read(w http.ResponseWriter, r *http.Request, v any) error {
	return httpx.ReadJSON(w, r, remote.MaxRequest, v)
}

// keyed checks the Idempotency-Key, which each mutation must carry exactly.
func keyed(r *http.Request, want string) error {
	if got := r.Header.Values("Idempotency-Key"); len(got) != 1 || got[0] != want {
		return fault.New(fault.MalformedRequest, "The Idempotency-Key is missing or not the one of this operation.")
	}
	return nil
}

func malformed() error {
	return fault.New(fault.MalformedRequest, "A member of the body is missing or out of bounds.")
}

func within(s string, low, high int) bool { return len(s) >= low && len(s) <= high }
