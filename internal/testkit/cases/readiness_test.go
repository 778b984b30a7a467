package cases_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/testkit/cases"
)

// notice is the only notice of the reading, as "kind: text".
func notice(t *testing.T, v cases.View) string {
	t.Helper()
	if len(v.Notices) != 1 {
		t.Fatalf("notices %+v", v.Notices)
	}
	return v.Notices[0].Kind + ": " + v.Notices[0].Text
}

// A control under a banner is said to be covered, a click on it is refused with
// that reason and reaches nobody; when the banner has gone it works (CLK-01).
func TestCase38Covered(t *testing.T) {
	c := shared.Case(t)
	v := c.Open(`<title>Banner</title><button onclick="tell('order')">Order</button><p>Shop</p>
		<div id=b style="position:fixed;inset:0;background:#eee" onclick="tell('banner')"><p>We use cookies</p><button onclick="event.stopPropagation(); tell('fine'); b.remove()">Fine</button></div>`)
	if why := v.States[c.Find(v, "Order").Ref].Blocked; why != "covered" {
		t.Errorf("the order is blocked by %q", why)
	}
	_, err := c.Try(v, action.Click, "Order")
	if !fault.Is(err, fault.ElementNotFound) || !strings.Contains(fault.Public(err).Public, "covers") {
		t.Errorf("%v", err)
	}
	v = c.Must(v, action.Click, "Fine")
	c.Must(v, action.Click, "Order")
	c.Only("fine", "order")
}

// What is drawn over a control and belongs to it is no cover: its own children,
// its label wherever that stands, the face of a styled check box, the inside of
// a component.
func TestCase39NotACover(t *testing.T) {
	c := shared.Case(t)
	v := c.Open(`<title>Faces</title><style>.f{position:relative;width:160px;height:30px;display:block} .f *{position:absolute;inset:0} .f input{opacity:0;margin:0}</style>
		<a href="#l" class=f onclick="tell('link ' + event.isTrusted)"><span><b>Whole link</b></span></a>
		<label class=f><input type=checkbox aria-label=Inside onchange="tell('inside')"><span style="background:#9cf"></span></label>
		<div class=f><input type=checkbox id=apart aria-label=Apart onchange="tell('apart')"><label for=apart style="background:#fc9"></label></div>
		<label class=f><input type=radio aria-label=Radio onchange="tell('radio')"><i style="background:#9fc"></i></label>
		<x-b></x-b><script>const r = document.querySelector('x-b').attachShadow({ mode: 'open' });
		r.innerHTML = '<button style="position:relative;width:140px;height:40px"><span style="position:absolute;inset:0">Component</span></button>'; r.firstChild.onclick = () => tell('component');</script>`)
	v = c.Must(v, action.Click, "Whole link")
	v = c.Must(v, action.Check, "Inside")
	v = c.Must(v, action.Check, "Apart")
	v = c.Must(v, action.Check, "Radio")
	c.Must(v, action.Click, "Component")
	c.Only("link true", "inside", "apart", "radio", "component")
}

// A control that this width of the window hides is not offered. One that is
// hidden after it was read is refused within a bound, with the reason.
func TestCase41HiddenToggle(t *testing.T) {
	c := shared.Case(t)
	script, hide := c.Later(`late.style.display = 'none'`)
	v := c.Open(`<title>Narrow</title><style>@media (min-width: 400px) { #menu { display: none } }</style><button id=menu onclick="tell('menu')">Menu</button>
		<button id=late onclick="tell('late')">Late</button>` + script)
	if len(v.Elements) != 1 {
		t.Errorf("offered: %q", v.Names())
	}
	hide()
	_, err := c.Try(v, action.Click, "Late")
	if !fault.Is(err, fault.ElementNotFound) || !strings.Contains(fault.Public(err).Public, "not visible") {
		t.Errorf("%v", err)
	}
	c.Only()
}

