package driver_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser/driver"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/consequence"
	"github.com/chaperone-agents/chaperone/internal/rules/constraint"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// lesson is a task constraint for /lesson.
func lesson(t testing.TB) *constraint.Constraint {
	t.Helper()
	origins, err := site.ParseOrigins([]string{"https://" + host})
	if err != nil {
		t.Fatal(err)
	}
	return &constraint.Constraint{
		Kind: constraint.Task, Origins: origins, Prefix: "/lesson", ExpiresAt: time.Now().Add(time.Hour),
		Ceiling: consequence.Unknown, MaxText: constraint.MaxText,
	}
}

// witness reports every event that a user could have made.
const witness = say + `<script>for (const type of ['pointermove','mousemove','pointerdown','mousedown','click','keydown','keyup','beforeinput','input','change','wheel','submit'])
	addEventListener(type, () => say('event-' + type), true)</script>`

// under does the act with the constraint.
func (b *bench) under(t testing.TB, c *constraint.Constraint, d observe.Document, kind action.Kind, name string, value ...string) (observe.Document, error) {
	t.Helper()
	return b.page.Act(t.Context(), request(t, d, kind, name, value...), c)
}

// CONS-01, TGC-01: what a constraint covers is done as ever.
func TestConstraintCovers(t *testing.T) {
	b := newBench(t, nil)
	for i, x := range []struct {
		kind        action.Kind
		name, value string
		html        string
	}{
		{action.Click, "Continue", "", `<button onclick="say('done')">Continue</button>`},
		{action.Click, "Panel", "", `<a href=/lesson/next aria-label=Outer><div role=button tabindex=0 onclick="event.preventDefault();say('done')">Panel</div></a>`},
		{action.Type, "Word", "dwa psy", `<input aria-label=Word oninput="this.value === 'dwa psy' && say('done')">`},
		{action.Type, "Words", "dwa\npsy", `<textarea aria-label=Words oninput="this.value === 'dwa\npsy' && say('done')"></textarea>`},
		{action.Select, "Pick", "b", `<select aria-label=Pick onchange="this.value === 'b' && say('done')"><option value=a>A<option value=b>B</select>`},
		{action.Check, "Right", "", `<input type=checkbox aria-label=Right onchange="say('done')">`},
		{action.Click, "Left", "", `<label>Left <input type=checkbox hidden onchange="say('done')"></label>`},
		{action.Press, "Word", "Enter", `<form action=/lesson/next onsubmit="event.preventDefault();say('done')"><input aria-label=Word><button>Next</button></form>`},
		{action.Press, "Go on", "Space", `<button onclick="say('done')">Go on</button>`},
		{action.Press, "Word", "Tab", `<input aria-label=Word onblur="say('done')"><input aria-label=Next>`},
		{action.Scroll, "Down", "", `<button>Down</button><div style="height:3000px"></div><script>onscroll = () => say('done')</script>`},
	} {
		t.Run(fmt.Sprintf("%s %s", x.kind, x.name), func(t *testing.T) {
			before := strings.Count(b.effects(), "done")
			d := b.open(t, fmt.Sprint("/lesson/covers", i), say+x.html)
			if _, err := b.under(t, lesson(t), d, x.kind, x.name, x.value); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the effect", func() bool { return strings.Count(b.effects(), "done") > before })
		})
	}
}

