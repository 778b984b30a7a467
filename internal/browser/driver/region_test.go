package driver_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

func regions(d observe.Document) []string {
	var out []string
	for _, r := range d.Regions {
		out = append(out, string(r.Kind)+": "+r.Text)
	}
	return out
}

func regionRef(t testing.TB, d observe.Document, text string) string {
	t.Helper()
	for _, r := range d.Regions {
		if strings.HasPrefix(r.Text, text) {
			return r.Ref
		}
	}
	t.Fatalf("no region %q in %q", text, regions(d))
	return ""
}

// later is a script that runs when the returned function is called, which
// returns when it has run.
func (b *bench) later(t testing.TB, name, js string) (script string, run func()) {
	t.Helper()
	release := make(chan struct{})
	b.Handle(host+"/later/"+name, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream") // nothing waits for the end of one (SETL-04)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-release:
			_, _ = io.WriteString(w, "data: now\n\n")
		case <-r.Context().Done():
		}
	})
	script = say + `<script>{ const now = new EventSource('/later/` + name + `'); now.onmessage = () => { now.close(); ` + js + `; say('` + name + `') } }</script>`
	return script, func() {
		close(release)
		eventually(t, name, func() bool { return strings.Contains(b.effects(), name) })
	}
}

func TestRegions(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	t.Run("REGN-02 REGN-04 FOC-05 kinds in order, without what is entered", func(t *testing.T) {
		d := b.open(t, "/regions", `<h1>Title</h1><section>Part <input value=S><textarea>S</textarea><b contenteditable>S</b><b hidden>S</b></section><main>Body</main>
			<div role=region>Named</div><form>Fields<select><option>S</select></form><div role=form>Other</div><p role=status>Saved</p><p role=alert>Careful</p>
			<div role=dialog>Box</div><div role=heading>Sub</div><p role=alert hidden>S</p><form hidden>S</form><h2></h2><iframe srcdoc="<h1>Framed</h1>"></iframe>
			<x-y></x-y><script>document.querySelector('x-y').attachShadow({mode:'open'}).innerHTML='<h1>Shadow</h1>'</script><dialog>Closed</dialog>`)
		want := []string{"dialog: Box", "alert: Careful", "status: Saved", "form: Fields", "form: Other", "main: Body", "section: Part", "section: Named", "heading: Title", "heading: Sub"}
		if got := regions(d); !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		for i, r := range d.Regions {
			if r.Ref != fmt.Sprintf("%s:region:%d", d.Revision, i) || r.TextTruncated {
				t.Errorf("%+v", r)
			}
		}
		if c := d.RegionCoverage; c == nil || c.Version != 1 || c.Scope != "main_document" || c.ScannedNodes < 10 || c.ScanLimitReached || c.OmittedRegions != 0 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("REGN-03 REGN-05 bounds", func(t *testing.T) {
		d := b.open(t, "/many-regions", strings.Repeat("<h2>H</h2>", 40)+"<p role=alert>"+strings.Repeat("ü", 513)+"</p><form>"+strings.Repeat("<b>n</b>", 200)+"</form>")
		if len(d.Regions) != 32 || d.RegionCoverage.OmittedRegions != 10 || d.Regions[0].Kind != observe.RegionAlert || d.Regions[1].Kind != observe.RegionForm {
			t.Fatalf("%d %+v %q", len(d.Regions), d.RegionCoverage, regions(d)[:2])
		}
		if r := d.Regions[0]; r.Text != strings.Repeat("ü", 512) || !r.TextTruncated {
			t.Errorf("%+v", r)
		}
		if r := d.Regions[1]; !r.TextTruncated || len(r.Text) > 128 {
			t.Errorf("%+v", r)
		}
		d = b.open(t, "/far-region", strings.Repeat("<i></i>", 8192)+"<form>Late</form>")
		if c := d.RegionCoverage; len(d.Regions) != 0 || !c.ScanLimitReached || c.ScannedNodes != 8192 {
			t.Errorf("%+v %q", c, regions(d))
		}
	})
	t.Run("REGN-06 FOC-07 regions are for reading", func(t *testing.T) {
		d := b.open(t, "/evidence", say+`<form onclick="say('hit')">Fields <button>Send</button></form>`)
		_, err := b.page.Act(t.Context(), action.Action{Kind: action.Click, ExpectedRevision: d.Revision, Ref: regionRef(t, d, "Fields")}, nil)
		refused(t, err, fault.RegionNotActionable)
		if d, err = b.act(t, d, action.Click, "Send"); err != nil { // the observation was kept
			t.Fatal(err)
		}
		eventually(t, "the click", func() bool { return strings.Contains(b.effects(), "hit") })
		if n := strings.Count(b.effects(), "hit"); n != 1 {
			t.Errorf("%d clicks", n)
		}
	})
}

func TestFocus(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	read := func(q observe.RegionQuery) (observe.Document, error) {
		return b.page.Observe(t.Context(), observe.Query{Region: &q})
	}
	page := `<button>Outside</button><main>Début <button onclick="this.previousSibling.data='Changed '">Inside</button><form>Inner <button onclick="this.form.remove()">Drop</button></form></main><p>Tail</p>`
	t.Run("FOC-02 FOC-03 controls and text share the region", func(t *testing.T) {
		d := b.open(t, "/focus", page)
		f, err := read(observe.RegionQuery{Ref: regionRef(t, d, "Début"), Revision: d.Revision})
		if err != nil {
			t.Fatal(err)
		}
		if got := names(f); !slices.Equal(got, []string{"button Inside", "button Drop"}) || f.Text != "Début Inside\nInner Drop" {
			t.Errorf("%q %q", got, f.Text)
		}
		if got := regions(f); !slices.Equal(got, []string{"form: Inner Drop"}) {
			t.Errorf("%q", got)
		}
		if f.Focus.RegionRef != f.Revision+":focus" || f.Focus.TextOffset != 0 || f.Focus.TextTotalBytes != len(f.Text) || len(f.Focus.TextCursor) < 32 {
			t.Errorf("%+v", f.Focus)
		}
		next, err := read(observe.RegionQuery{Ref: f.Focus.RegionRef, Revision: f.Revision, TextOffset: 7, TextCursor: f.Focus.TextCursor})
		if err != nil || next.Text != f.Text[7:] || next.Focus.TextOffset != 7 || next.Focus.TextTotalBytes != len(f.Text) || next.Focus.TextCursor != f.Focus.TextCursor {
			t.Fatalf("%+v %v", next, err)
		}
		// An act leaves the focus; the next observation is of the page.
		d, err = b.act(t, next, action.Click, "Inside")
		if err != nil || d.Focus != nil || !strings.Contains(d.Text, "Tail") {
			t.Errorf("%+v %v", d.Focus, err)
		}
	})
	t.Run("FOC-04 what was read has changed", func(t *testing.T) {
		script, change := b.later(t, "tick", "o.textContent = '1'")
		d := b.open(t, "/focus-changed", `<main>a <b id=o>0</b></main>`+script)
		f, err := read(observe.RegionQuery{Ref: regionRef(t, d, "a"), Revision: d.Revision})
		if err != nil {
			t.Fatal(err)
		}
		change()
		_, err = read(observe.RegionQuery{Ref: f.Focus.RegionRef, Revision: f.Revision, TextOffset: 2, TextCursor: f.Focus.TextCursor})
		refused(t, err, fault.PageChanged)
	})
	t.Run("FOC-04 the region has gone", func(t *testing.T) {
		for i, how := range []string{"o.remove()", "o.hidden=true", "o.replaceWith(o.cloneNode(true))", "o.parentNode.setAttribute('aria-hidden','true')"} {
			script, change := b.later(t, fmt.Sprintf("gone-%d", i), how)
			d := b.open(t, fmt.Sprintf("/focus-gone%d", i), `<div><main id=o>a</main></div><button>Go</button>`+script)
			change()
			_, err := read(observe.RegionQuery{Ref: regionRef(t, d, "a"), Revision: d.Revision})
			if refused(t, err, fault.PageChanged); err == nil {
				t.Error(how)
			}
			_, err = b.act(t, d, action.Click, "Go") // CAPT-02: no reference is left
			refused(t, err, fault.PageChanged)
		}
	})
	t.Run("FOC-08 FOC-09 refusals keep the observation", func(t *testing.T) {
		d := b.open(t, "/focus-refused", page)
		region := regionRef(t, d, "Début")
		for code, queries := range map[fault.Code][]observe.RegionQuery{
			fault.FocusRequired: {
				{Ref: region, Revision: d.Revision, TextOffset: 1},
				{Ref: d.Revision + ":focus", Revision: d.Revision, TextOffset: 1, TextCursor: strings.Repeat("0", 32)},
			},
			fault.PageChanged: {
				{Ref: region, Revision: "other"}, {Ref: "other:region:0", Revision: d.Revision}, {Ref: d.Revision + ":region:99", Revision: d.Revision},
				{Ref: d.Revision + ":region:-1", Revision: d.Revision}, {Ref: d.Revision + ":region:00", Revision: d.Revision}, {Ref: d.Revision + ":0", Revision: d.Revision},
				{Ref: d.Revision + ":focus", Revision: d.Revision},
			},
		} {
			for _, q := range queries {
				_, err := read(q)
				if refused(t, err, code); !fault.Is(err, code) {
					t.Errorf("%+v", q)
				}
			}
		}
		f, err := read(observe.RegionQuery{Ref: region, Revision: d.Revision})
		if err != nil {
			t.Fatal(err)
		}
		for code, q := range map[fault.Code]observe.RegionQuery{
			fault.PageChanged:      {Ref: f.Focus.RegionRef, Revision: f.Revision, TextOffset: 1, TextCursor: strings.Repeat("0", 32)},
			fault.FocusRequired:    {Ref: f.Focus.RegionRef, Revision: f.Revision, TextOffset: 1},
			fault.ArgumentsInvalid: {Ref: f.Focus.RegionRef, Revision: f.Revision, TextOffset: 2, TextCursor: f.Focus.TextCursor},
		} {
			_, err := read(q)
			refused(t, err, code)
		}
		if _, err := b.act(t, f, action.Click, "Inside"); err != nil {
			t.Error(err)
		}
	})
}
