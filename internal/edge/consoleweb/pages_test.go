package consoleweb_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
)

func button(words string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("button, a")].find((b) => b.checkVisibility() && b.textContent.trim() === %q)`, words)
}

// logIn enters by the printed address.
func logIn(h *house, c *chrome) {
	h.t.Helper()
	c.open(h.url + "/#code=" + h.code())
	c.click(button("Log in"))
	c.until(`document.querySelector("#link").dataset.state === "live"`)
}

// hostile is what a website would like to be on our page.
const hostile = `<img src=x onerror="document.title='owned'"><b>Approve</b> javascript:alert(1) "><script>document.title='owned'</script>`

// VIEW-01 to VIEW-04, TRUST-01: a question arrives live; page text is text; the
// owner's click is the decision, once.
func TestApprovalArrivesAndIsDecided(t *testing.T) {
	h, c := newHouse(t), newChrome(t)
	logIn(h, c)
	var hash string
	c.eval("location.href", &hash)
	if strings.Contains(hash, "code") {
		t.Errorf("the code stayed in the address: %s", hash)
	}
	c.until(`document.body.innerText.includes("Nothing is waiting for you")`)

	id := h.ready(wiki)
	s := h.session(id, "helper")
	first := h.ask(s, id, "Type into a textbox on wiki.example.org/edit", approval.View{
		Described: true, Kind: "type", PageOrigin: wiki, PagePath: "/edit", PageTitle: hostile, ElementRole: "textbox", ElementName: hostile,
		Text: "line one\n" + hostile,
	})
	c.until(`document.querySelectorAll("[data-approval]").length === 1 && document.title.startsWith("(1)")`)
	second := h.ask(s, id, "Click a button on wiki.example.org/edit", approval.View{Described: true, Kind: "click", PageOrigin: wiki, PagePath: "/edit", ElementName: "Save"})
	lost := h.ask(s, id, "Click an element that can no longer be described", approval.View{Kind: "click"})
	c.until(`document.querySelectorAll("[data-approval]").length === 3`)
	c.until(`document.querySelector("#announce").textContent.includes("An agent asks")`)

	var seen struct {
		Order, Foreign []string
		Title, Quote   string
		Approvable     bool
	}
	c.eval(fmt.Sprintf(`({
		order: [...document.querySelectorAll("[data-approval]")].map((n) => n.dataset.approval),
		foreign: [...document.querySelectorAll("main img, main script, main b")].map((n) => n.outerHTML),
		title: document.title,
		quote: document.querySelector("[data-approval] .quote").innerText,
		approvable: [...document.querySelectorAll('[data-approval="%s"] button')].some((b) => b.textContent.includes("Approve")),
	})`, lost), &seen)
	if strings.Join(seen.Order, " ") != first+" "+second+" "+lost {
		t.Errorf("an arriving question moved the others: %v", seen.Order)
	}
	if len(seen.Foreign) != 0 || strings.Contains(seen.Title, "owned") {
		t.Errorf("page text became markup: %v, title %q", seen.Foreign, seen.Title)
	}
	if !strings.Contains(seen.Quote, hostile) || !strings.Contains(seen.Quote, "The website wiki.example.org says") {
		t.Errorf("quoted: %s", seen.Quote)
	}
	if seen.Approvable {
		t.Error("what cannot be described can be approved")
	}
	if text := c.text(); !strings.Contains(text, "The agent would type") || !strings.Contains(text, "line one") {
		t.Errorf("the typed text is not shown: %s", text)
	}

	c.click(fmt.Sprintf(`document.querySelector('[data-approval="%s"] button.main')`, first))
	c.until(fmt.Sprintf(`document.querySelector('[data-approval="%s"]').innerText.includes("may do this once")`, first))
	if got := h.status(first); got != approval.Approved {
		t.Errorf("stored as %s", got)
	}
	if h.status(second) != approval.Pending {
		t.Error("a second question was answered with the first")
	}

	// By keyboard alone: the button has the focus, Enter presses it.
	c.eval(fmt.Sprintf(`[...document.querySelectorAll('[data-approval="%s"] button')].find((b) => b.textContent === "Deny").focus()`, second), nil)
	c.key("Enter", 13, 0)
	c.until(fmt.Sprintf(`document.querySelector('[data-approval="%s"]').innerText.includes("Nothing was sent")`, second))
	if got := h.status(second); got != approval.Denied {
		t.Errorf("stored as %s", got)
	}
	c.until(`document.activeElement.classList.contains("outcome")`)

	// A question that ends elsewhere says so, and offers nothing more.
	if _, err := h.owner.Stop(t.Context(), ana); err != nil {
		t.Fatal(err)
	}
	c.until(fmt.Sprintf(`document.querySelector('[data-approval="%s"]').innerText.includes("Withdrawn") && !document.querySelector('[data-approval="%s"] button')`, lost, lost))
}

