package driver_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/browser/driver"
)

// expected differences from the labelled names, by the test's own words for
// the node. Each has its reason.
var nameDifferences = map[string]string{
	"button with tooltip label": "NAME-01 puts the title of a button before its text",
	"heading with link referencing image using aria-labelledby, that in turn references text element via aria-labelledby": "the page refers to an id that it does not have",
	"link with text with tooltip label and contents":                                                                      "NAME-01 puts the title of a link before its text",
}

// valued are nodes whose expected name contains what a field holds. CAP-05
// forbids it; they are counted apart.
func valued(page, expected string) bool {
	return strings.Contains(page, "embedded_control") && strings.HasSuffix(expected, "3 times")
}

// NAME-01 and what it leaves open: at least 99 of 100 labelled nodes have the
// name that they should have.
func TestNames(t *testing.T) {
	pages, err := filepath.Glob("../../../../shared/corpora/accname/*.html")
	if err != nil || len(pages) == 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("the labelled pages are not there")
		}
		t.Skip("the labelled pages are not there")
	}
	b := newBench(t, nil)
	right, wrong, apart := 0, 0, 0
	for _, file := range pages {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		b.open(t, "/"+name, strings.TrimPrefix(string(body), "<!doctype html>"))
		for _, n := range labelled(t, b.page) {
			got, want := strings.Join(asciiFields(n.Name), " "), strings.Join(asciiFields(n.Expected), " ")
			reason, known := nameDifferences[n.Test]
			switch {
			case got == want && known:
				t.Errorf("%s: %q is as expected; the list of differences says otherwise", name, n.Test)
			case got == want:
				right++
			case valued(name, want):
				apart++
			case known:
				wrong++
				t.Logf("%s: %q is %q, not %q: %s", name, n.Test, got, want, reason)
			default:
				wrong++
				t.Errorf("%s: %q is %q, not %q", name, n.Test, got, want)
			}
		}
	}
	t.Logf("%d of %d names are right; %d more contain a value", right, right+wrong, apart)
	if right < 99*(right+wrong)/100 || right < 300 {
		t.Error("too few")
	}
}

// asciiFields splits at ASCII white space only, as the labelled names want.
func asciiFields(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\n\f\r", r) })
}

type labelledNode struct{ Test, Expected, Name string }

func labelled(t *testing.T, p *driver.Page) []labelledNode {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var out []labelledNode
	if err := json.Unmarshal(driver.Names(ctx, t, p), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
