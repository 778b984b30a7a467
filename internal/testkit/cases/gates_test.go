package cases_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/consequence"
	"github.com/chaperone-agents/chaperone/internal/rules/constraint"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/rules/policy"
	"github.com/chaperone-agents/chaperone/internal/testkit/cases"
)

// A handle says nothing of what it stands for: an act under a grant is judged
// by the live control, by every label that it has, and nothing of what a call
// says (CONS-02, CLS-03). What is not covered never arrives.
func TestCase58JudgedByTheLiveControl(t *testing.T) {
	c := shared.Case(t)
	origins, err := site.ParseOrigins([]string{"https://" + cases.Host})
	if err != nil {
		t.Fatal(err)
	}
	grant := &constraint.Constraint{Kind: constraint.Research, Origins: origins, ExpiresAt: time.Now().Add(time.Hour), Ceiling: consequence.Unknown, MaxText: constraint.MaxText}
	under := func(v cases.View, kind action.Kind, name string, key *string) error {
		_, err := c.Page.Act(t.Context(), action.Action{Kind: kind, ExpectedRevision: v.Revision, Ref: c.Find(v, name).Ref, Key: key}, grant)
		return err
	}
	for name, control := range map[string]string{
		"Pay now":        `<button onclick="tell('harm')">Pay now</button>`,
		"Continue":       `<button aria-label=Continue onclick="tell('harm')">Place the order</button>`,
		"Delete account": `<button title="Delete account" onclick="tell('harm')">Next</button>`,
		"Show":           `<a href="/checkout/pay" onclick="event.preventDefault(); tell('harm')">Show</a>`,
		"Go":             `<form action="/account/delete" onsubmit="event.preventDefault(); tell('harm')"><button>Go</button></form>`,
		"More":           `<div role=dialog aria-label="Confirm payment"><button onclick="tell('harm')">More</button></div>`,
		"Buy":            `<x-b></x-b><script>document.querySelector('x-b').attachShadow({ mode: 'open' }).innerHTML = '<button>Buy</button>'; document.querySelector('x-b').onclick = () => tell('harm')</script>`,
		"On":             `<button role=switch aria-checked=false onclick="tell('harm')">On</button>`,
		"€ 12":           `<button onclick="tell('harm')">€ 12</button>`,
	} {
		for _, kind := range []action.Kind{action.Click, action.Press} {
			var key *string
			if kind == action.Press {
				if !slices.Contains([]string{"Pay now", "Continue", "Go"}, name) {
					continue
				}
				key = new("Enter")
			}
			if err := under(c.Open(`<title>Judged</title>`+control), kind, name, key); !fault.Is(err, fault.GrantNotApplicable) {
				t.Errorf("%s %s: %v", kind, name, err)
			}
		}
	}
	// It was harmless when it was read.
	script, run := c.Later(`w.firstChild.data = 'Pay'`)
	v := c.Open(`<title>Turns</title><div role=group tabindex=0 aria-label=Panel onclick="tell('harm')" style="width:200px"><p id=w>Details</p></div>` + script)
	run()
	if err := under(v, action.Click, "Panel", nil); !fault.Is(err, fault.GrantNotApplicable) {
		t.Errorf("a control that turned: %v", err)
	}
	if err := under(c.Open(`<title>Fine</title><button onclick="tell('fine')">Details</button>`), action.Click, "Details", nil); err != nil {
		t.Error(err)
	}
	c.Only("fine")
}

// An address that names an act waits for the owner as a click would. Whatever
// is refused is an error, and neither asked for nor shown as a page. (That the
// owner is then asked is for app/broker's tests.)
func TestCase61AddressesAreJudged(t *testing.T) {
	origins, err := site.ParseOrigins([]string{"https://" + cases.Host, "https://" + cases.Partner})
	if err != nil {
		t.Fatal(err)
	}
	decide := func(address string) policy.Verdict {
		t.Helper()
		arguments, err := json.Marshal(map[string]string{"url": address})
		if err != nil {
			t.Fatal(err)
		}
		r, err := action.PrepareFor(contract.Newest, action.Navigate, arguments)
		if err != nil {
			t.Fatal(address, err)
		}
		return policy.Decide(r, origins).Verdict
	}
	for _, path := range []string{"checkout", "Checkout/", "cart/checkout.php?id=3", "pay;v=1", "buy-now/17", "account/%64elete", "a/../checkout", "sign-out", "orders/17/cancel", "place_order"} {
		if got := decide("https://" + cases.Host + "/" + path); got != policy.Ask {
			t.Errorf("/%s: %v", path, got)
		}
	}
	for _, path := range []string{"", "cart", "payment-methods-explained", "articles/how-to-cancel-a-trip", "search?q=checkout"} {
		if got := decide("https://" + cases.Host + "/" + path); got != policy.Allow {
			t.Errorf("/%s: %v", path, got)
		}
	}
	if got := decide("https://" + cases.Stranger + "/checkout"); got != policy.Deny {
		t.Errorf("another origin: %v", got)
	}

	c := shared.Case(t)
	off := c.Handle(cases.Stranger, "checkout", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "paid") })
	hop := c.Handle(cases.Host, "hop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, off, http.StatusFound) })
	c.Open(`<title>Here</title><p>here</p>`)
	for _, address := range []string{off, hop} {
		c.Opens(address, fault.URLDisallowed)
		if v := c.Read(observe.Query{}); v.Title != "Here" {
			t.Errorf("after %s the page is %q", address, v.Title)
		}
	}
	if n := len(c.Requests(off)); n != 0 {
		t.Errorf("%d requests for a refused address", n)
	}
}

