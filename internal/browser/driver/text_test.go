package driver_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

func TestText(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	t.Run("TEXT-01 TEXT-03 TEXT-04", func(t *testing.T) {
		shadow := func(html string) string {
			return `<script>document.querySelector('x-y').attachShadow({mode:'open'}).innerHTML=` + "`" + html + "`" + `</script>`
		}
		for i, c := range []struct{ what, body, want string }{
			{"adjacent inline text is kept together", `<b>un</b><i>broken</i> and  <span> spaced </span>`, "unbroken and spaced"},
			{"blocks are lines", `<div>a<p>b</p>c</div>d`, "a\nb\nc\nd"},
			{"white space is folded", "<p>  a \n\t b\u00a0c </p>", "a b c"},
			{"cells are apart and rows are lines", `<table><tr><td>1</td><td>2</td></tr><tr><th>3</th><td> 4 </td></tr></table>`, "1\t2\n3\t4"},
			{"line breaks", `a<br>b<pre>c
  d</pre>`, "a\nb\nc\nd"},
			{"nothing hidden", `<p hidden>H</p><p style="display:none">H</p><p style="visibility:hidden">H<b style="visibility:visible">seen</b></p><p style="opacity:0">H</p>` +
				`<p aria-hidden=TRUE>H</p><details><summary>s</summary>H</details><p style="font-size:0">H</p><div hidden style="display:block">H</div>`, "seen\ns"},
			{"nothing editable or entered", `<textarea>E</textarea><select><option>E</select><input value=E><p contenteditable>E</p><p role=textbox>E</p><p role=searchbox>E</p>` +
				`<p role=combobox>E</p><p role=spinbutton>E</p><a contenteditable href=#>E</a><button>face</button>`, "face"},
			{"no scripts or documents", `<script>S</script><style>S</style><noscript>S</noscript><template>S</template><object>S</object>ok`, "ok"},
			{"shadow and slots once, in flat order", `<x-y>light<b slot=s>named</b></x-y>` + shadow(`<i>in </i><slot name=s></slot> <slot></slot><slot name=none>fallback</slot>`), "in named lightfallback"},
			{"unslotted children are not shown", `<x-y>light</x-y>` + shadow(`<i>in</i>`), "in"},
			{"no half characters", `<p>` + strings.Repeat("😀", 10) + `</p><p id=o></p><script>o.textContent='a\ud800b'</script>`, strings.Repeat("😀", 10) + "\na\ufffdb"},
			{"right to left", "<p>\u202eabc\u202c שלום</p>", "\u202eabc\u202c שלום"},
			{"opacity of a part", `<p style="opacity:.01">faint</p>`, "faint"},
			{"display contents", `<div style="display:contents">in<p>block</p></div>`, "in\nblock"},
		} {
			d := b.open(t, fmt.Sprintf("/text%d", i), c.body)
			if d.Text != c.want {
				t.Errorf("%s: %q, want %q", c.what, d.Text, c.want)
			}
			if c := d.TextCoverage; c == nil || c.Version != 1 || c.Scope != "main_document_and_open_shadow" || c.ScannedNodes == 0 || c.ScannedTextCharacters == 0 || c.NodeLimitReached || c.TextLimitReached {
				t.Errorf("%+v", c)
			}
		}
	})
	t.Run("TEXT-01 a deep tree is no obstacle", func(t *testing.T) {
		d := b.open(t, "/deep-text", `<p id=o></p><script>let at=o;for(let i=0;i<4000;i++)at=at.appendChild(document.createElement('b'));at.textContent='bottom'</script>`)
		if d.Text != "bottom" {
			t.Errorf("%.40q", d.Text)
		}
	})
	t.Run("TEXT-02 TEXT-05 node limit", func(t *testing.T) {
		d := b.open(t, "/nodes", strings.Repeat("<i>n</i>", 5000)+"<p>end</p>")
		c := d.TextCoverage
		if !c.NodeLimitReached || c.TextLimitReached || c.ScannedNodes != 8192 || !d.TextTruncated || strings.Contains(d.Text, "end") || len(d.Text) < 4000 {
			t.Errorf("%+v, %d bytes", c, len(d.Text))
		}
		d = b.open(t, "/nodes-ok", strings.Repeat("<i>n</i>", 4000)+"<p>end</p>")
		if c := d.TextCoverage; c.NodeLimitReached || !strings.HasSuffix(d.Text, "end") || d.TextTruncated {
			t.Errorf("%+v", c)
		}
	})
	t.Run("TEXT-02 units and bytes", func(t *testing.T) {
		for i, word := range []string{"wörter ", "語", "😀", "  a"} {
			d := b.open(t, fmt.Sprintf("/units%d", i), `<p>`+strings.Repeat(word, 140000)+`</p><p>end</p>`)
			c := d.TextCoverage
			if !c.TextLimitReached || c.ScannedTextCharacters > 262144 || len(d.Text) > observe.MaxText || !utf8.ValidString(d.Text) || strings.ContainsRune(d.Text, '\ufffd') {
				t.Errorf("%q: %+v, %d bytes", word, c, len(d.Text))
			}
		}
	})
	// Cases 35: a bound never hides what the page has just said.
	t.Run("live regions and field errors come before a bound", func(t *testing.T) {
		d := b.open(t, "/news", strings.Repeat("<i>n</i>", 5000)+`<p role=alert>Sign-in failed</p><label>Nick <input aria-invalid=true aria-describedby=hint></label><b id=hint>Too long</b>
			<p aria-live=polite>3 left</p><p aria-live=assertive hidden>secret</p><input aria-invalid=true aria-errormessage=h2><p id=h2 aria-hidden=true>secret</p>`)
		if !strings.HasPrefix(d.Text, "Sign-in failed\nToo long\n3 left\nnn") && !strings.HasPrefix(d.Text, "Sign-in failed\n3 left\nToo long\nnn") {
			t.Errorf("%.80q", d.Text)
		}
		if c := d.TextCoverage; c.ScannedNodes > 8192 || !c.NodeLimitReached || strings.Contains(d.Text, "secret") {
			t.Errorf("%+v", c)
		}
		d = b.open(t, "/news-bytes", `<p>`+strings.Repeat("wörter ", 60000)+`</p><p role=alert>Sign-in failed</p>`)
		if !strings.HasPrefix(d.Text, "Sign-in failed") || len(d.Text) > observe.MaxText {
			t.Errorf("%.80q", d.Text)
		}
		d = b.open(t, "/news-small", `<p>first</p><p role=alert>Sign-in failed</p>`)
		if d.Text != "first\nSign-in failed" {
			t.Errorf("%q", d.Text)
		}
	})
}

