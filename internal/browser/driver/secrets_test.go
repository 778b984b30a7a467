package driver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/browser/driver"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// CAP-05, TEXT-03, REGN-04, EXTR-06, cases 49: a value is planted in every
// place that may hold what somebody entered or a site keeps, and is on no
// surface: not in any kind of reading, not after an act, not in an error, not
// in the log.
func TestNoSecretOnAnySurface(t *testing.T) {
	t.Parallel()
	const s = "planted-9c41e7"
	var log lockedBuffer
	b := newBench(t, func(c *driver.Config) {
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	places := []string{
		`<label>Password <input type=password value=S></label>`, `<label>New <input autocomplete=new-password value=S></label>`, `<label>Code <input autocomplete=one-time-code value=S></label>`,
		`<label>Shown <input id=shown type=password value=S></label>`, `<label>User <input value=S required aria-invalid=true></label>`, `<input type=hidden value=S>`, `<input type=hidden role=button value=S tabindex=0>`,
		`<textarea aria-label=Area>S</textarea>`, `<div contenteditable role=textbox aria-label=Editor><p>S</p></div>`, `<div role=textbox tabindex=0 aria-label=Custom><span>S</span></div>`,
		`<div role=searchbox tabindex=0>S</div>`, `<div role=spinbutton tabindex=0>S</div>`, `<div role=combobox tabindex=0>S</div>`, `<a href=# contenteditable aria-label=Link>S</a>`,
		`<button aria-labelledby="typed">x</button><input id=typed value=S>`, `<label>Date <input type=date value=2031-07-19></label>`, `<label>File <input type=file></label>`,
		`<p hidden>S</p><p style="display:none">S</p><p style="visibility:hidden">S</p><p style="opacity:0">S</p><p aria-hidden=true>S</p><p role=alert hidden>S</p><details>S</details>`,
		`<script>/*S*/</script><style>/*S*/</style><template>S</template><noscript>S</noscript><!--S--><p data-token=S id=meta>meta</p><meta name=csrf content=S>`,
		`<input list=opts aria-label=Listed value=S><datalist id=opts><option>S</datalist>`, `<object>S</object><audio>S</audio><video>S</video><canvas>S</canvas>`,
		`<x-y></x-y><script>document.querySelector('x-y').attachShadow({mode:'open'}).innerHTML='<input value=S aria-label=Inner><textarea>S</textarea><p hidden>S</p>'</script>`,
		`<x-z></x-z><script>document.querySelector('x-z').attachShadow({mode:'closed'}).innerHTML='<input value=S><p hidden>S</p>'</script>`,
		`<iframe srcdoc="<input value=S><textarea>S</textarea><p hidden>S</p>" title=Frame></iframe>`,
	}
	body := `<script>document.cookie='c=S';localStorage.k='S';sessionStorage.k='S';history.replaceState({s:'S'},'');shownLater=()=>shown.type='text'</script>
		<main>Main<div contenteditable>S</div><article>post<input value=S><time><a href="/p?t=S">now</a></time></article></main><form aria-label=Form>` + strings.Join(places, "") + `<button type=button onclick="shown.type='text'">Show</button></form>
		<table><tr><td>cell<input value=S><td contenteditable>S<td hidden>S</table><ul><li>item<textarea>S</textarea></ul>`
	body = strings.ReplaceAll(body, "S'", s+"'")
	body = strings.NewReplacer("value=S", "value="+s, ">S<", ">"+s+"<", "=S>", "="+s+">", "/*S*/", "/*"+s+"*/", "--S--", "--"+s+"--", "content=S", "content="+s, "t=S", "t="+s, "=S ", "="+s+" ").Replace(body)
	if strings.Count(body, s) < 50 {
		t.Fatalf("%d places", strings.Count(body, s))
	}
	b.Handle(host+"/planted", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Set-Cookie", "h="+s+"; HttpOnly; Secure")
		w.Header().Set("X-Secret", s)
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html>", body)
	})
	var surfaces []string
	shown := func(what string, d observe.Document, err error) observe.Document {
		t.Helper()
		text, encoding := json.Marshal(d)
		if encoding != nil {
			t.Fatal(encoding)
		}
		surfaces = append(surfaces, fmt.Sprintf("%s: %s %v", what, text, err))
		return d
	}
	d, err := b.page.Navigate(t.Context(), parse(t, "https://"+host+"/planted"))
	if err != nil {
		t.Fatal(err)
	}
	shown("navigate", d, err)
	if len(d.Elements) < 20 || len(d.Regions) < 2 || !strings.Contains(d.Text, "cell") {
		t.Fatalf("%q %q %q", names(d), regions(d), d.Text)
	}
	for kind, columns := range map[string]int{"table": 3, "list": 1, "form": 6, "articles": 2} {
		q := observe.ExtractQuery{Kind: kind, Revision: d.Revision, RowLimit: 50}
		for i := range columns {
			q.Fields = append(q.Fields, observe.ExtractField{Name: fmt.Sprint("c", i), Column: i, Type: "string"})
		}
		x, err := b.page.Observe(t.Context(), observe.Query{Extract: &q})
		if d = shown(kind, x, err); err != nil || len(d.Extraction.Rows) == 0 {
			t.Errorf("%s: %v", kind, err)
		}
	}
	for _, kind := range []observe.RegionKind{observe.RegionForm, observe.RegionMain} {
		d = b.again(t)
		for _, r := range d.Regions {
			if r.Kind == kind {
				f, err := b.page.Observe(t.Context(), observe.Query{Region: &observe.RegionQuery{Ref: r.Ref, Revision: d.Revision}})
				shown("focus", f, err)
				if err != nil {
					t.Error(err)
				}
				break
			}
		}
	}
	d = b.again(t)
	for name, value := range map[string]string{"Password": s, "Code": s, "Date": s, "Show": ""} {
		a := action.Action{Kind: action.Type, ExpectedRevision: d.Revision, Ref: find(t, d, name), Value: &value}
		if value == "" {
			a = action.Action{Kind: action.Click, ExpectedRevision: d.Revision, Ref: find(t, d, name)}
		}
		after, err := b.page.Act(t.Context(), a, nil)
		if shown("act on "+name, after, err); (err == nil) != (name == "Show") {
			t.Errorf("%s: %v", name, err)
		}
		d = shown("then", b.again(t), nil)
	}
	after, err := b.act(t, d, action.Type, "User", s)
	if shown("typing", after, err); err != nil {
		t.Error(err)
	}
	e, err := b.page.Evidence(t.Context())
	surfaces = append(surfaces, fmt.Sprintf("evidence: %+v %v", e, err), "log: "+log.String())
	for _, surface := range surfaces {
		if i := strings.Index(surface, s); i >= 0 {
			t.Errorf("it is there: …%s…", surface[max(0, i-200):min(len(surface), i+60)])
		}
		if strings.Contains(surface, "2031-07-19") {
			t.Errorf("the date is there: %.60s", surface)
		}
	}
}
