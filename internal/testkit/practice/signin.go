package practice

import (
	"net/http"
	"slices"
)

func sorted(s []string) []string { slices.Sort(s); return s }

// hostCookie is a cookie that only this host gets back, and no script.
func hostCookie(name, value string, seconds int) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: seconds}
}

func cookieValue(r *http.Request, name string) string {
	if c, err := r.Cookie(name); err == nil {
		return c.Value
	}
	return ""
}

// signInRoutes is sign-in on the desk's own origin:
//
//	/signin       user name and password
//	/signin/code  the one-time code
//	/welcome      a script puts the device item into localStorage and goes on
func (d *desk) signInRoutes(m *http.ServeMux) {
	d.steps(m, "/signin", func(w http.ResponseWriter, r *http.Request, user string) { d.admit(w, r, user) })
	m.HandleFunc("GET /enter", func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		user, ok := d.passes[r.FormValue("pass")]
		delete(d.passes, r.FormValue("pass"))
		d.mu.Unlock()
		if !ok {
			http.Redirect(w, r, "/signin", http.StatusSeeOther)
			return
		}
		d.admit(w, r, user)
	})
	m.HandleFunc("GET /welcome", d.signedIn(func(w http.ResponseWriter, r *http.Request, s *session) {
		d.pages.show(w, r, http.StatusOK, "desk/welcome", view{User: s.user, Data: s.device})
	}))
	m.HandleFunc("POST /api/device", func(w http.ResponseWriter, r *http.Request) {
		s := d.peek(cookieValue(r, sessionCookie))
		if s == nil {
			http.Error(w, "signed out", http.StatusUnauthorized)
			return
		}
		kind := DeviceUnknown
		if r.FormValue("device") == s.device {
			kind = DeviceKnown
		}
		d.record.effect(Effect{Host: Desk, Kind: kind, User: s.user})
		w.Write([]byte(kind))
	})
	m.HandleFunc("POST /signout", func(w http.ResponseWriter, r *http.Request) {
		d.closeSession(cookieValue(r, sessionCookie))
		http.SetCookie(w, hostCookie(sessionCookie, "", -1))
		http.Redirect(w, r, "/signin", http.StatusSeeOther)
	})
}

func (d *desk) admit(w http.ResponseWriter, r *http.Request, user string) {
	value, _ := d.openSession(Desk, user)
	http.SetCookie(w, hostCookie(sessionCookie, value, 30*24*3600))
	http.Redirect(w, r, "/welcome", http.StatusSeeOther)
}

// loginHandler is the portal: the same two steps on another origin, which then
// hands over to the desk with a pass that works once.
func (d *desk) loginHandler() http.Handler {
	m := http.NewServeMux()
	d.common(m)
	m.Handle("GET /{$}", http.RedirectHandler("/signin", http.StatusSeeOther))
	d.steps(m, "/signin", func(w http.ResponseWriter, r *http.Request, user string) {
		pass := d.record.secret(token("pass"))
		d.mu.Lock()
		d.passes[pass] = user
		d.mu.Unlock()
		http.Redirect(w, r, URL(Desk, "/enter?pass="+pass), http.StatusSeeOther)
	})
	return m
}

// steps serves password and code below base and calls done with who passed both.
func (d *desk) steps(m *http.ServeMux, base string, done func(http.ResponseWriter, *http.Request, string)) {
	m.HandleFunc("GET "+base, func(w http.ResponseWriter, r *http.Request) {
		d.pages.show(w, r, http.StatusOK, "desk/signin", view{})
	})
	m.HandleFunc("POST "+base, func(w http.ResponseWriter, r *http.Request) {
		key := d.beginAttempt(hostOf(r), r.PostFormValue("username"), r.PostFormValue("password"))
		if key == "" {
			d.pages.show(w, r, http.StatusUnauthorized, "desk/signin", view{Error: "That user name and password do not belong together."})
			return
		}
		http.SetCookie(w, hostCookie(attemptCookie, key, 300))
		http.Redirect(w, r, base+"/code", http.StatusSeeOther)
	})
	m.HandleFunc("GET "+base+"/code", func(w http.ResponseWriter, r *http.Request) {
		d.pages.show(w, r, http.StatusOK, "desk/code", view{})
	})
	m.HandleFunc("POST "+base+"/code", func(w http.ResponseWriter, r *http.Request) {
		user := d.finishAttempt(hostOf(r), cookieValue(r, attemptCookie), r.PostFormValue("code"))
		if user == "" {
			d.pages.show(w, r, http.StatusUnauthorized, "desk/code", view{Error: "That code is not the one we sent."})
			return
		}
		http.SetCookie(w, hostCookie(attemptCookie, "", -1))
		done(w, r, user)
	})
}

// signedIn lets only a live session through; others are sent to the sign-in.
func (d *desk) signedIn(next func(http.ResponseWriter, *http.Request, *session)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s := d.visit(cookieValue(r, sessionCookie)); s != nil {
			next(w, r, s)
			return
		}
		http.Redirect(w, r, "/signin", http.StatusSeeOther)
	}
}

// partnerHandler is the chat that the desk embeds from another site. Its
// cookie is partitioned: it must come back inside the desk and nowhere else.
func (d *desk) partnerHandler() http.Handler {
	m := http.NewServeMux()
	d.common(m)
	m.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		user := d.chats[cookieValue(r, chatCookie)]
		d.mu.Unlock()
		if user != "" {
			kind := ChatSeen
			if r.Header.Get("Sec-Fetch-Dest") != "iframe" {
				kind = PartitionLost
			}
			d.record.effect(Effect{Host: Partner, Kind: kind, User: user})
		}
		d.pages.show(w, r, http.StatusOK, "desk/partner", view{User: user})
	})
	m.HandleFunc("POST /{$}", func(w http.ResponseWriter, r *http.Request) {
		user := r.PostFormValue("nickname")
		if user == "" || len(user) > 64 {
			d.pages.show(w, r, http.StatusBadRequest, "desk/partner", view{Error: "A nickname has 1 to 64 letters."})
			return
		}
		value := d.record.secret(token("chat"))
		d.mu.Lock()
		d.chats[value] = user
		d.mu.Unlock()
		c := hostCookie(chatCookie, value, 30*24*3600)
		c.SameSite, c.Partitioned = http.SameSiteNoneMode, true
		http.SetCookie(w, c)
		d.record.effect(Effect{Host: Partner, Kind: ChatSignedIn, User: user})
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
	return m
}
