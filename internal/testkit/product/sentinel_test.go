package product_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/chaperone-agents/chaperone/api"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/testkit/leak"
	"github.com/chaperone-agents/chaperone/internal/testkit/product"
)

const (
	safeHost = "safe.example"
	safeURL  = "https://" + safeHost
)

// planting makes one value for every place of a website that holds what
// somebody entered or what keeps them signed in.
type planting struct {
	values map[string]string // by place
	// visible is printed on the pages: the sweep has to find it, or it finds
	// nothing at all.
	visible string
}

func newPlanting() *planting {
	return &planting{values: map[string]string{}, visible: "seen-" + ident.Hex(8)}
}

// at is the value of a place.
func (p *planting) at(place string) string {
	if p.values[place] == "" {
		p.values[place] = "kept-" + ident.Hex(8)
	}
	return p.values[place]
}

// page is a page with something in every place. A sign-in page has password
// and code fields besides.
func (p *planting) page(signIn bool) string {
	var b strings.Builder
	add := func(format string, places ...string) {
		values := make([]any, len(places))
		for i, place := range places {
			values[i] = p.at(place)
		}
		fmt.Fprintf(&b, format+"\n", values...)
	}
	fmt.Fprintf(&b, `<!doctype html><html lang="en"><meta charset="utf-8"><title>Safe %s</title><link rel="icon" href="data:,">`, p.visible)
	add(`<meta name="csrf-token" content="%s"><!-- %s --><script type="application/json">{"token":"%s"}</script><script>/* %s */</script><style>/* %s */</style>`,
		"meta", "comment", "inline JSON", "script", "style")
	add(`<script>localStorage.setItem('k', '%s'); sessionStorage.setItem('k', '%s'); document.cookie = 'j=%s; Secure'; history.replaceState({ s: '%s' }, ''); window.name = '%s';
		fetch('/api/me').then((r) => r.text()).then((t) => { window.me = t; });
		new Promise((r) => { const o = indexedDB.open('d', 1); o.onupgradeneeded = () => o.result.createObjectStore('s'); o.onsuccess = () => { o.result.transaction('s', 'readwrite').objectStore('s').put('%s', 'k'); }; });
		console.log('%s'); console.error('%s'); setTimeout(() => { throw new Error('%s'); }, 5);</script>`,
		"localStorage", "sessionStorage", "script cookie", "history state", "window name", "IndexedDB", "console log", "console error", "exception text")
	fmt.Fprintf(&b, `<main><h1>Safe %s</h1><p>Main text</p><button id="touch" type="button" onclick="document.title += '!'">Touch %s</button>`, p.visible, p.visible)
	add(`<form aria-label="Details" action="/post?x=%s"><input type="hidden" name="csrf" value="%s"><label>Name <input value="%s"></label><label>Old <input value="%s" readonly></label>
		<label>Notes <textarea>%s</textarea></label><div contenteditable="true" aria-label="Letter"><p>%s</p></div><div role="textbox" tabindex="0" aria-label="Custom">%s</div>
		<label>Mail <input id="auto" type="email" autocomplete="email"></label><label>Node <input id="node"></label><input title="%s" value="%s"><div contenteditable="true" title="%s">%s</div><input aria-label="List" list="l" value="%s"><datalist id="l"><option value="%s"></datalist>
		<input id="source" value="%s"><button type="button" aria-labelledby="source">Labelled by a field</button><select aria-label="Choice"><option value="%s">First</option></select>
		<p data-token="%s" data-json='{"t":"%s"}'>Marked</p><a href="#there" data-href="%s">Link</a></form>`,
		"form action", "hidden input", "text field", "read-only field", "textarea", "editor", "custom text box",
		"mirrored title", "mirrored title", "mirrored editor", "mirrored editor", "listed field", "datalist", "labelling field", "option value",
		"data attribute", "data JSON", "data link")
	add(`<script>auto.value = '%s'; node.append(document.createTextNode('%s'));</script>`, "autofilled field", "child of an input")
	add(`<div hidden>%s</div><div style="display:none">%s</div><template>%s</template><noscript>%s</noscript><div aria-hidden="true">%s</div><details><summary>More</summary>%s</details>`,
		"hidden text", "undisplayed text", "template", "noscript", "aria-hidden text", "closed details")
	add(`<x-open></x-open><x-shut></x-shut><script>document.querySelector('x-open').attachShadow({ mode: 'open' }).innerHTML = '<input aria-label="Inner" value="%s"><p hidden>%s</p>';
		document.querySelector('x-shut').attachShadow({ mode: 'closed' }).innerHTML = '<input aria-label="Shut" value="%s">';</script>`, "shadow field", "shadow hidden text", "closed shadow field")
	add(`<iframe title="Inside" srcdoc='<p>Frame text</p><input aria-label="Framed" value="%s"><textarea>%s</textarea>'></iframe>`, "frame field", "frame textarea")
	add(`<table><tr><th>Item<th>Note</tr><tr><td>One<td><input value="%s"></tr><tr><td>Two<td hidden>%s</tr></table><ul><li>Entry <textarea>%s</textarea></li></ul>
		<article>Post <input value="%s"><time><a href="/p">now</a></time></article></main>`, "table field", "hidden cell", "list field", "article field")
	if signIn {
		add(`<form aria-label="Sign in"><label>Password <input id="pw" type="password" value="%s"></label><label>Saved <input id="saved" type="password" autocomplete="current-password"></label>
			<label>New <input type="text" autocomplete="new-password" value="%s"></label><label>Code <input autocomplete="one-time-code" value="%s"></label><label>Masked <input style="-webkit-text-security:disc" value="%s"></label>
			<div contenteditable="true" role="textbox" inputmode="numeric" aria-label="Code box">%s</div><input type="password" title="%s" value="%s"><button type="button" onclick="pw.type = 'text'">Show password</button></form>
			<script>saved.value = '%s'; document.querySelector('[contenteditable][inputmode]').dataset.typed = '%s';</script>`,
			"password", "new password", "one-time code", "masked field", "code box", "title of a field", "title of a field", "autofilled password", "echo of typing")
	}
	return b.String()
}