// A question of the browser's own, whatever its kind, is answered with no at
// once; the act returns, and says what was asked within a bound (NAVC-01).
func TestCase42NativeDialogs(t *testing.T) {
	c := shared.Case(t)
	v := c.Open(`<title>Delete</title><button onclick="tell('confirm ' + confirm('Delete all 12 files?'))">Delete</button>
		<button onclick="alert('Saved'); tell('alerted')">Save</button><button onclick="tell('prompt ' + prompt('New name', 'old'))">Rename</button>
		<button onclick="alert('long '.repeat(9000)); tell('long')">Long</button><button onclick="tell('next')">Next</button>`)
	for _, ask := range []struct{ name, notice string }{
		{"Delete", "confirm: Delete all 12 files?"}, {"Save", "alert: Saved"}, {"Rename", "prompt: New name"},
	} {
		v = c.Must(v, action.Click, ask.name)
		if got := notice(t, v); got != ask.notice {
			t.Errorf("%s: %q, want %q", ask.name, got, ask.notice)
		}
		if !strings.Contains(v.Answer, strings.SplitN(ask.notice, ": ", 2)[1]) {
			t.Errorf("the answer does not say %q: %s", ask.notice, v.Answer)
		}
	}
	v = c.Must(v, action.Click, "Long")
	if got := notice(t, v); len(got) > 300 {
		t.Errorf("a notice of %d bytes", len(got))
	}
	c.Must(v, action.Click, "Next")
	c.Only("confirm false", "alerted", "prompt null", "long", "next")
}

// Dialogs while the page loads hold up neither the navigation nor what comes
// behind them.
func TestCase43DialogDuringLoad(t *testing.T) {
	c := shared.Case(t)
	v := c.Open(`<title>Greeting</title><script>alert('Welcome'); tell('went on ' + confirm('Take the tour?'))</script><h1>Behind the alert</h1><button onclick="tell('clicked')">Start</button>`)
	if !strings.Contains(v.Text, "Behind the alert") || len(v.Notices) != 2 || v.Notices[0].Text != "Welcome" || v.Notices[1].Kind != "confirm" {
		t.Errorf("%q %+v", v.Text, v.Notices)
	}
	c.Must(v, action.Click, "Start")
	c.Only("went on false", "clicked")
}

// A stream that never ends does not keep a page from being ready (SETL-01).
func TestCase44EventStream(t *testing.T) {
	c := shared.Case(t)
	var open atomic.Int32
	stream := c.Handle(cases.Host, "stream", func(w http.ResponseWriter, r *http.Request) {
		open.Add(1)
		defer open.Add(-1)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: first\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	v := c.Open(`<title>Live</title><p id=p>Waiting</p><button onclick="tell('used')">Use</button><script>new EventSource('` + stream + `').onmessage = (e) => { p.textContent = 'Got ' + e.data; }</script>`)
	if open.Load() != 1 || v.Readiness != observe.DOMQuiet || !strings.Contains(v.Text, "Got first") {
		t.Errorf("%d streams, %s, %q", open.Load(), v.Readiness, v.Text)
	}
	v = c.Must(v, action.Click, "Use")
	if open.Load() != 1 || v.Readiness != observe.DOMQuiet {
		t.Errorf("%d streams, %s", open.Load(), v.Readiness)
	}
	c.Only("used")
}

// A page that nobody touches for a while, by its own clock, is the same page
// afterwards: the handles of the last reading are good. It cannot close itself
// either.
func TestCase46IdlePageLives(t *testing.T) {
	c := shared.Case(t)
	v := c.Open(`<title>Idle</title><button onclick="tell('close'); window.close()">Close</button><button onclick="tell('old handle')">Act</button><script>setTimeout(() => tell('idle'), 6000)</script>`)
	c.Await("idle")
	v = c.Must(v, action.Click, "Act")
	v = c.Must(v, action.Click, "Close")
	c.Must(v, action.Click, "Act")
	c.Only("idle", "old handle", "close", "old handle")
}

// A file that the page makes itself is not saved behind anybody's back: the
// download is stopped, and said with its name. The page goes on (DENY-01).
func TestCase47GeneratedFile(t *testing.T) {
	c := shared.Case(t)
	v := c.Open(`<title>Export</title><a id=a download="report 2031.csv" onclick="tell('link')">Export</a><button id=b>Save as</button><button onclick="tell('next')">Next</button>
		<script>a.href = URL.createObjectURL(new Blob(['a,b'], { type: 'text/csv' }));
		b.onclick = () => { tell('script'); const l = document.createElement('a'); l.href = 'data:text/plain,x'; l.download = 'notes.txt'; l.click(); };</script>`)
	v = c.Must(v, action.Click, "Export")
	if got := notice(t, v); got != "download: report 2031.csv" {
		t.Errorf("%q", got)
	}
	v = c.Must(v, action.Click, "Save as")
	if got := notice(t, v); got != "download: notes.txt" {
		t.Errorf("%q", got)
	}
	c.Must(v, action.Click, "Next")
	c.Only("link", "script", "next")
}
