// Package ceremonyweb serves the owner's sign-in page and its live connection,
// on an origin of its own that the orchestrator has no part in (CER-05,
// SURF-01 to SURF-03, HAND-03, section 2.9 of the requirements). The page is
// static: who holds the link's fragment is who gets in, and the fragment never
// comes here in an address.
package ceremonyweb

import (
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/chaperone-agents/chaperone/internal/app/browserd"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/secret"
	"github.com/chaperone-agents/chaperone/internal/edge/httpx"
	"github.com/chaperone-agents/chaperone/web/ceremony"
)

// Service connects a page that shows the right capability to its sign-in.
type Service interface {
	// Claim spends the capability; fault.Forbidden for any wrong one.
	Claim(id string, capability secret.Text) (*browserd.Viewer, error)
}

// Config is everything the page needs.
type Config struct {
	Service Service
	// Origin is where browsers reach this listener, such as
	// http://localhost:8788; the same as browserd's CeremonyBase.
	Origin string
	Log    *slog.Logger
}

// maxWaiting bounds connections that have not shown a capability yet.
const maxWaiting = 16

type pages struct {
	service Service
	log     *slog.Logger
	waiting chan struct{}
}

// New makes the handler with the guard for its listener in front.
func New(c Config) (http.Handler, error) {
	u, err := url.Parse(c.Origin)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || c.Origin != u.Scheme+"://"+u.Host {
		return nil, errors.New("ceremonyweb: the origin must be such as http://localhost:8788")
	}
	if c.Service == nil || c.Log == nil {
		return nil, errors.New("ceremonyweb: a service and a logger are needed")
	}
	p := &pages{service: c.Service, log: c.Log, waiting: make(chan struct{}, maxWaiting)}
	mux := http.NewServeMux()
	for path, file := range map[string]struct{ name, kind string }{
		"/authentication/{id}":        {"index.html", "text/html; charset=utf-8"},
		"/authentication-surface.js":  {"surface.js", "text/javascript; charset=utf-8"},
		"/authentication-events.js":   {"events.js", "text/javascript; charset=utf-8"},
		"/authentication-surface.css": {"surface.css", "text/css; charset=utf-8"},
	} {
		body, err := fs.ReadFile(ceremony.Files, file.name)
		if err != nil {
			return nil, err
		}
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			if id := r.PathValue("id"); strings.Contains(path, "{id}") && !ident.Valid(id) {
				absent(w, r)
				return
			}
			w.Header().Set("Content-Type", file.kind)
			w.Write(body) // the client may have gone; there is nobody left to tell
		})
	}
	mux.HandleFunc("GET /authentication/{id}/live", p.live)
	mux.HandleFunc("/", absent)
	guard := httpx.Guard{Hosts: []string{u.Host}, Origins: []string{c.Origin}}
	return headers(u, guard.Wrap(mux)), nil
}

func absent(w http.ResponseWriter, _ *http.Request) {
	httpx.Fail(w, fault.New(fault.NotFound, "There is nothing here. Sign-ins begin in the console."))
}

// headers are on every answer. connect-src names the socket's scheme too, as
// not every browser lets 'self' cover it.
func headers(u *url.URL, next http.Handler) http.Handler {
	socket := "ws" + strings.TrimPrefix(u.Scheme, "http") + "://" + u.Host
	policy := "default-src 'none'; script-src 'self'; style-src 'self'; img-src blob:; connect-src 'self' " + socket +
		"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), display-capture=()")
		next.ServeHTTP(w, r)
	})
}
