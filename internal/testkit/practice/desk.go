package practice

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"sync"
)

// Ticket is one row of the desk.
type Ticket struct {
	ID       int    `json:"id"`
	Title    string `json:"title"`
	Body     string `json:"body"`
	Priority string `json:"priority"` // low, normal, high
	Saves    int    `json:"saves"`    // how often it was saved, creation included
}

// session is a signed-in browser.
type session struct {
	user   string
	csrf   string
	device string // what localStorage must hold
	left   int    // pages until it ends; below 0 is without end
}

// attempt is a sign-in between password and code.
type attempt struct{ user, code string }

// desk is the state behind the pages. Its methods are safe for concurrent use.
type desk struct {
	record *record
	pages  *pages
	canary string // planted in pages where no reading may go

	mu       sync.Mutex
	accounts map[string]Account
	attempts map[string]attempt // by cookie value
	codes    map[string]string  // newest code by account
	passes   map[string]string  // portal tickets: user
	sessions map[string]*session
	chats    map[string]string // partitioned cookie value: user
	tickets  map[int]*Ticket
	lastID   int
}

func newDesk(accounts []Account, r *record) (*desk, error) {
	p, err := loadPages()
	if err != nil {
		return nil, err
	}
	d := &desk{
		record:   r,
		pages:    p,
		canary:   r.secret(token("planted")),
		accounts: map[string]Account{},
		attempts: map[string]attempt{},
		codes:    map[string]string{},
		passes:   map[string]string{},
		sessions: map[string]*session{},
		chats:    map[string]string{},
		tickets:  map[int]*Ticket{},
	}
	for _, a := range accounts {
		if a.Name == "" || a.Password == "" || a.Visits < 0 {
			return nil, fmt.Errorf("practice: account %q needs a name and a password", a.Name)
		}
		d.accounts[a.Name] = a
		r.secret(a.Password)
	}
	for _, t := range []Ticket{
		{Title: "Printer on floor two is out of paper", Body: "It has been blinking since Monday.", Priority: "normal"},
		{Title: "New badge for the visitor desk", Body: "The old one opens nothing any more.", Priority: "low"},
		{Title: "Invoice 2291 went to the wrong address", Body: "The customer asks for a copy by Friday.", Priority: "high"},
	} {
		d.lastID++
		t.ID, t.Saves = d.lastID, 1
		d.tickets[t.ID] = &t
	}
	return d, nil
}

// beginAttempt checks the password and returns the value that binds the second
// step, or "" if the password is wrong.
func (d *desk) beginAttempt(host, user, password string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	a, ok := d.accounts[user]
	if !ok || a.Password != password {
		d.record.effect(Effect{Host: host, Kind: PasswordRejected, Subject: user})
		return ""
	}
	n, err := rand.Int(rand.Reader, big.NewInt(100_000_000))
	if err != nil {
		return ""
	}
	key, code := d.record.secret(token("attempt")), d.record.secret(fmt.Sprintf("%08d", n))
	d.attempts[key], d.codes[user] = attempt{user, code}, code
	return key
}

// finishAttempt uses the attempt up and returns its user, or "".
func (d *desk) finishAttempt(host, key, code string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	a, ok := d.attempts[key]
	if !ok {
		return ""
	}
	if a.code != code {
		d.record.effect(Effect{Host: host, Kind: CodeRejected, Subject: a.user})
		return ""
	}
	delete(d.attempts, key)
	return a.user
}

// openSession returns the cookie value of a new session.
func (d *desk) openSession(host, user string) (string, *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &session{user: user, csrf: d.record.secret(token("csrf")), device: d.record.secret(token("device")), left: -1}
	if v := d.accounts[user].Visits; v > 0 {
		s.left = v
	}
	value := d.record.secret(token("session"))
	d.sessions[value] = s
	d.record.effect(Effect{Host: host, Kind: SignedIn, User: user})
	return value, s
}

// visit counts a page view and returns the session, or nil.
func (d *desk) visit(value string) *session {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, ok := d.sessions[value]
	if !ok || s.left == 0 {
		if value != "" {
			e := Effect{Host: Desk, Kind: SessionExpired}
			if ok {
				e.User = s.user
			}
			d.record.effect(e)
			delete(d.sessions, value)
		}
		return nil
	}
	if s.left > 0 {
		s.left--
	}
	return s
}

// peek is visit without counting: for requests that a page makes by itself.
func (d *desk) peek(value string) *session {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sessions[value]
}

func (d *desk) closeSession(value string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, ok := d.sessions[value]; ok {
		delete(d.sessions, value)
		d.record.effect(Effect{Host: Desk, Kind: SignedOut, User: s.user})
	}
}

// saveTicket creates the ticket if its ID is 0. It reports false if there is
// no such ticket.
func (d *desk) saveTicket(user string, t Ticket) (int, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	kind := TicketEdited
	if t.ID == 0 {
		d.lastID++
		t.ID, kind = d.lastID, TicketCreated
	} else if old, ok := d.tickets[t.ID]; ok {
		t.Saves = old.Saves
	} else {
		return 0, false
	}
	t.Saves++
	d.tickets[t.ID] = &t
	d.record.effect(Effect{Host: Desk, Kind: kind, User: user, Subject: fmt.Sprint(t.ID), Detail: t.Title})
	return t.ID, true
}

func (d *desk) deleteTicket(user string, id int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, ok := d.tickets[id]
	if ok {
		delete(d.tickets, id)
		d.record.effect(Effect{Host: Desk, Kind: TicketDeleted, User: user, Subject: fmt.Sprint(id), Detail: t.Title})
	}
	return ok
}

func (d *desk) ticket(id int) (Ticket, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t, ok := d.tickets[id]; ok {
		return *t, true
	}
	return Ticket{}, false
}

func (d *desk) list() []Ticket {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]Ticket, 0, len(d.tickets))
	for _, t := range d.tickets {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b Ticket) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Tickets lists the tickets of the desk by number.
func (s *Site) Tickets() []Ticket { return s.desk.list() }

// Accounts lists who can sign in, by name.
func (s *Site) Accounts() []Account {
	return slices.SortedFunc(maps.Values(s.desk.accounts), func(a, b Account) int { return cmp.Compare(a.Name, b.Name) })
}

// Account is the account with the name.
func (s *Site) Account(name string) (Account, bool) {
	a, ok := s.desk.accounts[name]
	return a, ok
}

// Code is the newest one-time code of the account, as its owner would read it
// on a telephone; empty before the password was right.
func (s *Site) Code(account string) string {
	s.desk.mu.Lock()
	defer s.desk.mu.Unlock()
	return s.desk.codes[account]
}

// ExpireSessions ends every session at the site's side, as a password change
// elsewhere would.
func (s *Site) ExpireSessions() {
	s.desk.mu.Lock()
	defer s.desk.mu.Unlock()
	clear(s.desk.sessions)
	clear(s.desk.chats)
}
