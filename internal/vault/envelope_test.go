package vault

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
)

var testKey = secret.NewBytes([]byte("0123456789abcdef0123456789abcdef"))

func testMeta() metadata {
	return metadata{
		Format: format, ProfileID: writerProfile, Tenant: "acme", Principal: "ali\"ce<&>\u2028", Ref: ident.Token(refBytes),
		Origins: wikiOrigins(), KeyVersion: "k1",
	}
}

func testEnvelope(tb testing.TB, plaintext string) []byte {
	tb.Helper()
	data, _, err := seal(testMeta(), []byte(plaintext), testKey)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// STORE-01, STORE-06: an envelope with any one bit flipped, or cut anywhere,
// is refused, by the parser or by the tag.
func TestEveryBitCounts(t *testing.T) {
	original := testEnvelope(t, "session")
	opens := func(data []byte) bool {
		e, err := parse(data)
		if err != nil {
			return false
		}
		_, err = e.open(testKey)
		return err == nil
	}
	if !opens(original) {
		t.Fatal("the original does not open")
	}
	for i := range original {
		for bit := range 8 {
			flipped := bytes.Clone(original)
			flipped[i] ^= 1 << bit
			if opens(flipped) {
				t.Errorf("bit %d of byte %d (%q) can be flipped", bit, i, original[i])
			}
		}
		if opens(original[:i]) {
			t.Errorf("opens when cut to %d bytes", i)
		}
	}
}

// STORE-06: what is out of bounds is refused before it is used.
func TestParseBounds(t *testing.T) {
	good := string(testEnvelope(t, "session"))
	var e map[string]json.RawMessage
	if err := json.Unmarshal([]byte(good), &e); err != nil {
		t.Fatal(err)
	}
	long := `"` + strings.Repeat("x", 256) + `"`
	for what, change := range map[string][2]string{
		"format 0":         {`"format":1`, `"format":0`},
		"format as text":   {`"format":1`, `"format":"1"`},
		"format 1.0":       {`"format":1`, `"format":1.0`},
		"upper-case UUID":  {writerProfile, strings.ToUpper(writerProfile)},
		"long tenant":      {`"acme"`, long},
		"no tenant":        {`"acme"`, `""`},
		"no origins":       {`["https://wiki.example.org"]`, `[]`},
		"null origins":     {`["https://wiki.example.org"]`, `null`},
		"origin with path": {`["https://wiki.example.org"]`, `["https://wiki.example.org/x"]`},
		"origin repeated":  {`["https://wiki.example.org"]`, `["https://wiki.example.org","https://wiki.example.org"]`},
		"origins unsorted": {`["https://wiki.example.org"]`, `["https://wiki.example.org","https://a.example.org"]`},
		"nonce missing":    {`"nonce":` + string(e["nonce"]), `"nonce":null`},
		"nonce short":      {`"nonce":` + string(e["nonce"]), `"nonce":"AAAA"`},
		"nonce long":       {`"nonce":` + string(e["nonce"]), `"nonce":"AAAAAAAAAAAAAAAAAAAA"`},
		"no ciphertext":    {string(e["ciphertext"]), `""`},
		"short ciphertext": {string(e["ciphertext"]), `"AAAA"`},
		"a line break":     {`"ciphertext":"`, `"ciphertext":"` + "\n"},
		"a carriage break": {`"ciphertext":"`, `"ciphertext":"` + "\r"},
		"extra field":      {`"revoked":false`, `"revoked":false,"admin":true`},
		"missing field":    {`,"revoked":false`, ``},
		"a null":           {`"revoked":false`, `"revoked":null`},
	} {
		changed := strings.Replace(good, change[0], change[1], 1)
		if changed == good {
			t.Fatalf("%s changes nothing", what)
		}
		if _, err := parse([]byte(changed)); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	if _, err := parse(make([]byte, maxEnvelope+1)); err == nil || !strings.Contains(err.Error(), "large") {
		t.Errorf("over the bound: %v", err)
	}
}

// STORE-06: the largest session fits, and its envelope is within the bound
// that is checked before a file is read.
func TestLargest(t *testing.T) {
	v := mustOpen(t, newConfig(t, t.TempDir()))
	r := mustCreate(t, v)
	want := bytes.Repeat([]byte{0xa5}, MaxPlaintext)
	if err := v.Seal(owner, r.ProfileID, r.Ref, secret.NewBytes(want)); err != nil {
		t.Fatal(err)
	}
	got, err := v.Load(owner, r.ProfileID, r.Ref)
	if err != nil || !bytes.Equal(got.Reveal(), want) {
		t.Fatalf("%d bytes came back: %v", got.Len(), err)
	}
	info, err := os.Stat(filepath.Join(v.lock.Path(), "..", fileName(r.Ref)))
	if err != nil || info.Size() > maxEnvelope-maxMetadata/2 {
		t.Errorf("the largest envelope has %d of %d bytes: %v", info.Size(), maxEnvelope, err)
	}
}

// Whatever the parser accepts is a valid envelope in canonical form, and means
// the same to a plain JSON reader (STORE-04, STORE-06).
func FuzzParse(f *testing.F) {
	f.Add(testEnvelope(f, ""))
	f.Add(testEnvelope(f, "session"))
	f.Add([]byte(`{"metadata":{},"nonce":"","ciphertext":""}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := parse(data)
		if err != nil {
			return
		}
		var plain struct {
			Metadata map[string]any `json:"metadata"`
		}
		if err := json.Unmarshal(data, &plain); err != nil {
			t.Fatalf("accepted what is not JSON: %v", err)
		}
		if plain.Metadata["profile_id"] != e.Metadata.ProfileID || plain.Metadata["tenant_id"] != e.Metadata.Tenant ||
			plain.Metadata["provider_ref"] != e.Metadata.Ref || plain.Metadata["revoked"] != e.Metadata.Revoked || len(plain.Metadata) != 8 {
			t.Fatalf("two readings: %v and %+v", plain.Metadata, e.Metadata)
		}
		if e.Metadata.valid() != nil {
			t.Fatal("accepted invalid metadata")
		}
	})
}
