package practice

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Request is one request that reached the site. It holds no value of a cookie
// or a query.
type Request struct {
	N       int       `json:"n"` // place in the common order of requests, connections and effects
	Time    time.Time `json:"time"`
	Host    string    `json:"host"`
	Method  string    `json:"method"`
	Path    string    `json:"path"`
	Dest    string    `json:"dest,omitempty"` // what the browser wanted it for: document, iframe, empty, ...
	Cookies []string  `json:"cookies,omitempty"`
	Query   []string  `json:"query,omitempty"` // names only
}

// Connection is one TLS handshake that began, whatever became of it.
type Connection struct {
	N    int       `json:"n"`
	Time time.Time `json:"time"`
	Host string    `json:"host"` // the name asked for
}

// Effect is something that changed, or that a page of the site saw happen.
type Effect struct {
	N       int       `json:"n"`
	Time    time.Time `json:"time"`
	Host    string    `json:"host"`
	Kind    string    `json:"kind"`              // one of the Effect kinds
	User    string    `json:"user,omitempty"`    // who was signed in
	Subject string    `json:"subject,omitempty"` // ticket number, or path of the page
	Detail  string    `json:"detail,omitempty"`  // ticket title, or what the page reported
}

// Kinds of effects.
const (
	PasswordRejected = "password-rejected"
	CodeRejected     = "code-rejected"
	SignedIn         = "signed-in"
	SignedOut        = "signed-out"
	SessionExpired   = "session-expired" // a visit with a session that the site has ended
	DeviceKnown      = "device-known"    // a page loaded with the localStorage item of its session
	DeviceUnknown    = "device-unknown"  // a page loaded in a session without that item
	TicketCreated    = "ticket-created"
	TicketEdited     = "ticket-edited"
	TicketDeleted    = "ticket-deleted"
	ChatSignedIn     = "chat-signed-in"    // the embedded partner set its partitioned cookie
	ChatSeen         = "chat-seen"         // it got that cookie back inside the desk
	PartitionLost    = "partition-lost"    // it got that cookie outside the desk
	Pressed          = "pressed"           // a page's script saw a control used by real input
	Synthetic        = "pressed-by-script" // the same by an event that is not trusted
	FormSent         = "form-sent"
	Downloaded       = "downloaded"
)

// record is safe for concurrent use.
type record struct {
	mu          sync.Mutex
	n           int
	requests    []Request
	connections []Connection
	effects     []Effect
	secrets     []string
	changed     chan struct{} // closed and replaced by every entry
}

func (r *record) next() int {
	r.n++
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
	return r.n
}

func (r *record) connection(host string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.connections = append(r.connections, Connection{N: r.next(), Time: time.Now(), Host: host})
}

func (r *record) effect(e Effect) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.N, e.Time = r.next(), time.Now()
	r.effects = append(r.effects, e)
}

func (r *record) secret(v string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secrets = append(r.secrets, v)
	return v
}

// watch records requests before they are handled.
func (r *record) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		e := Request{Time: time.Now(), Host: hostOf(q), Method: q.Method, Path: q.URL.Path, Dest: q.Header.Get("Sec-Fetch-Dest")}
		for _, c := range q.Cookies() {
			e.Cookies = append(e.Cookies, c.Name)
		}
		for k := range q.URL.Query() {
			e.Query = append(e.Query, k)
		}
		slices.Sort(e.Query)
		r.mu.Lock()
		e.N = r.next()
		r.requests = append(r.requests, e)
		r.mu.Unlock()
		next.ServeHTTP(w, q)
	})
}

// Requests lists what reached the host, or every host if it is empty.
func (s *Site) Requests(host string) []Request {
	return pick(&s.record, &s.record.requests, func(r Request) bool { return host == "" || r.Host == host })
}

// Connections lists the TLS handshakes for the host, or for every host.
func (s *Site) Connections(host string) []Connection {
	return pick(&s.record, &s.record.connections, func(c Connection) bool { return host == "" || c.Host == host })
}

// Effects lists the effects of a kind, or all.
func (s *Site) Effects(kind string) []Effect {
	return pick(&s.record, &s.record.effects, func(e Effect) bool { return kind == "" || e.Kind == kind })
}

// Mark is the number of the newest entry: what comes later has a greater N.
func (s *Site) Mark() int {
	s.record.mu.Lock()
	defer s.record.mu.Unlock()
	return s.record.n
}

// Secrets lists every password, one-time code, cookie value, storage value and
// planted text that no agent, log, database or result may ever hold.
func (s *Site) Secrets() []string {
	return pick(&s.record, &s.record.secrets, func(string) bool { return true })
}

// WaitEffect returns the first effect of the kind after the mark, or the error
// of ctx.
func (s *Site) WaitEffect(ctx context.Context, kind string, mark int) (Effect, error) {
	for {
		s.record.mu.Lock()
		for _, e := range s.record.effects {
			if e.Kind == kind && e.N > mark {
				s.record.mu.Unlock()
				return e, nil
			}
		}
		if s.record.changed == nil {
			s.record.changed = make(chan struct{})
		}
		changed := s.record.changed
		s.record.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return Effect{}, ctx.Err()
		}
	}
}

func pick[T any](r *record, from *[]T, keep func(T) bool) []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []T{}
	for _, v := range *from {
		if keep(v) {
			out = append(out, v)
		}
	}
	return out
}
