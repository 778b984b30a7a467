package practice

import (
	"crypto/subtle"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// ticketRoutes is the desk behind the sign-in.
func (d *desk) ticketRoutes(m *http.ServeMux) {
	m.Handle("GET /{$}", http.RedirectHandler("/tickets", http.StatusSeeOther))
	m.HandleFunc("GET /tickets", d.signedIn(func(w http.ResponseWriter, r *http.Request, s *session) {
		d.pages.show(w, r, http.StatusOK, "desk/tickets", view{User: s.user, CSRF: s.csrf, Data: d.list()})
	}))
	m.HandleFunc("GET /tickets/new", d.signedIn(func(w http.ResponseWriter, r *http.Request, s *session) {
		d.form(w, r, s, http.StatusOK, Ticket{Priority: "normal"}, "")
	}))
	m.HandleFunc("POST /tickets", d.signedIn(d.save))
	m.HandleFunc("GET /tickets/{id}", d.signedIn(func(w http.ResponseWriter, r *http.Request, s *session) {
		id, _ := strconv.Atoi(r.PathValue("id"))
		t, ok := d.ticket(id)
		if !ok {
			http.NotFound(w, r)
			return
		}
		d.form(w, r, s, http.StatusOK, t, "")
	}))
	m.HandleFunc("POST /tickets/{id}", d.signedIn(d.save))
	m.HandleFunc("POST /tickets/{id}/delete", d.signedIn(func(w http.ResponseWriter, r *http.Request, s *session) {
		id, _ := strconv.Atoi(r.PathValue("id"))
		if !genuine(r, s) {
			http.Error(w, "This form is out of date.", http.StatusForbidden)
			return
		}
		if !d.deleteTicket(s.user, id) {
			http.NotFound(w, r)
			return
		}
		http.Redirect(w, r, "/tickets", http.StatusSeeOther)
	}))
	m.HandleFunc("GET /chat", d.signedIn(func(w http.ResponseWriter, r *http.Request, s *session) {
		d.pages.show(w, r, http.StatusOK, "desk/chat", view{User: s.user, CSRF: s.csrf, Data: URL(Partner, "/")})
	}))
}

func (d *desk) form(w http.ResponseWriter, r *http.Request, s *session, status int, t Ticket, problem string) {
	d.pages.show(w, r, status, "desk/ticket", view{User: s.user, CSRF: s.csrf, Error: problem, Data: t})
}

func (d *desk) save(w http.ResponseWriter, r *http.Request, s *session) {
	t := Ticket{
		Title:    strings.TrimSpace(r.PostFormValue("title")),
		Body:     r.PostFormValue("body"),
		Priority: r.PostFormValue("priority"),
	}
	t.ID, _ = strconv.Atoi(r.PathValue("id"))
	switch {
	case !genuine(r, s):
		http.Error(w, "This form is out of date.", http.StatusForbidden)
	case t.Title == "" || len(t.Title) > 120:
		d.form(w, r, s, http.StatusUnprocessableEntity, t, "A title has 1 to 120 letters.")
	case !slices.Contains([]string{"low", "normal", "high"}, t.Priority):
		d.form(w, r, s, http.StatusUnprocessableEntity, t, "Choose a priority.")
	default:
		id, ok := d.saveTicket(s.user, t)
		if !ok {
			http.NotFound(w, r)
			return
		}
		http.Redirect(w, r, "/tickets#t"+strconv.Itoa(id), http.StatusSeeOther)
	}
}

// genuine checks the form's token.
func genuine(r *http.Request, s *session) bool {
	return subtle.ConstantTimeCompare([]byte(r.PostFormValue("csrf")), []byte(s.csrf)) == 1
}
