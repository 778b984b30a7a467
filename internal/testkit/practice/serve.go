package practice

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Cookie names. The __Host- prefix makes the browser itself insist on Secure,
// the root path and no Domain.
const (
	sessionCookie = "__Host-desk"
	attemptCookie = "__Host-attempt"
	chatCookie    = "__Host-chat"
)

func hostOf(r *http.Request) string {
	if h, _, err := net.SplitHostPort(r.Host); err == nil {
		return h
	}
	return r.Host
}

// hosts routes by name; a name that is not served gets 421.
func (s *Site) hosts(more map[string]http.Handler) http.Handler {
	by := map[string]http.Handler{
		Desk:      s.desk.deskHandler(),
		Login:     s.desk.loginHandler(),
		Bare:      s.desk.single("desk/public"),
		Elsewhere: s.desk.single("desk/elsewhere"),
		Hostile:   s.desk.hostileHandler(),
		Partner:   s.desk.partnerHandler(),
		WWW: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, URL(Bare, r.URL.RequestURI()), http.StatusMovedPermanently)
		}),
	}
	for name, h := range more {
		by[name] = h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h, ok := by[hostOf(r)]; ok {
			h.ServeHTTP(w, r)
			return
		}
		http.Error(w, "This site does not answer under that name.", http.StatusMisdirectedRequest)
	})
}

// common is what every host of ours serves.
func (d *desk) common(m *http.ServeMux) {
	m.Handle("GET /assets/", assets())
	m.HandleFunc("POST /probe", d.probe)
	m.HandleFunc("GET /api/slow", slow)
	m.HandleFunc("GET /api/events", events)
}

func (d *desk) single(page string) http.Handler {
	m := http.NewServeMux()
	d.common(m)
	m.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		d.pages.show(w, r, http.StatusOK, page, view{})
	})
	return m
}

func (d *desk) hostileHandler() http.Handler {
	m := http.NewServeMux()
	d.common(m)
	m.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		d.pages.show(w, r, http.StatusOK, "hostile/index", view{Data: d.pages.lies})
	})
	m.HandleFunc("GET /{name}", func(w http.ResponseWriter, r *http.Request) {
		d.pages.show(w, r, http.StatusOK, "hostile/"+r.PathValue("name"), view{Canary: d.canary, Repeat: count(5000)})
	})
	return m
}

func (d *desk) deskHandler() http.Handler {
	m := http.NewServeMux()
	d.common(m)
	d.signInRoutes(m)
	d.ticketRoutes(m)
	m.HandleFunc("GET /shapes/{$}", func(w http.ResponseWriter, r *http.Request) {
		d.pages.show(w, r, http.StatusOK, "shapes/index", view{Data: d.pages.shapes})
	})
	m.HandleFunc("GET /shapes/{name}", func(w http.ResponseWriter, r *http.Request) {
		d.pages.show(w, r, http.StatusOK, "shapes/"+r.PathValue("name"), view{Canary: d.canary, Repeat: count(2000), Data: r.FormValue("from")})
	})
	m.HandleFunc("POST /shapes/{name}", func(w http.ResponseWriter, r *http.Request) {
		d.record.effect(Effect{Host: Desk, Kind: FormSent, Subject: r.URL.Path, Detail: formNames(r)})
		d.pages.show(w, r, http.StatusOK, "desk/sent", view{Data: r.URL.Path})
	})
	m.HandleFunc("GET /leave/{how}", leave)
	m.HandleFunc("GET /file.csv", func(w http.ResponseWriter, r *http.Request) {
		d.record.effect(Effect{Host: Desk, Kind: Downloaded, Subject: r.URL.Path})
		w.Header().Set("Content-Type", "text/csv")
		w.Header().Set("Content-Disposition", `attachment; filename="tickets.csv"`)
		fmt.Fprintln(w, "id,title\n1,Printer")
	})
	return m
}

// leave leads off the site by answers of the server.
func leave(w http.ResponseWriter, r *http.Request) {
	to := map[string]string{
		"server": URL(Elsewhere, "/from-server"),
		"chain":  "/leave/hop",
		"hop":    URL(WWW, "/from-chain"), // which leads to the bare name
		"plain":  "http://" + Elsewhere + "/from-plain",
		"local":  "http://127.0.0.1/from-local",
		"inside": "/shapes/reorder",
	}[r.PathValue("how")]
	if to == "" {
		http.NotFound(w, r)
		return
	}
	http.Redirect(w, r, to, http.StatusFound)
}

// probe records what a page's own script saw: {"what": "...", "trusted": true}.
func (d *desk) probe(w http.ResponseWriter, r *http.Request) {
	var p struct {
		What    string `json:"what"`
		Page    string `json:"page"`
		Trusted bool   `json:"trusted"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 4096)).Decode(&p); err != nil {
		http.Error(w, "not a probe", http.StatusBadRequest)
		return
	}
	kind := Pressed
	if !p.Trusted {
		kind = Synthetic
	}
	d.record.effect(Effect{Host: hostOf(r), Kind: kind, Subject: p.Page, Detail: p.What})
	w.WriteHeader(http.StatusNoContent)
}

// slow answers JSON after ms milliseconds (at most 10,000).
func slow(w http.ResponseWriter, r *http.Request) {
	ms, err := strconv.Atoi(r.FormValue("ms"))
	if err != nil || ms < 0 || ms > 10_000 {
		http.Error(w, "ms is 0 to 10000", http.StatusBadRequest)
		return
	}
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
	case <-r.Context().Done():
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"waited_ms":%d,"items":["Paper","Toner","Badge"]}`, ms)
}

// events is an event stream that never ends by itself.
func events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		fmt.Fprint(w, "data: still here\n\n")
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// formNames lists the names of the filled fields of a form, never their values.
func formNames(r *http.Request) string {
	if r.ParseForm() != nil {
		return ""
	}
	var names []string
	for k, v := range r.PostForm {
		if len(v) > 0 && v[0] != "" {
			names = append(names, k)
		}
	}
	return strings.Join(sorted(names), ",")
}
