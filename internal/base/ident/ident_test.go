package ident

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
)

func TestNew(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := New()
		if !Valid(id) || seen[id] || id[14] != '4' || strings.ToLower(id) != id {
			t.Fatalf("%q is not a fresh random UUID", id)
		}
		seen[id] = true
	}
}

// One identifier has one spelling; anything else is refused (LHTTP-03).
func TestValid(t *testing.T) {
	const good = "6f1d6d5e-2f0b-4a53-9a53-0a4c4d1f2b11"
	for s, want := range map[string]bool{
		good: true, strings.ToUpper(good): false, "{" + good + "}": false, "urn:uuid:" + good: false,
		strings.ReplaceAll(good, "-", ""): false, good + " ": false, " " + good: false, good + "\n": false,
		"": false, "profile": false, good[:35]: false, good + "1": false, "../" + good: false,
		"6f1d6d5e-2f0b-4a53-9a53-0a4c4d1f2b1g": false, "6f1d6d5e_2f0b_4a53_9a53_0a4c4d1f2b11": false,
	} {
		if Valid(s) != want {
			t.Errorf("Valid(%q) = %v", s, !want)
		}
	}
}

func TestTokenAndHex(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		token, hexa := Token(32), Hex(16)
		if raw, err := base64.RawURLEncoding.DecodeString(token); err != nil || len(raw) != 32 || len(token) != 43 {
			t.Fatalf("token %q: %v", token, err)
		}
		if raw, err := hex.DecodeString(hexa); err != nil || len(raw) != 16 || strings.ToLower(hexa) != hexa {
			t.Fatalf("hex %q: %v", hexa, err)
		}
		if seen[token] || seen[hexa] {
			t.Fatal("repeated")
		}
		seen[token], seen[hexa] = true, true
	}
}
