package projection

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

func accept(t interface{ Fatal(...any) }, d observe.Document) observe.Raw {
	u, err := site.ParseURL(d.URL)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := observe.Accept(d, site.Origins{u.Origin()})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// encode writes as the programs do: compact, without HTML escaping.
func encode(t interface{ Fatal(...any) }, v View) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func desk(elements int, text string) observe.Document {
	d := observe.Document{URL: "https://wiki.example.org/", Title: "A <b>title</b> & more", Revision: "r1", Text: text, Readiness: observe.DOMQuiet}
	for i := range elements {
		d.Elements = append(d.Elements, observe.Element{Ref: fmt.Sprintf("r1:%d", i), Role: "button", Name: fmt.Sprintf("Button %d", i)})
	}
	return d
}

// PROJ-01: what fits is all there, and nothing is said to be missing.
func TestEverythingFits(t *testing.T) {
	d := desk(3, "Hello <world> & \"others\"")
	v := plain(accept(t, d).Document(), 4096)
	if v.URL != d.URL || v.Title != d.Title || v.Revision != "r1" || v.Text != d.Text || len(v.Elements) != 3 || v.Trust != "external_untrusted" {
		t.Errorf("%+v", v)
	}
	b := string(encode(t, v))
	if strings.Contains(b, "omitted") || strings.Contains(b, "more_on_page") {
		t.Errorf("something is said to be missing: %s", b)
	}
	if !strings.Contains(b, "<world> &") {
		t.Errorf("the text is escaped for HTML: %s", b)
	}
	for _, cut := range []observe.Document{{TextTruncated: true}, {MoreElements: true}} {
		x := d
		x.TextTruncated, x.MoreElements = cut.TextTruncated, cut.MoreElements
		if !plain(accept(t, x).Document(), 4096).More {
			t.Errorf("a bounded observation does not say so: %+v", cut)
		}
	}
	if b := encode(t, plain(accept(t, desk(0, "")).Document(), 4096)); !bytes.Contains(b, []byte(`"elements":[]`)) {
		t.Errorf("no elements are not an empty list: %s", b)
	}
}

// Text keeps at least a quarter of the room, elements the rest.
func TestShares(t *testing.T) {
	v := plain(accept(t, desk(200, strings.Repeat("word ", 2000))).Document(), 4096)
	if n := len(v.Text); n < 900 || n > 1200 {
		t.Errorf("%d bytes of text", n)
	}
	if v.OmittedElements != 200-len(v.Elements) || v.OmittedElements == 0 || v.OmittedText != 10000-len(v.Text) {
		t.Errorf("%d elements, %d omitted, %d bytes omitted", len(v.Elements), v.OmittedElements, v.OmittedText)
	}
	if all := plain(accept(t, desk(200, "")).Document(), 4096); len(all.Elements) <= len(v.Elements) {
		t.Errorf("without text there are %d elements, with it %d", len(all.Elements), len(v.Elements))
	}
}

// PROJ-02: one whole control comes before the title and the text.
func TestControlFirst(t *testing.T) {
	d := desk(1, strings.Repeat("x", 5000))
	d.URL += strings.Repeat("p", 600)
	d.Title = strings.Repeat("t", 1000)
	d.Elements[0].Name = strings.Repeat("n", 500)
	v := plain(accept(t, d).Document(), 1024)
	if len(v.Elements) != 1 || v.Elements[0].Name != d.Elements[0].Name {
		t.Errorf("the control is missing: %+v", v)
	}
	if !v.OmittedTitle || v.Title != "" || !v.OmittedURL || v.URL != "" {
		t.Errorf("what does not fit is not said to be omitted: %+v", v)
	}
	// A control too large for any place does not take the others'.
	d = desk(3, "")
	d.Elements[0].Name = strings.Repeat("\x01", 1000)
	v = plain(accept(t, d).Document(), 1024)
	if len(v.Elements) != 2 || v.Elements[0].Ref != "r1:1" || v.OmittedElements != 1 {
		t.Errorf("%+v", v)
	}
}

func document(t *rapid.T) observe.Document {
	revision := rapid.StringN(1, 100, 128).Draw(t, "revision")
	d := observe.Document{
		URL:      "https://wiki.example.org/" + strings.Repeat("p", rapid.IntRange(0, 4000).Draw(t, "path")),
		Title:    rapid.StringN(0, 200, -1).Draw(t, "title"),
		Revision: revision,
		Text:     rapid.StringN(0, 3000, observe.MaxText).Draw(t, "text"),
	}
	for i := range rapid.IntRange(0, 40).Draw(t, "elements") {
		e := observe.Element{Ref: fmt.Sprintf("%s:%d", revision, i), Role: rapid.StringN(1, 20, -1).Draw(t, "role"), Name: rapid.StringN(0, 100, -1).Draw(t, "name")}
		if rapid.Bool().Draw(t, "checkable") {
			e.Checked = new(rapid.Bool().Draw(t, "checked"))
		}
		if utf8.RuneCountInString(e.Ref) > observe.MaxRef {
			break
		}
		d.Elements = append(d.Elements, e)
	}
	d.TextTruncated = rapid.Bool().Draw(t, "truncated")
	return d
}

// PROJ-01, PROJ-02: for any page and any budget the view fits, is valid JSON,
// has the exact revision, whole elements in page order, a prefix of the text
// that ends between characters, and counts that add up.
func TestProjectProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := document(t)
		budget := rapid.IntRange(-1, 20000).Draw(t, "budget")
		v := plain(accept(t, d).Document(), budget)
		b := encode(t, v)
		if len(b) > max(budget, MinBudget) {
			t.Fatalf("%d bytes in a budget of %d: %s", len(b), budget, b)
		}
		var again View
		if err := json.Unmarshal(b, &again); err != nil || again.Revision != d.Revision || again.Text != v.Text {
			t.Fatalf("does not come back: %v", err)
		}
		if !strings.HasPrefix(d.Text, v.Text) || !utf8.ValidString(v.Text) || v.OmittedText != len(d.Text)-len(v.Text) {
			t.Fatalf("%d of %d bytes of text, %d omitted", len(v.Text), len(d.Text), v.OmittedText)
		}
		if v.OmittedElements != len(d.Elements)-len(v.Elements) {
			t.Fatalf("%d of %d elements, %d omitted", len(v.Elements), len(d.Elements), v.OmittedElements)
		}
		next, fits := 0, false
		for _, e := range v.Elements {
			i := slices.IndexFunc(d.Elements[next:], func(x observe.Element) bool { return x.Ref == e.Ref })
			if i < 0 || e.Name != d.Elements[next+i].Name || e.Role != d.Elements[next+i].Role {
				t.Fatalf("element %+v is changed or out of order", e)
			}
			next += i + 1
		}
		if v.OmittedURL != (v.URL == "") || !v.OmittedURL && v.URL != d.URL || !v.OmittedTitle && v.Title != d.Title || v.OmittedTitle && v.Title != "" {
			t.Fatalf("URL or title is cut: %+v", v)
		}
		for _, e := range d.Elements {
			only := View{Revision: d.Revision, Elements: []Element{{Element: e}}, Trust: Trust, OmittedURL: true, OmittedTitle: d.Title != "",
				OmittedElements: len(d.Elements), OmittedText: len(d.Text), More: true}
			fits = fits || len(encode(t, only)) <= budget
		}
		if fits && len(v.Elements) == 0 {
			t.Fatal("an element fits and none is there")
		}
		if again := plain(accept(t, d).Document(), budget); string(encode(t, again)) != string(b) {
			t.Fatal("the projection is not deterministic")
		}
	})
}

