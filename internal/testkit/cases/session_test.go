package cases_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/testkit/cases"
)

// leased is the browser of the cases about pages that ask for their owner, as
// a profile's lease has it (CHAL-01).
var leased = cases.Group{Challenges: true}

// What somebody or something has put into a field is on no reading, whatever
// the field is built of and whatever it turns into; at most it is said that
// something is there (CAP-05, TEXT-03).
func TestCase49SecretsAreNotRead(t *testing.T) {
	c := shared.Case(t)
	const secret = "planted-5d20c8"
	v := c.Open(strings.ReplaceAll(`<title>Sign in</title><form><input aria-label=User autocomplete=username value=SECRET><input id=p type=password aria-label=Password value=SECRET><input type=text autocomplete=new-password aria-label=New value=SECRET>
		<input autocomplete=one-time-code aria-label=Code value=SECRET><div role=textbox tabindex=0 aria-label=Custom><span>SECRET</span></div><div contenteditable role=textbox aria-label=Rich><p>SECRET</p></div><textarea aria-label=Area>SECRET</textarea>
		<x-p></x-p><button type=button onclick="p.type = 'text'; tell('shown')">Show</button><input aria-label=Typed oninput="tell('typed ' + value)"></form><script>
		document.querySelector('x-p').attachShadow({ mode: 'open' }).innerHTML = '<input type=password aria-label=Inner value=SECRET>'; localStorage.k = 'SECRET'; document.cookie = 'k=SECRET; path=/case'; addEventListener('x', () => 'SECRET')</script>`, "SECRET", secret))
	clean := func(what string, v cases.View) {
		t.Helper()
		whole, err := json.Marshal(v.Document)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(whole)+v.Answer, secret) {
			t.Errorf("%s: it is there: %s", what, whole)
		}
	}
	clean("the page", v)
	for _, name := range []string{"Password", "New", "Inner"} {
		if filled := v.States[c.Find(v, name).Ref].Filled; filled == nil || !*filled {
			t.Errorf("%s is not said to be filled", name)
		}
		c.Refused(v, fault.ActionNotAllowed, action.Type, name, "guess")
	}
	v = c.Must(v, action.Click, "Show")
	clean("once it is shown", v)
	c.Refused(v, fault.ActionNotAllowed, action.Type, "Password", "guess")
	v = c.Must(v, action.Type, "Typed", secret)
	clean("once it was typed", v)
	clean("again", c.Read(observe.Query{}))
	c.Only("shown", "typed "+secret)
}

