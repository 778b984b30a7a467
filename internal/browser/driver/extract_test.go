package driver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// cells prints rows compactly: status letters only where a cell is not present.
func cells(x *observe.Extraction) string {
	var out []string
	for _, r := range x.Rows {
		var row []string
		for _, c := range r.Cells {
			switch {
			case c.Status == "present":
				row = append(row, fmt.Sprint(c.Value))
			case c.Text == "":
				row = append(row, "<"+c.Status+">")
			default:
				row = append(row, "<"+c.Status+" "+c.Text+">")
			}
		}
		if !r.SchemaValid {
			row = append(row, "!")
		}
		out = append(out, strings.Join(row, "|"))
	}
	return strings.Join(out, "\n")
}

func (b *bench) extract(t testing.TB, d observe.Document, q observe.ExtractQuery, fields ...string) observe.Document {
	t.Helper()
	q.Revision = d.Revision
	if q.RowLimit == 0 {
		q.RowLimit = 20
	}
	for _, f := range fields {
		var x observe.ExtractField
		if _, err := fmt.Sscanf(f, "%s %d %s %t", &x.Name, &x.Column, &x.Type, &x.Required); err != nil {
			t.Fatal(err)
		}
		q.Fields = append(q.Fields, x)
	}
	d, err := b.page.Observe(t.Context(), observe.Query{Extract: &q})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestExtraction(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	t.Run("EXTR-02 EXTR-06 EXTR-08 EXTR-09 tables", func(t *testing.T) {
		d := b.open(t, "/table", `<table hidden><tr><td>hidden</table><table><caption>Stock <b hidden>x</b></caption><thead><tr><th>Name<th>Count<th>Price<th>Open</thead>
			<tr><td>Tea<td>12<td>1.5<td>true</td></tr><tr hidden><td>H</tr><tr><td>Bread <i hidden>H</i><td>1,000<td>-0.25e2<td>yes</tr>
			<tr><td><table><tr><td>inner</table><td>9007199254740991<td>1e400<td>false</tr><tr><td>Short</tr>
			<tr><td><input value=entered><td>9007199254740992<td>٣<td contenteditable>true</tr></table>`)
		x := b.extract(t, d, observe.ExtractQuery{Kind: "table"}, "name 0 string true", "count 1 integer true", "price 2 number false", "open 3 boolean false").Extraction
		want := "Name|<invalid Count>|<invalid Price>|<invalid Open>|!\nTea|12|1.5|true\nBread|<invalid 1,000>|-25|<invalid yes>|!\n" +
			"<missing>|9007199254740991|<invalid 1e400>|false|!\nShort|<missing>|<missing>|<missing>|!\n<missing>|<invalid 9007199254740992>|<invalid ٣>|<missing>|!"
		if got := cells(x); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if x.Status != "extracted" || x.SourceName != "Stock" || x.Scope != "main_document" || x.Version != 1 || x.SourceNodes == 0 || x.RowNodes == 0 || x.OmittedRows != 0 {
			t.Errorf("%+v", x)
		}
		second := b.extract(t, b.again(t), observe.ExtractQuery{Kind: "table", Index: 1}, "a 0 string false")
		if got := cells(second.Extraction); got != "inner" {
			t.Errorf("%q", got)
		}
		limited := b.extract(t, second, observe.ExtractQuery{Kind: "table", RowLimit: 2}, "a 0 string false")
		if x := limited.Extraction; cells(x) != "Name\nTea" || x.OmittedRows != 4 || x.RowLimit != 2 {
			t.Errorf("%+v", x)
		}
		none := b.extract(t, limited, observe.ExtractQuery{Kind: "table", Index: 2}, "a 0 string false").Extraction
		if none.Status != "not_found" || none.SourceRef != "" || len(none.Rows) != 0 {
			t.Errorf("%+v", none)
		}
	})
	t.Run("EXTR-07 spanning cells", func(t *testing.T) {
		for i, cell := range []string{"<td colspan=2>", "<td rowspan=3>", "<td aria-colspan=2>", strings.Repeat("<td>c", 17)} {
			d := b.open(t, fmt.Sprintf("/span%d", i), `<table><tr><td>a<td>b</tr><tr>`+cell+`c</tr></table>`)
			if x := b.extract(t, d, observe.ExtractQuery{Kind: "table"}, "a 0 string false").Extraction; x.Status != "unsupported_structure" || len(x.Rows) != 0 {
				t.Errorf("%s: %+v", cell, x)
			}
		}
	})
	t.Run("EXTR-07 grids and lists", func(t *testing.T) {
		d := b.open(t, "/grid", `<div role=grid aria-label=Grid><div role=row><span role=gridcell>1</span><i><span role=rowheader>2</span></i></div></div>
			<ul aria-label=Fruit><li>Apple <b>red</b><ul><li>nested</ul></li><li hidden>H</li><div><li>Pear</div></ul><div role=list><p role=listitem>Item</p></div>`)
		d = b.extract(t, d, observe.ExtractQuery{Kind: "table"}, "a 0 integer true", "b 1 integer true")
		if got := cells(d.Extraction); got != "1|2" || d.Extraction.SourceName != "Grid" {
			t.Errorf("%q", got)
		}
		d = b.extract(t, d, observe.ExtractQuery{Kind: "list"}, "a 0 string true", "b 1 string false")
		if got := cells(d.Extraction); got != "Apple red|<missing>\nPear|<missing>" || d.Extraction.SourceName != "Fruit" {
			t.Errorf("%q", got)
		}
		d = b.extract(t, d, observe.ExtractQuery{Kind: "list", Index: 2}, "a 0 string true")
		if got := cells(d.Extraction); got != "Item" {
			t.Errorf("%q", got)
		}
	})
	t.Run("EXTR-07 forms without what is entered", func(t *testing.T) {
		d := b.open(t, "/form", `<form aria-label=Order><label>Name <input required value=sentinel-x></label><input type=hidden value=sentinel-x><label>Agree <input type=checkbox checked disabled></label>
			<select aria-label=Pick><option value=sentinel-x>One</select><div role=checkbox aria-checked=true aria-label=Custom tabindex=0>box</div><table><tr><td><button>Send</button></table><input hidden aria-label=Gone></form>`)
		d = b.extract(t, d, observe.ExtractQuery{Kind: "form"}, "label 0 string true", "role 1 string true", "off 2 boolean true", "on 3 boolean false", "must 4 boolean true", "x 5 string false")
		want := "Name|textbox|false|<missing>|true|<missing>\nAgree|checkbox|true|true|false|<missing>\nPick|combobox|false|<missing>|false|<missing>\n" +
			"Custom|checkbox|false|true|false|<missing>\nSend|button|false|<missing>|false|<missing>"
		if got := cells(d.Extraction); got != want || d.Extraction.SourceName != "Order" {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if body, err := json.Marshal(d.Extraction); err != nil || strings.Contains(string(body), "sentinel-x") {
			t.Errorf("a value is in the extraction: %v", err)
		}
	})
	t.Run("EXTR-05 EXTR-06 EXTR-10 bounds", func(t *testing.T) {
		d := b.open(t, "/far-table", strings.Repeat("<i></i>", 8192)+"<table><tr><td>late</table>")
		if x := b.extract(t, d, observe.ExtractQuery{Kind: "table"}, "a 0 string false").Extraction; x.Status != "not_found" || !x.SourceScanLimitReached || x.SourceNodes != 8192 {
			t.Errorf("%+v", x)
		}
		d = b.open(t, "/long-table", "<table>"+strings.Repeat("<tr><td>1</td></tr>", 5000)+"</table>")
		if x := b.extract(t, d, observe.ExtractQuery{Kind: "table", RowLimit: 50}, "a 0 integer false").Extraction; !x.RowScanLimitReached || x.RowNodes != 4096 || len(x.Rows) != 50 || x.OmittedRows < 4000 {
			t.Errorf("%d rows, %+v", len(x.Rows), x.OmittedRows)
		}
		d = b.open(t, "/long-cells", "<table><tr><td>"+strings.Repeat("a", 256)+"</td><td>"+strings.Repeat("😀", 129)+"</td><td>"+strings.Repeat("<b>1</b>", 200)+"</td></tr></table>")
		x := b.extract(t, d, observe.ExtractQuery{Kind: "table"}, "a 0 string true", "b 1 string true", "c 2 string true").Extraction
		if c := x.Rows[0].Cells; c[0].Status != "present" || c[1].Status != "truncated" || c[1].Text != strings.Repeat("😀", 128) || c[2].Status != "truncated" || x.Rows[0].SchemaValid {
			t.Errorf("%+v", c)
		}
		d = b.open(t, "/heavy-table", "<table>"+strings.Repeat("<tr>"+strings.Repeat("<td>"+strings.Repeat("語", 256), 8), 50)+"</table>")
		heavy := b.extract(t, d, observe.ExtractQuery{Kind: "table", RowLimit: 50}, "a 0 string true", "b 1 string true", "c 2 string true", "d 3 string true", "e 4 string true", "f 5 string true", "g 6 string true", "h 7 string true").Extraction
		body, err := json.Marshal(heavy)
		if err != nil || len(body) > 64<<10 || !heavy.ByteLimitReached || len(heavy.Rows) < 4 || len(heavy.Rows)+heavy.OmittedRows != 50 {
			t.Errorf("%d bytes, %d rows, %d omitted, %v", len(body), len(heavy.Rows), heavy.OmittedRows, err)
		}
	})
	t.Run("EXTR-03 EXTR-11 revisions and references", func(t *testing.T) {
		old := b.open(t, "/revisions", say+`<ul><li>a</ul><button onclick="say('hit')">Go</button>`)
		now := b.extract(t, old, observe.ExtractQuery{Kind: "list"}, "a 0 string false")
		x := now.Extraction
		if x.Revision != now.Revision || x.SourceRef != now.Revision+":source" || x.Rows[0].Ref != now.Revision+":row:0" || x.Rows[0].Cells[0].Ref != now.Revision+":cell:0:0" {
			t.Errorf("%+v", x)
		}
		_, err := b.page.Observe(t.Context(), observe.Query{Extract: &observe.ExtractQuery{Kind: "list", Revision: old.Revision, RowLimit: 1, Fields: x.Fields}})
		refused(t, err, fault.PageChanged)
		for _, ref := range []string{x.SourceRef, x.Rows[0].Ref, x.Rows[0].Cells[0].Ref} {
			_, err := b.page.Act(t.Context(), action.Action{Kind: action.Click, ExpectedRevision: now.Revision, Ref: ref}, nil)
			refused(t, err, fault.ElementNotFound)
		}
		if _, err := b.act(t, now, action.Click, "Go"); err != nil { // all of that kept the observation
			t.Error(err)
		}
	})
}

func TestArticles(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	stamp := func(href string) string { return `<a href="` + href + `"><time>1h</time></a>` }
	d := b.open(t, "/feed", `<main style="display:none"><article>H</article></main><main aria-label=Feed>
		<article>One <a href=/other>other</a> `+stamp("/s/1")+`<article>nested `+stamp("/s/9")+`</article><p hidden>H</p><p contenteditable>E</p></article>
		<article>Two `+stamp("/s/2")+stamp("/s/22")+`</article><article>Three `+stamp("/s/3?x=1")+`</article><article>Four `+stamp("/s/4#f")+`</article>
		<article>Five `+stamp("https://other.example/s/5")+`</article><article>Six `+stamp("https://user:pw@"+host+"/s/6")+`</article>
		<article>Seven `+stamp("http://"+host+"/s/7")+`</article><article>Eight <time><a href=/s/8>now</a></time></article>
		<article>Nine <a href=/s/9 hidden><time>1h</time></a></article><article>Ten `+stamp("javascript:1")+`</article>
		<article>`+strings.Repeat("x", 300)+stamp("/@user/11")+`</article><article>`+strings.Repeat("<b></b>", 300)+stamp("/s/12")+`</article>
		<div style="height:3000px"></div><article>Far `+stamp("/s/13")+`</article></main>`)
	x := b.extract(t, d, observe.ExtractQuery{Kind: "articles"}, "text 0 string true", "link 1 string false", "more 2 string false").Extraction
	https := "https://" + host
	want := "One other 1h|" + https + "/s/1|<missing>\nTwo 1h1h|<missing>|<missing>\nThree 1h|<missing>|<missing>\nFour 1h|<missing>|<missing>\nFive 1h|<missing>|<missing>\n" +
		"Six 1h|<missing>|<missing>\nSeven 1h|<missing>|<missing>\nEight now|" + https + "/s/8|<missing>\nNine|<missing>|<missing>\nTen 1h|<missing>|<missing>\n" +
		"<truncated " + strings.Repeat("x", 256) + ">|" + https + "/@user/11|<missing>|!\n<missing>|<missing>|<missing>|!"
	if got := cells(x); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if x.Scope != "main_document_viewport_articles" || x.SourceName != "Feed" {
		t.Errorf("%+v", x)
	}
}

// again observes the page as it is.
func (b *bench) again(t testing.TB) observe.Document {
	t.Helper()
	d, err := b.page.Observe(t.Context(), observe.Query{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}
