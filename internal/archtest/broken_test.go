package archtest

import (
	"strings"
	"testing"
)

// wants fails unless exactly one finding contains want; an empty want means
// that there must be none.
func wants(t *testing.T, name string, findings []string, want string) {
	t.Helper()
	switch {
	case want == "" && len(findings) > 0:
		t.Errorf("%s: %q, want no finding", name, findings)
	case want != "" && len(findings) != 1:
		t.Errorf("%s: %q, want one finding with %q", name, findings, want)
	case want != "" && !strings.Contains(findings[0], want):
		t.Errorf("%s: %q, want %q in it", name, findings[0], want)
	}
}

func ours(rels ...string) []string {
	for i, r := range rels {
		rels[i] = Module + "/" + r
	}
	return rels
}

func TestImportRuleRefusesBrokenTrees(t *testing.T) {
	for _, c := range []struct {
		name, from string
		imports    []string
		tests      []string
		want       string
	}{
		{"downwards", "internal/app/broker", ours("internal/store", "internal/rules/policy", "internal/base/fault"), nil, ""},
		{"same room", "internal/edge/ownerapi", ours("internal/edge/httpx"), nil, ""},
		{"upwards", "internal/rules/policy", ours("internal/store"), nil, "import rule forbids"},
		{"siblings", "internal/store/sqlite", ours("internal/vault"), nil, "import rule forbids"},
		{"siblings in tests", "internal/vault", nil, ours("internal/browser/fake"), "import rule forbids"},
		{"base to rules", "internal/base/site", ours("internal/rules/action"), nil, "import rule forbids"},
		{"client to store", "client", ours("internal/store"), nil, "import rule forbids"},
		{"cmd past daemon", "cmd/chaperoned", ours("internal/app/broker"), nil, "import rule forbids"},
		{"a name that only begins alike", "internal/rules/policy", ours("internal/basement"), nil, "import rule forbids"},
		{"testkit in a program", "internal/daemon/serve", ours("internal/testkit/practice"), nil, "is for tests"},
		{"fake in a program", "internal/daemon/serve", ours("internal/browser/fake"), nil, "is for tests"},
		{"testkit in a test", "internal/app/broker", nil, ours("internal/testkit/practice"), ""},
		{"testkit in a contract suite", "internal/browser/browsertest", ours("internal/testkit/leak"), nil, ""},
		{"fake in a test", "internal/app/broker", nil, ours("internal/browser/fake"), ""},
		{"no room", "internal/helpers", nil, nil, "in no room"},
		{"others are not ours", "internal/rules/policy", []string{"strings"}, nil, ""},
	} {
		p := pkg{path: Module + "/" + c.from, imports: c.imports, testImports: c.tests}
		wants(t, c.name, checkImports([]pkg{p}), c.want)
	}
}

// TRUST-04
func TestProgramTableRefusesBrokenPrograms(t *testing.T) {
	for _, c := range []struct {
		name, program string
		deps          []string
		want          string
	}{
		{"orchestrator", "cmd/chaperoned", append(ours("internal/store/sqlite", "internal/browser"), "database/sql"), ""},
		{"orchestrator with keys", "cmd/chaperoned", ours("internal/vault/keyring"), "links"},
		{"orchestrator with CDP", "cmd/chaperoned", ours("internal/browser/cdp"), "links"},
		{"isolated service with database", "cmd/chaperone-browserd", ours("internal/store"), "links"},
		{"isolated service with SQL of its own", "cmd/chaperone-browserd", []string{"modernc.org/sqlite/lib"}, "links"},
		{"worker with keys", "cmd/chaperone-worker", ours("internal/vault"), "links"},
		{"worker with a server", "cmd/chaperone-worker", ours("internal/edge/httpx"), "links"},
		{"CLI with store", "cmd/chaperone", ours("internal/store"), "links"},
		{"CLI with browser", "cmd/chaperone", ours("internal/browser/driver"), "links"},
		{"a fake", "cmd/chaperoned", ours("internal/browser/fake"), "links"},
		{"a contract suite", "cmd/chaperoned", ours("internal/store/storetest"), "links"},
		{"the testing package", "cmd/chaperoned", []string{"testing"}, "links"},
		{"a new program", "cmd/chaperone-extra", nil, "without a row"},
	} {
		p := pkg{path: Module + "/" + c.program, deps: c.deps}
		wants(t, c.name, checkPrograms([]pkg{p}), c.want)
	}
}