// CONS-02, CONS-03, CONS-04: what it does not cover is refused on the live
// page, before any input, and no reference is live any more.
func TestConstraintRefuses(t *testing.T) {
	log := &reasons{}
	b := newBench(t, func(c *driver.Config) {
		c.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	options := func(n int, option string) string { return strings.Repeat(option, n) }
	long := strings.Repeat("word ", 60)
	for i, x := range []struct {
		what, reason, path, html string
		kind                     action.Kind
		name, value              string
		c                        func(*constraint.Constraint)
	}{
		{"expired", "expired", "", `<button>Continue</button>`, action.Click, "Continue", "", func(c *constraint.Constraint) { c.ExpiresAt = time.Now() }},
		{"another prefix", "outside_prefix", "/other/page", `<button>Continue</button>`, action.Click, "Continue", "", nil},
		{"a sensitive page", "sensitive_path", "/lesson/settings", `<button>Continue</button>`, action.Click, "Continue", "", nil},
		{"another origin", "outside_origin", "", `<button>Continue</button>`, action.Click, "Continue", "", func(c *constraint.Constraint) {
			c.Origins, _ = site.ParseOrigins([]string{"https://login.example"})
		}},
		{"a named consequence", "excluded.destructive", "", `<button>Delete</button>`, action.Click, "Delete", "", nil},
		{"a named tooltip", "excluded.purchase", "", `<button aria-label=Continue title="Buy now">Continue</button>`, action.Click, "Continue", "", nil},
		{"a text that readers skip", "excluded.destructive", "", `<button aria-label=Continue><i aria-hidden=true>Delete</i></button>`, action.Click, "Continue", "", nil},
		{"a text in a closed root", "excluded.destructive", "", `<div role=button tabindex=0 aria-label=Continue><x-y id=h></x-y></div>` + attach("h", "Delete"), action.Click, "Continue", "", nil},
		{"a named dialog", "excluded.security_change", "", `<div role=dialog aria-label="Delete account"><button>Continue</button></div>`, action.Click, "Continue", "", nil},
		{"a choice that is named", "excluded.purchase", "", `<label>Continue <input type=checkbox hidden aria-label="Subscribe"></label>`, action.Click, "Continue", "", nil},
		{"a label that is long", "facts_unavailable", "", `<button aria-label=Continue title="` + long + `">Continue</button>`, action.Click, "Continue", "", nil},
		{"no name", "unnamed_element", "", `<button style="width:50px;height:30px"></button>`, action.Click, "", "", nil},
		{"a link outside", "link_outside_prefix", "", `<a href=/other>Continue</a>`, action.Click, "Continue", "", nil},
		{"a link around it outside", "link_outside_prefix", "", `<a href=https://other.example/lesson aria-label=Outer><button>Continue</button></a>`, action.Click, "Continue", "", nil},
		{"a form outside", "form_outside_prefix", "", `<form action=/other><button>Continue</button></form>`, action.Click, "Continue", "", nil},
		{"Enter in a form outside", "form_outside_prefix", "", `<form action=/lesson/x><input aria-label=Word><button formaction=/other>x</button></form>`, action.Press, "Word", "Enter", nil},
		{"a download", "excluded.file_transfer", "", `<a href=/lesson/x download>Continue</a>`, action.Click, "Continue", "", nil},
		{"a document in it", "link_outside_prefix", "", `<div role=button tabindex=0 style="padding:20px">Continue<iframe srcdoc=x width=9 height=9></iframe></div>`, action.Click, "Continue", "", nil},
		{"an element of a frame", "outside_origin", "", `<iframe src=/lesson/framed></iframe>`, action.Click, "Inside", "", nil},
		{"a long text", "text_too_long", "", `<input aria-label=Word>`, action.Type, "Word", strings.Repeat("a", constraint.MaxText+1), nil},
		{"a number", "text_not_covered", "", `<input aria-label=Word>`, action.Type, "Word", "12345", nil},
		{"an editor", "field_not_covered", "", `<div contenteditable role=textbox aria-label=Word>x</div>`, action.Type, "Word", "x", nil},
		{"a field for mail", "excluded.security_change", "", `<input type=email aria-label=Word>`, action.Type, "Word", "x", nil},
		{"a key on a select", "field_not_covered", "", `<select aria-label=Pick><option>A<option>B</select>`, action.Press, "Pick", "ArrowDown", nil},
		{"an option with a named value", "excluded.destructive", "", `<select aria-label=Pick><option>A<option value=delete>B</select>`, action.Select, "Pick", "B", nil},
		{"an option with a named title", "excluded.purchase", "", `<select aria-label=Pick><option>A<option title="Buy now">B</select>`, action.Select, "Pick", "B", nil},
		{"an option in a named group", "excluded.destructive", "", `<select aria-label=Pick><option>A<optgroup label=Delete><option>B</optgroup></select>`, action.Select, "Pick", "B", nil},
		{"the second option that fits", "excluded.destructive", "", `<select aria-label=Pick><option value=B>A` + options(400, `<option>A`) + `<option value=delete>B</select>`, action.Select, "Pick", "B", nil},
		{"an option with a long text", "facts_unavailable", "", `<select aria-label=Pick><option>A<option value=B title="` + strings.Repeat(long, 4) + `">B</select>`, action.Select, "Pick", "B", nil},
		{"too many options", "facts_unavailable", "", `<select aria-label=Pick><option>B` + options(4096, `<option>A`) + `</select>`, action.Select, "Pick", "B", nil},
		{"too many that fit", "facts_unavailable", "", `<select aria-label=Pick><option>A` + options(65, `<option value=B>B`) + `</select>`, action.Select, "Pick", "B", nil},
	} {
		t.Run(x.what, func(t *testing.T) {
			path := x.path
			if path == "" {
				path = fmt.Sprint("/lesson/refused", i)
			}
			b.refusedUnder(t, path, x.html, x.kind, x.name, x.value, x.c)
			if got := log.take(); got != x.reason {
				t.Errorf("the reason is %q, want %q", got, x.reason)
			}
		})
	}
}

// reasons keeps the newest reason of a refusal that the log has.
type reasons struct {
	mu  sync.Mutex
	got string
}

func (r *reasons) Write(line []byte) (int, error) {
	if _, rest, ok := strings.Cut(string(line), "reason="); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = strings.TrimSpace(rest)
	}
	return len(line), nil
}

func (r *reasons) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	r.got = ""
	return got
}

