package hostilesite_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/testkit/hostilesite"
	"github.com/chaperone-agents/chaperone/internal/testkit/product"
)

// scripts are what a worker brings into pages, and root leads to the module.
const (
	root    = "../../.."
	scripts = root + "/internal/browser/pagejs/js"
)

// broken takes one check out of a worker; the shape shows what it is for.
var broken = []struct{ file, check, without, shape string }{
	{"likeness.js", "const likeness = (el, said, facts) => ", "const likeness = (el, said, facts) => '' && ", "label swapped"},
	{"guard.js", "const judge = (event) => {", "const judge = (event) => {\n    state.seen = true;\n    return;", "focus stolen at keydown"},
	{"target.js", "const reaches = (hit, el) => {", "const reaches = (hit, el) => {\n  return true;", "popover over it"},
}

// withoutChecks is a folder of the programs in which the worker does not
// compare, guard, or look what is on top.
func withoutChecks(t *testing.T) string {
	t.Helper()
	work, err := os.MkdirTemp("", "chaperone-bin-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(work) })
	if err := os.Chmod(work, 0o755); err != nil { // the worker is another user
		t.Fatal(err)
	}
	replace := map[string]string{}
	for _, b := range broken {
		source, err := filepath.Abs(filepath.Join(scripts, b.file))
		if err != nil {
			t.Fatal(err)
		}
		body, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(body), b.check) != 1 {
			t.Fatalf("%s does not have %q once", b.file, b.check)
		}
		replace[source] = filepath.Join(work, b.file)
		if err := os.WriteFile(replace[source], []byte(strings.Replace(string(body), b.check, b.without, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(filepath.Join(work, "overlay.json"), overlay, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-overlay", filepath.Join(work, "overlay.json"), "-o", work+"/", "./cmd/chaperone-worker")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"chaperone", "chaperoned", "chaperone-browserd"} {
		if err := os.Link(filepath.Join(product.Bin(t), name), filepath.Join(work, name)); err != nil {
			t.Fatal(err)
		}
	}
	return work
}

// A worker that leaves a check out is caught by the shape that needs it.
func TestBrokenWorkerIsCaught(t *testing.T) {
	b := &bench{person: product.Person{Bin: withoutChecks(t)}}
	b.begin(t)
	l := &lane{bench: b}
	for _, s := range hostilesite.Shapes() {
		for _, c := range broken {
			if c.shape != s.Name {
				continue
			}
			if err := l.shape(t, s); err == nil || !strings.Contains(err.Error(), "approved") {
				t.Errorf("%s without its check is not caught by %q: %v", c.file, s.Name, err)
			}
		}
	}
	l.end()
	late := len(b.tried)
	for _, err := range b.close() {
		if err == nil {
			continue
		}
		if late--; late < 0 || !strings.Contains(err.Error(), "in the end") {
			t.Error(err)
		}
	}
	if late != 0 {
		t.Errorf("%d broken acts look well in the end", late)
	}
}

// Every kind of wrong is told from what is right.
func TestJudge(t *testing.T) {
	const refused, unknown = "tool.browser.page_changed", "tool.browser.outcome_unknown"
	for _, c := range []struct {
		code    string
		effects []string
		silent  bool
		right   bool
	}{
		{"", []string{"ok"}, false, true}, {"", nil, false, false}, {"", nil, true, true}, {"", []string{"ok"}, true, false}, {"", []string{"ok", "ok"}, false, false},
		{refused, nil, false, true}, {refused, []string{"ok"}, false, false}, {refused, []string{"bad"}, false, false},
		{unknown, nil, false, true}, {unknown, []string{"ok"}, false, true}, {unknown, []string{"ok"}, true, false}, {unknown, []string{"ok", "bad"}, false, false},
	} {
		if err := hostilesite.Judge(c.code, c.effects, c.silent); (err == nil) != c.right {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
