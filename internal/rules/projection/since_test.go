package projection

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// reader is an agent that keeps what it read, and knows a page only from that.
type reader struct {
	elements map[int]string // by number
	text     string
}

func described(e Element) string { return fmt.Sprint(e.Role, e.Name, e.Disabled, e.Filled != nil) }

// apply reads an answer; a whole one replaces everything.
func (r *reader) apply(t *rapid.T, v View) {
	if v.Since == "" {
		r.elements, r.text = map[int]string{}, ""
	}
	if v.Since != "" && v.TextStartsAt > len(r.text) {
		t.Fatalf("text begins at %d, and %d bytes were read", v.TextStartsAt, len(r.text))
	}
	for _, n := range v.Gone {
		if _, ok := r.elements[n]; !ok {
			t.Fatalf("%d has gone and was never shown", n)
		}
		delete(r.elements, n)
	}
	for _, e := range v.Elements {
		n, ok := observe.Number(e.Ref, v.Revision)
		if !ok {
			t.Fatalf("reference %s of revision %s", e.Ref, v.Revision)
		}
		r.elements[n] = described(e)
	}
	r.text = r.text[:v.TextStartsAt] + v.Text
}

// changing draws a page that differs from the last in some controls and some
// of its text.
func changing(t *rapid.T, numbers []string, text string, round int) (observe.Document, []string, string) {
	rev := fmt.Sprintf("%032d", round)
	for i := range numbers {
		switch rapid.IntRange(0, 12).Draw(t, "change") {
		case 0:
			numbers[i] = fmt.Sprint("changed ", round)
		case 1:
			numbers[i] = "" // not there
		}
	}
	if rapid.Bool().Draw(t, "more") {
		numbers = append(numbers, fmt.Sprint("new ", round))
	}
	if rapid.Bool().Draw(t, "text changes") {
		at := rapid.IntRange(0, len(text)).Draw(t, "at")
		text = strings.ToValidUTF8(text[:at], "") + "X\nä" + strings.ToValidUTF8(text[at:], "")
	}
	d := observe.Document{URL: "https://wiki.example.org/", Title: "T", Revision: rev, Text: text, RegionCoverage: &observe.RegionCoverage{Version: 1, Scope: "main_document"}, States: map[string]observe.State{}}
	for i, name := range numbers {
		if name == "" {
			continue
		}
		ref := fmt.Sprintf("%s:%d", rev, i)
		d.Elements = append(d.Elements, observe.Element{Ref: ref, Role: "button", Name: name})
		if rapid.IntRange(0, 9).Draw(t, "filled") == 0 {
			d.States[ref] = observe.State{Filled: new(true)}
		}
	}
	d.Regions = []observe.Region{{Ref: rev + ":region:0", Kind: observe.RegionMain, Text: "main"}}
	return d, numbers, text
}

// since: an agent that only ever reads what changed knows, of everything the
// answers say it knows, exactly what the page shows; nothing that it was never
// shown counts as known.
func TestSinceIsEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{Version: contract.V190, Budget: rapid.OneOf(rapid.IntRange(1024, 4096), rapid.Just(16_000)).Draw(t, "budget")}
		var numbers []string
		for i := range rapid.IntRange(1, 60).Draw(t, "controls") {
			numbers = append(numbers, fmt.Sprint("control ", i))
		}
		text := rapid.SampledFrom([]string{"", "one\ntwo\nthree", strings.Repeat("line of text\n", 300)}).Draw(t, "text")
		r := &reader{}
		for round := range 6 {
			var d observe.Document
			d, numbers, text = changing(t, slices.Clone(numbers), text, round)
			before := maps.Clone(r.elements)
			v, shown, err := Project(accept(t, d), o)
			if err != nil || len(encode(t, v)) > o.Budget {
				t.Fatalf("%v, %d bytes in %d", err, len(encode(t, v)), o.Budget)
			}
			if o.Since != "" && (v.Since != o.Since) != v.SinceUnavailable {
				t.Fatalf("since %q and unavailable %v", v.Since, v.SinceUnavailable)
			}
			r.apply(t, v)
			if !strings.HasPrefix(text, r.text) {
				t.Fatalf("the agent read %q, the page says %q", r.text, text)
			}
			// Everything up to where next_observe goes on is known exactly.
			known, unchanged := 0, 0
			for i, e := range d.Elements {
				n, _ := observe.Number(e.Ref, d.Revision)
				want := described(Element{Element: e, State: d.States[e.Ref]})
				if v.ExpansionBlocked != "" || v.NextObserve == nil && v.OmittedElements > 0 {
					break
				}
				if r.elements[n] != want {
					t.Fatalf("round %d: number %d is %q to the agent and %q on the page", round, n, r.elements[n], want)
				}
				known++
				if v.Since != "" && before[n] == want && !slices.ContainsFunc(v.Elements, func(x Element) bool { return x.Ref == e.Ref }) {
					unchanged++
				}
				if v.NextObserve != nil && v.NextObserve.After == e.Ref {
					break
				}
				if v.NextObserve == nil && i == len(d.Elements)-1 && known != len(d.Elements) {
					t.Fatal("something is missing and there is no way to it")
				}
			}
			if v.Since != "" && v.Unchanged != unchanged {
				t.Fatalf("%d unchanged, want %d", v.Unchanged, unchanged)
			}
			if v.OmittedElements != len(d.Elements)-len(v.Elements)-v.Unchanged || v.OmittedRegions != len(d.Regions)-len(v.Regions)-v.UnchangedRegions {
				t.Fatalf("%+v", v.Window)
			}
			for n := range r.elements { // what it may still act on is there
				if n >= len(numbers) || numbers[n] == "" {
					t.Fatalf("number %d has gone and nobody said so", n)
				}
			}
			o.Since, o.Seen = d.Revision, shown
			if v.NextObserve != nil { // what lies behind is not known: begin again
				r.elements = map[int]string{}
				o.Since, o.Seen = "", Shown{}
			}
		}
	})
}