func (b *bench) refusedUnder(t *testing.T, path, html string, kind action.Kind, name, value string, change func(*constraint.Constraint)) {
	t.Helper()
	if strings.Contains(html, "/lesson/framed") {
		b.Page(host+"/lesson/framed", `<button>Inside</button>`)
	}
	d := b.open(t, path, witness+html)
	before := len(b.Requests(host))
	c := lesson(t)
	if change != nil {
		change(c)
	}
	_, err := b.under(t, c, d, kind, name, value)
	refused(t, err, fault.GrantNotApplicable)
	again, err := b.act(t, d, kind, name, value)
	refused(t, err, fault.PageChanged)
	b.settled(t)
	if seen := b.Requests(host)[before:]; strings.Contains(fmt.Sprint(seen), "event-") || len(again.Elements) != 0 {
		t.Errorf("the page saw %v", seen)
	}
}

// CONS-02: what the orchestrator saw is not what counts: the page may have
// changed, and may change again while it is acted on.
func TestConstraintIsLive(t *testing.T) {
	b := newBench(t, nil)
	const card = `<div role=group tabindex=0 aria-label=Panel style="width:300px;height:60px" onclick="say('harm')"><p id=x>Continue</p></div>`
	t.Run("a text that is no part of what is compared", func(t *testing.T) {
		script, run := b.later(t, "panel", `x.textContent = 'Delete'`)
		d := b.open(t, "/lesson/panel", card+script)
		run()
		_, err := b.under(t, lesson(t), d, action.Click, "Panel")
		refused(t, err, fault.GrantNotApplicable)
		b.unharmed(t, "harm")
	})
	t.Run("the same text when the mouse comes", func(t *testing.T) {
		d := b.open(t, "/lesson/hover", say+`<div style="height:400px"></div>`+card+`<script>document.querySelector('[role=group]').onmousemove = () => x.textContent = 'Delete'</script>`)
		_, err := b.under(t, lesson(t), d, action.Click, "Panel")
		refused(t, err, fault.PageChanged)
		b.unharmed(t, "harm")
	})
	t.Run("when the focus comes", func(t *testing.T) {
		d := b.open(t, "/lesson/focus", say+`<div role=group aria-label=Delete id=g></div><input id=x aria-label=Word onfocus="this.title='Delete'" oninput="say('harm')" onkeydown="say('harm')">`)
		_, err := b.under(t, lesson(t), d, action.Type, "Word", "x")
		refused(t, err, fault.PageChanged)
		b.unharmed(t, "harm")
	})
	t.Run("an invalid constraint sends nothing", func(t *testing.T) {
		d := b.open(t, "/lesson/invalid", say+`<button onclick="say('harm')">Continue</button>`)
		_, err := b.under(t, &constraint.Constraint{}, d, action.Click, "Continue")
		refused(t, err, fault.ArgumentsInvalid)
		b.unharmed(t, "harm")
	})
}

