// Package site decides which addresses exist for Chaperone at all: public
// HTTPS URLs, their origins, and the public DNS names behind them (section
// 2.1 of the requirements, PROXY-01, PROXY-02). It is pure: no name is
// resolved here.
package site

import (
	"net/netip"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
)

// MaxURL is the longest URL accepted, in bytes.
const MaxURL = 4096

// Origin is a normalised public HTTPS origin, "https://host": IDNA ASCII, lower
// case, no trailing dot, no port. The zero Origin is invalid.
type Origin struct{ host string }

// ParseOrigin normalises s, which may be any public HTTPS URL with no path
// beyond "/", no query and no fragment.
func ParseOrigin(s string) (Origin, error) {
	u, err := ParseURL(s)
	if err != nil {
		return Origin{}, err
	}
	if p := u.u.EscapedPath(); (p != "" && p != "/") || u.u.RawQuery != "" || u.u.Fragment != "" || strings.ContainsAny(s, "?#") {
		return Origin{}, fault.New(fault.URLDisallowed, "An origin is https:// and a host name, with no path, query or fragment.")
	}
	return u.Origin(), nil
}

// Host is the ASCII host name.
func (o Origin) Host() string { return o.host }

func (o Origin) String() string {
	if o.host == "" {
		return ""
	}
	return "https://" + o.host
}

// MarshalText encodes the origin as "https://host".
func (o Origin) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText decodes and validates an origin.
func (o *Origin) UnmarshalText(b []byte) error {
	p, err := ParseOrigin(string(b))
	if err == nil {
		*o = p
	}
	return err
}

// Origins is an exact set of 1 to 64 unique origins: a domain policy.
type Origins []Origin

// ParseOrigins normalises a list; it refuses an empty one, one over 64
// entries, and repetitions (API-02).
func ParseOrigins(list []string) (Origins, error) {
	if len(list) == 0 || len(list) > 64 {
		return nil, fault.New(fault.MalformedRequest, "Name between 1 and 64 origins, such as https://wiki.example.org.")
	}
	out := make(Origins, 0, len(list))
	for _, s := range list {
		o, err := ParseOrigin(s)
		if err != nil {
			return nil, err
		}
		if out.Has(o) {
			return nil, fault.New(fault.MalformedRequest, "An origin is named twice.")
		}
		out = append(out, o)
	}
	return out, nil
}

// Has reports whether o is exactly one of the set.
func (s Origins) Has(o Origin) bool {
	for _, x := range s {
		if x == o && o.host != "" {
			return true
		}
	}
	return false
}

// Equal reports whether both sets have the same members in any order.
func (s Origins) Equal(t Origins) bool {
	if len(s) != len(t) {
		return false
	}
	for i := range s {
		if !t.Has(s[i]) || !s.Has(t[i]) {
			return false
		}
	}
	return true
}

// Strings is the set in its normal spelling.
func (s Origins) Strings() []string {
	out := make([]string, len(s))
	for i, o := range s {
		out[i] = o.String()
	}
	return out
}

// URL is a validated public HTTPS URL.
type URL struct {
	u    *url.URL
	host string
}

// ParseURL validates s: at most 4096 bytes, https, no user information, no
// port but 443, and a public-shaped host name. The host is normalised; path,
// query and fragment are kept. It returns fault.URLDisallowed.
func ParseURL(s string) (URL, error) {
	if s == "" || len(s) > MaxURL {
		return URL{}, badLength()
	}
	if !utf8.ValidString(s) {
		return URL{}, fault.New(fault.URLDisallowed, "The URL is not text.")
	}
	for _, r := range s {
		// Browsers strip or fold these before parsing, so the two readings differ.
		if r <= ' ' || r == 0x7f || r == '\\' {
			return URL{}, fault.New(fault.URLDisallowed, "The URL contains a space, a control character or a backslash.")
		}
	}
	u, err := url.Parse(s)
	if err != nil {
		return URL{}, fault.New(fault.URLDisallowed, "The URL cannot be parsed.")
	}
	switch {
	case !strings.EqualFold(u.Scheme, "https"):
		return URL{}, fault.New(fault.URLDisallowed, "Only https:// URLs can be opened.")
	case u.User != nil:
		return URL{}, fault.New(fault.URLDisallowed, "A URL with a user name or password cannot be opened.")
	case u.Opaque != "" || u.Host == "":
		return URL{}, fault.New(fault.URLDisallowed, "The URL has no host name.")
	case u.Port() != "" && u.Port() != "443", strings.HasSuffix(u.Host, ":"):
		return URL{}, fault.New(fault.URLDisallowed, "Only port 443 can be opened.")
	}
	host, err := NormalHost(u.Hostname())
	if err != nil {
		return URL{}, err
	}
	u.Scheme, u.Host = "https", host
	if len(u.String()) > MaxURL { // escaping makes it longer
		return URL{}, badLength()
	}
	return URL{u: u, host: host}, nil
}

