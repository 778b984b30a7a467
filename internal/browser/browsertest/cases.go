package browsertest

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/constraint"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

const (
	home  = "https://wiki.example/home"
	next  = "https://wiki.example/next"
	dead  = "https://wiki.example/dead"
	other = "https://other.example/page"
)

// env is one case under way.
type env struct {
	T
	page    browser.Page
	site    Site
	origins site.Origins
	lent    bool           // the page is for other cases, too
	before  int            // effects of other cases
	visits  map[string]int // of other cases
}

// lend is a case with the page of this one.
func (e *env) lend(t T) *env {
	visits := map[string]int{}
	for _, url := range []string{home, next, dead, other} {
		visits[url] = e.site.Opened(url)
	}
	return &env{T: t, page: e.page, site: e.site, origins: e.origins, lent: true, before: len(e.site.Effects(0)), visits: visits}
}

func begin(t T, open Open) *env {
	t.Helper()
	origins, err := site.ParseOrigins([]string{"https://wiki.example", "https://login.example"})
	if err != nil {
		t.Fatalf("origins: %v", err)
	}
	e := &env{T: t, origins: origins}
	if e.page, e.site, err = open(t.Context(), origins); err != nil {
		t.Fatalf("open: %v", err)
	}
	e.site.Put(home, Doc{Title: "Home", Text: "Welcome", Controls: []Control{
		{Role: "button", Name: "Save"}, {Role: "button", Name: "Locked", Disabled: true}, {Role: "link", Name: "Next", Opens: next},
		{Role: "textbox", Name: "Note", Field: observe.FieldText}, {Role: "textbox", Name: "Password", Field: observe.FieldPassword},
		{Role: "textbox", Name: "Code", Field: observe.FieldOneTimeCode},
	}})
	e.site.Put(next, Doc{Title: "Next", Text: "Second page", Controls: []Control{{Role: "button", Name: "Save"}}})
	e.site.Put(other, Doc{Title: "Other"})
	return e
}

// done closes a page that is the case's own; every case ends with it.
func (e *env) done() {
	e.Helper()
	if e.lent {
		return
	}
	if err := e.page.Close(); err != nil {
		e.Errorf("close: %v", err)
	}
}

func (e *env) url(s string) site.URL {
	e.Helper()
	u, err := site.ParseURL(s)
	if err != nil {
		e.Fatalf("%v", err)
	}
	return u
}

func (e *env) navigate(s string) observe.Document {
	e.Helper()
	d, err := e.page.Navigate(e.Context(), e.url(s))
	if err != nil {
		e.Fatalf("navigate: %v", err)
	}
	return d
}

func (e *env) act(d observe.Document, kind action.Kind, name string, value ...string) (observe.Document, error) {
	e.Helper()
	return e.under(nil, d, kind, name, value...)
}

// under acts under a constraint.
func (e *env) under(c *constraint.Constraint, d observe.Document, kind action.Kind, name string, value ...string) (observe.Document, error) {
	e.Helper()
	for _, el := range d.Elements {
		if el.Name == name {
			a := action.Action{Kind: kind, ExpectedRevision: d.Revision, Ref: el.Ref}
			if len(value) > 0 {
				a.Value = &value[0]
			}
			return e.page.Act(e.Context(), a, c)
		}
	}
	e.Fatalf("no element %q", name)
	return observe.Document{}, nil
}

func (e *env) refused(err error, code fault.Code) {
	e.Helper()
	if !fault.Is(err, code) {
		e.Errorf("error %v, want %s", err, code)
	}
}

// opened is how often this case asked for the URL.
func (e *env) opened(url string) int { return e.site.Opened(url) - e.visits[url] }

func (e *env) effects(want ...Effect) {
	e.Helper()
	if got := e.site.Effects(e.before + len(want)); !slices.Equal(got[min(e.before, len(got)):], want) {
		e.Errorf("the site saw %v, want %v", got, want)
	}
}

var revisionShape = regexp.MustCompile(`^[0-9a-f]{32}$`)