func (p *planting) handler() http.Handler {
	m := http.NewServeMux()
	show := func(signIn bool) http.HandlerFunc {
		page := p.page(signIn)
		header, set := p.at("response header"), p.at("cookie")
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("X-Session", header)
			http.SetCookie(w, &http.Cookie{Name: "sid", Value: set, Path: "/", Secure: true, HttpOnly: true, MaxAge: 3600})
			_, _ = io.WriteString(w, page)
		}
	}
	m.HandleFunc("GET /inside", show(false))
	m.HandleFunc("GET /signin", show(true))
	m.HandleFunc("GET /api/me", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"token":%q}`, p.at("response body"))
	})
	m.HandleFunc("GET /away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://elsewhere.example/?t="+p.at("redirect target"), http.StatusFound)
	})
	return m
}

// surfaces is everything that the system gave out, in files that are swept
// like those it wrote itself.
type surfaces struct {
	t   *testing.T
	dir string
}

func (s surfaces) keep(name, text string) {
	s.t.Helper()
	f, err := os.OpenFile(filepath.Join(s.dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text + "\n"); err != nil {
		s.t.Fatal(err)
	}
}

// call keeps the answer of a tool.
func (s surfaces) call(a *product.Agent, tool string, args map[string]any) reading {
	s.t.Helper()
	v := readPage(s.t, a, tool, args)
	s.keep("mcp", v.raw)
	return v
}

// everyReading reads the page in every way there is.
func (s surfaces) everyReading(a *product.Agent) {
	s.t.Helper()
	read := func(args map[string]any) reading { return s.call(a, "browser.observe", args) }
	v := read(map[string]any{})
	if len(v.Elements) < 10 {
		s.t.Fatalf("the page was not read: %s", v.raw)
	}
	read(map[string]any{"after": v.Elements[0].Ref})
	for _, kind := range []string{"table", "list", "form", "articles"} {
		v = read(map[string]any{})
		x := read(map[string]any{"extract": map[string]any{"kind": kind, "expected_revision": v.Revision, "index": 0, "row_limit": 50, "fields": []map[string]any{
			{"name": "a", "column": 0, "type": "string"}, {"name": "b", "column": 1, "type": "string"},
		}}})
		if !strings.Contains(x.raw, `"rows"`) {
			s.t.Errorf("%s: %.300s", kind, x.raw)
		}
	}
	v = read(map[string]any{})
	read(map[string]any{"expected_revision": v.Revision, "text_offset": 0})
	v = read(map[string]any{})
	read(map[string]any{"since": v.Revision})
	for n := range 4 { // each region, in a reading of its own
		v = read(map[string]any{})
		if parts := strings.Split(v.raw, `:region:`); len(parts) > n+1 {
			read(map[string]any{"region_ref": fmt.Sprintf("%s:region:%s", v.Revision, strings.SplitN(parts[n+1], `"`, 2)[0]), "expected_revision": v.Revision})
		}
	}
	met := read(map[string]any{"wait_for": map[string]any{"evidence": map[string]any{"kind": "text", "text": "Main text"}}})
	if !strings.Contains(met.raw, `"condition"`) {
		s.t.Errorf("wait_for: %.300s", met.raw)
	}
}

