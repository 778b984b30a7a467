// Package client is the Go client of the owner API (API-01): the calls and
// types generated from api/openapi.yaml, with a credential that goes to one
// place only. The command line is built on it.
package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// Credential is a paired device's credential; a type that masks itself when
// printed satisfies it.
type Credential interface {
	Reveal() string
	Empty() bool
}

// Config of a client.
type Config struct {
	BaseURL    string // of the orchestrator, such as http://127.0.0.1:8787
	Credential Credential
	HTTP       *http.Client // nil means a client of its own; redirects are never followed
}

// New makes a client. Each call returns the answer of the server, whatever its
// status; give that to Check.
func New(c Config) (*ClientWithResponses, error) {
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("client: the base URL is not an http:// or https:// address")
	}
	if c.Credential == nil || c.Credential.Empty() {
		return nil, errors.New("client: a device credential is needed")
	}
	own := http.Client{}
	if c.HTTP != nil {
		own = *c.HTTP
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return NewClientWithResponses(c.BaseURL, WithHTTPClient(&own), WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+c.Credential.Reveal())
		return nil
	}))
}

// Refusal is an answer of the server that is not a success.
type Refusal struct {
	Status    int    // HTTP status
	Code      string // stable; "" when the answer was not one of the API's
	Message   string // for people
	Retryable bool
}

func (r *Refusal) Error() string {
	if r.Code == "" {
		return fmt.Sprintf("the server answered with HTTP status %d", r.Status)
	}
	return r.Message
}

// Check is nil for a success and a *Refusal for anything else. Every generated
// response has both arguments: StatusCode() and JSONDefault.
func Check(status int, body *Error) error {
	switch {
	case status >= 200 && status < 300:
		return nil
	case body == nil:
		return &Refusal{Status: status}
	}
	r := &Refusal{Status: status, Code: body.Error.Code, Message: body.Error.Message}
	if body.Error.Retryable != nil {
		r.Retryable = *body.Error.Retryable
	}
	return r
}
