// Package practice is the practice site: a small ticket desk, its sign-in
// portal, an embedded partner, off-site names and a hostile host, all served
// over TLS on one loopback port under public-shaped names. It keeps its own
// record of every connection, request and effect, so that a test never has to
// take the product's word for what happened (GATE-01, TRUST-03). It covers
// page shapes for OBS, SETL, DENY, READY, CER-07, POP and TRUST requirements.
package practice

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/site"
)

// Host names of the site.
const (
	Desk      = "desk.practice.example"    // the ticket desk, with its own sign-in at /signin
	Login     = "login.practice.example"   // the sign-in portal on another origin of the same site
	Bare      = "practice.example"         // a public page
	WWW       = "www.practice.example"     // answers every request with a redirect to Bare
	Hostile   = "hostile.practice.example" // pages that lie
	Partner   = "chat.partner.example"     // embedded by the desk from another site
	Elsewhere = "elsewhere.example"        // where off-site redirects lead
)

// Names lists the host names of every practice site.
func Names() []string { return []string{Desk, Login, Bare, WWW, Hostile, Partner, Elsewhere} }

// Account is somebody who can sign in.
type Account struct {
	Name     string `json:"name"`
	Password string `json:"password"`
	// Visits is how many pages a session lasts before the site forgets it; 0 is
	// without end.
	Visits int `json:"visits,omitempty"`
}

// Config says what to serve.
type Config struct {
	Listen   string                  // loopback address and port; empty is 127.0.0.1:0
	Accounts []Account               // nil is one account "mira" with a random password and one "guest" whose session lasts 4 pages
	Hosts    map[string]http.Handler // further public-shaped names behind the same listener and authority
	Log      *slog.Logger            // required
}

// Site is a running practice site.
type Site struct {
	record  record
	auth    *authority
	desk    *desk
	names   []string
	tls     net.Listener
	control net.Listener
	servers []*http.Server
}

// Start serves the site and its control listener until Close.
func Start(c Config) (*Site, error) {
	if c.Log == nil {
		return nil, errors.New("practice: no logger")
	}
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	if a, err := netip.ParseAddrPort(c.Listen); err != nil || !a.Addr().IsLoopback() {
		return nil, fmt.Errorf("practice: %q is not a loopback address and port", c.Listen)
	}
	if c.Accounts == nil {
		c.Accounts = []Account{{Name: "mira", Password: token("pw")}, {Name: "guest", Password: token("pw"), Visits: 4}}
	}
	names := Names()
	for _, name := range slices.Sorted(maps.Keys(c.Hosts)) {
		if n, err := site.NormalHost(name); err != nil || n != name || slices.Contains(names, name) {
			return nil, fmt.Errorf("practice: %q is not a further public-shaped host name", name)
		}
		names = append(names, name)
	}
	auth, err := newAuthority(names)
	if err != nil {
		return nil, err
	}
	s := &Site{auth: auth, names: names}
	if s.desk, err = newDesk(c.Accounts, &s.record); err != nil {
		return nil, err
	}
	if s.tls, err = net.Listen("tcp", c.Listen); err != nil {
		return nil, fmt.Errorf("practice: %w", err)
	}
	if s.control, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		s.tls.Close()
		return nil, fmt.Errorf("practice: %w", err)
	}
	s.serve(c)
	return s, nil
}

func (s *Site) serve(c Config) {
	silent := log.New(io.Discard, "", 0) // handshakes that fail are in the record
	web := &http.Server{
		Handler:           s.record.watch(s.hosts(c.Hosts)),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          silent,
		TLSConfig: &tls.Config{
			MinVersion:   tls.VersionTLS12,
			Certificates: []tls.Certificate{s.auth.leaf},
			GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
				s.record.connection(h.ServerName)
				return nil, nil
			},
		},
	}
	ctl := &http.Server{Handler: s.controlHandler(), ReadHeaderTimeout: 10 * time.Second, ErrorLog: silent}
	s.servers = []*http.Server{web, ctl}
	go s.run(c.Log, "site", func() error { return web.ServeTLS(s.tls, "", "") })
	go s.run(c.Log, "control", func() error { return ctl.Serve(s.control) })
}

func (s *Site) run(log *slog.Logger, what string, serve func() error) {
	if err := serve(); !errors.Is(err, http.ErrServerClosed) {
		log.Error("practice listener ended", "listener", what, "error", err)
	}
}

// Close ends every listener and connection.
func (s *Site) Close() error {
	var err error
	for _, srv := range s.servers {
		err = errors.Join(err, srv.Close())
	}
	return err
}

// Addr is the loopback address that all names answer on.
func (s *Site) Addr() netip.AddrPort { return s.tls.Addr().(*net.TCPAddr).AddrPort() }

// Control is the URL of the control listener, "http://127.0.0.1:port".
func (s *Site) Control() string { return "http://" + s.control.Addr().String() }

// Names lists all host names of this site, the further ones included.
func (s *Site) Names() []string { return slices.Clone(s.names) }

// CA is the certificate authority in PEM. It can only vouch for names under
// .example, and its key is in no file.
func (s *Site) CA() []byte { return slices.Clone(s.auth.pem) }

// URL is the public-shaped address of a path.
func URL(host, path string) string { return "https://" + host + path }