// TGC-07, CLS-03: on a page that stays as it is, the orchestrator's judgement
// of the observation and the worker's of the live page are the same.
func TestBothJudgeAlike(t *testing.T) {
	b := newBench(t, nil)
	b.Page(host+"/lesson/two", `<p>Two</p>`)
	const page = `<button>Continue</button><button aria-label="Go on" title="Buy now">Go on</button><a href=/lesson/two>Two</a><a href=/other>Away</a><a href=/lesson/two download>Save</a>
		<form action=/other><button>Odd</button></form><form action=/lesson/two><button type=button>Even</button></form><div role=button tabindex=0>Open <a href=/lesson/settings>x</a></div>
		<input aria-label=Word><input type=email aria-label=Mail><input type=checkbox aria-label=Tick><div role=dialog aria-label="Delete account"><button>Yes</button></div>`
	names := []string{"Continue", "Go on", "Two", "Away", "Save", "Odd", "Even", "Open x", "Word", "Mail", "Tick", "Yes"}
	covered := 0
	for i, name := range names {
		d := b.open(t, fmt.Sprint("/lesson/alike", i), page)
		c := lesson(t)
		raw, err := observe.Accept(d, c.Origins)
		if err != nil {
			t.Fatal(err)
		}
		ref := ""
		for _, e := range d.Elements {
			if e.Name == name {
				ref = e.Ref
			}
		}
		a := action.Action{Kind: action.Click, ExpectedRevision: d.Revision, Ref: ref}
		s, ok := constraint.Seen(a, raw)
		if !ok {
			t.Errorf("no element %q in %+v", name, d.Elements)
			continue
		}
		reason := c.Refuses(a, s, time.Now())
		if reason == "" {
			covered++
		}
		if _, err = b.page.Act(t.Context(), a, c); (reason == "") != (err == nil) || err != nil && !fault.Is(err, fault.GrantNotApplicable) {
			t.Errorf("%s: %q for the orchestrator, %v for the worker", name, reason, err)
		}
	}
	if covered == 0 || covered == len(names) {
		t.Errorf("%d of %d are covered", covered, len(names))
	}
}

// GUARD-01, GUARD-02: a click that the page turns to another control is stopped.
func TestClickGuard(t *testing.T) {
	b := newBench(t, nil)
	stopped := func(t *testing.T, err error) {
		t.Helper()
		if !fault.Is(err, fault.OutcomeUnknown) {
			t.Errorf("error = %v", err)
		}
		b.unharmed(t, "harm")
	}
	for _, limited := range []bool{false, true} {
		limit := func(t *testing.T) *constraint.Constraint {
			if limited {
				return lesson(t)
			}
			return nil
		}
		t.Run(fmt.Sprint("a label that is given another choice, constrained ", limited), func(t *testing.T) {
			d := b.open(t, fmt.Sprint("/lesson/label", limited), say+`<input type=checkbox hidden id=y aria-label=News><input type=checkbox hidden id=z aria-label=Other onchange="say('harm')">
				<label id=l for=y onmousedown="this.htmlFor='z'">Continue</label>`)
			_, err := b.under(t, limit(t), d, action.Click, d.Elements[0].Name)
			stopped(t, err)
		})
		t.Run(fmt.Sprint("a cover that comes with the button, constrained ", limited), func(t *testing.T) {
			d := b.open(t, fmt.Sprint("/lesson/cover", limited), say+`<button style="width:200px;height:60px" onmousedown="c.hidden=false">Continue</button>
				<div id=c hidden style="position:fixed;inset:0" onmouseup="say('harm')" onclick="say('harm')">Other</div>`)
			_, err := b.under(t, limit(t), d, action.Click, "Continue")
			stopped(t, err)
		})
	}
}