// What may be opened is first a list of one scheme, then an exact host: neither
// a call, nor a link, nor a script gets a page of another kind or another
// website into the window, and nobody else gets a request.
func TestCase63AddressesThatPretend(t *testing.T) {
	for _, address := range []string{
		"javascript:alert(1)", "data:text/html,x", "blob:https://" + cases.Host + "/1", "chrome://settings", "about:blank", "view-source:https://" + cases.Host + "/", "file:///etc/passwd", "filesystem:https://" + cases.Host + "/x", "http://" + cases.Host + "/",
		"https://" + cases.Host + "@" + cases.Stranger + "/", "https://" + cases.Host + ":443@" + cases.Stranger + "/", `https://` + cases.Stranger + `\@` + cases.Host + "/", "https://" + cases.Host + "%40" + cases.Stranger + "/", "https://" + cases.Host + ":8443/", "https:" + cases.Host, "//" + cases.Host, "\thttps://" + cases.Host,
	} {
		arguments, err := json.Marshal(map[string]string{"url": address})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := action.PrepareFor(contract.Newest, action.Navigate, arguments); !fault.Is(err, fault.URLDisallowed) {
			t.Errorf("%q: %v", address, err)
		}
	}
	c := shared.Case(t)
	stranger := c.Handle(cases.Stranger, "trap", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "trap") })
	tricked := strings.Replace(stranger, "https://", "https://"+cases.Host+"@", 1)
	for name, body := range map[string]string{
		"user name":        `<a href="` + tricked + `">Go</a>`,
		"user name script": `<button onclick="location = '` + tricked + `'">Go</button>`,
		"form":             `<form method=post action="` + tricked + `"><input name=a value=b><button>Go</button></form>`,
		"backslash":        `<a href="https:\\` + cases.Stranger + `\@` + cases.Host + `/trap">Go</a>`,
		"data":             `<a href="data:text/html,<title>Trap</title>trap">Go</a>`,
		"data script":      `<button onclick="location = 'data:text/html,<title>Trap</title>trap'">Go</button>`,
		"blob":             `<a id=a>Go</a><script>a.href = URL.createObjectURL(new Blob(['<title>Trap</title>trap'], { type: 'text/html' }))</script>`,
		"javascript":       `<a href="javascript:location='` + stranger + `'">Go</a>`,
		"view-source":      `<a href="view-source:https://` + cases.Host + `/">Go</a>`,
		"browser":          `<a href="chrome://version">Go</a>`,
		"file":             `<a href="file:///etc/passwd">Go</a>`,
		"about":            `<button onclick="location = 'about:blank'">Go</button>`,
		"opened":           `<button onclick="window.open('` + tricked + `')">Go</button>`,
		"meta":             `<button onclick="document.head.insertAdjacentHTML('beforeend', '<meta http-equiv=refresh content=&quot;0;url=` + tricked + `&quot;>')">Go</button>`,
	} {
		v := c.Open(`<title>Here</title><p>here</p>` + body)
		if after, err := c.Try(v, action.Click, "Go"); err == nil && after.Title != "Here" {
			t.Errorf("%s: the page is %q at %q", name, after.Title, after.URL)
		}
		after, err := c.Page.Observe(t.Context(), observe.Query{})
		switch nowhere := name == "blob" || name == "about"; { // a page may show such a document in its place; nobody reads it
		case nowhere && fault.Is(err, fault.URLDisallowed):
		case err != nil:
			t.Errorf("%s: then %v", name, err)
		case after.Title != "Here" || !strings.HasPrefix(after.URL, "https://"+cases.Host+"/"):
			t.Errorf("%s: then the page is %q at %q", name, after.Title, after.URL)
		}
	}
	c.Only()
	if n := len(c.Requests(stranger)); n != 0 {
		t.Errorf("%d requests reached the other website", n)
	}
}

