package driver_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/browser/driver"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// late is script that changes the document a while after it has run. The time
// is shorter than the quiet that SETL-01 asks for, so whoever waits for that
// sees it.
const late = `setTimeout(() => document.body.append('CAME LATE'), 100)`

// channel is a way in which a page changes after it was loaded.
type channel struct {
	name, body string
	kind       string // of the content; HTML when empty
	header     string // "Name: value"
	caught     string // the witness that tells, of those that a test can take away
	loose      bool   // on a busy machine the whole wait may end before it
}

// channels are the ways in which a document can still change. The image at
// /slow takes a moment.
func channels() []channel {
	hidden := func(s string) string { return "<div><template shadowrootmode=closed>" + s + "</template></div>" }
	return []channel{
		{name: "a script", body: "<p>x<script>" + late + "</script>"},
		{name: "a script that removes itself", body: "<p>x<script>document.currentScript.remove();" + late + "</script>", caught: "counters"},
		{name: "a script that cleans up after itself", body: "<p>x<script>" + late + ";document.querySelectorAll('script').forEach((s) => s.remove())</script>", caught: "counters"},
		{name: "a script of a drawing", body: "<svg><script>" + late + "</script></svg>"},
		{name: "a module", body: "<script type=module>document.querySelector('script').remove();" + late + "</script><p>x", caught: "counters"},
		{name: "a file that arrives late", body: "<script async src=/late.js></script><p>x"},
		{name: "a script in an open root", body: "<div><template shadowrootmode=open><script>" + late + "</script></template></div>"},
		{name: "a script in a closed root", body: hidden("<script>" + late + "</script>")},
		{name: "the body's load", body: `<body onload="` + late + `"><p>x`},
		{name: "an image's load", body: `<p>x<img src=/slow onload="` + late + `">`, loose: true},
		{name: "the failure of an image", body: `<p>x<img src=/nothing onerror="` + late + `">`, loose: true},
		{name: "the load of an image in a closed root", body: hidden(`<img src=/slow onload="` + late + `">`), loose: true},
		{name: "a lazy image in a closed root", body: hidden(`<img loading=lazy src=/slow width=9 height=9 onload="document.body.append('CAME LATE')">`), caught: "tree", loose: true},
		{name: "a style sheet's load", body: `<link rel=stylesheet href=/sheet.css onload="` + late + `"><p>x`},
		{name: "an animation", body: `<style>@keyframes k{to{left:9px}}p{position:relative;animation:k .2s}</style><p onanimationend="document.body.append('CAME LATE')">x`, caught: "tree", loose: true},
		{name: "an animation in a closed root", body: hidden(`<style>@keyframes k{to{left:9px}}p{position:relative;animation:k .2s}</style><p onanimationend="document.body.append('CAME LATE')">x</p>`), caught: "tree", loose: true},
		{name: "a drawing's animation", body: `<p>x<svg><rect><animate attributeName=x to=9 dur=.2s onend="document.body.append('CAME LATE')"/></rect></svg>`, caught: "tree", loose: true},
		{name: "the focus", body: `<p>x<input autofocus onfocus="` + late + `">`},
		{name: "an open part", body: `<details open ontoggle="` + late + `"><summary>s</summary>x</details>`},
		{name: "a frame's script", body: `<p>x<iframe srcdoc="<script>parent.` + late + `</script>"></iframe>`},
		{name: "a frame's script in a closed root", body: hidden(`<iframe srcdoc="<script>parent.setTimeout(() => parent.document.body.append('CAME LATE'), 100)</script>"></iframe>`)},
		{name: "a frame that is a script", body: `<p>x<iframe src="javascript:void parent.setTimeout(() => parent.document.body.append('CAME LATE'), 100)"></iframe>`},
		{name: "names of the document's own members", body: `<img name=getElementsByTagName><form name=readyState></form><img name=contentType><script>` + late + `;document.currentScript.remove()</script>`, caught: "counters"},
		{name: "a script of an XML document", kind: "application/xhtml+xml", body: `<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body><p>x</p><script>document.currentScript.remove();setTimeout(function () { document.body.append('CAME LATE') }, 100)</script></body></html>`},
		{name: "an order to go elsewhere", body: `<meta http-equiv=refresh content="0;url=/late"><p>x`},
		{name: "an order in the header", header: "Refresh: 0;url=/late", body: "<p>x"},
	}
}