// GUARD-03, GUARD-04: keys and text go to the element that has the focus and
// nowhere else.
func TestKeyGuard(t *testing.T) {
	b := newBench(t, nil)
	const other = `<input id=o aria-label=Other oninput="say('harm')" onkeydown="say('harm')" onkeypress="say('harm')" onkeyup="say('harm')">`
	for i, x := range []struct {
		what, html  string
		kind        action.Kind
		name, value string
		code        fault.Code
	}{
		{"the focus is taken at once", `<input aria-label=Word onfocus="o.focus()">` + other, action.Type, "Word", "x", fault.GrantNotApplicable},
		{"the focus of a key is taken at once", `<button onfocus="o.focus()">Continue</button>` + other, action.Press, "Continue", "Enter", fault.GrantNotApplicable},
		{"what takes no focus", `<div role=button>Continue</div>` + other, action.Press, "Continue", "Enter", fault.GrantNotApplicable},
		{"the focus is taken by the key", `<input aria-label=Word onkeydown="o.focus()">` + other, action.Press, "Word", "Space", fault.OutcomeUnknown},
		{"the page itself moves the text", `<input id=w aria-label=Word><input id=o><script>w.onbeforeinput = () => o.focus()</script>`, action.Type, "Word", "x", fault.OutcomeUnknown}, // FENCE-03: it may, and we do not call it done
		{"where a key is let go is nobody's", `<input aria-label=Word>` + other, action.Press, "Word", "Tab", ""},
		{"a default button that comes with the key", `<form onsubmit="event.preventDefault();event.submitter.id === 'n' && say('harm')"><input aria-label=Word onkeydown="this.before(Object.assign(document.createElement('button'), {id: 'n'}))"><button>Next</button></form>`,
			action.Press, "Word", "Enter", fault.OutcomeUnknown},
	} {
		t.Run(x.what, func(t *testing.T) {
			d := b.open(t, fmt.Sprint("/lesson/keys", i), say+x.html)
			_, err := b.under(t, lesson(t), d, x.kind, x.name, x.value)
			if fault.CodeOf(err) != x.code {
				t.Errorf("error = %v, want %q", err, x.code)
			}
			b.unharmed(t, "harm")
		})
	}
}

