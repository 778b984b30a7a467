package device

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
)

func random() (r [48]byte) {
	for i := range r {
		r[i] = byte(i)
	}
	return r
}

func owner() Device {
	return Device{Scope: caller.Scope{Tenant: "acme", Principal: "alice"}, Name: "laptop", Role: caller.Owner}
}

// The credential is the AIP-59 local-device form, computed here by hand; what
// is kept of it is not enough to make it again.
func TestMint(t *testing.T) {
	d, credential := Mint(random(), owner())
	fingerprint := "000102030405060708090a0b0c0d0e0f"
	mac := hmac.New(sha256.New, bytesFrom(16, 32))
	mac.Write([]byte("agentproto/local-device/v1|" + fingerprint))
	want := "apd1." + fingerprint + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	if credential.Reveal() != want || d.Fingerprint != fingerprint || d.Name != "laptop" {
		t.Errorf("credential %q, want %q; %+v", credential.Reveal(), want, d)
	}
	if bytes.Contains(d.Verifier, mac.Sum(nil)) || len(d.Verifier) != 32 {
		t.Errorf("the verifier is %x", d.Verifier)
	}
	other := random()
	other[47]++
	if x, c := Mint(other, owner()); x.Fingerprint != d.Fingerprint || c.Equal(credential.Reveal()) || bytes.Equal(x.Verifier, d.Verifier) {
		t.Error("another secret makes the same credential")
	}
}

func bytesFrom(first, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(first + i)
	}
	return b
}

func TestParseAndVerify(t *testing.T) {
	d, credential := Mint(random(), owner())
	fingerprint, mac, err := Parse(credential)
	if err != nil || fingerprint != d.Fingerprint {
		t.Fatalf("%q, %v", fingerprint, err)
	}
	c, err := d.Verify(mac)
	if err != nil || c.Scope != d.Scope || c.Device != d.Fingerprint || c.Role != caller.Owner || c.Session != "" {
		t.Errorf("%+v, %v", c, err)
	}
	agent := owner()
	agent.Role, agent.SessionID = caller.Agent, "s1"
	agent, agentCredential := Mint([48]byte{1}, agent)
	if _, mac, err := Parse(agentCredential); err != nil {
		t.Error(err)
	} else if c, err := agent.Verify(mac); err != nil || c.Role != caller.Agent || c.Session != "s1" {
		t.Errorf("%+v, %v", c, err)
	}

	change := func(f func(*Device)) Device { x := d; f(&x); return x }
	wrong := bytes.Clone(mac)
	wrong[31] ^= 1
	for what, x := range map[string]struct {
		d   Device
		mac []byte
	}{
		"a wrong MAC":         {d, wrong},
		"no MAC":              {d, nil},
		"the verifier as MAC": {d, d.Verifier},
		"another device's":    {agent, mac},
		"a revoked device":    {change(func(d *Device) { d.RevokedAt = time.Unix(1, 0) }), mac},
		"no verifier":         {change(func(d *Device) { d.Verifier = nil }), mac},
		"a short verifier":    {change(func(d *Device) { d.Verifier = d.Verifier[:31] }), mac},
		"no scope":            {change(func(d *Device) { d.Scope = caller.Scope{} }), mac},
		"no device":           {Device{}, mac},
		"nothing":             {Device{}, nil},
	} {
		c, err := x.d.Verify(x.mac)
		if !fault.Is(err, fault.Unauthenticated) || c != (caller.Caller{}) || err.Error() != Refused().Error() {
			t.Errorf("%s: %+v, %v", what, c, err)
		}
	}
	zeros := sha256.Sum256(nil)
	if _, err := (Device{Scope: d.Scope, Verifier: make([]byte, 32)}).Verify(zeros[:]); err == nil {
		t.Error("an empty verifier opens")
	}
}

func TestParseRefuses(t *testing.T) {
	_, credential := Mint(random(), owner())
	good := credential.Reveal()
	mac := good[len(good)-43:]
	for what, s := range map[string]string{
		"nothing": "", "a prefix": "apd1.", "two dots": "apd1..", "another version": "apd2" + good[4:], "capitals": strings.ToUpper(good[:37]) + good[37:],
		"space before": " " + good, "space behind": good + " ", "a line break behind": good + "\n", "a line break inside": good[:60] + "\n" + good[60:],
		"no MAC": good[:37], "an empty MAC": good[:38], "a short MAC": good[:len(good)-1], "a long MAC": good + "A", "a padded MAC": good + "=",
		"a second part": good + "." + mac, "a bearer": "Bearer " + good, "plain base64": strings.Replace(good[:38]+mac, mac, strings.Repeat("+", 43), 1),
		"a short fingerprint": "apd1." + good[7:], "a long fingerprint": "apd1.00" + good[5:], "no hexadecimal": "apd1.zz" + good[7:],
		"spare bits in the MAC": good[:len(good)-1] + nextLetter(good[len(good)-1]),
	} {
		if f, m, err := Parse(secret.NewText(s)); !fault.Is(err, fault.Unauthenticated) || f != "" || m != nil || strings.Contains(err.Error(), "apd") {
			t.Errorf("%s: %q, %x, %v", what, f, m, err)
		}
	}
}

// nextLetter differs from c only in bits that a 32-byte MAC does not use.
func nextLetter(c byte) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(alphabet[strings.IndexByte(alphabet, c)|1])
}

// Every credential that parses has exactly one spelling.
func FuzzParse(f *testing.F) {
	_, credential := Mint(random(), owner())
	f.Add(credential.Reveal())
	f.Add(credential.Reveal() + "\n")
	f.Add("apd1.000102030405060708090A0B0c0d0e0f." + strings.Repeat("A", 43))
	f.Fuzz(func(t *testing.T, s string) {
		fingerprint, mac, err := Parse(secret.NewText(s))
		if err != nil {
			if !fault.Is(err, fault.Unauthenticated) || fingerprint != "" || mac != nil {
				t.Fatalf("%q: %q, %x, %v", s, fingerprint, mac, err)
			}
			return
		}
		if raw, err := hex.DecodeString(fingerprint); err != nil || len(raw) != 16 {
			t.Fatalf("fingerprint %q", fingerprint)
		}
		if again := "apd1." + fingerprint + "." + base64.RawURLEncoding.EncodeToString(mac); again != s {
			t.Fatalf("%q is %q in another spelling", s, again)
		}
	})
}
