package practice

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"
)

// authority is a certificate authority for one run.
type authority struct {
	pem  []byte
	leaf tls.Certificate
}

func newAuthority(names []string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("practice: %w", err)
	}
	from, until := time.Now().Add(-time.Hour), time.Now().Add(30*24*time.Hour)
	ca := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "Practice site, this run only"},
		NotBefore:             from,
		NotAfter:              until,
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign,
		// Whoever trusts this authority by mistake risks reserved names only.
		PermittedDNSDomains:         []string{"example"},
		PermittedDNSDomainsCritical: true,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("practice: authority: %w", err)
	}
	if ca, err = x509.ParseCertificate(caDER); err != nil {
		return nil, fmt.Errorf("practice: authority: %w", err)
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("practice: %w", err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: names[0]},
		DNSNames:     names,
		NotBefore:    from,
		NotAfter:     until,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, leafKey.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("practice: certificate: %w", err)
	}
	return &authority{
		pem:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}),
		leaf: tls.Certificate{Certificate: [][]byte{leafDER, caDER}, PrivateKey: leafKey},
	}, nil
}

// DevFile writes practice.yaml and practice-ca.pem into dir and returns the
// path of the first, which is what --dev takes.
func (s *Site) DevFile(dir string) (string, error) {
	const ca = "practice-ca.pem"
	hosts := make(map[string]string, len(s.names))
	for _, n := range s.names {
		hosts[n] = s.Addr().String()
	}
	body, err := yaml.Marshal(map[string]any{"hosts": hosts, "ca": ca})
	if err != nil {
		return "", fmt.Errorf("practice: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, ca), s.auth.pem, 0o644); err != nil {
		return "", fmt.Errorf("practice: %w", err)
	}
	path := filepath.Join(dir, "practice.yaml")
	if err := os.WriteFile(path, body, 0o644); err != nil {
		return "", fmt.Errorf("practice: %w", err)
	}
	return path, nil
}

// token is a secret that no other text contains by chance.
func token(kind string) string {
	b := make([]byte, 12)
	rand.Read(b) // never fails
	return kind + "-" + hex.EncodeToString(b)
}
