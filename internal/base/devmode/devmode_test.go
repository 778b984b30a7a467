package devmode

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, path string, data []byte) string {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func authority(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	ca := authority(t)
	write(t, filepath.Join(dir, "ca.pem"), ca)
	path := write(t, filepath.Join(dir, "dev.yaml"), []byte("hosts:\n  Wiki.Practice.example.: 127.0.0.1:8443\n  mail.practice.example: '[::1]:8444'\nca: ca.pem\napprove_all: true\n"))
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Hosts) != 2 || c.Hosts["wiki.practice.example"].String() != "127.0.0.1:8443" || c.Hosts["mail.practice.example"].Port() != 8444 {
		t.Errorf("hosts %v", c.Hosts)
	}
	if string(c.CA) != string(ca) || !c.ApproveAll {
		t.Errorf("%+v", c)
	}
	if cert, err := c.Certificate(); err != nil || !cert.IsCA {
		t.Errorf("certificate: %v", err)
	}
	for _, want := range []string{"chaperoned: DEVELOPMENT MODE", "wiki.practice.example", "mail.practice.example", "EVERY APPROVAL", "Never use"} {
		if !strings.Contains(c.Banner("chaperoned"), want) {
			t.Errorf("the banner lacks %q: %s", want, c.Banner("chaperoned"))
		}
	}
	c.ApproveAll = false
	if strings.Contains(c.Banner("x"), "APPROVAL") {
		t.Error("the banner warns of what is not so")
	}
}

// PROXY-02: the mode maps public-shaped names to loopback and does nothing else.
func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}))
	write(t, filepath.Join(dir, "junk.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}))
	for what, text := range map[string]string{
		"nothing":                  "",
		"no mapping":               "hosts",
		"an unknown member":        "hosts: {}\nallow: everything\n",
		"a repeated member":        "approve_all: false\napprove_all: true\n",
		"a public address":         "hosts: {wiki.practice.example: 93.184.216.34:443}",
		"a private address":        "hosts: {wiki.practice.example: 10.0.0.1:443}",
		"any address":              "hosts: {wiki.practice.example: 0.0.0.0:443}",
		"a mapped private address": "hosts: {wiki.practice.example: '[::ffff:10.0.0.1]:443'}",
		"a name as address":        "hosts: {wiki.practice.example: localhost:443}",
		"no port":                  "hosts: {wiki.practice.example: 127.0.0.1}",
		"port zero":                "hosts: {wiki.practice.example: 127.0.0.1:0}",
		"localhost":                "hosts: {localhost: 127.0.0.1:443}",
		"an address as name":       "hosts: {127.0.0.1: 127.0.0.1:443}",
		"a URL as name":            "hosts: {'https://wiki.practice.example': 127.0.0.1:443}",
		"a name twice":             "hosts: {wiki.practice.example: 127.0.0.1:443, WIKI.practice.example: 127.0.0.1:444}",
		"a missing CA":             "ca: none.pem",
		"a key as CA":              "ca: key.pem",
		"junk as CA":               "ca: junk.pem",
		"a wrong type":             "approve_all: maybe",
		"a file over 64 KiB":       "hosts: {}\n" + strings.Repeat("#", 64<<10),
	} {
		c, err := Load(write(t, filepath.Join(dir, "dev.yaml"), []byte(text)))
		if err == nil || c != nil {
			t.Errorf("%s is accepted: %+v", what, c)
		}
	}
	if _, err := Load(filepath.Join(dir, "absent.yaml")); err == nil {
		t.Error("a missing file is accepted")
	}
}