// A page that did not change costs next to nothing, and one number says so.
func TestUnchangedIsCheap(t *testing.T) {
	d := desk(60, strings.Repeat("some text\n", 100))
	d.RegionCoverage = &observe.RegionCoverage{Version: 1, Scope: "main_document"}
	d.Regions = []observe.Region{{Ref: "r1:region:0", Kind: observe.RegionMain, Text: "main"}}
	whole, shown, err := Project(accept(t, d), Options{Version: contract.V190})
	if err != nil {
		t.Fatal(err)
	}
	again := d
	again.Revision = "r2"
	again.Elements = slices.Clone(d.Elements)
	for i := range again.Elements {
		again.Elements[i].Ref = fmt.Sprintf("r2:%d", i)
	}
	again.Regions = []observe.Region{{Ref: "r2:region:0", Kind: observe.RegionMain, Text: "main"}}
	v, _, err := Project(accept(t, again), Options{Version: contract.V190, Since: "r1", Seen: shown})
	if err != nil || v.Unchanged != 60 || v.UnchangedRegions != 1 || len(v.Elements)+len(v.Gone) != 0 || v.Text != "" || v.TextStartsAt != len(d.Text) {
		t.Errorf("%s, %v", encode(t, v), err)
	}
	if a, b := len(encode(t, whole)), len(encode(t, v)); b > 500 || b*10 > a {
		t.Errorf("%d bytes, the whole answer was %d", b, a)
	}
}

// What cannot be compared is read whole, and the answer says so.
func TestSinceUnavailable(t *testing.T) {
	d := desk(3, "text")
	d.Coverage = &observe.Coverage{}
	_, shown, err := Project(accept(t, d), Options{Version: contract.V190})
	if err != nil {
		t.Fatal(err)
	}
	behind := d
	behind.Coverage = &observe.Coverage{CandidateOffset: 256}
	elsewhere := d
	elsewhere.URL = "https://wiki.example.org/other"
	for name, c := range map[string]struct {
		document observe.Document
		since    string
		seen     Shown
	}{
		"another revision": {d, "r0", shown}, "nothing was shown": {d, "r1", Shown{}},
		"another window": {behind, "r1", shown}, "another page": {elsewhere, "r1", shown},
	} {
		v, _, err := Project(accept(t, c.document), Options{Version: contract.V190, Since: c.since, Seen: c.seen})
		if err != nil || !v.SinceUnavailable || v.Since != "" || len(v.Elements) != 3 || v.Text != "text" {
			t.Errorf("%s: %s, %v", name, encode(t, v), err)
		}
	}
}

// Only what was shown counts as known: what a budget left out is neither
// unchanged nor gone.
func TestOnlyShownIsKnown(t *testing.T) {
	v, shown, err := Project(accept(t, desk(60, "")), Options{Version: contract.V190, Budget: 1024})
	if err != nil || len(v.Elements) == 0 || len(v.Elements) > 30 {
		t.Fatalf("%d elements, %v", len(v.Elements), err)
	}
	known := len(v.Elements)
	again := desk(40, "") // the last twenty, never shown, have gone
	again.Revision = "r2"
	for i := range again.Elements {
		again.Elements[i].Ref = fmt.Sprintf("r2:%d", i)
	}
	v, shown, err = Project(accept(t, again), Options{Version: contract.V190, Since: "r1", Seen: shown})
	if err != nil || v.Unchanged != known || len(v.Elements) != 40-known || len(v.Gone) != 0 {
		t.Errorf("%d unchanged, %d listed, gone %v; %d were known", v.Unchanged, len(v.Elements), v.Gone, known)
	}
	// What was unchanged is known ever after.
	third := desk(30, "")
	third.Revision = "r3"
	for i := range third.Elements {
		third.Elements[i].Ref = fmt.Sprintf("r3:%d", i)
	}
	v, _, err = Project(accept(t, third), Options{Version: contract.V190, Since: "r2", Seen: shown})
	if err != nil || v.Unchanged != 30 || len(v.Elements) != 0 || len(v.Gone) != 10 {
		t.Errorf("%d unchanged, %d listed, gone %v", v.Unchanged, len(v.Elements), v.Gone)
	}
}
