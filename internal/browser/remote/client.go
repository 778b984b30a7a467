package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
)

// Config says where the isolated service is.
type Config struct {
	Socket     string        // absolute path of its socket
	Credential secret.Text   // the service credential
	Timeout    time.Duration // of one call; 90 s when zero
}

// Client is a browser.Service that asks the isolated one. Nothing is ever sent
// twice: each call has a connection of its own, on which the HTTP client never
// repeats a request, so a lost answer is lost and an act without one is
// fault.OutcomeUnknown.
type Client struct {
	credential secret.Text
	timeout    time.Duration
	http       *http.Client
}

// New validates the configuration; it does not connect.
func New(c Config) (*Client, error) {
	if !filepath.IsAbs(c.Socket) || c.Credential.Empty() || c.Timeout < 0 {
		return nil, errors.New("remote: an absolute socket path and a credential are needed")
	}
	if c.Timeout == 0 {
		c.Timeout = 90 * time.Second
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", c.Socket)
		if err != nil {
			return nil, &unreached{err}
		}
		return conn, nil
	}
	return &Client{
		credential: c.Credential, timeout: c.Timeout,
		http: &http.Client{
			Transport:     &http.Transport{DialContext: dial, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 16 << 10},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// unreached: no connection was made, so nothing was sent.
type unreached struct{ err error }

func (u *unreached) Error() string { return u.err.Error() }
func (u *unreached) Unwrap() error { return u.err }

// request is one call of the wire.
type request struct {
	path   string
	key    string // Idempotency-Key; empty for reads
	body   any
	status int   // of success
	limit  int64 // of the answer
	large  int   // the largest body, when that is not MaxRequest
	act    bool  // an answer that is lost or unreadable leaves the outcome unknown
}

// call sends r once and decodes the answer into v unless v is nil.
func (c *Client) call(ctx context.Context, r request, v any) error {
	body, err := json.Marshal(r.body)
	if err != nil {
		return fault.Wrap(fault.Internal, "The request could not be written. Nothing was sent.", err)
	}
	if len(body) > max(MaxRequest, r.large) {
		return fault.New(fault.ArgumentsInvalid, "The request is too large. Nothing was sent.")
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	// Without GetBody the HTTP client could not replay the body even if it wanted to.
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+Host+r.path, io.NopCloser(bytes.NewReader(body)))
	if err != nil {
		return fault.Wrap(fault.Internal, "The request could not be made. Nothing was sent.", err)
	}
	q.ContentLength = int64(len(body))
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Authorization", "Bearer "+c.credential.Reveal())
	if r.key != "" {
		q.Header.Set("Idempotency-Key", r.key)
	}
	a, err := c.http.Do(q)
	if err != nil {
		return lost(r, err)
	}
	defer a.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(a.Body, r.limit+1))
	switch {
	case err != nil:
		return lost(r, err)
	case a.StatusCode != r.status:
		return refusal(r, a.StatusCode, answer)
	case int64(len(answer)) > r.limit:
		return unreadable(r)
	case v == nil:
		return nil
	}
	if t, _, err := mime.ParseMediaType(a.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return unreadable(r)
	}
	if err := json.Unmarshal(answer, v); err != nil {
		return unreadable(r)
	}
	return nil
}

// lost is the error of a call that got no whole answer.
func lost(r request, err error) error {
	if _, never := errors.AsType[*unreached](err); r.act && !never {
		return unknown(err)
	}
	return fault.Wrap(fault.ProviderUnavailable, "The isolated browser service does not answer. Try again.", err).Retry()
}

func unknown(err error) error {
	return fault.Wrap(fault.OutcomeUnknown, "The action may have been sent, but its answer was lost. Observe before anything else; do not repeat it.", err)
}

func unreadable(r request) error {
	if r.act {
		return unknown(errors.New("remote: the answer cannot be read"))
	}
	return fault.New(fault.OutputInvalid, "The isolated browser service gave an answer that cannot be read.")
}

// passed lists the codes that cross with a status of their own; every other
// status means the same whatever its body says.
var passed = map[int]func(fault.Code) bool{
	http.StatusConflict: func(c fault.Code) bool {
		return strings.HasPrefix(string(c), "tool.") || c == fault.Conflict || c == fault.InvalidTransition
	},
	http.StatusNotFound:            func(c fault.Code) bool { return c == fault.NotFound },
	http.StatusUnprocessableEntity: func(c fault.Code) bool { return c == fault.ArgumentsInvalid },
}

// refusal maps an answer that is not success (section 2.9).
func refusal(r request, status int, body []byte) error {
	var e struct {
		Error struct {
			Code      fault.Code `json:"code"`
			Message   string     `json:"message"`
			Retryable bool       `json:"retryable"`
		} `json:"error"`
	}
	parsed := json.Unmarshal(body, &e) == nil
	code := e.Error.Code
	if pass := passed[status]; pass != nil && parsed && pass(code) && fault.Known(code) {
		return &fault.Error{Code: code, Public: sentence(e.Error.Message), Retryable: e.Error.Retryable}
	}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fault.New(fault.ProviderUnavailable, "The isolated browser service refuses this program's credential. Nothing was done.")
	case status == http.StatusConflict || status == http.StatusNotFound:
		return fault.New(fault.ProfileUnavailable, "The isolated browser service refused the call. Nothing was sent.")
	case status == http.StatusTooEarly || status == http.StatusTooManyRequests:
		return fault.New(fault.ProviderUnavailable, "The isolated browser service is busy. Nothing was sent; try again.").Retry()
	case status >= 500 || status == http.StatusRequestTimeout || status < 400:
		if r.act {
			return unknown(errors.New("remote: unexpected status"))
		}
		return fault.New(fault.ProviderUnavailable, "The isolated browser service failed. Try again.").Retry()
	}
	return fault.New(fault.ProviderUnavailable, "The isolated browser service did not understand the call. Nothing was sent.")
}

// sentence is the service's own sentence if it is one.
func sentence(s string) string {
	if s == "" || len(s) > 1024 || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return "The isolated browser service refused the call."
	}
	return s
}
