package site

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
)

// PROXY-02, section 2.1: only public HTTPS URLs exist.
func TestParseURL(t *testing.T) {
	long := "https://wiki.example.org/" + strings.Repeat("a", MaxURL-25)
	for in, want := range map[string]string{
		"https://wiki.example.org":                "https://wiki.example.org",
		"https://wiki.example.org/":               "https://wiki.example.org/",
		"HTTPS://WIKI.Example.ORG/Path?Q=1#F":     "https://wiki.example.org/Path?Q=1#F",
		"https://wiki.example.org:443/x":          "https://wiki.example.org/x",
		"https://wiki.example.org./x":             "https://wiki.example.org/x",
		"https://bücher.example/ü":                "https://xn--bcher-kva.example/%C3%BC",
		"https://xn--bcher-kva.example/":          "https://xn--bcher-kva.example/",
		"https://faß.example/":                    "https://xn--fa-hia.example/",
		"https://ＷＩＫＩ.example.org/":               "https://wiki.example.org/",
		"https://wiki。example.org/":               "https://wiki.example.org/",
		"https://a.example/%2e%2e/%2F?a=b%00&c=d": "https://a.example/%2e%2e/%2F?a=b%00&c=d",
		"https://a.example/@user:pass@b.example/": "https://a.example/@user:pass@b.example/",
		"https://a.example/?next=https://b.test":  "https://a.example/?next=https://b.test",
		"https://r3---sn-abc.videos.example/":     "https://r3---sn-abc.videos.example/",
		long:                                      long,
	} {
		u, err := ParseURL(in)
		if err != nil || u.String() != want {
			t.Errorf("ParseURL(%q) = %q, %v", in, u, err)
		}
	}
}

func TestParseURLRefuses(t *testing.T) {
	for _, in := range []string{
		"", " ", "wiki.example.org", "//wiki.example.org", "/", "https:", "https:/wiki.example.org", "https:wiki.example.org",
		"https://", "https:///x", "https://?", "https://#",
		// other schemes
		"http://wiki.example.org", "ftp://wiki.example.org", "file:///etc/passwd", "javascript:alert(1)", "data:text/html,x",
		"about:blank", "chrome://settings", "view-source:https://wiki.example.org", "blob:https://wiki.example.org/x", "wss://wiki.example.org",
		// user information
		"https://user@wiki.example.org", "https://user:pass@wiki.example.org", "https://@wiki.example.org", "https://:@wiki.example.org",
		"https://wiki.example.org@evil.example", "https://wiki.example.org%40evil.example", "https://wiki.example.org:443@evil.example/",
		// ports
		"https://wiki.example.org:80", "https://wiki.example.org:8443", "https://wiki.example.org:", "https://wiki.example.org:0443",
		"https://wiki.example.org:4430", "https://wiki.example.org:-1", "https://wiki.example.org:x",
		// what browsers strip or fold
		"https://wiki.example.org\\@evil.example", "https:\\\\wiki.example.org", "https://evil.example\\.wiki.example.org",
		" https://wiki.example.org", "https://wiki.example.org ", "https://wiki.example.org/a b", "ht\ttps://wiki.example.org",
		"https://wiki.exa\nmple.org", "https://wiki.example.org/\r\n", "https://wiki.example.org/\x00", "https://wiki.example.org/\x7f",
		// no text, or too long, also only after escaping
		"https://wiki.example.org/\xff", "https://wiki.example.org/?\xff", "https://wiki.example.org/" + strings.Repeat("a", MaxURL),
		"https://wiki.example.org/" + strings.Repeat("ü", 1000),
		"https://wiki.example.org/%zz", "https://wiki%2eexample.org", "https://wiki.example.org%00.evil.example", "https://[wiki.example.org]",
	} {
		if u, err := ParseURL(in); !fault.Is(err, fault.URLDisallowed) || u != (URL{}) {
			t.Errorf("ParseURL(%q) = %q, %v", in, u, err)
		}
	}
}

// PROXY-02: no address, single label or private name in any spelling.
var badHosts = []string{
	"", ".", "..", "localhost", "localhost.", "LOCALHOST", "foo.localhost", "router", "intranet", "metadata.google.internal",
	"printer.local", "nas.home", "nas.lan", "x.localdomain", "x.corp", "x.private", "x.intranet", "x.test", "x.invalid", "hidden.onion",
	"1.0.0.127.in-addr.arpa", "x.home.arpa",
	"127.0.0.1", "127.1", "127.0.1", "0", "0.0.0.0", "2130706433", "0x7f000001", "0x7f.1", "0x7f.0.0.1", "0177.0.0.1", "017700000001",
	"1.2.3.4.", "１２７.０.０.１", "①②⑦.0.0.1", "127。0。0。1", "169.254.169.254", "0xa9fea9fe", "example.1", "example.0x1", "example.123", "example.1a",
	"::1", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[fe80::1%25eth0]", "[fd00::1]", "[2606:4700::1111]", "2606:4700::1111",
	"a..example", ".example.org", "example.org..", "-a.example", "a-.example", "a_b.example", "a b.example", "a%b.example", "a/b.example", "a@b.example",
	"a:b.example", "a*b.example", "*.example.org", "a\x00b.example", strings.Repeat("a", 64) + ".example", strings.Repeat("a.", 126) + "example",
	"xn--a.example", "xn--.example", "xn--example-.com", "a\u200d.example", "\u202eelpmaxe.example", "x.\u200b", "exam\u2024ple", "\xff.example",
	"ⅩⅩ..example", "１.１",
}

