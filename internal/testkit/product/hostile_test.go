package product_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/testkit/practice"
	"github.com/chaperone-agents/chaperone/internal/testkit/product"
)

// maxAnswer is the default answer's bound: 4,000 tokens of four characters.
const maxAnswer = 16_000

// reading is one answer as an agent's host gets it.
type reading struct {
	product.Answer
	raw string
}

// readPage calls a tool and fails the test only if no answer comes.
func readPage(t *testing.T, a *product.Agent, tool string, args map[string]any) reading {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	r, err := a.Session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v\n%s", tool, err, a.Log)
	}
	var v reading
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			v.raw += text.Text
		}
	}
	if err := json.Unmarshal([]byte(v.raw), &v.Answer); err != nil {
		t.Errorf("%s: %v in %.300s", tool, err, v.raw)
	}
	return v
}

func (v reading) names() []string {
	var out []string
	for _, e := range v.Elements {
		out = append(out, e.Name)
	}
	return out
}

var halfPair = regexp.MustCompile(`\\u[dD][89a-fA-F]`)

// wrong says what no answer may be, whatever the page does (BND-01, CAPT-01,
// PROJ-01).
func (v reading) wrong() []string {
	var out []string
	add := func(bad bool, format string, args ...any) {
		if bad {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	add(!utf8.ValidString(v.raw) || !json.Valid([]byte(v.raw)), "it is no JSON in UTF-8")
	add(halfPair.MatchString(v.raw), "it has half a surrogate pair")
	add(utf8.RuneCountInString(v.raw) > maxAnswer, "it has %d characters", utf8.RuneCountInString(v.raw))
	if v.Code != "" {
		add(!strings.HasPrefix(v.Code, "tool.browser."), "the code %q is none of ours", v.Code)
		return out
	}
	add(v.Revision == "" || v.URL == "", "it has no revision or no address")
	add(len(v.Elements) > observe.MaxElements, "it has %d controls", len(v.Elements))
	refs := map[string]bool{}
	for _, e := range v.Elements {
		add(refs[e.Ref] || !strings.HasPrefix(e.Ref, v.Revision+":"), "the reference %.80q is not of this revision, or there twice", e.Ref)
		add(e.Role == "" || utf8.RuneCountInString(e.Role) > observe.MaxRole, "a role is %.80q", e.Role)
		add(utf8.RuneCountInString(e.Name) > observe.MaxName, "a name has %d characters", len(e.Name))
		refs[e.Ref] = true
	}
	return out
}

// The check itself must be able to fail.
func TestWrongAnswersAreFound(t *testing.T) {
	good := reading{raw: `{}`, Answer: product.Answer{Revision: "r", URL: "https://x.example/", Elements: []product.Element{{Ref: "r:1", Role: "button"}}}}
	if bad := good.wrong(); bad != nil {
		t.Error(bad)
	}
	for name, change := range map[string]func(v *reading){
		"bytes":     func(v *reading) { v.raw = "\"\xff\"" },
		"half":      func(v *reading) { v.raw = `"\ud800"` },
		"cut":       func(v *reading) { v.raw = `{"a":` },
		"long":      func(v *reading) { v.raw = `"` + strings.Repeat("x", maxAnswer) + `"` },
		"code":      func(v *reading) { v.Code = "TypeError" },
		"revision":  func(v *reading) { v.Revision = "" },
		"foreign":   func(v *reading) { v.Elements[0].Ref = "other:1" },
		"twice":     func(v *reading) { v.Elements = append(v.Elements, v.Elements[0]) },
		"many":      func(v *reading) { v.Elements = make([]product.Element, 257) },
		"no role":   func(v *reading) { v.Elements[0].Role = "" },
		"long role": func(v *reading) { v.Elements[0].Role = strings.Repeat("r", 65) },
		"long name": func(v *reading) { v.Elements[0].Name = strings.Repeat("n", 1025) },
	} {
		v := good
		v.Elements = slices.Clone(good.Elements)
		if change(&v); v.wrong() == nil {
			t.Errorf("%s passes", name)
		}
	}
}

// Pages that lie, never rest, or have no end: every call answers, every answer
// is whole and bounded, what is true is seen and what is false is not, and the
// browser goes on working (OBS-01, NAME-01, BND-01, CAPT-01, SETL-02, TRUST-03).
func TestHostilePages(t *testing.T) {
	site := product.Practice(t)
	data := product.Folder(t)
	r := product.Up(t, data, "--dev", product.DevFile(t, site, ""), "--approval-wait", "0s")
	agent := product.NewAgent(t, data, "--ephemeral", "--origin", practice.URL(practice.Hostile, ""))
	for _, c := range []struct {
		page    string
		names   []string // controls that must be listed
		text    string   // a part of the text
		never   string   // in no answer
		restful bool     // must be readable; else a refusal is an answer too
	}{
		{"getters", []string{"True name", "True but off", "True field", "True choice"}, "The true text of this page.", "FALSE", true},
		{"prototypes", []string{"True name", "True link"}, "The true text of this page.", "FALSE", true},
		{"crowd", []string{"First of all", "Person 0", "Person 10"}, "", "", true},
		{"vanishing", []string{"Stays"}, "", "", true},
		{"leaving", nil, "", "", false},
		{"bottomless", nil, "", "", false},
		{"streams", []string{"Steady"}, "Heard", "", true},
		{"mutations", nil, "Ticks", "", true},
		{"letters", []string{"Plain"}, "Text with half a pair", "", true},
		{"mega", []string{"Small"}, "", "", true},
		{"names", []string{"deep"}, "", "", true},
		{"hidden", []string{"Remembered password", "Send"}, "The text that may be read", "planted-", true},
	} {
		t.Run(c.page, func(t *testing.T) {
			where := practice.URL(practice.Hostile, "/"+c.page)
			revisions := map[string]bool{}
			var last reading
			for i := range 3 {
				tool, args := "browser.observe", map[string]any{}
				if i == 0 {
					tool, args = "browser.navigate", map[string]any{"url": where}
				}
				v := readPage(t, agent, tool, args)
				for _, bad := range v.wrong() {
					t.Errorf("%s: %s: %.400s", tool, bad, v.raw)
				}
				if c.never != "" && strings.Contains(v.raw, c.never) {
					t.Errorf("%s: %q is in %.400s", tool, c.never, v.raw)
				}
				if v.Code != "" {
					if c.restful {
						t.Errorf("%s: %s %s", tool, v.Code, v.Message)
					}
					continue
				}
				if revisions[v.Revision] {
					t.Errorf("the revision %s is there twice", v.Revision)
				}
				revisions[v.Revision], last = true, v
				for _, name := range c.names {
					if !slices.Contains(v.names(), name) {
						t.Errorf("%s: no control %q in %.80q", tool, name, v.names())
					}
				}
				if !strings.Contains(v.Text, c.text) {
					t.Errorf("%s: no %q in %.200q", tool, c.text, v.Text)
				}
			}
			if i := slices.IndexFunc(last.Elements, func(e product.Element) bool { return slices.Contains(c.names, e.Name) }); i >= 0 {
				v := readPage(t, agent, "browser.act", map[string]any{
					"kind": "scroll", "expected_revision": last.Revision, "ref": last.Elements[i].Ref, "delta_y": 10,
				})
				for _, bad := range v.wrong() {
					t.Errorf("scroll: %s: %.400s", bad, v.raw)
				}
				if v.Code != "" || revisions[v.Revision] {
					t.Errorf("scroll at %q: %.400s", last.Elements[i].Name, v.raw)
				}
			}
			v := readPage(t, agent, "browser.navigate", map[string]any{"url": practice.URL(practice.Hostile, "/links")})
			if !slices.Contains(v.names(), "Link 0") {
				t.Errorf("afterwards: %.300s", v.raw)
			}
		})
	}
	agent.Close()
	r.Stop()
}
