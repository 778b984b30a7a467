// Package ownerapi serves the owner API (API-01 to API-03, CER-02, OPD-03,
// VIEW-02, UPL-06):
// every request passes the listener's guard, the cross-origin check,
// authentication and the contract before a handler sees it. Routes, types and
// decoding are generated from api/openapi.yaml into oas.
package ownerapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/chaperone-agents/chaperone/api"
	"github.com/chaperone-agents/chaperone/internal/app/broker"
	"github.com/chaperone-agents/chaperone/internal/app/notify"
	"github.com/chaperone-agents/chaperone/internal/app/owner"
	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/edge/httpx"
	"github.com/chaperone-agents/chaperone/internal/edge/ownerapi/oas"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
)

// Access authenticates devices and logs consoles in; app/access has it.
type Access interface {
	Authenticate(ctx context.Context, credential secret.Text) (caller.Caller, error)
	NewLoginCode(scope caller.Scope) secret.Text
	Login(ctx context.Context, code string) (secret.Text, error)
}

// Calls knows where the calls of agents spent their time, and what questions
// are about; app/broker has it.
type Calls interface {
	Diagnostics(scope caller.Scope) []broker.Diagnostics
	Picture(ctx context.Context, by caller.Caller, approval string) (browser.Picture, error)
}

// Images are what the owner attached to sessions; app/artifacts has them.
type Images interface {
	Attach(ctx context.Context, by caller.Caller, session string, body io.Reader) (artifact.Image, error)
	List(ctx context.Context, by caller.Caller, session string) ([]artifact.Image, error)
	Content(ctx context.Context, by caller.Caller, session, id string) (artifact.Payload, error)
	Remove(ctx context.Context, by caller.Caller, session, id string) error
}

// Config of the owner API. Every member is needed.
type Config struct {
	Owner   *owner.Owner
	Access  Access
	Calls   Calls
	Images  Images
	Hub     *notify.Hub
	Guard   httpx.Guard
	Console string // origin of the console, such as http://127.0.0.1:8787
	Log     *slog.Logger
}

// maxStreams bounds the event streams that are open at once.
const maxStreams = 32

type server struct {
	Config
	streams chan struct{}
}

// New serves /v1/ and /health/.
func New(c Config) (http.Handler, error) {
	if c.Owner == nil || c.Access == nil || c.Calls == nil || c.Images == nil || c.Hub == nil || c.Console == "" || c.Log == nil || len(c.Guard.Hosts) == 0 {
		return nil, errors.New("ownerapi: the configuration is incomplete")
	}
	doc, err := openapi3.NewLoader().LoadFromData(api.Document())
	if err != nil {
		return nil, fmt.Errorf("ownerapi: the contract: %w", err)
	}
	s := &server{Config: c, streams: make(chan struct{}, maxStreams)}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		httpx.Fail(w, fault.New(fault.NotFound, "There is no such route."))
	})
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			serve, ok := operations[operation.OperationID]
			if !ok {
				return nil, fmt.Errorf("ownerapi: no handler for %q", operation.OperationID)
			}
			mux.Handle(method+" "+path, s.door(&routers.Route{Spec: doc, Path: path, PathItem: item, Method: method, Operation: operation}, serve))
		}
	}
	cross := http.NewCrossOriginProtection()
	for _, o := range c.Guard.Origins {
		if err := cross.AddTrustedOrigin(o); err != nil {
			return nil, fmt.Errorf("ownerapi: %w", err)
		}
	}
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		httpx.Fail(w, fault.New(fault.Forbidden, "Cross-origin requests are refused."))
	}))
	instance, api := ident.New(), cross.Handler(mux)
	return c.Guard.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(instanceHeader, instance)
		api.ServeHTTP(w, r)
	})), nil
}

// serve is one generated route.
type serve func(*oas.ServerInterfaceWrapper, http.ResponseWriter, *http.Request)

