// Package httpx is what every listener of Chaperone has in common: the check
// of Host and Origin, strict and bounded JSON, and the one table from fault
// codes to HTTP statuses.
package httpx

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
)

// Guard refuses requests that do not name this listener. A web page that
// rebinds a name to loopback has another Host, and one that posts across sites
// has another Origin.
type Guard struct {
	Hosts   []string // exact Host values, such as "127.0.0.1:8787"
	Origins []string // exact Origin values; an absent Origin passes, "null" never does
}

// Wrap puts the guard before next. It answers 421 for a foreign Host and 403
// for a foreign Origin, and sets the headers that every answer has.
func (g Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if !slices.Contains(g.Hosts, r.Host) {
			writeError(w, http.StatusMisdirectedRequest, fault.New(fault.Forbidden, "This listener does not answer under that host name."))
			return
		}
		if o, present := r.Header["Origin"]; present && (len(o) != 1 || !slices.Contains(g.Origins, o[0])) {
			writeError(w, http.StatusForbidden, fault.New(fault.Forbidden, "Requests from that origin are refused."))
			return
		}
		if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" && r.Method != http.MethodGet && r.Method != http.MethodHead {
			writeError(w, http.StatusForbidden, fault.New(fault.Forbidden, "Cross-site requests are refused."))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// MaxBody is the largest JSON body of every route that does not say otherwise.
const MaxBody = 64 << 10

// ReadJSON decodes the body into v: application/json, at most max bytes (also
// when chunked), one value, no unknown members. It returns
// fault.UnsupportedMedia, PayloadTooLarge or MalformedRequest.
func ReadJSON(w http.ResponseWriter, r *http.Request, max int64, v any) error {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return fault.New(fault.UnsupportedMedia, "The body must be application/json.")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, max))
	if err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return fault.New(fault.PayloadTooLarge, "The body is too large.")
		}
		return fault.New(fault.MalformedRequest, "The body could not be read.")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fault.New(fault.MalformedRequest, "The body is not the JSON that this route takes.")
	}
	if _, err := d.Token(); err != io.EOF {
		return fault.New(fault.MalformedRequest, "There is something behind the JSON body.")
	}
	return nil
}

// WriteJSON answers with v.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		writeError(w, http.StatusInternalServerError, fault.Public(err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(body) // the client may have gone; there is nobody left to tell
}

// Fail answers with the public part of err.
func Fail(w http.ResponseWriter, err error) {
	e := fault.Public(err)
	if e.Code == fault.Unauthenticated {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	writeError(w, Status(e.Code), e)
}

// ErrorBody is the one shape of every error answer.
type ErrorBody struct {
	Error struct {
		Code      fault.Code `json:"code"`
		Message   string     `json:"message"`
		Retryable bool       `json:"retryable,omitempty"`
	} `json:"error"`
}

func writeError(w http.ResponseWriter, status int, e *fault.Error) {
	var b ErrorBody
	b.Error.Code, b.Error.Message, b.Error.Retryable = e.Code, e.Public, e.Retryable
	WriteJSON(w, status, b)
}

// statuses is the table from fault codes to HTTP (section 2.9 of the
// requirements): the request family one by one, the tool family 409.
var statuses = map[fault.Code]int{
	fault.Unauthenticated:   http.StatusUnauthorized,
	fault.Forbidden:         http.StatusForbidden,
	fault.NotFound:          http.StatusNotFound,
	fault.Conflict:          http.StatusConflict,
	fault.InvalidTransition: http.StatusConflict,
	fault.MalformedRequest:  http.StatusBadRequest,
	fault.UnsupportedMedia:  http.StatusUnsupportedMediaType,
	fault.PayloadTooLarge:   http.StatusRequestEntityTooLarge,
	fault.ArgumentsInvalid:  http.StatusUnprocessableEntity,
	fault.Internal:          http.StatusInternalServerError,

	fault.URLDisallowed:          http.StatusConflict,
	fault.ProviderUnavailable:    http.StatusConflict,
	fault.SiteUnreachable:        http.StatusConflict,
	fault.NavigationCancelled:    http.StatusConflict,
	fault.ProfileUnavailable:     http.StatusConflict,
	fault.AuthenticationRequired: http.StatusConflict,
	fault.NeedsUser:              http.StatusConflict,
	fault.PageChanged:            http.StatusConflict,
	fault.ElementNotFound:        http.StatusConflict,
	fault.ActionNotAllowed:       http.StatusConflict,
	fault.RegionNotActionable:    http.StatusConflict,
	fault.FocusRequired:          http.StatusConflict,
	fault.GrantNotApplicable:     http.StatusConflict,
	fault.OutputInvalid:          http.StatusConflict,
	fault.OutcomeUnknown:         http.StatusConflict,
	fault.ApprovalPending:        http.StatusConflict,
	fault.ApprovalDenied:         http.StatusConflict,
	fault.ApprovalExpired:        http.StatusConflict,
}

// Status is the HTTP status of a code.
func Status(c fault.Code) int {
	if s, ok := statuses[c]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// Bearer is the credential of the Authorization header, empty if there is none.
func Bearer(r *http.Request) secret.Text {
	scheme, value, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || len(value) > 512 {
		return secret.Text{}
	}
	return secret.NewText(value)
}

// Server is an http.Server with bounded headers and no time-out on bodies that
// stream; handlers bound their own work.
func Server(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
}