// ownersView keeps what every route that lists something answers, and what the
// command line prints.
func (s surfaces) ownersView(r *product.Running, profile string) {
	s.t.Helper()
	for _, line := range []string{
		"profile list", "profile list --json", "profile show " + profile, "profile show " + profile + " --json", "approvals list --all", "approvals list --all --json",
		"sessions list --json", "devices list --json", "audit tail --limit 200", "audit tail --limit 200 --json", "diagnostics --limit 200", "diagnostics --limit 200 --json", "doctor --json",
	} {
		got := product.Run(s.t, r.Data, strings.Fields(line)...)
		s.keep("cli", got.Out+got.Err)
	}
	credential, err := os.ReadFile(filepath.Join(r.Data, "owner.credential"))
	if err != nil {
		s.t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(api.Document())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		if doc.Paths.Value(path).Get == nil || strings.Contains(path, "{") || path == "/v1/events" {
			continue
		}
		q, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, strings.TrimSuffix(r.Console, "/")+path, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(credential)))
		res, err := http.DefaultTransport.RoundTrip(q)
		if err != nil {
			s.t.Fatal(err)
		}
		body, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
		res.Body.Close()
		if err != nil || res.StatusCode >= 300 {
			s.t.Fatalf("%s: %d %v", path, res.StatusCode, err)
		}
		s.keep("api", string(body))
	}
}