func TestTextContinuation(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	d := b.open(t, "/long", `<p id=o>alpha</p><p>bêta</p><button onclick="o.textContent='ALPHA'">Change</button>`)
	whole := d.Text
	next, err := b.page.Observe(t.Context(), observe.Query{Text: &observe.TextQuery{Revision: d.Revision, Offset: 6}})
	if err != nil || next.Text != whole[6:] || next.Revision == d.Revision || next.Focus != nil {
		t.Fatalf("%+v %v", next, err)
	}
	// It continues from the newest only, at a character only, and not beyond.
	for what, q := range map[string]observe.TextQuery{
		"an old revision": {Revision: d.Revision, Offset: 6}, "another": {Revision: strings.Repeat("0", 32), Offset: 6},
	} {
		_, err := b.page.Observe(t.Context(), observe.Query{Text: &q})
		refused(t, err, fault.PageChanged)
		if err == nil {
			t.Error(what)
		}
	}
	for _, offset := range []int{8, len(whole) + 1} {
		_, err := b.page.Observe(t.Context(), observe.Query{Text: &observe.TextQuery{Revision: next.Revision, Offset: offset}})
		refused(t, err, fault.ArgumentsInvalid)
	}
	last, err := b.page.Observe(t.Context(), observe.Query{Text: &observe.TextQuery{Revision: next.Revision, Offset: len(whole)}})
	if err != nil || last.Text != "" {
		t.Errorf("%q %v", last.Text, err)
	}
	changed, err := b.act(t, last, action.Click, "Change")
	if err != nil || !strings.HasPrefix(changed.Text, "ALPHA") {
		t.Fatal(changed.Text, err)
	}
	// FOC-04: what was read before has changed underneath.
	script, change := b.later(t, "tick", "o.textContent = 'albeit'")
	d = b.open(t, "/ticking", `<p id=o>alpha</p>`+script)
	change()
	for range 2 { // and then no reference of it is left
		_, err = b.page.Observe(t.Context(), observe.Query{Text: &observe.TextQuery{Revision: d.Revision, Offset: 4}})
		refused(t, err, fault.PageChanged)
	}
	// What comes behind the offset may change: nothing is left out or repeated.
	script, change = b.later(t, "log", "o.textContent += ' three'")
	d = b.open(t, "/log", `<p>one</p><p id=o>two</p>`+script)
	change()
	next, err = b.page.Observe(t.Context(), observe.Query{Text: &observe.TextQuery{Revision: d.Revision, Offset: 4}})
	if err != nil || next.Text != "two three" {
		t.Errorf("%q %v", next.Text, err)
	}
}
