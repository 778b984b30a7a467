// Package fault is the closed list of ways in which Chaperone says no
// (CODE-01). An Error carries a stable Code for programs, a Public sentence
// for its reader and, inside the process only, the cause. Text of a website,
// a browser or a provider is never Public and never crosses a process
// boundary (REL-02).
package fault

import (
	"errors"
	"fmt"
)

// Code is a stable identifier; outsiders rely on the spelling.
type Code string

// The tool family: what an agent can be told.
const (
	URLDisallowed          Code = "tool.browser.url_disallowed"
	ProviderUnavailable    Code = "tool.browser.provider_unavailable"
	SiteUnreachable        Code = "tool.browser.site_unreachable" // the page did not load; page, lease and sign-in are kept
	NavigationCancelled    Code = "tool.browser.navigation_cancelled"
	ProfileUnavailable     Code = "tool.browser.profile_unavailable"
	AuthenticationRequired Code = "tool.browser.authentication_required"
	NeedsUser              Code = "tool.browser.needs_user"
	PageChanged            Code = "tool.browser.page_changed"
	ElementNotFound        Code = "tool.browser.element_not_found"
	ActionNotAllowed       Code = "tool.browser.action_not_allowed"
	GrantNotApplicable     Code = "tool.browser.grant_not_applicable"  // refused before anything was sent; a fresh approval may do (CONS-04)
	RegionNotActionable    Code = "tool.browser.region_not_actionable" // a region is for reading (FOC-07)
	FocusRequired          Code = "tool.browser.focus_required"        // an offset needs the focused reading it is of (FOC-08)
	OutputInvalid          Code = "tool.browser.output_invalid"
	OutcomeUnknown         Code = "tool.browser.outcome_unknown"
	ArgumentsInvalid       Code = "tool.arguments_invalid"
	ApprovalPending        Code = "approval_pending"
	ApprovalDenied         Code = "approval_denied"
	ApprovalExpired        Code = "approval_expired"
)

// The request family: what an owner's client or another program can be told.
const (
	Unauthenticated   Code = "authentication_error"
	Forbidden         Code = "authorization_error"
	NotFound          Code = "not_found"
	Conflict          Code = "conflict"
	InvalidTransition Code = "invalid_state_transition"
	MalformedRequest  Code = "malformed_request"
	UnsupportedMedia  Code = "unsupported_media_type"
	PayloadTooLarge   Code = "payload_too_large"
	Internal          Code = "internal_error"
)

// Codes lists every code once, in a fixed order; the tables that map codes to
// HTTP, MCP and exit status are tested against it.
func Codes() []Code {
	return []Code{
		URLDisallowed, ProviderUnavailable, SiteUnreachable, NavigationCancelled, ProfileUnavailable,
		AuthenticationRequired, NeedsUser, PageChanged, ElementNotFound, ActionNotAllowed, GrantNotApplicable, RegionNotActionable,
		FocusRequired, OutputInvalid, OutcomeUnknown, ArgumentsInvalid, ApprovalPending, ApprovalDenied, ApprovalExpired,
		Unauthenticated, Forbidden, NotFound, Conflict, InvalidTransition, MalformedRequest,
		UnsupportedMedia, PayloadTooLarge, Internal,
	}
}

// Known reports whether c is on the closed list; a code read from another
// program is checked with it before it is believed.
func Known(c Code) bool {
	for _, k := range Codes() {
		if k == c {
			return true
		}
	}
	return false
}

// Error is a refusal or failure with a stable code.
type Error struct {
	Code Code
	// Public is one or two sentences in our own words: what happened, what was
	// not done, what to do next.
	Public string
	// Retryable says that the identical call may succeed later.
	Retryable bool
	// Err is the cause; it stays inside this process.
	Err error
}

// New makes an Error.
func New(code Code, public string) *Error { return &Error{Code: code, Public: public} }

// Newf makes an Error with a formatted public sentence. The arguments must be
// our own words or the caller's own input, never a page's.
func Newf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Public: fmt.Sprintf(format, args...)}
}

// Wrap makes an Error with a private cause.
func Wrap(code Code, public string, err error) *Error {
	return &Error{Code: code, Public: public, Err: err}
}

// Retry marks e as retryable and returns it.
func (e *Error) Retry() *Error { e.Retryable = true; return e }

func (e *Error) Error() string {
	if e.Err != nil {
		return string(e.Code) + ": " + e.Public + ": " + e.Err.Error()
	}
	return string(e.Code) + ": " + e.Public
}

func (e *Error) Unwrap() error { return e.Err }

// CodeOf is the code of err: that of the first Error in its chain, Internal
// for any other error, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}

// Is reports whether err has the code.
func Is(err error, code Code) bool { return err != nil && CodeOf(err) == code }

// Public is the Error to show outside: err itself when it is an Error (without
// its cause), a fixed internal error otherwise.
func Public(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return &Error{Code: e.Code, Public: e.Public, Retryable: e.Retryable}
	}
	return New(Internal, "Something went wrong inside Chaperone; nothing more was done. The log of the program has the cause.")
}