// operations maps the contract's operations to the generated routes.
var operations = map[string]serve{
	"listProfiles":        (*oas.ServerInterfaceWrapper).ListProfiles,
	"createProfile":       (*oas.ServerInterfaceWrapper).CreateProfile,
	"getProfile":          (*oas.ServerInterfaceWrapper).GetProfile,
	"deleteProfile":       (*oas.ServerInterfaceWrapper).DeleteProfile,
	"revokeProfile":       (*oas.ServerInterfaceWrapper).RevokeProfile,
	"beginCeremony":       (*oas.ServerInterfaceWrapper).BeginCeremony,
	"getCeremony":         (*oas.ServerInterfaceWrapper).GetCeremony,
	"cancelCeremony":      (*oas.ServerInterfaceWrapper).CancelCeremony,
	"listApprovals":       (*oas.ServerInterfaceWrapper).ListApprovals,
	"getApproval":         (*oas.ServerInterfaceWrapper).GetApproval,
	"getPicture":          (*oas.ServerInterfaceWrapper).GetPicture,
	"listImages":          (*oas.ServerInterfaceWrapper).ListImages,
	"attachImage":         (*oas.ServerInterfaceWrapper).AttachImage,
	"getImage":            (*oas.ServerInterfaceWrapper).GetImage,
	"removeImage":         (*oas.ServerInterfaceWrapper).RemoveImage,
	"resolveApproval":     (*oas.ServerInterfaceWrapper).ResolveApproval,
	"listSessions":        (*oas.ServerInterfaceWrapper).ListSessions,
	"createSession":       (*oas.ServerInterfaceWrapper).CreateSession,
	"endSession":          (*oas.ServerInterfaceWrapper).EndSession,
	"listDevices":         (*oas.ServerInterfaceWrapper).ListDevices,
	"revokeDevice":        (*oas.ServerInterfaceWrapper).RevokeDevice,
	"createConsoleLogin":  (*oas.ServerInterfaceWrapper).CreateConsoleLogin,
	"beginConsoleSession": (*oas.ServerInterfaceWrapper).BeginConsoleSession,
	"endConsoleSession":   (*oas.ServerInterfaceWrapper).EndConsoleSession,
	"listAudit":           (*oas.ServerInterfaceWrapper).ListAudit,
	"listDiagnostics":     (*oas.ServerInterfaceWrapper).ListDiagnostics,
	"stop":                (*oas.ServerInterfaceWrapper).Stop,
	"streamEvents":        (*oas.ServerInterfaceWrapper).StreamEvents,
	"live":                (*oas.ServerInterfaceWrapper).Live,
	"ready":               (*oas.ServerInterfaceWrapper).Ready,
}

// door authenticates and validates a request, then hands it to a handler that
// was made for its caller: who is asking is never looked up again.
func (s *server) door(route *routers.Route, next serve) http.Handler {
	open := route.Operation.Security != nil && len(*route.Operation.Security) == 0
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := &handler{server: s}
		if !open {
			by, err := s.authenticate(r)
			if err != nil {
				s.fail(w, r, err)
				return
			}
			h.by, h.again = by, func(ctx context.Context) error { _, err := s.authenticate(r.WithContext(ctx)); return err }
		}
		if err := validate(w, r, route); err != nil {
			s.fail(w, r, err)
			return
		}
		next(&oas.ServerInterfaceWrapper{
			Handler: oas.NewStrictHandlerWithOptions(h, nil, oas.StrictHTTPServerOptions{
				RequestErrorHandlerFunc:  s.malformed,
				ResponseErrorHandlerFunc: s.fail,
			}),
			ErrorHandlerFunc: s.malformed,
		}, w, r)
	})
}

// authenticate takes the credential of the Authorization header, or the two
// halves of a console session. Only an owner's device passes.
func (s *server) authenticate(r *http.Request) (caller.Caller, error) {
	credential := httpx.Bearer(r)
	if r.Header.Get("Authorization") == "" {
		credential = consoleCredential(r)
	}
	by, err := s.Access.Authenticate(r.Context(), credential)
	if err == nil && by.Role != caller.Owner {
		err = fault.New(fault.Forbidden, "Only the owner's devices may do this. Nothing was changed.")
	}
	return by, err
}