func TestPackageChecksRefuseBrokenPackages(t *testing.T) {
	const head = "// Package p is small (POL-01).\npackage p\n"
	for _, c := range []struct {
		name, file, text string
		want             string
	}{
		{"clean", "internal/rules/p/p.go", head + "import \"time\"\nvar table = map[string]int{\"a\": 1}\nfunc F(now time.Time) int { x := 1; x++; return x + table[\"a\"] }", ""},
		{"clock", "internal/rules/p/p.go", head + "import \"time\"\nfunc F() time.Time { return time.Now() }", "time.Now"},
		{"clock under another name", "internal/rules/p/p.go", head + "import t \"time\"\nfunc F() t.Duration { return t.Since(t.Time{}) }", "time.Since"},
		{"clock elsewhere", "internal/app/p/p.go", head + "import \"time\"\nfunc F() time.Time { return time.Now() }", ""},
		{"file system", "internal/rules/p/p.go", head + "import \"io/fs\"\nvar _ fs.FS", "rules are pure"},
		{"process", "internal/rules/p/p.go", head + "import \"os\"\nvar _ os.File", "rules are pure"},
		{"network", "internal/rules/p/p.go", head + "import \"net/http\"\nvar _ http.Client", "rules are pure"},
		{"logger", "internal/rules/p/p.go", head + "import \"log/slog\"\nvar _ slog.Level", "rules are pure"},
		{"mask", "internal/rules/p/p.go", head + "import \"log/slog\"\nfunc F() slog.Value { return slog.StringValue(\"x\") }", ""},
		{"context", "internal/rules/p/p.go", head + "import \"context\"\nvar _ context.Context", "rules are pure"},
		{"randomness", "internal/rules/p/p.go", head + "import \"crypto/rand\"\nvar _ = rand.Text", "rules are pure"},
		{"randomness of ours", "internal/rules/p/p.go", head + "import \"" + Module + "/internal/base/ident\"\nvar _ = ident.New", "rules are pure"},
		{"init", "internal/app/p/p.go", head + "func init() {}", "func init"},
		{"a method called init", "internal/app/p/p.go", head + "type T struct{}\nfunc (T) init() {}", ""},
		{"assigned global", "internal/app/p/p.go", head + "var n int\nfunc F() { n = 2 }", "changes the package variable n"},
		{"counted global", "internal/app/p/p.go", head + "var n int\nfunc F() { n++ }", "changes the package variable n"},
		{"written table", "internal/app/p/p.go", head + "var m = map[string]int{}\nfunc F() { m[\"a\"] = 1 }", "changes the package variable m"},
		{"emptied table", "internal/app/p/p.go", head + "var m = map[string]int{}\nfunc F() { clear(m) }", "changes the package variable m"},
		{"global by address", "internal/app/p/p.go", head + "var n int\nfunc F() *int { return &n }", "changes the package variable n"},
		{"shadowed name", "internal/app/p/p.go", head + "var n = 1\nfunc F() int { n := n; n++; return n }", ""},
		{"global lock", "internal/app/p/p.go", head + "import \"sync\"\nvar mu sync.Mutex", "sync.Mutex"},
		{"global pointer", "internal/app/p/p.go", head + "import \"sync/atomic\"\nvar v atomic.Pointer[int]", "atomic.Pointer"},
		{"global channel", "internal/app/p/p.go", head + "var c = make(chan int)", "chan"},
		{"global logger", "internal/app/p/p.go", head + "import \"log/slog\"\nfunc F() { slog.Info(\"x\") }", "injected"},
		{"old logger", "internal/app/p/p.go", head + "import \"log\"\nvar _ = log.Print", "injected"},
		{"injected logger", "internal/app/p/p.go", head + "import \"log/slog\"\nfunc F(l *slog.Logger) { l.Info(\"x\") }", ""},
		{"caller in a context", "internal/app/p/p.go", head + "import c \"context\"\nvar _ = c.WithValue", "parameter"},
		{"weak randomness", "internal/app/p/p.go", head + "import \"math/rand/v2\"\nvar _ = rand.Int", "crypto/rand"},
		{"a program started", "internal/app/p/p.go", head + "import \"os/exec\"\nvar _ = exec.Command", "start programs"},
		{"a program started by the worker", "internal/browser/worker/p.go", head + "import \"os/exec\"\nvar _ = exec.Command", ""},
		{"SQL in a handler", "internal/edge/p/p.go", head + "import \"database/sql\"\nvar _ sql.DB", "store's"},
		{"default client", "internal/edge/p/p.go", head + "import \"net/http\"\nvar _ = http.Get", "default client"},
		{"no comment", "internal/app/p/p.go", "package p\n", "no package comment"},
		{"generated", "internal/app/p/p.gen.go", "// Code generated by x. DO NOT EDIT.\n\npackage p\nvar n int\nfunc init() { n = 1 }", ""},
		{"not Go", "internal/app/p/p.go", head + "func {", "expected"},
	} {
		wants(t, c.name, checkPackage([]source{{c.file, c.text}}), c.want)
	}
	files := []source{{"internal/app/p/p.go", head}, {"internal/app/p/p_test.go", "package p\n"}}
	wants(t, "tests that cite nothing", checkPackage(files), "none of them cites")
	files[1].text = "package p\n// STORE-04\n"
	wants(t, "tests that cite", checkPackage(files), "")
	files = []source{{"internal/app/p/a.go", head + "var n int"}, {"internal/app/p/b.go", "package p\nfunc F() { n = 2 }"}}
	wants(t, "global of another file", checkPackage(files), "b.go:2 changes")
}

