// Package devmode is the explicit development mode: public-shaped host names
// that answer on loopback, for practice sites and outside test harnesses. It
// exists only when a program is given --dev FILE, and every program says so at
// start.
package devmode

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/chaperone-agents/chaperone/internal/base/site"
)

// Config is a development mode. The nil *Config is production.
type Config struct {
	Hosts      map[string]netip.AddrPort // normalised public-shaped name to loopback address
	CA         []byte                    // one PEM certificate authority to trust, or nil
	ApproveAll bool                      // answer every approval with yes
}

// Load reads the YAML file, at most 64 KiB:
//
//	hosts: {wiki.practice.example: 127.0.0.1:8443}
//	ca: ca.pem            # relative to the file
//	approve_all: false
//
// Unknown members, names that are not public-shaped, and addresses off
// loopback are errors.
func Load(path string) (*Config, error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("development file: %w", err)
	}
	if len(body) > 64<<10 {
		return nil, fmt.Errorf("development file %s is over 64 KiB", path)
	}
	var f struct {
		Hosts      map[string]string `yaml:"hosts"`
		CA         string            `yaml:"ca"`
		ApproveAll bool              `yaml:"approve_all"`
	}
	d := yaml.NewDecoder(bytes.NewReader(body))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("development file %s: %w", path, err)
	}
	c := &Config{Hosts: make(map[string]netip.AddrPort, len(f.Hosts)), ApproveAll: f.ApproveAll}
	for name, addr := range f.Hosts {
		host, err := site.NormalHost(name)
		if err != nil {
			return nil, fmt.Errorf("development file %s: %q is not a public-shaped host name", path, name)
		}
		a, err := netip.ParseAddrPort(addr)
		if err != nil || !a.Addr().Unmap().IsLoopback() || a.Port() == 0 {
			return nil, fmt.Errorf("development file %s: %q must map to a loopback address and port", path, name)
		}
		if _, twice := c.Hosts[host]; twice {
			return nil, fmt.Errorf("development file %s: %q is named twice", path, host)
		}
		c.Hosts[host] = a
	}
	if f.CA != "" {
		if !filepath.IsAbs(f.CA) {
			f.CA = filepath.Join(filepath.Dir(path), f.CA)
		}
		if c.CA, err = os.ReadFile(f.CA); err != nil {
			return nil, fmt.Errorf("development file: ca: %w", err)
		}
		if _, err := c.Certificate(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Certificate parses CA.
func (c *Config) Certificate() (*x509.Certificate, error) {
	block, _ := pem.Decode(c.CA)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("development mode: ca is not a PEM certificate")
	}
	return x509.ParseCertificate(block.Bytes)
}

// Banner is the line every program prints at start in development mode.
func (c *Config) Banner(program string) string {
	names := make([]string, 0, len(c.Hosts))
	for n := range c.Hosts {
		names = append(names, n)
	}
	slices.Sort(names)
	s := fmt.Sprintf("%s: DEVELOPMENT MODE: %d host names answer on loopback %v", program, len(names), names)
	if c.ApproveAll {
		s += "; EVERY APPROVAL IS ANSWERED WITH YES"
	}
	return s + ". Never use this with real accounts."
}
