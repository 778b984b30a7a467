package driver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/browser/driver"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// shadowed puts the HTML into an open shadow root.
func shadowed(html string) string {
	return `<x-y></x-y><script>document.querySelector('x-y').attachShadow({mode:'open'}).innerHTML=` + "`" + html + "`" + `</script>`
}

// Section 2.5, CHAL-02: what a page may show to a person only.
var asking = []string{
	`<input type=password>`, `<input type=PASSWORD value=x>`, `<input autocomplete="section-a one-time-code">`, shadowed(`<input type=password>`),
	`<iframe src=/captcha-frame></iframe>`, `<iframe title="reCAPTCHA" srcdoc=x></iframe>`, `<div id=hCaptcha>x</div>`, `<div class="my-captcha-box">x</div>`,
	`<form>Use a passkey</form>`, `<form>Use passkey</form>`, `<dialog open>Verification code sent</dialog>`, `<div role=alertdialog>Multi-factor required</div>`,
	`<button>two-FACTOR sign-in</button>`, `<div role=button>Consent required</div>`, `<div class="grecaptcha-badge"><input type=password></div>`,
}

var notAsking = []string{
	`<input type=password hidden>`, `<input type=text autocomplete=new-password>`, `<div class="grecaptcha-badge">x<iframe src=/recaptcha title=reCAPTCHA></iframe><div id=captcha>x</div></div>`,
	`<div id=captcha style="display:none">x</div>`, `<p>Our article on multi-factor sign-in: use a passkey</p>`, `<form style="visibility:hidden">Use a passkey</form>`,
	`<form><input value="verification code"></form>`, `<script>/*captcha use a passkey*/</script>`, `<form>` + strings.Repeat(" x", 300) + `use a passkey</form>`,
	strings.Repeat("<i></i>", 8200) + `<input type=password>`,
}

func TestChallenge(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *driver.Config) { c.Challenges = true })
	for i, body := range asking {
		b.Page(fmt.Sprintf("%s/asking%d", host, i), body)
		_, err := b.page.Navigate(t.Context(), parse(t, fmt.Sprintf("https://%s/asking%d", host, i)))
		if refused(t, err, fault.NeedsUser); err == nil {
			t.Error(body)
		}
		_, err = b.page.Observe(t.Context(), observe.Query{})
		refused(t, err, fault.NeedsUser)
		if e, err := b.page.Evidence(t.Context()); err != nil || !e.ChallengeVisible {
			t.Errorf("%s: the ceremony sees none: %v", body, err)
		}
	}
	for i, body := range notAsking {
		b.open(t, fmt.Sprintf("/not%d", i), body)
	}
	t.Run("an act is refused before anything is sent", func(t *testing.T) {
		script, change := b.later(t, "ask", "o.hidden=false")
		d := b.open(t, "/gate", say+`<button onclick="say('hit')">Go</button><form id=o hidden><input type=password></form>`+script)
		change()
		_, err := b.act(t, d, action.Click, "Go")
		refused(t, err, fault.NeedsUser)
		_, err = b.act(t, d, action.Click, "Go")
		refused(t, err, fault.NeedsUser)
		if _, err := b.page.Observe(t.Context(), observe.Query{Text: &observe.TextQuery{Revision: d.Revision}}); err == nil {
			t.Error("the observation outlived the challenge")
		}
		b.open(t, "/plain", "plain")
		if strings.Contains(b.effects(), "hit") {
			t.Error("the click was sent")
		}
	})
	t.Run("CHAL-01 after an act only the interruption is told", func(t *testing.T) {
		b.Page(host+"/sign-in", "<title>secret</title><h1>secret</h1><input type=password aria-label=secret>")
		for i, then := range []string{"location='/sign-in'", "o.hidden=false"} {
			if i > 0 {
				then += ";document.title='secret'"
			}
			d := b.open(t, fmt.Sprintf("/interrupt%d", i), say+`<button onclick="say('sent`+fmt.Sprint(i)+`').then(()=>{`+then+`})">Go</button><form id=o hidden>secret<input type=password></form>`)
			d, err := b.act(t, d, action.Click, "Go")
			if err != nil || d.Interruption != observe.NeedsUser || len(d.Elements)+len(d.Regions) > 0 || d.Focus != nil || d.Text != "" || d.Title != "" {
				t.Errorf("%+v %v", d, err)
			}
			if body, _ := json.Marshal(d); strings.Contains(string(body), "secret") {
				t.Errorf("%s", body)
			}
			if n := strings.Count(b.effects(), fmt.Sprint("sent", i)); n != 1 {
				t.Errorf("%d clicks arrived", n)
			}
			_, err = b.page.Act(t.Context(), action.Action{Kind: action.Click, ExpectedRevision: d.Revision, Ref: d.Revision + ":0"}, nil)
			refused(t, err, fault.NeedsUser)
		}
	})
}

// A browser without a profile reads sign-in pages as any other.
func TestNoChallenge(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	d := b.open(t, "/asking", strings.Join(asking[:3], ""))
	if len(d.Elements) != 3 || d.Interruption != "" {
		t.Errorf("%+v", d)
	}
	if e, err := b.page.Evidence(t.Context()); err != nil || !e.ChallengeVisible {
		t.Error("the ceremony sees no challenge", err)
	}
}
