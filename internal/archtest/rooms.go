// Package archtest holds the architecture as tables and checks the tree
// against them: who may import whom, what each program may never link
// (TRUST-04), what the pure rules may never touch, and a few things that must
// not be in the source at all. Its checks take values and return findings, so
// its tests also run them on small broken trees that they must refuse.
package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Module is the import path of this project.
const Module = "github.com/chaperone-agents/chaperone"

// room is a folder whose packages obey one import rule.
type room struct {
	dir     string   // relative to the module
	imports []string // rooms that its packages may import besides their own
}

// rooms is the import rule: base <- rules <- store|vault|browser <- app <-
// edge <- daemon <- cmd. A package belongs to the first room that contains it.
var rooms = []room{
	{"internal/base", nil},
	{"internal/rules", []string{"internal/base"}},
	{"internal/store", []string{"internal/base", "internal/rules"}},
	{"internal/vault", []string{"internal/base", "internal/rules"}},
	{"internal/browser", []string{"internal/base", "internal/rules"}},
	{"internal/app", []string{"internal/base", "internal/rules", "internal/store", "internal/vault", "internal/browser"}},
	{"api", nil},
	{"web", nil},
	{"client", []string{"internal/base", "api"}},
	{"internal/edge", []string{"internal/base", "internal/rules", "internal/store", "internal/vault", "internal/browser", "internal/app", "api", "web"}},
	{"internal/daemon", []string{"internal/base", "internal/rules", "internal/store", "internal/vault", "internal/browser", "internal/app", "internal/edge", "api", "web", "client"}},
	{"cmd", []string{"internal/base", "internal/edge", "internal/daemon", "client"}},
	{"internal/archtest", nil},
}

// testkit may import anything, and only tests and testkit import it. Tests may
// also speak through the public client.
const testkit = "internal/testkit"

// testOnly names packages that exist for tests: the fakes and the contract
// suites. Programs never link them.
func testOnly(rel string) bool {
	base := path.Base(rel)
	return within(rel, testkit) || base == "fake" || strings.HasSuffix(base, "test") && base != "test"
}

// pkg is what the import rule needs to know of a package.
type pkg struct {
	path        string
	imports     []string
	testImports []string // of both kinds of test file
	deps        []string // everything a program links, directly or not
}

// checkImports applies the table of rooms to pkgs.
func checkImports(pkgs []pkg) []string {
	var out []string
	for _, p := range pkgs {
		rel := relative(p.path)
		if within(rel, testkit) {
			continue
		}
		home, ok := roomOf(rel)
		if !ok {
			out = append(out, rel+" is in no room; add it to the table or move it")
			continue
		}
		for _, i := range p.imports {
			if to, ours := ourPath(i); ours {
				if testOnly(to) && !testOnly(rel) {
					out = append(out, fmt.Sprintf("%s imports %s, which is for tests", rel, to))
				} else if !allowed(home, to) && !(testOnly(rel) && within(to, testkit)) {
					out = append(out, fmt.Sprintf("%s imports %s, which the import rule forbids", rel, to))
				}
			}
		}
		for _, i := range p.testImports {
			if to, ours := ourPath(i); ours && !within(to, testkit) && to != "client" && !allowed(home, to) {
				out = append(out, fmt.Sprintf("the tests of %s import %s, which the import rule forbids", rel, to))
			}
		}
	}
	return out
}

func roomOf(rel string) (room, bool) {
	i := slices.IndexFunc(rooms, func(r room) bool { return within(rel, r.dir) })
	if i < 0 {
		return room{}, false
	}
	return rooms[i], true
}

func allowed(from room, to string) bool {
	return within(to, from.dir) || slices.ContainsFunc(from.imports, func(dir string) bool { return within(to, dir) })
}

// within reports whether rel is dir or below it.
func within(rel, dir string) bool { return rel == dir || strings.HasPrefix(rel, dir+"/") }

func relative(importPath string) string {
	return strings.TrimPrefix(strings.TrimPrefix(importPath, Module), "/")
}

// ourPath is the part of an import path behind the module, if it is ours.
func ourPath(importPath string) (string, bool) {
	if !within(importPath, Module) {
		return "", false
	}
	return relative(importPath), true
}