var cases = []struct {
	name string
	run  func(*env)
}{
	{"CAP-04 an observation says what is there", func(e *env) {
		defer e.done()
		d := e.navigate(home)
		if d.URL != home || d.Title != "Home" || !strings.Contains(d.Text, "Welcome") || !revisionShape.MatchString(d.Revision) || d.Readiness == "" {
			e.Errorf("observation %+v", d)
		}
		var seen []string
		for _, el := range d.Elements {
			seen = append(seen, el.Role+" "+el.Name)
			if el.Disabled != (el.Name == "Locked") {
				e.Errorf("%s: disabled %v", el.Name, el.Disabled)
			}
		}
		if want := []string{"button Save", "button Locked", "link Next", "textbox Note", "textbox Password", "textbox Code"}; !slices.Equal(seen, want) {
			e.Errorf("elements %q, want %q", seen, want)
		}
		if _, err := observe.Accept(d, e.origins); err != nil {
			e.Errorf("not acceptable: %v", err)
		}
		again, err := e.page.Observe(e.Context(), observe.Query{})
		if err != nil || again.Revision == d.Revision || again.Readiness != "" {
			e.Errorf("observe: %q %q %v", again.Revision, again.Readiness, err)
		}
	}},
	{"GATE-03 other origins are not opened", func(e *env) {
		defer e.done()
		e.navigate(home)
		_, err := e.page.Navigate(e.Context(), e.url(other))
		e.refused(err, fault.URLDisallowed)
		if n := e.opened(other); n != 0 {
			e.Errorf("%d requests were sent", n)
		}
		if d, err := e.page.Observe(e.Context(), observe.Query{}); err != nil || d.Title != "Home" {
			e.Errorf("afterwards: %q %v", d.Title, err)
		}
	}},
	{"CAP-03 a dead site keeps the page", func(e *env) {
		defer e.done()
		e.navigate(home)
		_, err := e.page.Navigate(e.Context(), e.url(dead))
		e.refused(err, fault.SiteUnreachable)
		if d, err := e.page.Observe(e.Context(), observe.Query{}); err != nil || d.Title != "Home" {
			e.Errorf("afterwards: %q %v", d.Title, err)
		}
	}},
	{"GATE-06 a stale revision is refused", func(e *env) {
		defer e.done()
		d := e.navigate(home)
		if _, err := e.page.Observe(e.Context(), observe.Query{}); err != nil {
			e.Fatalf("observe: %v", err)
		}
		_, err := e.act(d, action.Click, "Save")
		e.refused(err, fault.PageChanged)
		e.effects()
	}},
	{"FOC-04 text goes on where it ended, of the newest revision only", func(e *env) {
		defer e.done()
		d := e.navigate(next)
		on := func(revision string, offset int) (observe.Document, error) {
			return e.page.Observe(e.Context(), observe.Query{Text: &observe.TextQuery{Revision: revision, Offset: offset}})
		}
		rest, err := on(d.Revision, 7)
		if err != nil || rest.Text != d.Text[7:] || rest.Revision == d.Revision || len(rest.Elements) != len(d.Elements) {
			e.Fatalf("%q after %q: %v", rest.Text, d.Text, err)
		}
		_, err = on(d.Revision, 7)
		e.refused(err, fault.PageChanged)
		_, err = on(rest.Revision, len(d.Text)+1)
		e.refused(err, fault.ArgumentsInvalid)
		if last, err := on(rest.Revision, len(d.Text)); err != nil || last.Text != "" {
			e.Errorf("%q at the end: %v", last.Text, err)
		}
	}},
	{"EXP-06 EXP-11 controls go on behind one of the newest revision", func(e *env) {
		defer e.done()
		d := e.navigate(home)
		if c := d.Coverage; c == nil || c.CandidateOffset != 0 || c.ScannedCandidates < len(d.Elements) || c.NextCursor != "" || c.ScanLimitReached {
			e.Fatalf("coverage %+v", c)
		}
		rest, err := e.page.Observe(e.Context(), observe.Query{After: d.Elements[2].Ref})
		if err != nil || len(rest.Elements) != len(d.Elements)-3 || rest.Coverage == nil || rest.Coverage.CandidateOffset < 2 {
			e.Fatalf("%+v: %v", rest.Elements, err)
		}
		for i, el := range rest.Elements {
			if want := d.Elements[i+3]; el.Name != want.Name || el.Ref[len(rest.Revision):] != want.Ref[len(d.Revision):] {
				e.Errorf("%s is %s after %s is %s", el.Ref, el.Name, want.Ref, want.Name)
			}
		}
		for _, q := range []observe.Query{{After: d.Elements[2].Ref}, {Cursor: strings.Repeat("0", 32)}} {
			_, err := e.page.Observe(e.Context(), q)
			e.refused(err, fault.PageChanged)
		}
	}},
	{"GATE-06 an unknown reference is refused", func(e *env) {
		defer e.done()
		d := e.navigate(home)
		for _, ref := range []string{d.Revision + ":99", d.Revision + ":-1", d.Revision, "0:0", d.Revision + ":x"} {
			_, err := e.page.Act(e.Context(), action.Action{Kind: action.Click, ExpectedRevision: d.Revision, Ref: ref}, nil)
			e.refused(err, fault.ElementNotFound)
		}
		e.effects()
	}},
	{"CAP-06 a reference ends with its page", func(e *env) {
		defer e.done()
		d := e.navigate(home)
		e.navigate(next)
		_, err := e.act(d, action.Click, "Save")
		e.refused(err, fault.PageChanged)
		e.effects()
	}},
	{"2.4 a disabled control is refused", func(e *env) {
		defer e.done()
		_, err := e.act(e.navigate(home), action.Click, "Locked")
		e.refused(err, fault.ElementNotFound)
		e.effects()
	}},
	{"DENY-03 credentials are not typed", func(e *env) {
		defer e.done()
		d := e.navigate(home)
		for _, name := range []string{"Password", "Code"} {
			_, err := e.act(d, action.Type, name, "1234")
			e.refused(err, fault.ActionNotAllowed)
		}
		e.effects()
	}},
	{"GATE-07 a click happens once", func(e *env) {
		defer e.done()
		if _, err := e.act(e.navigate(home), action.Click, "Save"); err != nil {
			e.Fatalf("act: %v", err)
		}
		e.effects(Effect{Kind: action.Click, Name: "Save"})
	}},
	{"CAP-07 the answer of an act can be acted on", func(e *env) {
		defer e.done()
		d, err := e.act(e.navigate(home), action.Click, "Next")
		if err != nil || d.Title != "Next" || d.URL != next {
			e.Fatalf("act: %q %v", d.Title, err)
		}
		if _, err = e.act(d, action.Click, "Save"); err != nil {
			e.Fatalf("act: %v", err)
		}
		e.effects(Effect{Kind: action.Click, Name: "Save"})
	}},
	{"CAP-05 what is typed arrives and is not read back", func(e *env) {
		defer e.done()
		const text = "Zażółć 7 \"quoted\" <b>"
		d, err := e.act(e.navigate(home), action.Type, "Note", text)
		if err != nil {
			e.Fatalf("act: %v", err)
		}
		e.effects(Effect{Kind: action.Type, Name: "Note", Value: text})
		if body, err := json.Marshal(d); err != nil || bytes.Contains(body, []byte("Za")) {
			e.Errorf("the value is in the observation (%v)", err)
		}
	}},
	{"FACT-01 FACT-05 facts of every element, without addresses", secretive},
	{"CONS-01 what a constraint covers is done", covers},
	{"CONS-02 what a constraint does not cover is not sent", refuses},
	{"CONS-04 a refusal forgets the observation", forgets},
	{"UPL-03 UPL-04 an image arrives whole, once", uploads},
	{"UPL-07 UPL-08 CAP-06 an image that is none, and one for another page, goes nowhere", keepsImages},
	{"VIEW-02 a picture disturbs nothing and is of the newest revision", pictures},
	{"CAP-03 a session goes from one browser to the next", func(e *env) {
		defer e.done()
		m := browser.Material{Cookies: []browser.Cookie{
			{Name: "a", Value: "1", Domain: "wiki.example", Path: "/", Expires: -1, HTTPOnly: true, Secure: true, Priority: "Medium", SourceScheme: "Secure", SourcePort: 443},
			{Name: "b", Value: "2", Domain: "wiki.example", Path: "/", Expires: -1, Secure: true, SameSite: "None", Priority: "Medium", SourceScheme: "Secure", SourcePort: 443,
				Partition: &browser.PartitionKey{TopLevelSite: "https://login.example"}},
		}, Origins: []browser.Storage{{Origin: "https://wiki.example", Items: []browser.Item{{Name: "k", Value: "v"}}}}}
		if err := e.page.Restore(e.Context(), m); err != nil {
			e.Fatalf("restore: %v", err)
		}
		if n := e.site.Opened("https://wiki.example/"); n != 0 {
			e.Errorf("restoring sent %d requests", n)
		}
		got, err := e.page.Capture(e.Context())
		if err != nil {
			e.Fatalf("capture: %v", err)
		}
		slices.SortFunc(got.Cookies, func(a, b browser.Cookie) int { return strings.Compare(a.Name, b.Name) })
		a, errA := m.Encode()
		b, errB := got.Encode()
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			e.Errorf("the session came back as %s, was %s", b, a)
		}
	}},
	{"READY-01 evidence follows the page", func(e *env) {
		defer e.done()
		e.site.Put("https://login.example/in", Doc{Title: "Sign in", Challenge: true, Controls: []Control{{Role: "textbox", Name: "Password", Field: observe.FieldPassword}}})
		e.navigate("https://login.example/in")
		if got, err := e.page.Evidence(e.Context()); err != nil || !got.ChallengeVisible || !got.OnAllowedOrigin || got.StoragePresent || got.TextDuringChallenge {
			e.Errorf("at the challenge: %+v %v", got, err)
		}
		e.navigate(next)
		if got, err := e.page.Evidence(e.Context()); err != nil || got.ChallengeVisible || !got.OnAllowedOrigin {
			e.Errorf("behind it: %+v %v", got, err)
		}
	}},
	{"SURF pictures until the end", func(e *env) {
		defer e.done()
		e.navigate(home)
		ctx, cancel := context.WithCancel(e.Context())
		defer cancel()
		frames, err := e.page.Frames(ctx)
		if err != nil {
			e.Fatalf("frames: %v", err)
		}
		if f, ok := receive(frames); !ok || !bytes.HasPrefix(f.JPEG, []byte{0xff, 0xd8}) || f.Width <= 0 || f.Height <= 0 {
			e.Errorf("no picture")
		}
		cancel()
		if !ended(frames) {
			e.Errorf("the stream goes on after the end")
		}
	}},
	{"REL-02 after the end nothing is done", func(e *env) {
		d := e.navigate(home)
		e.done()
		select {
		case <-e.page.Done():
		case <-time.After(patience):
			e.Errorf("Close returned and Done is open")
		}
		if err := e.page.Close(); err != nil {
			e.Errorf("closing twice: %v", err)
		}
		_, err := e.page.Navigate(e.Context(), e.url(home))
		e.refused(err, fault.ProviderUnavailable)
		_, err = e.page.Observe(e.Context(), observe.Query{})
		e.refused(err, fault.ProviderUnavailable)
		_, err = e.act(d, action.Click, "Save")
		e.refused(err, fault.ProviderUnavailable)
		_, err = e.page.Capture(e.Context())
		e.refused(err, fault.ProviderUnavailable)
		e.effects()
	}},
}

// patience is how long a page may take for what it must do by itself.
const patience = 20 * time.Second

// receive takes one picture.
func receive(frames <-chan browser.Frame) (browser.Frame, bool) {
	select {
	case f, ok := <-frames:
		return f, ok
	case <-time.After(patience):
		return browser.Frame{}, false
	}
}

// ended reports whether the stream is closed in time, whatever it still holds.
func ended(frames <-chan browser.Frame) bool {
	late := time.After(patience)
	for {
		select {
		case _, ok := <-frames:
			if !ok {
				return true
			}
		case <-late:
			return false
		}
	}
}
