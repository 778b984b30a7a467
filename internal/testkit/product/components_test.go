package product_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/testkit/product"
)

const componentHost = "components.practice.example"

// npm is a folder with the packages, installed by the machine's own npm, and
// is kept for the next run. Without npm the test is skipped, and fails when
// CI=true.
func npm(t *testing.T, packages ...string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "chaperone-testkit", "npm", strings.NewReplacer("/", "_", "@", "_").Replace(strings.Join(packages, "+")))
	whole := filepath.Join(dir, "whole")
	if _, err := os.Stat(whole); err == nil {
		return dir
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "npm", append([]string{"install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", dir}, packages...)...).CombinedOutput()
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatalf("npm install %q: %v: %s", packages, err, out)
	default:
		t.Skipf("npm install %q: %v: %s", packages, err, out)
	}
	if err := os.WriteFile(whole, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// shoelace is a page of web components: every control is in an open shadow
// tree, most of their texts are slotted.
const shoelace = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Components</title><link rel="icon" href="data:,">
<link rel="stylesheet" href="/npm/@shoelace-style/shoelace/cdn/themes/light.css">
<script type="module" src="/npm/@shoelace-style/shoelace/cdn/shoelace.js"></script><main><h1>Components</h1>
<sl-button>Save draft</sl-button><sl-button href="#there">Read the terms</sl-button><sl-button disabled>Send away</sl-button>
<sl-input label="Full name"></sl-input><sl-input label="Secret word" type="password" password-toggle value="planted-word"></sl-input>
<sl-textarea label="Remarks"></sl-textarea><sl-select label="Country"><sl-option value="is">Iceland</sl-option></sl-select>
<sl-checkbox checked>I agree</sl-checkbox><sl-switch>Dark mode</sl-switch>
<sl-radio-group label="Delivery" value="post"><sl-radio value="post">By post</sl-radio><sl-radio value="hand">By hand</sl-radio></sl-radio-group>
<sl-icon-button name="x" label="Close account"></sl-icon-button><sl-range label="Volume"></sl-range>
<sl-tab-group><sl-tab slot="nav" panel="g">General</sl-tab><sl-tab slot="nav" panel="a">Advanced</sl-tab>
<sl-tab-panel name="g">General settings</sl-tab-panel><sl-tab-panel name="a"><sl-button>Hidden until chosen</sl-button></sl-tab-panel></sl-tab-group>
<sl-details summary="More settings">Less important</sl-details>
<sl-breadcrumb><sl-breadcrumb-item href="#home">Home shelf</sl-breadcrumb-item></sl-breadcrumb>
<sl-menu><sl-menu-item>Cut out</sl-menu-item><sl-menu-item type="checkbox" checked>Show grid</sl-menu-item></sl-menu>
<sl-dialog label="Not open"><sl-button>In the closed dialog</sl-button></sl-dialog></main></html>`

// modal is one that is open, over a page that must not be used meanwhile.
const modal = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Dialog</title><link rel="icon" href="data:,">
<link rel="stylesheet" href="/npm/@shoelace-style/shoelace/cdn/themes/light.css">
<script type="module" src="/npm/@shoelace-style/shoelace/cdn/shoelace.js"></script><main><sl-button>Behind the dialog</sl-button>
<sl-dialog label="Delete the shelf?" open><sl-input label="Type its name"></sl-input><sl-button slot="footer">Delete it</sl-button></sl-dialog></main></html>`

// govuk is one page with the first fixture of every component of the package,
// as its authors publish them, with their script and style.
func govuk(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "node_modules/govuk-frontend/dist/govuk/components/*/fixtures.json"))
	if err != nil || len(files) < 30 {
		t.Fatalf("%d fixtures: %v", len(files), err)
	}
	var b strings.Builder
	b.WriteString(`<!doctype html><html lang="en" class="govuk-template"><meta charset="utf-8"><title>Fixtures</title><link rel="icon" href="data:,">
<link rel="stylesheet" href="/npm/govuk-frontend/dist/govuk/govuk-frontend.min.css"><body class="govuk-template__body govuk-frontend-supported js-enabled"><main>`)
	for _, f := range files {
		if strings.Contains(f, "/textarea/") {
			continue // its ids are those of the character count
		}
		body, err := os.ReadFile(f)
		var c struct{ Fixtures []struct{ HTML string } }
		if err != nil || json.Unmarshal(body, &c) != nil || len(c.Fixtures) == 0 {
			t.Fatalf("%s: %v", f, err)
		}
		b.WriteString(c.Fixtures[0].HTML)
	}
	b.WriteString(`</main><script type="module">import { initAll } from "/npm/govuk-frontend/dist/govuk/govuk-frontend.min.js"; initAll(); document.title = "Fixtures, alive";</script></body></html>`)
	return b.String()
}

