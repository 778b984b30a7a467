package practice

import (
	"net/http"

	"github.com/chaperone-agents/chaperone/internal/edge/httpx"
)

// State is what another process needs to know about a site.
type State struct {
	Addr     string    `json:"addr"`
	Names    []string  `json:"names"`
	Accounts []Account `json:"accounts"`
	Tickets  []Ticket  `json:"tickets"`
	Mark     int       `json:"mark"`
}

// controlHandler serves the record as JSON:
//
//	GET /state                 State
//	GET /requests?host=H       []Request
//	GET /connections?host=H    []Connection
//	GET /effects?kind=K        []Effect
//	GET /code?account=NAME     {"code": "123456"}, the newest one-time code
//	GET /secrets               []string
//	POST /expire               ends every session
func (s *Site) controlHandler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /state", func(w http.ResponseWriter, r *http.Request) {
		httpx.WriteJSON(w, http.StatusOK, State{
			Addr: s.Addr().String(), Names: s.Names(), Accounts: s.Accounts(), Tickets: s.Tickets(), Mark: s.Mark(),
		})
	})
	m.HandleFunc("GET /requests", func(w http.ResponseWriter, r *http.Request) {
		httpx.WriteJSON(w, http.StatusOK, s.Requests(r.FormValue("host")))
	})
	m.HandleFunc("GET /connections", func(w http.ResponseWriter, r *http.Request) {
		httpx.WriteJSON(w, http.StatusOK, s.Connections(r.FormValue("host")))
	})
	m.HandleFunc("GET /effects", func(w http.ResponseWriter, r *http.Request) {
		httpx.WriteJSON(w, http.StatusOK, s.Effects(r.FormValue("kind")))
	})
	m.HandleFunc("GET /code", func(w http.ResponseWriter, r *http.Request) {
		httpx.WriteJSON(w, http.StatusOK, map[string]string{"code": s.Code(r.FormValue("account"))})
	})
	m.HandleFunc("GET /secrets", func(w http.ResponseWriter, r *http.Request) {
		httpx.WriteJSON(w, http.StatusOK, s.Secrets())
	})
	m.HandleFunc("POST /expire", func(w http.ResponseWriter, r *http.Request) {
		s.ExpireSessions()
		w.WriteHeader(http.StatusNoContent)
	})
	addr := s.control.Addr().String()
	return httpx.Guard{Hosts: []string{addr}, Origins: []string{"http://" + addr}}.Wrap(m)
}
