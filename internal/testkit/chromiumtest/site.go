package chromiumtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Request is one request that reached a site.
type Request struct {
	Method, Host, Path, Query string
	Header                    http.Header
	Body                      string
}

// Site serves public-shaped host names over TLS on loopback, behind a CONNECT
// proxy that knows no other name, and records what arrives at both.
type Site struct {
	Proxy string // "127.0.0.1:port"
	CA    []byte // PEM

	mux      *http.ServeMux
	server   net.Addr
	hosts    []string
	mu       sync.Mutex
	requests []Request
	connects []string
	down     map[string]bool
}

// NewSite starts a site for the hosts. Patterns given to Handle may name a host.
func NewSite(t testing.TB, hosts ...string) *Site {
	t.Helper()
	s := &Site{mux: http.NewServeMux(), hosts: hosts, down: map[string]bool{}}
	cert, ca := certificates(t, hosts)
	s.CA = ca
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	s.server = listener.Addr()
	server := &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Proxy = proxy.Addr().String()
	front := &http.Server{Handler: http.HandlerFunc(s.connect), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = front.Serve(proxy) }()
	t.Cleanup(func() {
		_ = front.Close()
		_ = server.Close()
	})
	return s
}

// Handle serves a pattern of http.ServeMux, such as "wiki.example/list". What
// no pattern serves gets no answer: its connection is cut.
func (s *Site) Handle(pattern string, h http.HandlerFunc) { s.mux.HandleFunc(pattern, h) }

// Page serves an HTML page with the body.
func (s *Site) Page(pattern, body string) {
	s.Handle(pattern, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!doctype html><meta charset=utf-8>"+body)
	})
}

// Requests lists what reached the host so far, without favicons.
func (s *Site) Requests(host string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Request
	for _, r := range s.requests {
		if r.Host == host && r.Path != "/favicon.ico" {
			out = append(out, r)
		}
	}
	return out
}

// Count is the number of requests for the path that reached the host.
func (s *Site) Count(host, path string) int {
	n := 0
	for _, r := range s.Requests(host) {
		if r.Path == path {
			n++
		}
	}
	return n
}

// Connects lists the destinations that were asked of the proxy, reserved
// names that the browser's vendor requests were pointed at left out.
func (s *Site) Connects() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.connects), func(c string) bool { return strings.HasSuffix(c, ".invalid:443") })
}

// Down makes the proxy refuse the host from now on.
func (s *Site) Down(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down[host] = true
}

func (s *Site) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		http.Error(w, "body", http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	s.mu.Lock()
	s.requests = append(s.requests, Request{Method: r.Method, Host: r.Host, Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header.Clone(), Body: string(body)})
	s.mu.Unlock()
	if !s.has(r) {
		panic(http.ErrAbortHandler) // what nobody serves does not answer at all
	}
	s.mux.ServeHTTP(w, r)
}

func (s *Site) connect(w http.ResponseWriter, r *http.Request) {
	host, port, _ := net.SplitHostPort(r.Host)
	s.mu.Lock()
	s.connects = append(s.connects, r.Host)
	known := r.Method == http.MethodConnect && port == "443" && slices.Contains(s.hosts, host) && !s.down[host]
	s.mu.Unlock()
	if !known {
		http.Error(w, "refused", http.StatusForbidden)
		return
	}
	up, err := net.Dial("tcp", s.server.String())
	if err != nil {
		http.Error(w, "unreachable", http.StatusBadGateway)
		return
	}
	down, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = up.Close()
		return
	}
	_, _ = io.WriteString(down, "HTTP/1.1 200 Connected\r\n\r\n")
	go func() {
		_, _ = io.Copy(up, down)
		_ = up.Close()
	}()
	_, _ = io.Copy(down, up)
	_ = down.Close()
}

// certificates makes a throwaway authority and a certificate for the hosts.
func certificates(t testing.TB, hosts []string) (tls.Certificate, []byte) {
	t.Helper()
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	caKey, leafKey := key(), key()
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Throwaway test authority"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: hosts[0]}, DNSNames: hosts,
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		t.Fatal(err)
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, leafKey.Public(), caKey)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{leafDER, caDER}, PrivateKey: leafKey},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
}

// has reports whether something serves the request.
func (s *Site) has(r *http.Request) bool {
	_, pattern := s.mux.Handler(r)
	return pattern != ""
}