// all reads the page to its end and returns the names of its controls.
func all(t *testing.T, a *product.Agent, page string) (names []string, raw string) {
	t.Helper()
	v := readPage(t, a, "browser.navigate", map[string]any{"url": "https://" + componentHost + page})
	for range 20 {
		for _, bad := range v.wrong() {
			t.Errorf("%s: %s", page, bad)
		}
		if v.Code != "" {
			t.Fatalf("%s: %s %s", page, v.Code, v.Message)
		}
		for _, name := range v.names() {
			names = append(names, strings.Join(strings.Fields(name), " ")) // hard spaces look like others
		}
		raw += v.raw
		var more struct {
			Next map[string]any `json:"next_observe"`
		}
		if err := json.Unmarshal([]byte(v.raw), &more); err != nil {
			t.Fatal(err)
		}
		if len(more.Next) == 0 {
			return names, raw
		}
		v = readPage(t, a, "browser.observe", more.Next)
	}
	t.Fatalf("%s has no end", page)
	return nil, ""
}

func listed(names []string, want string) (n int) {
	for _, name := range names {
		if name == want {
			n++
		}
	}
	return n
}

// Components that real sites are made of: each control is listed by the name
// that a person sees, once, whatever tree it stands in, and what no person can
// use is not listed (NAME-01, OBS-02; cases 21, 28, 31, 32).
func TestPublishedComponents(t *testing.T) {
	dir := npm(t, "@shoelace-style/shoelace@2.20.1", "govuk-frontend@6.6.0")
	pages := map[string]string{"/shoelace": shoelace, "/modal": modal, "/govuk": govuk(t, dir)}
	m := http.NewServeMux()
	m.Handle("GET /npm/", http.StripPrefix("/npm/", http.FileServer(http.Dir(filepath.Join(dir, "node_modules")))))
	for path, body := range pages {
		m.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, body)
		})
	}
	site := product.PracticeWith(t, map[string]http.Handler{componentHost: m})
	data := product.Folder(t)
	r := product.Up(t, data, "--dev", product.DevFile(t, site, ""), "--approval-wait", "0s")
	agent := product.NewAgent(t, data, "--ephemeral", "--origin", "https://"+componentHost)
	for _, c := range []struct {
		page        string
		must, never []string
	}{
		{"/shoelace", []string{
			"Save draft", "Read the terms", "Send away", "Full name", "Secret word", "Show password", "Remarks", "Country",
			"I agree", "Dark mode", "By post", "By hand", "Close account", "Volume", "General", "Advanced", "More settings",
			"Home shelf", "Cut out", "Show grid",
		}, []string{"Hidden until chosen", "In the closed dialog"}},
		{"/modal", []string{"Type its name", "Delete it"}, nil},
		{"/govuk", []string{
			"Section A , Show this section", "Back", "Home", "Sub-section", "Save and continue", "Can you provide more detail?", "British", "Irish",
			"Accept analytics cookies", "Reject analytics cookies", "Day", "Month", "Year", "Help with nationality",
			"Enter a postcode, like AA1 1AA", "Upload a file", "National Insurance number", "Cymraeg", "Page 1", "Page 2",
			"Previous page", "Next page", "Show password", "Yes", "No", "Label text goes here", "Navigation item 1",
			"Past day", "Past year", "Company Directors", "My cool service", "feedback",
		}, []string{"Menu"}},
	} {
		names, raw := all(t, agent, c.page)
		for _, want := range c.must {
			n := listed(names, want)
			if n == 2 && want == "Country" {
				n = 1 // the box around the field and its arrow opens the list too
			}
			if n != 1 {
				t.Errorf("%s: %d controls %q among %q", c.page, n, want, names)
			}
		}
		for _, bad := range c.never {
			if slices.Contains(names, bad) {
				t.Errorf("%s: the control %q is listed, which no person can use", c.page, bad)
			}
		}
		if strings.Contains(raw, "planted-word") {
			t.Errorf("%s: a password is in the answer", c.page)
		}
	}
	agent.Close()
	r.Stop()
}