// A value is planted in every place of a website where a person's entries, a
// session or a page's own secrets can stand. The main job runs over it: a
// sign-in, every kind of reading, approved and refused acts, a redirect away, a
// seal, a restart. Then everything the system wrote or said is searched, in
// every spelling: answers over MCP, the owner's API, the command line, logs,
// the data folder with its database, temporary folders, command lines and
// environments. Only what the pages print is found (CAP-05, TEXT-03, REGN-04,
// EXTR-06, OPD-03, ACC-03, STORE-01, META-01, CER-02, cases 49).
func TestPlantedSecretsAreNowhere(t *testing.T) {
	product.Bin(t)
	temp, err := os.MkdirTemp("/tmp", "snt-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(temp) })
	if err := os.Chmod(temp, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temp)
	s := surfaces{t: t, dir: t.TempDir()}
	p := newPlanting()
	site := product.PracticeWith(t, map[string]http.Handler{safeHost: p.handler()})
	dev, data := product.DevFile(t, site, ""), product.Folder(t)
	r := product.Up(t, data, "--dev", dev, "--approval-wait", "0s")
	id := profile(t, r, safeURL)
	r.SignIn(site, id)

	agent := product.NewAgent(t, data, "--profile", id)
	ephemeral := product.NewAgent(t, data, "--ephemeral", "--origin", safeURL)
	for _, a := range []*product.Agent{agent, ephemeral} {
		page := "/inside"
		if a == ephemeral {
			page = "/signin"
		}
		v := s.call(a, "browser.navigate", map[string]any{"url": safeURL + page})
		if v.Code != "" || !strings.Contains(v.Title, p.visible) {
			t.Fatalf("%s: %s", page, v.raw)
		}
		s.everyReading(a)
		for _, name := range []string{"Touch " + p.visible, "Password", "Code", "Show password"} {
			v = s.call(a, "browser.observe", map[string]any{})
			s.act(r, a, v, name)
		}
		if a == ephemeral {
			s.everyReading(a) // of a password that is shown as text now
		}
		s.call(a, "browser.navigate", map[string]any{"url": safeURL + "/away"})
	}
	s.ownersView(r, id)
	secrets := append(slices.Collect(maps.Values(p.values)), site.Secrets()...)
	if hits, err := leak.FindInProcesses(secrets, r.Family()); err != nil || len(hits) > 0 {
		t.Errorf("while it runs: %v %v", hits, err)
	}
	leak.NoSecret(t, secrets, data)
	agent.Close()
	ephemeral.Close()
	s.keep("log", agent.Log.String()+ephemeral.Log.String())
	r.Stop()
	s.keep("log", r.Log.String())
	if len(seals(t, data)) != 1 {
		t.Error("the session was not sealed")
	}
	r = product.Up(t, data, "--dev", dev, "--approval-wait", "0s")
	agent = product.NewAgent(t, data, "--profile", id)
	s.call(agent, "browser.navigate", map[string]any{"url": safeURL + "/inside"})
	if v := s.call(agent, "browser.navigate", map[string]any{"url": safeURL + "/signin"}); v.Code != "tool.browser.needs_user" {
		t.Errorf("a page that asks for its owner: %.300s", v.raw)
	}
	s.ownersView(r, id)
	agent.Close()
	r.Stop()
	s.keep("log", agent.Log.String()+r.Log.String())

	places := slices.Sorted(maps.Keys(p.values))
	for _, folder := range []string{s.dir, data, temp} {
		for _, place := range places {
			leak.NoSecret(told{t, place}, []string{p.values[place]}, folder)
		}
		leak.NoSecret(t, site.Secrets(), folder)
	}
	// The same sweep finds what is allowed to be there; so it can find.
	hits, err := leak.Find(t.Context(), s.dir, []string{p.visible})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := leak.Find(t.Context(), data, []string{p.visible})
	if err != nil {
		t.Fatal(err)
	}
	all := fmt.Sprint(hits, kept)
	for _, where := range []string{"/mcp", "/cli", "/api", "chaperone.db"} {
		if !strings.Contains(all, where) {
			t.Errorf("what the pages print is not found in %s: the sweep shows nothing there", where)
		}
	}
	s.keep("log", "x"+p.at("password")) // a control that leaks
	if hits, err = leak.Find(t.Context(), s.dir, []string{p.at("password")}); err != nil || len(hits) == 0 {
		t.Errorf("a leak into the log is not found: %v", err)
	}
}

// told names the place of a secret that was found.
type told struct {
	*testing.T
	place string
}

func (o told) Errorf(format string, args ...any) {
	o.T.Helper()
	o.T.Errorf("%s: "+format, append([]any{o.place}, args...)...)
}

// act types into a field, or clicks, with the owner's approval if it needs one.
func (s surfaces) act(r *product.Running, a *product.Agent, v reading, name string) {
	s.t.Helper()
	i := slices.Index(v.names(), name)
	if i < 0 {
		return // not on this page
	}
	args := map[string]any{"kind": "click", "expected_revision": v.Revision, "ref": v.Elements[i].Ref}
	if v.Elements[i].Role == "textbox" {
		args["kind"], args["value"] = "type", "abc"
	}
	asked := s.call(a, "browser.act", args)
	if asked.Approval == nil {
		return
	}
	for _, line := range []string{"approvals show " + asked.Approval.ID, "approvals show --json " + asked.Approval.ID, "approvals approve " + asked.Approval.ID} {
		got := product.Run(s.t, r.Data, strings.Fields(line)...)
		s.keep("cli", got.Out+got.Err)
	}
	s.call(a, "browser.act", args)
}