// No page reaches this machine: every request of every kind that is made at all
// goes to the one way out, also one to this machine itself, and the machine's
// own listeners see nobody. (That the way out refuses such names, resolves each
// once and dials the address that it checked is for browser/egress's tests.)
func TestCase64NoWayToTheMachine(t *testing.T) {
	c := shared.Case(t)
	var met atomic.Int32
	listen := func(address string) string {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return "1" // no such family here: the port is as good as any
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				met.Add(1)
				_ = conn.Close()
			}
		}()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		return port
	}
	four, six := listen("127.0.0.1:0"), listen("[::1]:0")
	var tries []string
	for _, host := range []string{"127.0.0.1:" + four, "localhost:" + four, "[::1]:" + six, "[::ffff:127.0.0.1]:" + four, "2130706433:" + four, "0.0.0.0:" + four, "x.localhost:" + four, "10.0.0.1", "169.254.169.254", "printer.local", "intranet"} {
		for _, scheme := range []string{"http", "https"} {
			tries = append(tries, scheme+"://"+host+"/x")
		}
	}
	list, err := json.Marshal(tries)
	if err != nil {
		t.Fatal(err)
	}
	v := c.Open(`<title>Reach</title><button onclick="tell('clicked')">Still here</button><div id=d></div><script>(async () => { const list = ` + string(list) + `; let got = 0;
		for (const u of list) { const w = u.replace('http', 'ws'); try { new WebSocket(w) } catch {} try { new EventSource(u) } catch {} try { navigator.sendBeacon(u, 'x') } catch {}
			d.insertAdjacentHTML('beforeend', '<img src="' + u + '"><iframe src="' + u + '"></iframe><link rel=stylesheet href="' + u + '"><link rel=preconnect href="' + u + '"><link rel=prefetch href="' + u + '">'); }
		await Promise.all(list.map((u) => Promise.race([fetch(u, { mode: 'no-cors' }).then(() => got++, () => {}), new Promise((r) => setTimeout(r, 3000))])));
		try { const pc = new RTCPeerConnection({ iceServers: [{ urls: 'stun:127.0.0.1:` + four + `' }, { urls: 'turn:127.0.0.1:` + four + `?transport=tcp', username: 'a', credential: 'b' }] }); pc.createDataChannel('x'); await pc.setLocalDescription(); await new Promise((r) => setTimeout(r, 300)); } catch {}
		tell('answers ' + got) })()</script>`)
	c.Await("answers 0")
	c.Must(v, action.Click, "Still here")
	c.Only("answers 0", "clicked")
	if n := met.Load(); n != 0 {
		t.Errorf("%d connections reached this machine", n)
	}
	asked := c.Connects()
	for _, to := range []string{"127.0.0.1:" + four, "localhost:" + four} { // which refuses it; without the switch nobody is asked
		if !slices.Contains(asked, to) {
			t.Errorf("the way out was not asked for %s", to)
		}
	}
}

// The browser has no door: it listens on no address at all, so there is nothing
// that a page could post to. (The doors of the programs check host, origin and
// key; that is for edge/ownerapi, edge/mcpserver, edge/ceremonyweb and
// testkit/product.)
func TestCase65NoControlPort(t *testing.T) {
	if _, err := os.Stat("/proc/self/net/tcp"); err != nil {
		t.Log("this system does not say who listens")
		return
	}
	c := shared.Case(t)
	c.Open(`<title>Running</title>`)
	open := listening(t)
	var mine, theirs int
	for pid, inodes := range sockets(t) {
		for _, inode := range inodes {
			switch {
			case !open[inode]:
			case pid == os.Getpid():
				mine++
			default:
				theirs++
				t.Errorf("process %d listens", pid)
			}
		}
	}
	if mine < 2 { // the website and the way out; else nothing would be found at all
		t.Errorf("only %d listeners were found", mine)
	}
}

// listening are the inodes of the TCP sockets that listen.
func listening(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, name := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		table, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(table)) {
			if f := strings.Fields(line); len(f) > 9 && f[3] == "0A" {
				found[f[9]] = true
			}
		}
	}
	return found
}

// sockets are those that this process and its descendants hold, by process.
func sockets(t *testing.T) map[int][]string {
	t.Helper()
	parents := map[int]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(rest); len(f) > 1 {
			parents[pid], _ = strconv.Atoi(f[1])
		}
	}
	found := map[int][]string{}
	children := 0
	for pid := range parents {
		up := pid
		for up > 1 && up != os.Getpid() {
			up = parents[up]
		}
		if up != os.Getpid() {
			continue
		}
		fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil {
			continue // a sandboxed process shows nothing, and has no network
		}
		if pid != os.Getpid() && len(fds) > 0 {
			children++
		}
		for _, fd := range fds {
			to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name()))
			if inode, ok := strings.CutPrefix(to, "socket:["); err == nil && ok {
				found[pid] = append(found[pid], strings.TrimSuffix(inode, "]"))
			}
		}
	}
	if children == 0 {
		t.Error("no process of the browser could be looked at")
	}
	return found
}
