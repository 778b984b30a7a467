package driver

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser/pagejs"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// FOC-04, FOC-08, FOC-09, EXTR-03, EXP-11: whatever an agent asks for, a plan is
// of the newest revision, of a region that was listed, and at the beginning of
// a character; everything else is refused with one of the known codes.
func FuzzRegionQuery(f *testing.F) {
	f.Add("r:region:0", "r", 0, "", "text", 1, false)
	f.Add("r:focus", "r", 3, strings.Repeat("c", 32), "añb", 1, true)
	f.Add("r:region:00", "r", 1, "", "text", 1, true)
	f.Add("r:focus", "r", 2, "", "añb", 0, true)
	f.Fuzz(func(t *testing.T, ref, revision string, offset int, cursor, text string, regions int, focused bool) {
		q := observe.RegionQuery{Ref: ref, Revision: revision, TextOffset: offset, TextCursor: cursor}
		if !utf8.ValidString(text) || (observe.Query{Region: &q}).Validate() != nil {
			return
		}
		current := reading{text: text, regions: regions, focused: focused, cursor: strings.Repeat("c", 32)}
		p, err := planRegion(q, "r", current)
		if err != nil {
			if code := fault.CodeOf(err); code != fault.PageChanged && code != fault.FocusRequired && code != fault.ArgumentsInvalid {
				t.Errorf("%+v: %v", q, err)
			}
			return
		}
		at := p.args.Focus
		switch {
		case revision != "r" || at == nil || at.Revision != "r":
			t.Errorf("%+v: %+v", q, at)
		case at.Region == -1:
			if !focused || ref != "r:focus" || cursor != "" && cursor != current.cursor || offset != 0 && cursor == "" {
				t.Errorf("%+v continues %+v", q, current)
			}
		case at.Region < 0 || at.Region >= regions || offset != 0:
			t.Errorf("%+v: region %d of %d", q, at.Region, regions)
		}
		if p.offset != offset || offset > len(text) || !utf8.ValidString(text[offset:]) || p.continued != (offset != 0) {
			t.Errorf("%+v: %+v", q, p)
		}
	})
}

// FOC-03, FOC-04, TEXT-05: what is given out goes on where the captured text
// was left, and is refused when that text has changed: of a region anywhere, of
// a page before the offset.
func FuzzContinuation(f *testing.F) {
	f.Add("abc", "abd", 2, false)
	f.Add("abc", "ab", 3, false)
	f.Add("abc", "abc and more", 3, true)
	f.Add("añb", "añb", 3, true)
	f.Add("abc", "abd", 1, false)
	f.Fuzz(func(t *testing.T, before, now string, offset int, focused bool) {
		if !utf8.ValidString(before) || !utf8.ValidString(now) || offset < 0 {
			return
		}
		current := reading{text: before, focused: focused, cursor: strings.Repeat("c", 32)}
		var p plan
		p.keepFocus("r", current)
		if p.continueAt(offset, current) != nil {
			return
		}
		u, err := site.ParseURL("https://wiki.example/")
		if err != nil {
			t.Fatal(err)
		}
		d := observe.Document{Revision: "n"}
		next, err := p.finish(&d, u, pagejs.Page{Extras: pagejs.Extras{Text: now}})
		same := before == now || !focused && strings.HasPrefix(now, before[:offset])
		if (err == nil) != same {
			t.Fatalf("%q after %q: %v", now, before, err)
		}
		if err != nil {
			if !fault.Is(err, fault.PageChanged) {
				t.Error(err)
			}
			return
		}
		if before[:offset]+d.Text != now || next.text != now || next.focused != focused || (d.Focus != nil) != focused {
			t.Errorf("%q and %q of %q", before[:offset], d.Text, now)
		}
		if focused && (d.Focus.TextCursor != current.cursor || d.Focus.TextOffset != offset || d.Focus.TextTotalBytes != len(now)) {
			t.Errorf("%+v", d.Focus)
		}
	})
}

// EXP-06, EXP-11: whatever an agent sends as a cursor or an anchor, the only
// places to go on from are those that the newest observation gave.
func FuzzPosition(f *testing.F) {
	const revision = "0123456789abcdef0123456789abcdef"
	cursor := strings.Repeat("c", 32)
	f.Add(cursor, "")
	f.Add(strings.Repeat("C", 32), "")
	f.Add("", revision+":7")
	f.Add("", revision+":07")
	f.Add("", revision+":8")
	f.Add("", revision+":region:0")
	f.Add("", ":7")
	shown := view{cursor: cursor, next: path{{offset: 9}}, targets: map[int]place{7: {at: path{{offset: 3, number: 7}}}}}
	f.Fuzz(func(t *testing.T, cursorAsked, after string) {
		q := observe.Query{Cursor: cursorAsked, After: after}
		if q.Validate() != nil || cursorAsked+after == "" {
			return
		}
		at, err := shown.position(q, revision)
		known := q.Cursor == cursor || q.After == revision+":7"
		if (err == nil) != known || err != nil && !fault.Is(err, fault.PageChanged) {
			t.Fatalf("%+v: %v", q, err)
		}
		if known && at[0].offset != map[bool]int{true: 9, false: 3}[q.Cursor != ""] {
			t.Errorf("%+v goes on at %+v", q, at)
		}
		if _, err := (view{}).position(q, revision); err == nil {
			t.Errorf("%+v goes on from nothing", q)
		}
	})
}