func settling(t *testing.T) *bench {
	s := newBench(t, nil)
	s.Page("/late", "<p>CAME LATE")
	s.Handle("/late.js", func(w http.ResponseWriter, r *http.Request) {
		pause(r.Context())
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(w, "document.currentScript.remove();"+late)
	})
	s.Handle("/sheet.css", func(w http.ResponseWriter, r *http.Request) {
		pause(r.Context())
		w.Header().Set("Content-Type", "text/css")
		fmt.Fprint(w, "p { color: green }")
	})
	s.Handle("/slow", func(w http.ResponseWriter, r *http.Request) {
		pause(r.Context())
		w.Header().Set("Content-Type", "image/svg+xml")
		fmt.Fprint(w, `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>`)
	})
	return s
}

// pause is what a server takes its time for.
func pause(ctx context.Context) {
	select {
	case <-time.After(50 * time.Millisecond):
	case <-ctx.Done():
	}
}

// visit opens the channel's page, by turns on the same site as the page before
// and on another, which is another process.
func (b *bench) visit(t *testing.T, i int, c channel) observe.Document {
	t.Helper()
	path := fmt.Sprintf("/channel/%d/%d", i, time.Now().UnixNano())
	b.Handle(path, func(w http.ResponseWriter, _ *http.Request) {
		kind := cmp.Or(c.kind, "text/html; charset=utf-8")
		w.Header().Set("Content-Type", kind)
		if name, value, ok := strings.Cut(c.header, ": "); ok {
			w.Header().Set(name, value)
		}
		if c.kind == "" {
			fmt.Fprint(w, "<!doctype html><meta charset=utf-8>")
		}
		fmt.Fprint(w, c.body)
	})
	on := []string{host, "login.example"}[i/2%2]
	d, err := b.page.Navigate(t.Context(), parse(t, "https://"+on+path))
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	return d
}

// SETL-01: whatever can still change a document is waited for.
func TestLateChangesAreSeen(t *testing.T) {
	s := settling(t)
	for i, c := range channels() {
		d := s.visit(t, i, c)
		if proven := driver.Proven(s.page); !strings.Contains(d.Text, "CAME LATE") && (proven || !c.loose) {
			t.Errorf("%s was not waited for: %q, proven %v", c.name, d.Text, proven)
		}
	}
}

// SETL-01: a document that cannot change is known as such, and not waited for.
func TestNothingToWaitFor(t *testing.T) {
	s := settling(t)
	for i, c := range []channel{
		{name: "text", body: "<p>x"},
		{name: "a form", body: "<form><label>Name <input name=name></label><select><option>a</select><textarea></textarea><button>Send</button><details><summary>more</summary>x</details></form>"},
		{name: "a style sheet and an image", body: "<link rel=stylesheet href=/sheet.css><p>x<img src=/slow>", loose: true},
		{name: "a closed root", body: "<div><template shadowrootmode=closed><p>x</p></template></div>"},
		{name: "what is in a template", body: "<template><p onclick='x()'><script>1</script></template><p>x"},
	} {
		found := false
		for deadline := time.Now().Add(90 * time.Second); !found && time.Now().Before(deadline); {
			if d := s.visit(t, i, c); d.Readiness != observe.DOMQuiet {
				t.Errorf("%s: %q", c.name, d.Readiness)
			}
			found = driver.Proven(s.page) // on a busy machine the quiet may end first
		}
		if !found {
			t.Errorf("%s is always waited for", c.name)
		}
	}
}

// slowly puts a change off for so long that no machine comes too late to miss it.
var slowly = strings.NewReplacer(", 100)", ", 60000)", ".2s", "60s")

// Each witness is needed: without it some page is believed that still changes.
func TestABrokenRuleIsCaught(t *testing.T) {
	for _, witness := range []string{"counters", "tree"} {
		s := settling(t)
		driver.Forget(s.page, witness)
		missed := 0
		for deadline := time.Now().Add(90 * time.Second); missed == 0 && time.Now().Before(deadline); {
			for i, c := range channels() {
				if c.caught != witness {
					continue
				}
				c.body = slowly.Replace(c.body)
				if !strings.Contains(s.visit(t, i, c).Text, "CAME LATE") && driver.Proven(s.page) {
					missed++
				}
			}
		}
		if missed == 0 {
			t.Errorf("a rule without the %s passes", witness)
		}
	}
}

// SETL-02: a page that is replaced again and again is left at that.
func TestAPageThatReloadsForEver(t *testing.T) {
	s := settling(t)
	s.Page(host+"/again", "<p>x<script>location.reload()</script>")
	before := s.Count(host, "/again")
	_, err := s.page.Navigate(t.Context(), parse(t, "https://"+host+"/again"))
	if err != nil && !fault.Is(err, fault.PageChanged) {
		t.Error(err)
	}
	if n := s.Count(host, "/again") - before; n < 2 || n > 60 {
		t.Errorf("%d documents were waited for", n)
	}
	if d := s.open(t, "/after", "<p>x"); !strings.Contains(d.Text, "x") {
		t.Error("the browser did not get away from it")
	}
}
