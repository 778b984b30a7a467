package pagejs

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// OBS-01, CLK-01: every file enters the kit exactly once, and every function the kit is asked
// for is one of its own. What the functions do is tested in a real Chromium,
// by the driver.
func TestKitIsWhole(t *testing.T) {
	entries, err := fs.ReadDir(files, "js")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".js"))
	}
	listed := slices.Sorted(slices.Values(order))
	if !slices.Equal(names, listed) {
		t.Errorf("files %q, listed %q", names, listed)
	}
	source := Source()
	returned := source[strings.LastIndex(source, "Object.freeze("):]
	for _, f := range []Function{Observe, OpenRoots, Nodes, Through, Names, Forget, Locate, Aim, Disarm, FocusFor, Prepare, Fill, Choose, ConfirmText, ConfirmChecked, Kept, KeepDraft, Quiet, Ready, Challenge, ReadStorage, WriteStorage, HasStorage} {
		if !regexp.MustCompile(`\b` + string(f) + `\b`).MatchString(returned) {
			t.Errorf("the kit has no %s", f)
		}
		if !regexp.MustCompile(`(?m)^const ` + string(f) + ` = `).MatchString(source) {
			t.Errorf("%s is defined nowhere", f)
		}
	}
}

// CAP-05, CLK-02: the page side never sends a script click, and never answers with a value.
func TestKitSendsNoClicks(t *testing.T) {
	for _, banned := range []string{".click(", "MouseEvent(", "KeyboardEvent(", "eval(", "innerHTML", "new Function"} {
		if strings.Contains(Source(), banned) {
			t.Errorf("the kit uses %s", banned)
		}
	}
}
