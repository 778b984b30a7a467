package browser_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/browser"
)

// STORE-05: what was encoded is decoded, whole.
func TestMaterialRoundTrip(t *testing.T) {
	m := browser.Material{
		Cookies: []browser.Cookie{{Name: "a", Value: "b", Domain: ".example.org", Path: "/", Expires: -1, HTTPOnly: true, SameSite: "Lax", SourcePort: 443, Partition: &browser.PartitionKey{TopLevelSite: "https://example.org"}}},
		Origins: []browser.Storage{{Origin: "https://example.org", Items: []browser.Item{{Name: "x", Value: "y"}}}, {Origin: "https://b.example.org"}},
	}
	for _, want := range []browser.Material{m, {}} {
		b, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := browser.DecodeMaterial(b); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("decoded %d cookies and %d origins, %v", len(got.Cookies), len(got.Origins), err)
		}
	}
}

// TRUST-03, STORE-06: 64 MiB that stand for gigabytes are refused, and cost the
// process with the keys a bounded amount of memory.
func TestHostileMaterial(t *testing.T) {
	fill := func(head, part, tail string) []byte {
		n := (browser.MaxMaterial - len(head) - len(tail)) / len(part)
		return []byte(head + strings.Repeat(part, n) + tail)
	}
	for name, body := range map[string][]byte{
		"cookies":        fill(`{"cookies":[{}`, `,{}`, `]}`),
		"origins":        fill(`{"origins":[{}`, `,{}`, `]}`),
		"items":          fill(`{"origins":[{"items":[{}`, `,{}`, `]}]}`),
		"unknown":        fill(`{"x":[0`, `,0`, `]}`),
		"members twice":  []byte(`{"cookies":[],"cookies":[]}`),
		"something else": []byte(`[]`),
		"a tail":         []byte(`{} {}`),
		"half":           []byte(`{"cookies":[`),
		"nothing":        nil,
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		m, err := browser.DecodeMaterial(body)
		runtime.ReadMemStats(&after)
		if err == nil || len(m.Cookies) != 0 || len(m.Origins) != 0 {
			t.Errorf("%s: %v", name, err)
		}
		if spent := after.TotalAlloc - before.TotalAlloc; spent > 16<<20 {
			t.Errorf("%s: %d MiB were allocated", name, spent>>20)
		}
	}
	full := browser.Material{Cookies: make([]browser.Cookie, browser.MaxCookies), Origins: []browser.Storage{{Items: make([]browser.Item, browser.MaxItems)}}}
	b, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := browser.DecodeMaterial(bytes.Clone(b)); err != nil || len(got.Cookies) != browser.MaxCookies || len(got.Origins[0].Items) != browser.MaxItems {
		t.Errorf("a session at its bounds: %v", err)
	}
}