// The address that an agent's client shows leads to the question.
func TestApprovalAddress(t *testing.T) {
	h, c := newHouse(t), newChrome(t)
	id := h.ready(wiki)
	asked := h.ask(h.session(id, "helper"), id, "Click a button on wiki.example.org/", approval.View{Described: true, Kind: "click", PageOrigin: wiki})
	logIn(h, c)
	c.eval(fmt.Sprintf(`location.hash = "#/approvals/%s"`, asked), nil)
	c.until(fmt.Sprintf(`document.querySelector('[data-approval="%s"].target') && document.activeElement.textContent.includes("Click a button")`, asked))
}

// CCLI-01, SWEEP-01: create, sign in behind a link of the owner's, the outcome
// appears by itself; revoke and delete ask first.
func TestProfileLifeInTheConsole(t *testing.T) {
	h, c := newHouse(t), newChrome(t)
	logIn(h, c)
	c.click(button("Profiles"))
	c.click(button("New profile"))
	c.until(`document.activeElement.id === "origins"`)
	c.insert("http://insecure.example.org")
	c.click(button("Create"))
	c.until(`document.querySelector("dialog .error").textContent.includes("https://")`)
	c.eval(`document.querySelector("#origins").select()`, nil)
	c.insert("Wiki.example.org")
	c.click(button("Create"))
	c.until(`!document.querySelector("dialog") && document.querySelector("[data-profile]").innerText.includes("Sign-in needed")`)
	list, err := h.owner.Profiles(t.Context(), ana)
	if err != nil || len(list) != 1 || list[0].Origins[0].String() != wiki {
		t.Fatalf("%+v, %v", list, err)
	}
	id := list[0].ID

	c.click(button("Sign in"))
	c.click(button("Start a browser"))
	c.until(`document.activeElement.id === "open-ceremony"`)
	var link struct{ Href, Rel, Target, Outside string }
	c.eval(`(() => { const a = document.querySelector("#open-ceremony"); const href = a.href; return {href, rel: a.rel, target: a.target, outside: document.body.innerText + location.href + JSON.stringify(sessionStorage)}; })()`, &link)
	_, capability, _ := strings.Cut(link.Href, "#")
	if len(capability) < 43 || link.Rel != "noopener noreferrer" || link.Target != "_blank" || strings.Contains(link.Outside, capability) {
		t.Errorf("CER-02: %q %q, shown elsewhere: %v", link.Rel, link.Target, strings.Contains(link.Outside, capability))
	}
	c.click(`document.querySelector("#open-ceremony")`)
	c.call(c.page, "Page.bringToFront", map[string]any{}, nil) // from the new tab back to the console
	c.until(`!document.querySelector("dialog") && document.querySelector("[data-profile]").innerText.includes("Signing in")`)
	p, err := h.owner.Profile(t.Context(), ana, id)
	if err != nil || p.Open == nil {
		t.Fatalf("%+v, %v", p, err)
	}
	h.service.Finish(p.Open.ID, ceremony.Ready)
	c.until(`document.querySelector("[data-profile] .chip").textContent === "Ready"`)

	c.click(button("Revoke"))
	c.until(`document.activeElement.textContent === "Keep as it is"`)
	c.key("Enter", 13, 0)
	c.until(`!document.querySelector("dialog")`)
	if p, _ := h.owner.Profile(t.Context(), ana, id); p.Status != profile.Ready {
		t.Fatalf("revoked without a yes: %s", p.Status)
	}
	c.until(`document.activeElement.textContent === "Revoke"`) // the focus came back
	c.click(button("Revoke"))
	c.click(`document.querySelector("dialog button.danger")`)
	c.until(`document.querySelector("[data-profile]").innerText.includes("Revoked")`)
	c.click(button("Delete"))
	c.click(`document.querySelector("dialog button.danger")`)
	c.until(`document.body.innerText.includes("No profile yet")`)
	if h.service.Has(id) {
		t.Error("material is left")
	}
}