// FENCE-01, FENCE-02: while a constrained act runs and settles, no document and
// no ping leaves the constraint, however the page asks for it.
func TestFence(t *testing.T) {
	b := newBench(t, nil)
	b.Page(host+"/lesson/next", `<p>Next</p>`)
	b.Page(host+"/out/", `<p>Out</p>`)
	b.Page("other.example/out/", `<p>Out</p>`)
	b.Page("login.example/out/", `<p>Out</p>`)
	b.Page(host+"/lesson/delete", `<p>Deleted</p>`)
	b.Handle(host+"/lesson/hop", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/out/hop", http.StatusFound)
	})
	b.Handle(host+"/lesson/ping", func(http.ResponseWriter, *http.Request) {})
	arrived := func() (n int) {
		for _, h := range []string{host, "other.example", "login.example"} {
			for _, r := range b.Requests(h) {
				if strings.HasPrefix(r.Path, "/out/") || r.Path == "/lesson/delete" {
					n++
				}
			}
		}
		return n
	}
	for i, x := range []struct {
		what, html string
		unknown    bool
	}{
		{"a form that is given another address", `<form action=/lesson/next onsubmit="this.action='/out/form'"><button>Go</button></form>`, true},
		{"a form by method post", `<form method=post action=/lesson/next onsubmit="this.action='/out/form'"><button>Go</button></form>`, true},
		{"an address in the handler", `<button onclick="location='/out/handler'">Go</button>`, true},
		{"one of another origin of the profile", `<button onclick="location='https://login.example/out/x'">Go</button>`, true},
		{"one of any origin", `<button onclick="location='https://other.example/out/x'">Go</button>`, true},
		{"a sensitive one inside", `<button onclick="location='/lesson/delete'">Go</button>`, true},
		{"one a little later", `<button onclick="setTimeout(() => location='/out/later', 100)">Go</button>`, true},
		{"a redirection", `<a href=/lesson/hop>Go</a>`, true},
		{"a link that is moved by the button", `<a href=/lesson/next onmouseup="this.href='/out/moved'">Go</a>`, true},
		{"a base that is moved by the button", `<a href=next onmouseup="document.head.append(Object.assign(document.createElement('base'), {href: '/out/'}))">Go</a>`, true},
		{"a form in a closed root", `<div id=h></div><button onclick="const r = h.attachShadow({mode:'closed'}); r.innerHTML='<form action=/out/closed></form>'; r.firstChild.submit()">Go</button>`, true},
		{"a ping (which the switches turn off, too)", `<a href=/lesson/next ping=/out/ping>Go</a>`, false},
		{"a ping of another origin", `<a href=/lesson/next ping=https://other.example/out/ping>Go</a>`, false},
		{"a beacon", `<button onclick="navigator.sendBeacon('/out/beacon', 'x')">Go</button>`, false},
		{"a frame", `<button onclick="this.after(Object.assign(document.createElement('iframe'), {src: '/out/frame'}))">Go</button>`, false},
		{"a hidden frame in a closed root", `<div id=h></div><button onclick="const r = h.attachShadow({mode:'closed'}); r.innerHTML='<iframe hidden src=/out/closed></iframe>'">Go</button>`, false},
		{"a frame of another origin", `<button onclick="this.after(Object.assign(document.createElement('iframe'), {src: 'https://other.example/out/frame'}))">Go</button>`, false},
		{"a form into a frame", `<iframe name=f></iframe><form target=f action=/lesson/next onsubmit="this.action='/out/framed'"><button>Go</button></form>`, false},
		{"an object", `<button onclick="this.after(Object.assign(document.createElement('object'), {type: 'text/html', data: '/out/object'}))">Go</button>`, false},
		{"a popup", `<button onclick="open('/out/popup')">Go</button>`, false},
	} {
		t.Run(x.what, func(t *testing.T) {
			d := b.open(t, fmt.Sprint("/lesson/fence", i), x.html)
			_, err := b.under(t, lesson(t), d, action.Click, "Go")
			if x.unknown {
				refused(t, err, fault.OutcomeUnknown)
			} else if err != nil {
				t.Error(err)
			}
			b.settled(t)
			if n := arrived(); n != 0 {
				t.Fatalf("%d requests arrived outside: %v", n, b.Requests(host))
			}
		})
	}
	t.Run("what is inside arrives", func(t *testing.T) {
		d := b.open(t, "/lesson/inside", `<a href=/lesson/next onclick="navigator.sendBeacon('/lesson/ping', 'x')">Go</a>`)
		after, err := b.under(t, lesson(t), d, action.Click, "Go")
		if err != nil || after.URL != "https://"+host+"/lesson/next" {
			t.Errorf("%q, %v", after.URL, err)
		}
		eventually(t, "the beacon", func() bool { return b.Count(host, "/lesson/ping") == 1 })
	})
	t.Run("without a constraint nothing is fenced, nor afterwards", func(t *testing.T) {
		d := b.open(t, "/lesson/free", `<button onclick="location='/out/free'">Go</button>`)
		after, err := b.act(t, d, action.Click, "Go")
		if err != nil || !strings.HasSuffix(after.URL, "/out/free") || arrived() != 1 {
			t.Errorf("%q, %v, %d requests", after.URL, err, arrived())
		}
	})
}