func TestNormalHostRefuses(t *testing.T) {
	for _, in := range badHosts {
		if got, err := NormalHost(in); !fault.Is(err, fault.URLDisallowed) || got != "" {
			t.Errorf("NormalHost(%q) = %q, %v", in, got, err)
		}
		if !strings.ContainsAny(in, "/@:") || strings.HasPrefix(in, "[") {
			if u, err := ParseURL("https://" + in + "/"); err == nil {
				t.Errorf("ParseURL with host %q = %q", in, u)
			}
		}
	}
}

// A look-alike is another name, in a spelling that shows it.
func TestLookAlikes(t *testing.T) {
	wiki, err := ParseOrigins([]string{"https://wiki.example.org"})
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{
		"https://wіki.example.org", "https://wiki.exаmple.org", "https://wiki.example.org.evil.example", "https://wiki-example.org",
		"https://evil.example/wiki.example.org", "https://wiki.example.org.example.org", "https://example.org", "https://a.wiki.example.org",
		"https://wiki.example.org.co", "https://vviki.example.org", "https://xn--wki-0vc.example.org",
	} {
		u, err := ParseURL(in)
		if err == nil && wiki.Has(u.Origin()) {
			t.Errorf("%q counts as %s", in, wiki)
		}
		if err == nil && strings.ContainsFunc(u.Host(), func(r rune) bool { return r > 0x7e }) {
			t.Errorf("%q keeps the host %q", in, u.Host())
		}
	}
}

func TestURLParts(t *testing.T) {
	u, err := ParseURL("https://Wiki.example.org/a/b?c=d#e")
	if err != nil {
		t.Fatal(err)
	}
	if u.Host() != "wiki.example.org" || u.Path() != "/a/b" || u.Origin().String() != "https://wiki.example.org" {
		t.Errorf("host %q, path %q, origin %q", u.Host(), u.Path(), u.Origin())
	}
	if bare, err := ParseURL("https://wiki.example.org?x"); err != nil || bare.Path() != "/" || bare.Origin() != u.Origin() {
		t.Errorf("without a path: %q, %v", bare.Path(), err)
	}
	if zero := (URL{}); zero.String() != "" || zero.Path() != "/" || zero.Host() != "" || zero.Origin() != (Origin{}) {
		t.Error("the zero URL is something")
	}
	var again URL
	b, err := json.Marshal(u)
	if err != nil || json.Unmarshal(b, &again) != nil || again.String() != u.String() {
		t.Errorf("%s comes back as %q: %v", b, again, err)
	}
	before := again
	if err := json.Unmarshal([]byte(`"http://wiki.example.org"`), &again); err == nil || again != before {
		t.Errorf("decoded a URL that is not allowed: %q", again)
	}
}

// Whatever is accepted is stable, bounded, and read alike by a plain parser.
func FuzzParseURL(f *testing.F) {
	for _, s := range []string{
		"https://wiki.example.org/a?b#c", "https://user@wiki.example.org", "https://0x7f.1/", "https://wiki.example.org./", "https://bücher.example",
		"https://[::ffff:1.2.3.4]/", "https://wiki.example.org:443", "https://a。b", "https://xn--bcher-kva.example", "https://a.example/%2f?%zz",
	} {
		f.Add(s)
	}
	for _, h := range badHosts {
		f.Add("https://" + h + "/")
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := ParseURL(s)
		if err != nil {
			if fault.CodeOf(err) != fault.URLDisallowed || u != (URL{}) {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		normal := u.String()
		again, err := ParseURL(normal)
		if err != nil || again.String() != normal || again.Origin() != u.Origin() {
			t.Fatalf("%q becomes %q, which becomes %q: %v", s, normal, again, err)
		}
		if len(normal) > MaxURL || !strings.HasPrefix(normal, "https://"+u.Host()) {
			t.Fatalf("%q becomes %q", s, normal)
		}
		plain, err := url.Parse(normal)
		if err != nil || plain.Host != u.Host() || plain.User != nil || plain.Port() != "" {
			t.Fatalf("%q is read as %+v: %v", normal, plain, err)
		}
		if strings.Trim(u.Host(), "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" || !strings.Contains(u.Host(), ".") {
			t.Fatalf("%q has host %q", s, u.Host())
		}
		if h, err := NormalHost(u.Host()); err != nil || h != u.Host() {
			t.Fatalf("host %q is not stable: %q, %v", u.Host(), h, err)
		}
		if o, err := ParseOrigin(u.Origin().String()); err != nil || o != u.Origin() {
			t.Fatalf("origin %q is not stable: %q, %v", u.Origin(), o, err)
		}
	})
}