// A click is not lost when the list is read again between press and release.
func TestClickDuringARefresh(t *testing.T) {
	h, c := newHouse(t), newChrome(t)
	id := h.ready(wiki)
	logIn(h, c)
	c.click(button("Profiles"))
	const asked = `performance.getEntriesByType("resource").filter((e) => e.name.endsWith("/v1/browser-profiles")).length`
	c.until(`document.querySelector("[data-profile]")`)
	var before int
	c.eval(asked, &before)
	release := c.press(`document.querySelector("[data-key='Revoke ` + id + `']")`)
	h.create("https://shop.example.com")
	c.until(asked + " > " + strconv.Itoa(before))
	c.eval(`new Promise((done) => setTimeout(done, 100))`, nil) // the answer is read
	release()
	c.until(`document.activeElement.textContent === "Keep as it is"`)
	c.key("Enter", 13, 0)
	c.until(`document.querySelectorAll("[data-profile]").length === 2`)
}

// A wrong code lets nobody in; logging out ends the session on the server, too.
func TestLogInAndOut(t *testing.T) {
	h, c := newHouse(t), newChrome(t)
	c.open(h.url + "/")
	c.until(`document.activeElement.id === "code"`)
	c.insert("AAAA-BBBB-CCCC")
	c.key("Enter", 13, 0)
	c.until(`document.querySelector(".error").textContent.includes("not valid")`)
	logIn(h, c)
	var halves struct{ Stored, Cookie string }
	c.eval(`({stored: JSON.stringify(sessionStorage), cookie: document.cookie})`, &halves)
	if strings.Contains(halves.Stored, "apd1") || halves.Cookie != "" {
		t.Errorf("readable by a script: %+v", halves)
	}
	c.click(button("Log out"))
	c.until(`document.querySelector("#code") && sessionStorage.length === 0`)
	devices, err := h.access.Devices(t.Context(), ana)
	if err != nil || len(devices) != 0 {
		t.Errorf("devices left: %d, %v", len(devices), err)
	}
}

