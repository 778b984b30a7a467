package practice_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/devmode"
	"github.com/chaperone-agents/chaperone/internal/testkit/practice"
)

func start(t *testing.T, c practice.Config) *practice.Site {
	t.Helper()
	c.Log = slog.New(slog.DiscardHandler)
	s, err := practice.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// client is a browser of sorts: it knows the site only by its development
// file, as the product does.
func client(t *testing.T, s *practice.Site) *http.Client {
	t.Helper()
	path, err := s.DevFile(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dev, err := devmode.Load(path)
	if err != nil {
		t.Fatalf("the product cannot read the development file: %v", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(dev.CA) {
		t.Fatal("no authority in the development file")
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			host, port, _ := net.SplitHostPort(addr)
			to, ok := dev.Hosts[host]
			if !ok || port != "443" {
				return nil, fmt.Errorf("no such host %s", addr)
			}
			return (&net.Dialer{}).DialContext(ctx, network, to.String())
		},
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Jar: jar, Timeout: 20 * time.Second}
}

// read returns the body and the final response, whose body is closed.
func read(t *testing.T, r *http.Response, err error) (string, *http.Response) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), r
}

func get(t *testing.T, c *http.Client, u string) (string, *http.Response) {
	t.Helper()
	r, err := c.Get(u)
	return read(t, r, err)
}

func post(t *testing.T, c *http.Client, u string, form ...string) (string, *http.Response) {
	t.Helper()
	v := url.Values{}
	for i := 0; i < len(form); i += 2 {
		v.Set(form[i], form[i+1])
	}
	r, err := c.PostForm(u, v)
	return read(t, r, err)
}

// signIn goes through both steps at the host.
func signIn(t *testing.T, s *practice.Site, c *http.Client, host, name string) {
	t.Helper()
	a, ok := s.Account(name)
	if !ok {
		t.Fatalf("no account %s", name)
	}
	post(t, c, practice.URL(host, "/signin"), "username", name, "password", a.Password)
	_, r := post(t, c, practice.URL(host, "/signin/code"), "code", s.Code(name))
	if got := r.Request.URL.String(); got != practice.URL(practice.Desk, "/welcome") {
		t.Fatalf("sign-in ended at %s", got)
	}
}

func kinds(s *practice.Site) []string {
	var out []string
	for _, e := range s.Effects("") {
		out = append(out, e.Kind)
	}
	return out
}

func TestSignInNeedsPasswordAndCode(t *testing.T) {
	for _, host := range []string{practice.Desk, practice.Login} {
		t.Run(host, func(t *testing.T) {
			s := start(t, practice.Config{})
			c := client(t, s)
			if _, r := get(t, c, practice.URL(practice.Desk, "/tickets")); r.Request.URL.Path != "/signin" {
				t.Fatalf("a stranger was let in to %s", r.Request.URL)
			}
			if body, r := post(t, c, practice.URL(host, "/signin"), "username", "mira", "password", "guess"); r.StatusCode != 401 || !strings.Contains(body, `role="alert"`) {
				t.Fatalf("a wrong password answered %d", r.StatusCode)
			}
			a, _ := s.Account("mira")
			post(t, c, practice.URL(host, "/signin"), "username", "mira", "password", a.Password)
			if _, r := get(t, c, practice.URL(practice.Desk, "/tickets")); r.Request.URL.Path != "/signin" {
				t.Fatal("the password alone was enough")
			}
			if _, r := post(t, c, practice.URL(host, "/signin/code"), "code", "00000000x"); r.StatusCode != 401 {
				t.Fatalf("a wrong code answered %d", r.StatusCode)
			}
			post(t, c, practice.URL(host, "/signin/code"), "code", s.Code("mira"))
			if body, r := get(t, c, practice.URL(practice.Desk, "/tickets")); r.Request.URL.Path != "/tickets" || !strings.Contains(body, "Printer on floor two") {
				t.Fatalf("signed in, but at %s", r.Request.URL)
			}
			post(t, c, practice.URL(practice.Desk, "/signout"))
			if _, r := get(t, c, practice.URL(practice.Desk, "/tickets")); r.Request.URL.Path != "/signin" {
				t.Fatal("still in after signing out")
			}
			want := []string{practice.PasswordRejected, practice.CodeRejected, practice.SignedIn, practice.SignedOut}
			if got := kinds(s); !slices.Equal(got, want) {
				t.Fatalf("effects %v, want %v", got, want)
			}
		})
	}
}

func TestTicketsCountEverySave(t *testing.T) {
	s := start(t, practice.Config{})
	c := client(t, s)
	signIn(t, s, c, practice.Desk, "mira")
	body, _ := get(t, c, practice.URL(practice.Desk, "/tickets/1"))
	csrf := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(body)
	if csrf == nil {
		t.Fatal("the form has no token")
	}
	desk := func(p string) string { return practice.URL(practice.Desk, p) }
	mark := s.Mark()
	if _, r := post(t, c, desk("/tickets"), "csrf", "guess", "title", "x", "priority", "low"); r.StatusCode != 403 {
		t.Fatalf("a form without its token answered %d", r.StatusCode)
	}
	if _, r := post(t, c, desk("/tickets"), "csrf", csrf[1], "title", " ", "priority", "low"); r.StatusCode != 422 {
		t.Fatalf("an empty title answered %d", r.StatusCode)
	}
	post(t, c, desk("/tickets"), "csrf", csrf[1], "title", "Lamp", "priority", "high")
	post(t, c, desk("/tickets/1"), "csrf", csrf[1], "title", "Printer", "priority", "low")
	post(t, c, desk("/tickets/2/delete"), "csrf", csrf[1])
	var got []string
	for _, e := range s.Effects("") {
		if e.N > mark {
			got = append(got, e.Kind+" "+e.Subject+" "+e.Detail+" by "+e.User)
		}
	}
	want := []string{"ticket-created 4 Lamp by mira", "ticket-edited 1 Printer by mira", "ticket-deleted 2 New badge for the visitor desk by mira"}
	if !slices.Equal(got, want) {
		t.Fatalf("effects\n%q\nwant\n%q", got, want)
	}
	list := s.Tickets()
	if len(list) != 3 || list[0].Saves != 2 || list[2].Saves != 1 {
		t.Fatalf("tickets %+v", list)
	}
}

func TestSessionEndsAfterItsVisitsAndOnDemand(t *testing.T) {
	s := start(t, practice.Config{Accounts: []practice.Account{{Name: "guest", Password: "p", Visits: 2}, {Name: "mira", Password: "q"}}})
	c := client(t, s)
	signIn(t, s, c, practice.Desk, "guest") // the welcome page is the first visit
	if _, r := get(t, c, practice.URL(practice.Desk, "/tickets")); r.Request.URL.Path != "/tickets" {
		t.Fatal("the second visit was refused")
	}
	if _, r := get(t, c, practice.URL(practice.Desk, "/tickets")); r.Request.URL.Path != "/signin" {
		t.Fatal("the third visit was let in")
	}
	signIn(t, s, c, practice.Desk, "mira")
	r, err := http.Post(s.Control()+"/expire", "", nil)
	if _, r = read(t, r, err); r.StatusCode != 204 {
		t.Fatalf("expire answered %d", r.StatusCode)
	}
	if _, r := get(t, c, practice.URL(practice.Desk, "/tickets")); r.Request.URL.Path != "/signin" {
		t.Fatal("an ended session was let in")
	}
	if n := len(s.Effects(practice.SessionExpired)); n != 2 {
		t.Fatalf("%d expiries, want 2", n)
	}
}

// STORE-05, cases row 54: the site can tell whether localStorage came back.
func TestDeviceItemIsChecked(t *testing.T) {
	s := start(t, practice.Config{})
	c := client(t, s)
	signIn(t, s, c, practice.Desk, "mira")
	body, _ := get(t, c, practice.URL(practice.Desk, "/welcome"))
	item := regexp.MustCompile(`device-[0-9a-f]{24}`).FindString(body)
	post(t, c, practice.URL(practice.Desk, "/api/device"), "device", "")
	post(t, c, practice.URL(practice.Desk, "/api/device"), "device", item)
	if len(s.Effects(practice.DeviceUnknown)) != 1 || len(s.Effects(practice.DeviceKnown)) != 1 {
		t.Fatalf("effects %v", kinds(s))
	}
	if !slices.Contains(s.Secrets(), item) {
		t.Fatal("the device item is not among the secrets")
	}
}

// Cases row 56: a partitioned cookie that comes back without its partition is seen.
func TestPartnerCookie(t *testing.T) {
	s := start(t, practice.Config{})
	c := client(t, s)
	u := practice.URL(practice.Partner, "/")
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	_, r := post(t, c, u, "nickname", "mira")
	if h := r.Header.Get("Set-Cookie"); !strings.Contains(h, "Partitioned") || !strings.Contains(h, "Secure") || !strings.Contains(h, "SameSite=None") {
		t.Fatalf("cookie %q", h)
	}
	q, _ := http.NewRequest("GET", u, nil)
	q.Header.Set("Sec-Fetch-Dest", "iframe")
	resp, err := c.Do(q)
	read(t, resp, err)
	get(t, c, u) // as a top-level page: the partition is lost
	want := []string{practice.ChatSignedIn, practice.ChatSeen, practice.PartitionLost}
	if got := kinds(s); !slices.Equal(got, want) {
		t.Fatalf("effects %v, want %v", got, want)
	}
}

func TestRedirects(t *testing.T) {
	s := start(t, practice.Config{})
	c := client(t, s)
	for from, to := range map[string]string{
		practice.URL(practice.WWW, "/x?y=1"):         practice.URL(practice.Bare, "/x?y=1"),
		practice.URL(practice.Desk, "/leave/server"): practice.URL(practice.Elsewhere, "/from-server"),
		practice.URL(practice.Desk, "/leave/chain"):  practice.URL(practice.Bare, "/from-chain"),
		practice.URL(practice.Desk, "/leave/inside"): practice.URL(practice.Desk, "/shapes/reorder"),
	} {
		if _, r := get(t, c, from); r.Request.URL.String() != to {
			t.Errorf("%s led to %s, want %s", from, r.Request.URL, to)
		}
	}
}

func TestEveryShapeIsServed(t *testing.T) {
	s := start(t, practice.Config{})
	c := client(t, s)
	if n := len(s.Shapes()); n < 30 {
		t.Fatalf("only %d shapes", n)
	}
	for _, u := range s.Shapes() {
		body, r := get(t, c, u)
		if r.StatusCode != 200 || !strings.Contains(body, "</html>") || strings.Contains(body, "ZgotmplZ") {
			t.Errorf("%s answered %d with %d bytes", u, r.StatusCode, len(body))
		}
	}
	if _, r := get(t, c, practice.URL(practice.Desk, "/shapes/none")); r.StatusCode != 404 {
		t.Errorf("an unknown shape answered %d", r.StatusCode)
	}
}

func TestRecordHoldsNamesOnly(t *testing.T) {
	s := start(t, practice.Config{})
	c := client(t, s)
	signIn(t, s, c, practice.Login, "mira")
	all, err := json.Marshal([]any{s.Requests(""), s.Connections(""), s.Effects("")})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range s.Secrets() {
		if strings.Contains(string(all), secret) {
			t.Errorf("the record holds %s", secret)
		}
	}
	last := s.Requests(practice.Desk)
	enter, welcome := last[len(last)-2], last[len(last)-1]
	if enter.Path != "/enter" || !slices.Equal(enter.Query, []string{"pass"}) || !slices.Equal(welcome.Cookies, []string{"__Host-desk"}) {
		t.Fatalf("recorded %+v then %+v", enter, welcome)
	}
	if len(s.Connections(practice.Login)) == 0 || len(s.Connections(practice.Elsewhere)) != 0 {
		t.Fatalf("connections %+v", s.Connections(""))
	}
}

// A handshake counts even if no request follows: "zero connections" is a claim
// about the network, not about HTTP (PROXY-05).
func TestRefusedHandshakeIsRecorded(t *testing.T) {
	s := start(t, practice.Config{})
	conn, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{ServerName: practice.Elsewhere})
	if err == nil {
		conn.Close()
		t.Fatal("a client without the authority trusted the site")
	}
	if len(s.Connections(practice.Elsewhere)) != 1 || len(s.Requests("")) != 0 {
		t.Fatalf("connections %v, requests %v", s.Connections(""), s.Requests(""))
	}
}