// validate holds the request to the contract. What it says about a violation
// names the contract's own words only, never the submitted value (LURL-01).
func validate(w http.ResponseWriter, r *http.Request, route *routers.Route) error {
	raw := false
	if body := route.Operation.RequestBody; body != nil {
		var err error
		if raw = body.Value.Content.Get("application/json") == nil; raw {
			err = boundBody(w, r)
		} else {
			err = readBody(w, r)
		}
		if err != nil {
			return err
		}
	}
	params := map[string]string{}
	for _, p := range route.PathItem.Parameters {
		params[p.Value.Name] = r.PathValue(p.Value.Name)
	}
	for _, p := range route.Operation.Parameters {
		if p.Value.In == openapi3.ParameterInPath {
			params[p.Value.Name] = r.PathValue(p.Value.Name)
		}
	}
	err := openapi3filter.ValidateRequest(r.Context(), &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, ExcludeRequestBody: raw},
	})
	if err == nil {
		return nil
	}
	what := "The request does not have the shape that this route takes."
	if e, ok := errors.AsType[*openapi3filter.RequestError](err); ok && e.Parameter != nil {
		if e.Parameter.In == openapi3.ParameterInPath {
			return fault.New(fault.NotFound, "There is no such record. Nothing was changed.")
		}
		what = "The parameter " + e.Parameter.Name + " is missing or not valid."
	} else if member := offending(err, route); member != "" {
		what = "The member " + member + " is missing or not valid."
	}
	return fault.Wrap(fault.MalformedRequest, what+" Nothing was changed.", err)
}

// offending names the contract's member that a body error is about, if any.
func offending(err error, route *routers.Route) string {
	e, ok := errors.AsType[*openapi3.SchemaError](err)
	if !ok || len(e.JSONPointer()) == 0 {
		return ""
	}
	name := e.JSONPointer()[0]
	if schema := route.Operation.RequestBody.Value.Content.Get("application/json").Schema; schema.Value.Properties[name] != nil {
		return name
	}
	return ""
}

// readBody replaces the body by at most httpx.MaxBody bytes; that they are
// exactly one JSON value is the contract's to check.
func readBody(w http.ResponseWriter, r *http.Request) error {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || !strings.EqualFold(t, "application/json") {
		return fault.New(fault.UnsupportedMedia, "The body must be application/json.")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, httpx.MaxBody))
	if err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return fault.New(fault.PayloadTooLarge, "The body is too large.")
		}
		return fault.New(fault.MalformedRequest, "The body could not be read.")
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}

// boundBody lets a body that is no JSON through unread: a little more than the
// largest image, so that it is the image that is refused.
func boundBody(w http.ResponseWriter, r *http.Request) error {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || !strings.EqualFold(t, "application/octet-stream") {
		return fault.New(fault.UnsupportedMedia, "The body must be application/octet-stream.")
	}
	if r.ContentLength > artifact.MaxSize {
		return fault.New(fault.PayloadTooLarge, "An image has at most 5 MiB. Nothing was attached.")
	}
	r.Body = http.MaxBytesReader(w, r.Body, artifact.MaxSize+httpx.MaxBody)
	return nil
}

func (s *server) malformed(w http.ResponseWriter, r *http.Request, err error) {
	s.fail(w, r, fault.Wrap(fault.MalformedRequest, "The request does not have the shape that this route takes. Nothing was changed.", err))
}

// fail answers with the public part of err; the log gets the cause of what is
// our own failure.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if code := fault.CodeOf(err); code == fault.Internal && r.Context().Err() == nil {
		s.Log.Error("owner request failed", "route", r.Pattern, "error", err)
	} else {
		s.Log.Debug("owner request refused", "route", r.Pattern, "code", code)
	}
	httpx.Fail(w, err)
}
