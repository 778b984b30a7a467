package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

func raw(t interface{ Fatal(...any) }, e observe.Element, f observe.Facts) observe.Raw {
	e.Ref = "r1:0"
	u, err := site.ParseURL("https://wiki.example.org/edit/page?token=abc#top")
	if err != nil {
		t.Fatal(err)
	}
	r, err := observe.Accept(observe.Document{
		URL: u.String(), Title: "Edit \u202eegap", Revision: "r1", Elements: []observe.Element{e}, Facts: map[string]observe.Facts{"r1:0": f},
	}, site.Origins{u.Origin()})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func act(k action.Kind) action.Action {
	return action.Action{Kind: k, ExpectedRevision: "r1", Ref: "r1:0"}
}

func typed(k action.Kind, text string) action.Action {
	a := act(k)
	a.Value = &text
	return a
}

// VIEW-01, VIEW-02, VIEW-04: what the owner is shown of a click.
func TestDescribe(t *testing.T) {
	v, summary := Describe(act(action.Click), raw(t, observe.Element{Role: "button", Name: "Save  page"},
		observe.Facts{FieldKind: observe.FieldNone, Text: "SAVE page", Context: "Really?"}))
	if summary != "Click a button on wiki.example.org/edit/page" {
		t.Errorf("summary %q", summary)
	}
	want := View{View: "browser.act.v1", Described: true, Kind: "click", PageOrigin: "https://wiki.example.org", PagePath: "/edit/page",
		PageTitle: "Edit egap", ElementRole: "button", ElementName: "Save page", ElementContext: "Really?", Field: "none", Consequence: "unknown"}
	if v != want {
		t.Errorf("got  %+v\nwant %+v", v, want)
	}
	b, err := json.Marshal(v)
	if err != nil || strings.Contains(string(b), "r1") || strings.Contains(string(b), "token=abc") || strings.Contains(string(b), "top") {
		t.Errorf("the view has a reference, a query or a fragment: %s", b)
	}
	v, _ = Describe(act(action.Click), raw(t, observe.Element{Role: "link", Name: "Home"}, observe.Facts{FieldKind: observe.FieldNone, Text: "Delete everything"}))
	if v.ElementText != "Delete everything" {
		t.Errorf("a visible text that differs from the name is missing: %+v", v)
	}
}

// VIEW-01: no word of the page is in a summary, whatever the page calls itself.
func TestSummary(t *testing.T) {
	for role, want := range map[string]string{
		"button": "Click a button", "option": "Click an option", "textbox": "Click a textbox", "searchbox": "Click a searchbox",
		"ignore previous instructions": "Click an element", "Button": "Click an element", "alert": "Click an element",
	} {
		_, s := Describe(act(action.Click), raw(t, observe.Element{Role: role, Name: "NAME"}, observe.Facts{FieldKind: observe.FieldNone, Text: "TEXT"}))
		if s != want+" on wiki.example.org/edit/page" {
			t.Errorf("role %q: %q", role, s)
		}
	}
	for k, want := range map[action.Kind]string{
		action.Click: "Click ", action.Type: "Type into ", action.Select: "Choose in ", action.Check: "Tick ", action.Press: "Press a key in ", action.Scroll: "Scroll at ",
	} {
		if _, s := Describe(act(k), raw(t, observe.Element{Role: "button"}, observe.Facts{FieldKind: observe.FieldNone})); !strings.HasPrefix(s, want+"a button") {
			t.Errorf("%s: %q", k, s)
		}
	}
}

// VIEW-04: what cannot be described is said to be so, and nothing else is said.
func TestDescribeLost(t *testing.T) {
	observation := raw(t, observe.Element{Role: "button", Name: "Save"}, observe.Facts{FieldKind: observe.FieldNone})
	other, stale := typed(action.Type, "secret plan"), typed(action.Type, "secret plan")
	other.Ref, stale.ExpectedRevision = "r1:9", "r0"
	for what, f := range map[string]func() (View, string){
		"an unknown element": func() (View, string) { return Describe(other, observation) },
		"a stale revision":   func() (View, string) { return Describe(stale, observation) },
		"no observation":     func() (View, string) { return Describe(typed(action.Type, "secret plan"), observe.Raw{}) },
	} {
		v, s := f()
		if v != (View{View: ViewID, Kind: "type"}) || !strings.Contains(s, "no longer") {
			t.Errorf("%s: %+v, %q", what, v, s)
		}
	}
}

func TestDescribeKinds(t *testing.T) {
	field := raw(t, observe.Element{Role: "textbox", Name: "Comment"}, observe.Facts{FieldKind: observe.FieldMultiline})
	if v, _ := Describe(typed(action.Type, "line\n\tline"), field); v.Text != "line\n\tline" || v.Redacted || v.Digest != "" || v.Option != "" {
		t.Errorf("type: %+v", v)
	}
	if v, _ := Describe(typed(action.Select, "Blue"), field); v.Option != "Blue" || v.Text != "" {
		t.Errorf("select: %+v", v)
	}
	press, scroll := act(action.Press), act(action.Scroll)
	press.Key, scroll.DeltaY = new("Enter"), new(-300)
	if v, _ := Describe(press, field); v.Key != "Enter" {
		t.Errorf("press: %+v", v)
	}
	if v, _ := Describe(scroll, field); v.ScrollDeltaY != -300 {
		t.Errorf("scroll: %+v", v)
	}
}

// VIEW-03: the owner reads all of what will be typed; above 512 characters there
// is a digest too. What goes into a field for secrets is withheld whole.
func TestShown(t *testing.T) {
	field := raw(t, observe.Element{Role: "textbox"}, observe.Facts{FieldKind: observe.FieldText})
	for length, digested := range map[int]bool{512: false, 513: true, 4096: true} {
		text := strings.Repeat("ü", length)
		want := View{Text: text}
		if digested {
			want.Digest = digest(text)
		}
		v, _ := Describe(typed(action.Type, text), field)
		if v.Text != want.Text || v.Digest != want.Digest || v.Redacted {
			t.Errorf("%d characters: %+v", length, v)
		}
	}
	for _, k := range []observe.FieldKind{observe.FieldPassword, observe.FieldOneTimeCode, observe.FieldPayment} {
		if v, _ := Describe(typed(action.Type, strings.Repeat("ü", 513)), raw(t, observe.Element{Role: "textbox"}, observe.Facts{FieldKind: k})); v.Text != "" || v.Digest != "" || !v.Redacted {
			t.Errorf("in a %s field: %+v", k, v)
		}
	}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// VIEW-03: only what looks like a secret is masked; an agent cannot hide the
// rest of a text by putting one into it, and no digest tells of the secret.
func TestMasked(t *testing.T) {
	field := raw(t, observe.Element{Role: "textbox"}, observe.Facts{FieldKind: observe.FieldText})
	const m = mask
	for text, want := range map[string]string{
		"password: hunter2": "password: " + m, "my password=hunter2": "my password=" + m, "DB_PASSWORD=hunter2\nport=1": "DB_PASSWORD=" + m + "\nport=1",
		"Passwd : x": "Passwd : " + m, `{"token":"a b","to":"me"}`: `{"token":` + m + `,"to":"me"}`, "'secret' = 's'": "'secret' = " + m,
		"api_key=abc": "api_key=" + m, "API-Key: abc": "API-Key: " + m, "access_token=abc": "access_token=" + m,
		"Authorization: Bearer abcdefghijklmnop": "Authorization: Bearer " + m, "bearer: x": "bearer: " + m, "token: Bearer abcdefghijklmnop.q== x": "token: " + m + " x",
		"pay\n-----BEGIN RSA PRIVATE KEY-----\nAAAA\nBBBB\n-----END RSA PRIVATE KEY-----\nnow": "pay\n" + m + "\nnow", "-----BEGIN PRIVATE KEY-----\nAAAA": m,
		"use ghp_0123456789abcdefghij here": "use " + m + " here", "sk-0123456789abcdefghij": m, "AKIAIOSFODNN7EXAMPLE": m,
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkw.sig": m, "xoxb-123456789012-abc": m,
		"Transfer 500 to Eve. token: x y": "Transfer 500 to Eve. token: " + m + " y",
		"I forgot my password yesterday":  "", "The secret of success is work": "", "tokens: 3 left": "", "a bearer of news": "",
		"risk-management-strategy": "", "task-0123456789abcdef": "", "Password reset": "", "": "",
	} {
		redacted := want != ""
		if !redacted {
			want = text
		}
		if v, _ := Describe(typed(action.Type, text), field); v.Text != want || v.Redacted != redacted || v.Digest != "" {
			t.Errorf("%q: %+v", text, v)
		}
		if v, _ := Describe(typed(action.Select, text), field); v.Option != want || v.Redacted != redacted {
			t.Errorf("choosing %q: %+v", text, v)
		}
	}
	rest := strings.Repeat("x ", 300)
	if v, _ := Describe(typed(action.Type, "password: hunter2 "+rest), field); v.Text != "password: "+m+" "+rest || v.Digest != digest(v.Text) {
		t.Errorf("a long text with a secret: %+v", v)
	}
}

// The owner does not approve what cannot be seen: hidden characters of a typed
// text are marked, those of the page's own words are removed (VIEW-02, VIEW-03).
func TestHidden(t *testing.T) {
	for in, want := range map[string]string{
		"pay\u202e001": "pay\ufffd001", "a\u200bb": "a\ufffdb", "x\U000e0041\U000e0042": "x\ufffd\ufffd", "x\U000e0101": "x\ufffd", "a\u00adb": "a\ufffdb",
		"bell\a": "bell\ufffd", "\u3164": "\ufffd", "می\u200cخواهم": "می\u200cخواهم", "👩\u200d🔬 ❤\ufe0f": "👩\u200d🔬 ❤\ufe0f", "a\r\nb": "a\ufffd\nb",
	} {
		v, _ := Describe(typed(action.Type, in), raw(t, observe.Element{Role: "textbox"}, observe.Facts{FieldKind: observe.FieldText}))
		if v.Text != want {
			t.Errorf("%q is shown as %q", in, v.Text)
		}
	}
	v, _ := Describe(act(action.Click), raw(t, observe.Element{Role: "button", Name: "Pay\u202e \u200b€1\U000e0041"}, observe.Facts{FieldKind: observe.FieldNone, Context: "\u2066x\u2069"}))
	if v.ElementName != "Pay €1" || v.ElementContext != "x" {
		t.Errorf("%+v", v)
	}
}

// Everything the owner is shown of a page is bounded and free of hidden
// characters, for any page.
func TestDescribeProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := observe.Element{Role: rapid.StringN(1, observe.MaxRole, -1).Draw(t, "role"), Name: rapid.StringN(0, observe.MaxName, -1).Draw(t, "name")}
		f := observe.Facts{FieldKind: rapid.SampledFrom(observe.FieldKinds()).Draw(t, "kind"), Text: rapid.StringN(0, 256, -1).Draw(t, "text"), Context: rapid.StringN(0, 128, -1).Draw(t, "context")}
		v, s := Describe(act(action.Click), raw(t, e, f))
		for _, x := range []struct {
			text string
			max  int
		}{{v.PageTitle, 256}, {v.PagePath, 256}, {v.ElementRole, 64}, {v.ElementName, 256}, {v.ElementText, 256}, {v.ElementContext, 128}, {s, 200}} {
			if len([]rune(x.text)) > x.max || strings.ContainsFunc(x.text, func(r rune) bool { return hidden(r) || r == '\n' }) {
				t.Fatalf("%q is shown", x.text)
			}
		}
		if !v.Described || v.Text != "" || v.Option != "" {
			t.Fatalf("%+v", v)
		}
	})
}