// The cost of a character is what the encoder writes for it.
func TestWidth(t *testing.T) {
	for r := rune(0); r < 0x3000; r++ {
		if b := encode(t, View{Text: string(r)}); len(b)-len(encode(t, View{})) != width(r) {
			t.Errorf("%U costs %d bytes, not %d", r, len(b)-len(encode(t, View{})), width(r))
		}
	}
	for _, r := range "\uffff\U00010000\U0010ffff" {
		if b := encode(t, View{Text: string(r)}); len(b)-len(encode(t, View{})) != width(r) {
			t.Errorf("%U does not cost %d bytes", r, width(r))
		}
	}
}

// With room for everything, everything is shown.
func TestProjectEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := document(t)
		v := plain(accept(t, d).Document(), 1<<20)
		if v.OmittedElements != 0 || v.OmittedText != 0 || v.OmittedURL || v.OmittedTitle || v.Text != d.Text {
			t.Fatalf("something is missing in a budget for everything: %+v", v)
		}
	})
}

func BenchmarkProject(b *testing.B) {
	d := desk(256, strings.Repeat("Some words of a page. ", 4000))
	raw := accept(b, d)
	for _, budget := range []int{4096, 512 << 10} {
		b.Run(fmt.Sprint(budget), func(b *testing.B) {
			for b.Loop() {
				plain(raw.Document(), budget)
			}
		})
	}
}