func TestTextChecksRefuseBrokenFiles(t *testing.T) {
	long := strings.Repeat("// line\n", maxLines+1)
	for _, c := range []struct {
		name, file, text string
		want             string
	}{
		{"clean", "internal/app/p.go", "package p\n", ""},
		{"sandbox", "internal/browser/driver/a.go", `"--no-` + `sandbox"`, "sandbox"},
		{"sandbox in the testkit", "internal/testkit/a.go", `"--no-` + `sandbox"`, "sandbox"},
		{"certificates", "internal/edge/a.go", "InsecureSkip" + "Verify: true", "certificate"},
		{"certificates in the testkit", "internal/testkit/a.go", "InsecureSkip" + "Verify: true", ""},
		{"machine", "docs/a.md", "see /wor" + "k/main", "one machine"},
		{"home", "Makefile", "/hom" + "e/jane/x", "one machine"},
		{"registry", "README.md", "https://proxy.golan" + "g.org", "registry"},
		{"markup from text", "web/console/a.js", "el.inner" + "HTML = name", "markup"},
		{"markup from text elsewhere", "docs/a.md", "el.inner" + "HTML = name", ""},
		{"inline handler", "web/console/a.html", "<a onclick=\"f()\">", "inline"},
		{"inline script", "web/console/a.html", "<script>f()</script>", "inline"},
		{"module", "web/console/a.html", "<script type=\"module\" src=\"a.js\"></script>", ""},
		{"open end", "internal/app/a.go", "// TOD" + "O: later", "work open"},
		{"long", "internal/app/a.go", long, "split it"},
		{"long but generated", "internal/app/a.go", "// Code generated by x. DO NOT EDIT.\n" + long, ""},
		{"skipped test", "internal/app/a_test.go", "t.Skip(\"later\")", "skips"},
		{"skipped on a laptop", "internal/app/a_test.go", "if os.Getenv(\"CI\") != \"true\" { t.Skip(\"no Chromium\") }", ""},
		{"sleeping test", "internal/app/a_test.go", "time.Sleep(" + "1)", "sleeps"},
	} {
		wants(t, c.name, checkText(source{c.file, c.text}), c.want)
	}
}

// TRUST-03
func TestGuaranteesRefuseBrokenDocuments(t *testing.T) {
	files := []source{{"internal/vault/a_test.go", "package vault\nfunc TestA(t *testing.T) {}"}}
	for _, c := range []struct{ name, text, want string }{
		{"held", "### G1 Safe\n\nHeld by `internal/vault TestA`.", ""},
		{"no test", "### G1 Safe\n\nReally.\n## Next\n`internal/vault TestA`", "G1 names no test"},
		{"a test that does not exist", "### G1 Safe\n\n`internal/vault TestB`", "does not exist"},
		{"a test of another folder", "### G1 Safe\n\n`internal/store TestA`", "does not exist"},
		{"nothing stated", "# Threat model", "states no guarantee"},
	} {
		wants(t, c.name, checkGuarantees(source{"docs/threat-model.md", c.text}, files), c.want)
	}
}
