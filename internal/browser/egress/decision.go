package egress

import (
	"net/netip"
	"time"
)

// Reason says how an attempt to leave ended. The list is closed.
type Reason string

// Reasons.
const (
	// Allowed: a tunnel was opened to the first of Addrs.
	Allowed Reason = "allowed"
	// DestinationDenied: not CONNECT, not port 443, or not a public DNS name. Nothing was resolved.
	DestinationDenied Reason = "browser_destination_denied"
	// PrivateAddress: the name has an address that is not of the public internet. Nothing was dialled.
	PrivateAddress Reason = "private_address"
	// VendorDropped: a request of the browser's own, repointed to a reserved name that exists nowhere.
	VendorDropped Reason = "vendor_dropped"
	// ResolveFailed: the name could not be resolved.
	ResolveFailed Reason = "resolve_failed"
	// DialFailed: the checked address did not answer.
	DialFailed Reason = "dial_failed"
	// MalformedRequest: the request head was not HTTP, too large, or too slow.
	MalformedRequest Reason = "malformed_request"
	// Busy: as many connections as allowed were open already.
	Busy Reason = "busy"
)

// Reasons lists every reason once.
func Reasons() []Reason {
	return []Reason{Allowed, DestinationDenied, PrivateAddress, VendorDropped, ResolveFailed, DialFailed, MalformedRequest, Busy}
}

// Decision is the audit line of one attempt. It has no path, header or content.
type Decision struct {
	Tenant string
	Host   string       // as asked for, at most 253 printable ASCII bytes; "" when the request named none
	Port   uint16       // as asked for; 0 when the request named none
	Addrs  []netip.Addr // what the name resolved to, at most 16
	Reason Reason
	At     time.Time
}

// status is the HTTP answer to a refused attempt.
func (r Reason) status() string {
	switch r {
	case DestinationDenied, PrivateAddress, VendorDropped:
		return "403 Forbidden"
	case MalformedRequest:
		return "400 Bad Request"
	case Busy:
		return "503 Service Unavailable"
	default:
		return "502 Bad Gateway"
	}
}
