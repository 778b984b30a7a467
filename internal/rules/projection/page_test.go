package projection

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// PAGE-02 to PAGE-04: following both offsets shows every control and every
// character of an unchanged page exactly once, in answers that fit.
func TestOffsetsCoverExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := observe.Document{URL: "https://wiki.example.org/", Title: words.Draw(t, "title"), Revision: revision, Text: rapid.StringN(0, 1500, 6000).Draw(t, "text")}
		for i := range rapid.IntRange(0, 256).Draw(t, "elements") {
			d.Elements = append(d.Elements, observe.Element{Ref: fmt.Sprintf("%s:%d", revision, i), Role: "link", Name: fmt.Sprint(i) + words.Draw(t, "name")})
		}
		o := Options{Version: contract.V110, Budget: rapid.IntRange(1024, 8192).Draw(t, "budget")}
		var names []string
		var text strings.Builder
		for {
			v, _, err := Project(accept(t, d), o)
			if err != nil {
				t.Fatal(err)
			}
			b := encode(t, v)
			if len(b) > o.Budget || !strings.Contains(string(b), `"next_element_offset":`) || !strings.Contains(string(b), `"next_text_offset":`) {
				t.Fatalf("%d bytes in %d: %s", len(b), o.Budget, b)
			}
			if v.Page.TotalElements != len(d.Elements) || v.TotalText != utf8.RuneCountInString(d.Text) || v.ElementOffset != o.Element || v.Page.TextOffset != o.Text {
				t.Fatalf("%+v", v.Page)
			}
			for _, e := range v.Elements {
				names = append(names, e.Name)
			}
			text.WriteString(v.Text)
			if v.NextElementOffset == nil && v.NextTextOffset == nil {
				break
			}
			o.Element, o.Text = len(d.Elements), utf8.RuneCountInString(d.Text)
			if v.NextElementOffset != nil {
				o.Element = *v.NextElementOffset
			}
			if v.NextTextOffset != nil {
				o.Text = *v.NextTextOffset
			}
		}
		if text.String() != d.Text || len(names) != len(d.Elements) {
			t.Fatalf("%d of %d controls, %d of %d bytes of text", len(names), len(d.Elements), text.Len(), len(d.Text))
		}
		for i, n := range names {
			if n != d.Elements[i].Name {
				t.Fatalf("control %d is %q", i, n)
			}
		}
	})
}

// PAGE-04, PAGE-06, PAGE-07: an offset past the end is empty, a long title or
// name is cut with a mark, and what cannot fit is an error.
func TestOffsetsAtTheEdges(t *testing.T) {
	d := desk(3, "text")
	d.Title, d.Elements[0].Name = strings.Repeat("ü", 200), strings.Repeat("名", 200)
	v, _, err := Project(accept(t, d), Options{Version: contract.V110})
	if err != nil || len(v.Title) > 128 || !strings.HasSuffix(v.Title, "…") || !v.TitleTruncated {
		t.Errorf("title of %d bytes, %v", len(v.Title), err)
	}
	if e := v.Elements[0]; len(e.Name) > 256 || !strings.HasSuffix(e.Name, "…") || !e.NameTruncated || v.Elements[1].NameTruncated {
		t.Errorf("%+v", e)
	}
	v, _, err = Project(accept(t, d), Options{Version: contract.V110, Element: 256, Text: 9999})
	if err != nil || len(v.Elements) != 0 || v.Text != "" || v.NextElementOffset != nil || v.NextTextOffset != nil {
		t.Errorf("past the end: %s, %v", encode(t, v), err)
	}
	d.URL += strings.Repeat("p", 2000)
	if _, _, err := Project(accept(t, d), Options{Version: contract.V110, Budget: 1024}); !fault.Is(err, fault.OutputInvalid) {
		t.Errorf("an address that does not fit: %v", err)
	}
	d = desk(1, "")
	d.Elements[0].Name, d.Elements[0].Role = strings.Repeat("\x01", 1000), strings.Repeat("\x01", 64)
	if _, _, err := Project(accept(t, d), Options{Version: contract.V110, Budget: 1024}); !fault.Is(err, fault.OutputInvalid) {
		t.Errorf("a control that does not fit: %v", err)
	}
}

// PAGE-07: the first control comes before any text, down to the last byte.
func TestFirstControlBeforeText(t *testing.T) {
	last := -1
	for pad := range 1000 {
		d := desk(2, strings.Repeat("x", 3000))
		d.URL += strings.Repeat("p", pad)
		v, _, err := Project(accept(t, d), Options{Version: contract.V110, Budget: 1024})
		if err != nil {
			break
		}
		if len(v.Elements) == 0 {
			t.Fatal("there is no control")
		}
		last = len(v.Text)
	}
	if last != 0 {
		t.Errorf("the last address that fits leaves %d bytes to the text", last)
	}
}