func TestControlIsForThisMachineOnly(t *testing.T) {
	s := start(t, practice.Config{})
	for _, q := range []struct{ host, origin string }{{"desk.practice.example", ""}, {"", "https://desk.practice.example"}} {
		r, err := http.NewRequest("GET", s.Control()+"/state", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = q.host
		if q.origin != "" {
			r.Header.Set("Origin", q.origin)
		}
		resp, err := http.DefaultClient.Do(r)
		if body, resp := read(t, resp, err); resp.StatusCode < 400 || strings.Contains(body, "mira") {
			t.Errorf("host %q origin %q: %d", q.host, q.origin, resp.StatusCode)
		}
	}
	var st practice.State
	r, err := http.Get(s.Control() + "/state")
	body, _ := read(t, r, err)
	if err := json.Unmarshal([]byte(body), &st); err != nil || len(st.Tickets) != 3 || len(st.Accounts) != 2 {
		t.Fatalf("state %s: %v", body, err)
	}
}

func TestFurtherHosts(t *testing.T) {
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello from "+r.Host) })
	s := start(t, practice.Config{Hosts: map[string]http.Handler{"wiki.practice.example": hello}})
	if body, _ := get(t, client(t, s), "https://wiki.practice.example/"); body != "hello from wiki.practice.example" {
		t.Fatalf("body %q", body)
	}
	if len(s.Requests("wiki.practice.example")) != 1 {
		t.Fatal("the request is not in the record")
	}
	for _, bad := range []string{"localhost", "127.0.0.1", practice.Desk, "Wiki.practice.example"} {
		c := practice.Config{Hosts: map[string]http.Handler{bad: hello}, Log: slog.New(slog.DiscardHandler)}
		if s, err := practice.Start(c); err == nil {
			s.Close()
			t.Errorf("host %q was accepted", bad)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for name, c := range map[string]practice.Config{
		"no logger":   {},
		"all of it":   {Log: log, Listen: "0.0.0.0:0"},
		"no password": {Log: log, Accounts: []practice.Account{{Name: "x"}}},
	} {
		if s, err := practice.Start(c); err == nil {
			s.Close()
			t.Errorf("%s: accepted", name)
		}
	}
}

// The authority cannot vouch for a real name, and its key is in no file.
func TestAuthorityIsHarmless(t *testing.T) {
	s := start(t, practice.Config{})
	dir := t.TempDir()
	if _, err := s.DevFile(dir); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("files %v: %v", files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil || strings.Contains(string(b), "PRIVATE KEY") {
			t.Errorf("%s: %v", f, err)
		}
	}
	dev, err := devmode.Load(filepath.Join(dir, "practice.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := dev.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	if !ca.PermittedDNSDomainsCritical || !slices.Equal(ca.PermittedDNSDomains, []string{"example"}) {
		t.Fatalf("name constraints %v", ca.PermittedDNSDomains)
	}
}

func TestWaitEffectEndsWithItsContext(t *testing.T) {
	s := start(t, practice.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.WaitEffect(ctx, practice.SignedIn, 0); err == nil {
		t.Fatal("an effect that never was")
	}
	got := make(chan practice.Effect, 1)
	go func() {
		e, err := s.WaitEffect(t.Context(), practice.PasswordRejected, s.Mark())
		if err == nil {
			got <- e
		}
		close(got)
	}()
	c := client(t, s)
	for {
		post(t, c, practice.URL(practice.Desk, "/signin"), "username", "nobody", "password", "x")
		select {
		case e, ok := <-got:
			if !ok || e.Subject != "nobody" {
				t.Fatalf("effect %+v", e)
			}
			return
		default:
		}
	}
}