// A tab that is left open when the service ends sends neither half of its
// session to what listens at the address next.
func TestNothingIsSentToAnotherProgram(t *testing.T) {
	h, c := newHouse(t), newChrome(t)
	var mu sync.Mutex
	var ended bool
	var looks, sent int // what the first program got: looks at who listens, and what followed them
	var begun int       // of those, without the stream of events, the ones that have no answer yet
	var asked, told []string
	program, either := h.handler.Load(), http.NewServeMux()
	either.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if !ended {
			switch {
			case r.URL.Path == "/health/live":
				looks++
			case strings.HasPrefix(r.URL.Path, "/v1/"):
				sent++
			}
			stream := r.URL.Path == "/v1/events"
			if !stream {
				begun++
			}
			mu.Unlock()
			program.ServeHTTP(w, r)
			_ = http.NewResponseController(w).Flush() // a browser repeats what it had no answer to
			mu.Lock()
			if !stream {
				begun--
			}
			return
		}
		asked = append(asked, r.URL.Path)
		if r.Header.Get("Cookie") != "" || r.Header.Get("X-Console-Key") != "" {
			told = append(told, r.URL.Path)
		}
		w.Header().Set("Chaperone-Instance", "another")
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"approvals": []}`)
	})
	h.handler.Store(either)
	logIn(h, c)
	// It ends when no answer to a look is on its way to a page that would believe
	// it, and every request has its answer.
	h.until("the page is at rest", func() bool {
		mu.Lock()
		defer mu.Unlock()
		ended = looks == sent && begun == 0
		return ended
	})
	h.server.CloseClientConnections()
	c.until(`document.querySelector("#code") && sessionStorage.length === 0`)
	mu.Lock()
	defer mu.Unlock()
	if len(asked) == 0 || len(told) != 0 {
		t.Errorf("asked for %v, with half a session for %v", asked, told)
	}
}

// Nothing scrolls sideways at 380 px, and every control has a name, on every page.
func TestSmallScreens(t *testing.T) {
	h, c := newHouse(t), newChrome(t)
	fill(h)
	c.size(380, 800)
	logIn(h, c)
	for _, page := range []string{"approvals", "profiles", "activity", "devices"} {
		c.eval(`location.hash = "#/`+page+`"`, nil)
		c.until(`document.querySelector('[aria-current]').dataset.page === "` + page + `" && document.querySelector("main li, main .empty")`)
		var found struct {
			Width   int
			Unnamed []string
		}
		c.eval(`({
			width: document.documentElement.scrollWidth,
			unnamed: [...document.querySelectorAll("button, a, input, textarea, select")].filter((e) => e.checkVisibility() && !(e.textContent.trim() || e.getAttribute("aria-label") || e.labels?.length)).map((e) => e.outerHTML),
		})`, &found)
		if found.Width > 380 || len(found.Unnamed) != 0 {
			t.Errorf("%s: %d px wide; without a name: %v", page, found.Width, found.Unnamed)
		}
	}
}

// fill makes a house that has been lived in.
func fill(h *house) {
	h.t.Helper()
	a := h.ready(wiki, "https://login.example.org")
	h.create("https://shop.example.com")
	gone := h.ready("https://a-very-long-host-name-that-somebody-thought-was-a-good-idea.department.example.org")
	_, err := h.owner.RevokeProfile(h.t.Context(), ana, gone)
	h.must(err)
	open := h.create("https://mail.example.net")
	_, err = h.owner.BeginCeremony(h.t.Context(), ana, open, "")
	h.must(err)
	s := h.session(a, "Research assistant")
	_, _, err = h.access.Pair(h.t.Context(), ana, "Command line on kitchen-laptop", ana.Role, "")
	h.must(err)
	h.ask(s, a, "Type into a textbox on wiki.example.org/w/Project_plan", approval.View{
		Described: true, Kind: "type", PageOrigin: wiki, PagePath: "/w/Project_plan", PageTitle: "Editing Project plan – Example Wiki", ElementRole: "textbox", ElementName: "Summary of your change",
		Text: "Move the review to Thursday, as agreed in the meeting.\nThe budget figures stay as they are until the new quote arrives.",
	})
	h.ask(s, a, "Click a button on wiki.example.org/w/Project_plan", approval.View{
		Described: true, Kind: "click", PageOrigin: wiki, PagePath: "/w/Project_plan", PageTitle: "Editing Project plan – Example Wiki", ElementRole: "button", ElementName: "Save changes",
		ElementText: strings.Repeat("Averyveryverylongwordwithoutanyspace", 5), ElementContext: "Publish this page?",
	})
	h.ask(s, a, "Type into a textbox on wiki.example.org/settings", approval.View{Described: true, Kind: "type", PageOrigin: wiki, PagePath: "/settings", ElementRole: "textbox", ElementName: "API key", Redacted: true})
	i, _ := h.attached(s)
	h.askUpload(s, a, i)
	h.ask(s, a, "Press a key in an element that can no longer be described", approval.View{Kind: "press"})
}
