package archtest

import (
	"slices"
	"testing"
)

const root = "../.."

// report fails with every finding on a line of its own.
func report(t *testing.T, findings []string) {
	t.Helper()
	slices.Sort(findings)
	for _, f := range slices.Compact(findings) {
		t.Error(f)
	}
}

func packages(t *testing.T) []pkg {
	t.Helper()
	pkgs, err := loadPackages(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(pkgs) < 10 {
		t.Fatalf("only %d packages were found: the check would say nothing", len(pkgs))
	}
	return pkgs
}

func sources(t *testing.T) []source {
	t.Helper()
	files, err := loadSources(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 30 {
		t.Fatalf("only %d files were found: the check would say nothing", len(files))
	}
	return files
}

// The import rule: base <- rules <- store|vault|browser <- app <- edge <- daemon <- cmd.
func TestImportRule(t *testing.T) { report(t, checkImports(packages(t))) }

// TRUST-04, HCP-01: what a program cannot link, it cannot leak.
func TestProgramsLinkOnlyTheirPart(t *testing.T) { report(t, checkPrograms(packages(t))) }

// Pure rules, no globals, no init, package comments, cited requirements (POL-01).
func TestPackages(t *testing.T) {
	for _, files := range byFolder(sources(t)) {
		report(t, checkPackage(files))
	}
}

// No switched-off sandbox or certificate check, no traces of a machine, no
// open ends, no overlong files.
func TestText(t *testing.T) {
	for _, f := range sources(t) {
		report(t, checkText(f))
	}
}

// TRUST-03: each guarantee of the threat model names tests that exist.
func TestGuaranteesNameTests(t *testing.T) {
	files := sources(t)
	i := slices.IndexFunc(files, func(f source) bool { return f.name == "docs/threat-model.md" })
	if i < 0 {
		t.Fatal("there is no threat model")
	}
	report(t, checkGuarantees(files[i], files))
}
