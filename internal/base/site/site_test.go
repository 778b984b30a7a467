package site

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
)

func TestParseOrigin(t *testing.T) {
	for _, in := range []string{"https://wiki.example.org", "https://WIKI.example.org/", "https://wiki.example.org.:443", "HTTPS://wiki.example.org:443/"} {
		if o, err := ParseOrigin(in); err != nil || o.String() != "https://wiki.example.org" || o.Host() != "wiki.example.org" {
			t.Errorf("ParseOrigin(%q) = %q, %v", in, o, err)
		}
	}
	for _, in := range []string{
		"https://wiki.example.org/x", "https://wiki.example.org//", "https://wiki.example.org/.", "https://wiki.example.org/%2f",
		"https://wiki.example.org?", "https://wiki.example.org?x", "https://wiki.example.org#", "https://wiki.example.org/#x",
		"http://wiki.example.org", "wiki.example.org", "https://127.0.0.1", "null", "",
	} {
		if o, err := ParseOrigin(in); !fault.Is(err, fault.URLDisallowed) || o != (Origin{}) {
			t.Errorf("ParseOrigin(%q) = %q, %v", in, o, err)
		}
	}
	if (Origin{}).String() != "" {
		t.Error("the zero origin has a spelling")
	}
}

// API-02: 1 to 64 exact, unique origins.
func TestParseOrigins(t *testing.T) {
	var list []string
	for i := range 64 {
		list = append(list, fmt.Sprintf("https://host-%d.example.org", i))
	}
	o, err := ParseOrigins(list)
	if err != nil || !slices.Equal(o.Strings(), list) {
		t.Errorf("64 origins: %v", err)
	}
	for what, bad := range map[string][]string{
		"none": nil, "65": append(list, "https://more.example.org"),
		"the same twice":                    {"https://wiki.example.org", "https://wiki.example.org"},
		"the same twice in other spellings": {"https://wiki.example.org", "HTTPS://WIKI.example.org.:443/"},
	} {
		if o, err := ParseOrigins(bad); !fault.Is(err, fault.MalformedRequest) || o != nil {
			t.Errorf("%s: %v, %v", what, o, err)
		}
	}
	if _, err := ParseOrigins([]string{"https://wiki.example.org", "https://localhost"}); !fault.Is(err, fault.URLDisallowed) {
		t.Errorf("one bad origin: %v", err)
	}
}

func TestOriginsHasAndEqual(t *testing.T) {
	must := func(list ...string) Origins {
		o, err := ParseOrigins(list)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	ab, ba := must("https://a.example", "https://b.example"), must("https://b.example", "https://a.example")
	ac := must("https://a.example", "https://c.example")
	if !ab.Equal(ba) || ab.Equal(ac) || ab.Equal(ab[:1]) || ab.Equal(nil) || !(Origins{}).Equal(nil) {
		t.Error("equality of sets is wrong")
	}
	twice := Origins{ab[0], ab[0]}
	if twice.Equal(ab) || ab.Equal(twice) {
		t.Error("a set with a repetition equals a larger one")
	}
	if !ab.Has(ba[0]) || ab.Has(ac[1]) || ab.Has(Origin{}) || (Origins{{}}).Has(Origin{}) {
		t.Error("membership is wrong: the zero origin is nowhere allowed")
	}
	b, err := json.Marshal(ab)
	if err != nil || string(b) != `["https://a.example","https://b.example"]` {
		t.Errorf("%s, %v", b, err)
	}
	var again Origins
	if err := json.Unmarshal(b, &again); err != nil || !again.Equal(ab) {
		t.Errorf("%v, %v", again, err)
	}
	if err := json.Unmarshal([]byte(`["https://a.example/x"]`), &again); err == nil {
		t.Error("decoded something that is no origin")
	}
}

func TestOriginsEqualProperty(t *testing.T) {
	one := rapid.Custom(func(t *rapid.T) Origin {
		return Origin{host: rapid.SampledFrom([]string{"a.x", "b.x", "c.x"}).Draw(t, "host")}
	})
	list := rapid.SliceOfN(one, 0, 5)
	rapid.Check(t, func(t *rapid.T) {
		a, b := Origins(list.Draw(t, "a")), Origins(list.Draw(t, "b"))
		if a.Equal(b) != b.Equal(a) {
			t.Fatalf("%v and %v are equal one way only", a, b)
		}
		if !a.Equal(rapid.Permutation(a).Draw(t, "shuffled")) {
			t.Fatal("the order matters")
		}
		if a.Equal(b) {
			for _, o := range append(slices.Clone(a), b...) {
				if a.Has(o) != b.Has(o) {
					t.Fatalf("%v and %v are equal and differ in %s", a, b, o)
				}
			}
		}
	})
}

func TestPublicSuffix(t *testing.T) {
	for host, want := range map[string]bool{
		"com": true, "co.uk": true, "github.io": true, "example.com": false, "example.co.uk": false, "me.github.io": false, "practice": true,
		"wiki.practice": false,
	} {
		if PublicSuffix(host) != want {
			t.Errorf("PublicSuffix(%q) = %v", host, !want)
		}
	}
}

// PROXY-01: every address that is not of the public internet is refused, also
// behind an IPv4-in-IPv6 spelling.
func TestPublicAddr(t *testing.T) {
	for _, s := range []string{"1.1.1.1", "93.184.216.34", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.1", "192.0.1.1", "198.17.0.1", "198.20.0.1", "223.255.255.255", "2606:4700::1111", "2a00:1450::1", "::ffff:1.1.1.1"} {
		if !PublicAddr(netip.MustParseAddr(s)) {
			t.Errorf("%s is refused", s)
		}
	}
	for _, s := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1", "172.31.255.255",
		"192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1",
		"240.0.0.1", "255.255.255.255",
		"::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::808:808",
		"64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "4000::1", "5f00::1", "fc00::1", "fd00::1", "fe80::1", "fec0::1",
		"ff02::1", "1.1.1.1%x", "2606:4700::1111%eth0",
	} {
		a, err := netip.ParseAddr(s)
		if err != nil {
			continue // an IPv4 address has no zone
		}
		if PublicAddr(a) {
			t.Errorf("%s counts as public", s)
		}
	}
	if PublicAddr(netip.Addr{}) {
		t.Error("no address counts as public")
	}
}

// An IPv4 address means the same however it is embedded.
func TestPublicAddrMapped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var four [4]byte
		for i := range four {
			four[i] = rapid.Byte().Draw(t, "byte")
		}
		a := netip.AddrFrom4(four)
		mapped := netip.AddrFrom16(a.As16())
		if PublicAddr(a) != PublicAddr(mapped) {
			t.Fatalf("%s and %s differ", a, mapped)
		}
		if PublicAddr(a) && (a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast()) {
			t.Fatalf("%s counts as public", a)
		}
	})
}

// The decoded path is for reading: it is undone once, and never empty.
func TestDecodedPath(t *testing.T) {
	for in, want := range map[string]string{
		"https://a.example": "/", "https://a.example/x/%64elete": "/x/delete", "https://a.example/%2564": "/%64", "https://a.example/a%2Fb?q=%20": "/a/b",
	} {
		u, err := ParseURL(in)
		if err != nil || u.DecodedPath() != want {
			t.Errorf("%s: %q, %v", in, u.DecodedPath(), err)
		}
	}
	if (URL{}).DecodedPath() != "/" {
		t.Error("the zero URL has a path")
	}
}