// A website that rejects a password leaves the owner where they were: what they
// typed has arrived, and the sign-in is not over until the page asks for
// nothing any more (READY-01). No agent reads a page that asks.
func TestCase51RejectedPasswords(t *testing.T) {
	c := leased.Case(t)
	login := ""
	const form = `<title>Sign in</title><style>body{margin:0}input,button{position:absolute;left:0;width:200px;height:40px}</style><p style="margin-top:120px">%s</p>
		<form method=post action="%s"><input type=password name=p style="top:0" autofocus><button style="top:50px">Sign in</button></form>`
	login = c.Handle(cases.Host, "login", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch given := r.PostFormValue("p"); {
		case given == "right":
			http.SetCookie(w, &http.Cookie{Name: "in", Value: "1", Path: "/case", Secure: true})
			fmt.Fprint(w, `<title>Welcome</title><p>Signed in</p>`)
		case given != "":
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, form, "The password is wrong.", login)
		default:
			fmt.Fprintf(w, form, "Please sign in.", login)
		}
	})
	c.Opens(login, fault.NeedsUser)
	posts := func() []string { return c.Posted(login) }
	try := func(password string, ready bool) {
		t.Helper()
		n := len(posts())
		for _, in := range []browser.Input{{Kind: "click", X: 90, Y: 20}, {Kind: "text", Text: password}, {Kind: "key", Key: "Enter"}} {
			if err := c.Page.Input(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
		c.Until("the website answers "+password, func() bool { return len(posts()) == n+1 })
		var e ceremony.Evidence
		c.Until("the page says how it went", func() bool { // the answer may be on its way
			var err error
			e, err = c.Page.Evidence(t.Context())
			e.TextDuringChallenge = true
			return err == nil && e.Ready() == ready
		})
		if !ready && e.Waiting() != ceremony.NeedsUser {
			t.Errorf("after %s: %+v", password, e)
		}
	}
	try("wrong", false)
	if _, err := c.Page.Observe(t.Context(), observe.Query{}); !fault.Is(err, fault.NeedsUser) {
		t.Errorf("an agent reads the form: %v", err)
	}
	try("right", true)
	if got := posts(); !slices.Equal(got, []string{"p=wrong", "p=right"}) {
		t.Errorf("the website got %q", got)
	}
	if v := c.Read(observe.Query{}); v.Text != "Signed in" {
		t.Errorf("%q", v.Text)
	}
}

// That a check for programs is present stops nobody; that it asks something
// does; and one that turns a form down without a word leaves a page that says
// so itself (CHAL-02).
func TestCase53PresentIsNotAsking(t *testing.T) {
	c := leased.Case(t)
	script := c.Handle(cases.Host, "score.js", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/javascript") })
	const form = `<form onsubmit="event.preventDefault(); tell('sent ' + this.m.value); r.textContent = 'We could not send this.'"><input name=m aria-label=Message><button>Send</button><input type=hidden name=g-captcha-response></form><p id=r role=status></p>`
	for name, present := range map[string]string{
		"a script alone": `<script src="` + script + `?captcha"></script>`,
		"the badge":      `<div class="grecaptcha-badge" style="position:fixed;right:0;bottom:0;width:90px;height:60px">protected<iframe title="reCAPTCHA" srcdoc="x" width=60 height=30></iframe></div>`,
		"a hidden one":   `<div id=captcha style="display:none">x</div>`, "in words": `<p>This site uses a captcha.</p>`,
	} {
		v := c.Open(`<title>Contact</title>` + present + form)
		v = c.Must(v, action.Type, "Message", name)
		v = c.Must(v, action.Click, "Send")
		if !strings.Contains(v.Text, "We could not send this.") || v.Interruption != "" {
			t.Errorf("%s: %q %q", name, v.Text, v.Interruption)
		}
		c.Await("sent " + name)
	}
	for _, asks := range []string{`<iframe title="reCAPTCHA challenge" srcdoc="pick the boats" width=300 height=300></iframe>`, `<div class=h-captcha style="width:300px;height:80px">x</div>`} {
		c.Opens(c.Serve(cases.Host, fmt.Sprint("asks", len(asks)), `<title>Check</title>`+asks+form), fault.NeedsUser)
	}
	// It comes up as the answer to a click: the click has happened, once, and
	// nothing of the page is read.
	v := c.Open(`<title>Late</title><button onclick="tell('clicked'); k.hidden = false">Order</button><div id=k class=captcha hidden>pick the boats</div>`)
	if v = c.Must(v, action.Click, "Order"); v.Interruption != observe.NeedsUser || v.Text != "" || len(v.Elements) != 0 {
		t.Errorf("%+v", v.Document)
	}
	c.Await("clicked")
	if n := strings.Count(strings.Join(c.Told(), "\n"), "clicked"); n != 1 {
		t.Errorf("%d clicks", n)
	}
}

// A session goes from one browser to the next, as the website sees it. One that
// cannot be restored whole is an error before any page is opened, and leaves
// what was saved as it is (the caller has nothing to write back then; that no
// failed restore is sealed over a session is for app/browserd's tests).
func TestCase54SessionsRoundTrip(t *testing.T) {
	c := shared.Case(t)
	serve := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if r.URL.RawQuery == "in" {
			for _, cookie := range []string{"sid=s1; Path=/; Secure; HttpOnly; SameSite=Strict", "__Host-k=k1; Path=/; Secure; Max-Age=9000", "deep=d1; Path=" + r.URL.Path + "; Secure", "plain=p1; Path=/", "wide=w1; Domain=" + cases.Host + "; Path=/"} {
				w.Header().Add("Set-Cookie", cookie)
			}
			fmt.Fprint(w, `<title>In</title><script>localStorage.token = 'tök\u0000en'; localStorage.empty = ''</script>`)
			return
		}
		fmt.Fprint(w, `<title>Back</title><p id=o></p><script>o.textContent = document.cookie.includes('sid=') + ' ' + escape(localStorage.token) + ' ' + ('empty' in localStorage)</script>`)
	}
	address := c.Handle(cases.Host, "session", serve)
	c.Visit(address + "?in")
	saved, err := c.Page.Capture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	next := c.Another(t)
	broken := browser.Material{Cookies: saved.Cookies, Origins: []browser.Storage{{Origin: "https://" + cases.Stranger, Items: []browser.Item{{Name: "a", Value: "b"}}}}}
	before := len(c.Cookies(address))
	if err := next.Page.Restore(t.Context(), broken); err == nil {
		t.Error("a session that cannot be restored whole was restored")
	}
	if n := len(c.Cookies(address)); n != before {
		t.Errorf("a restore made %d requests", n-before)
	}
	next = c.Another(t)
	if err := next.Page.Restore(t.Context(), saved); err != nil {
		t.Fatal(err)
	}
	if v := next.Visit(address); v.Text != "false t%F6k%00en true" {
		t.Errorf("the page finds %q", v.Text)
	}
	sent := c.Cookies(address)
	for _, want := range []string{"sid=s1", "__Host-k=k1", "deep=d1", "plain=p1", "wide=w1"} {
		if !strings.Contains(sent[len(sent)-1], want) {
			t.Errorf("the website got %q, without %s", sent[len(sent)-1], want)
		}
	}
	again, err := next.Page.Capture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if a, b := ordered(saved), ordered(again); !slices.Equal(a, b) {
		t.Errorf("%q became %q", a, b)
	}
}

// ordered is the session as text, in a fixed order.
func ordered(m browser.Material) (out []string) {
	for _, k := range m.Cookies {
		part := ""
		if k.Partition != nil {
			part = fmt.Sprintf("%+v", *k.Partition)
		}
		k.Partition = nil
		out = append(out, fmt.Sprintf("%+v %s", k, part))
	}
	for _, o := range m.Origins {
		slices.SortFunc(o.Items, func(a, b browser.Item) int { return strings.Compare(a.Name, b.Name) })
		out = append(out, fmt.Sprintf("%+v", o))
	}
	slices.Sort(out)
	return out
}

// A cookie that an embedded sign-in has under one website is still that
// website's alone after a session has gone to the next browser: it is sent
// where it was embedded, and not when the same site is visited itself.
func TestCase56PartitionedCookies(t *testing.T) {
	c := shared.Case(t)
	inside := c.Handle(cases.Partner, "widget", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if r.URL.RawQuery == "in" {
			w.Header().Set("Set-Cookie", "chip=c1; Path=/; Secure; HttpOnly; SameSite=None; Partitioned")
		}
		fmt.Fprint(w, `<title>Widget</title><p>widget</p>`)
	})
	embed := func(query string) string {
		return c.Serve(cases.Host, "embeds"+query, `<title>Shop</title><iframe width=300 height=100 src="`+inside+"?"+query+`"></iframe>`)
	}
	c.Visit(embed("in"))
	c.Until("the widget is asked for", func() bool { return len(c.Cookies(inside)) == 1 })
	var saved browser.Material
	c.Until("the widget has its cookie", func() bool {
		var err error
		if saved, err = c.Page.Capture(t.Context()); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(saved.Cookies, func(k browser.Cookie) bool { return k.Name == "chip" && k.Partition != nil })
	})
	next := c.Another(t)
	if err := next.Page.Restore(t.Context(), saved); err != nil {
		t.Fatal(err)
	}
	next.Visit(embed("again"))
	c.Until("the widget is asked for again", func() bool { return len(c.Cookies(inside)) == 2 })
	next.Visit(inside + "?itself")
	got := c.Cookies(inside)
	if len(got) != 3 || !strings.Contains(got[1], "chip=c1") || strings.Contains(got[2], "chip") {
		t.Errorf("the widget got %q", got)
	}
}