func badLength() error {
	return fault.New(fault.URLDisallowed, "The URL is empty or longer than 4096 bytes.")
}

// Origin is the URL's origin.
func (u URL) Origin() Origin { return Origin{host: u.host} }

// Host is the ASCII host name.
func (u URL) Host() string { return u.host }

// Path is the escaped path, at least "/".
func (u URL) Path() string {
	if u.u == nil || u.u.EscapedPath() == "" {
		return "/"
	}
	return u.u.EscapedPath()
}

// DecodedPath is the path with its percent-encodings undone once, at least "/".
// It is for reading; two addresses are not the same because these are.
func (u URL) DecodedPath() string {
	if u.u == nil || u.u.Path == "" {
		return "/"
	}
	return u.u.Path
}

func (u URL) String() string {
	if u.u == nil {
		return ""
	}
	return u.u.String()
}

// MarshalText encodes the URL.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText decodes and validates a URL.
func (u *URL) UnmarshalText(b []byte) error {
	p, err := ParseURL(string(b))
	if err == nil {
		*u = p
	}
	return err
}

// privateSuffixes never name a public host.
var privateSuffixes = []string{"localhost", "local", "internal", "home", "lan", "arpa", "onion", "test", "invalid", "localdomain", "intranet", "corp", "private"}

// lookup reads names as browsers do: like idna.Lookup, but hyphens in third
// and fourth place are allowed, which large sites use.
var lookup = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(true),
	idna.CheckJoiners(true), idna.CheckHyphens(false), idna.Transitional(false))

// NormalHost is host as IDNA ASCII in lower case without a trailing dot. It
// refuses anything that is not a public-shaped DNS name: IP literals in any
// spelling, single labels, an all-digit or hexadecimal last label, over 253
// bytes, and the private suffixes. It returns fault.URLDisallowed.
func NormalHost(host string) (string, error) {
	refuse := func() (string, error) {
		return "", fault.New(fault.URLDisallowed, "The host name is not a public DNS name.")
	}
	host = strings.TrimSuffix(host, ".")
	if host == "" || len(host) > 253 || strings.HasSuffix(host, ".") || !utf8.ValidString(host) {
		return refuse()
	}
	ascii, err := lookup.ToASCII(host)
	if err != nil || len(ascii) > 253 {
		return refuse()
	}
	ascii = strings.ToLower(ascii)
	if _, err := netip.ParseAddr(ascii); err == nil {
		return refuse()
	}
	labels := strings.Split(ascii, ".")
	if len(labels) < 2 {
		return refuse()
	}
	for _, l := range labels {
		if l == "" || len(l) > 63 || strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || l[0] == '-' || l[len(l)-1] == '-' {
			return refuse()
		}
	}
	last := labels[len(labels)-1]
	// The URL standard reads a host whose last label is a number, also a
	// hexadecimal one, as an IPv4 address.
	if last[0] >= '0' && last[0] <= '9' {
		return refuse()
	}
	for _, s := range privateSuffixes {
		if last == s {
			return refuse()
		}
	}
	return ascii, nil
}

// PublicSuffix reports whether host is itself a public suffix (private entries
// of the list included): no session can belong to it.
func PublicSuffix(host string) bool {
	suffix, _ := publicsuffix.PublicSuffix(host)
	return suffix == host
}

// PublicAddr reports whether a is an address of the public internet: global
// unicast, for IPv6 in 2000::/3 where all of it is, and in none of the
// special-purpose ranges of the IANA registries. IPv4-mapped IPv6 addresses
// are unwrapped first (PROXY-01).
func PublicAddr(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsValid() || a.Zone() != "" || !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	if a.Is6() && !globalUnicast6.Contains(a) {
		return false
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

var globalUnicast6 = netip.MustParsePrefix("2000::/3")

// special are the ranges of the IANA special-purpose address registries that
// netip does not already call private, loopback, link-local or multicast.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("2001::/23"),
	netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("3fff::/20"),
}
