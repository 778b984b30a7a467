package archtest

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// requirementID is the form in which tests and comments cite a requirement.
var requirementID = regexp.MustCompile(`(?:\b|Test|_)[A-Z]{2,8}[-_]?\d{2}(?:\D|$)`)

// maxLines is the length from which a file is split.
const maxLines = 450

// unwanted is text that must not be in the tree. The patterns are written so
// that they do not match themselves.
var unwanted = []struct {
	what    string
	pattern *regexp.Regexp
	except  func(name string) bool
}{
	{"switches Chromium's sandbox off", regexp.MustCompile(`["']--?no-sandbo[x]|disable-setuid-sandbo[x]`), goTests},
	{"switches certificate checks off", regexp.MustCompile(`InsecureSkipVerif[y]|ignore-certificate-error[s]($|[^-])`), tests},
	{"names a folder of one machine", regexp.MustCompile(`/wor[k]/|/roo[t]/|/hom[e]/[a-z]+/|/User[s]/[a-z]+/`), nil},
	{"names a package registry", regexp.MustCompile(`proxy\.golan[g]|registry\.npmj[s]|deb\.debia[n]`), nil},
	{"puts text into a page as markup, or as code", regexp.MustCompile(`\b(inner|outer)HTM[L]\b|insertAdjacentHTM[L]|document\.writ[e]|\beva[l]\(|new Functio[n]\(`), notWeb},
	{"has inline script or style, which the content policy forbids", regexp.MustCompile(`<script>|<style|\sstyle=|\son[a-z]+=["']`), notWeb},
	{"leaves work open", regexp.MustCompile(`\b(TOD[O]|FIXM[E]|XX[X])\b`), nil},
}

// tests reports whether the file is a test or part of the testkit.
func tests(name string) bool {
	return strings.HasSuffix(name, "_test.go") || within(name, testkit)
}

// notWeb reports whether the file is none of our own pages and page scripts.
func notWeb(name string) bool {
	return !within(name, "web") && !within(name, "internal/browser/pagejs/js")
}

// goTests are tests, where the text is what must not be found; programs and
// the testkit, which start browsers, are not among them.
func goTests(name string) bool { return strings.HasSuffix(name, "_test.go") }

func ownTests(name string) bool { return within(name, "internal/archtest") }

// checkText reads every text file of the tree, Go or not.
func checkText(f source) []string {
	var out []string
	lines := strings.Split(f.text, "\n")
	for n, line := range lines {
		for _, u := range unwanted {
			if (u.except == nil || !u.except(f.name)) && u.pattern.MatchString(line) {
				out = append(out, fmt.Sprintf("%s:%d %s", f.name, n+1, u.what))
			}
		}
		if strings.HasSuffix(f.name, "_test.go") && !ownTests(f.name) && !strings.Contains(f.text, `"testing/synctest"`) {
			out = append(out, checkTestLine(f.name, n+1, line)...)
		}
	}
	if path.Ext(f.name) == ".go" && !ownTests(f.name) {
		out = append(out, checkSkips(f)...)
	}
	if path.Ext(f.name) == ".go" && len(lines)-1 > maxLines && !generated(f.text) {
		out = append(out, fmt.Sprintf("%s has %d lines; split it below %d", f.name, len(lines)-1, maxLines))
	}
	return out
}

// mayFail matches the condition under which a test may be skipped: not in CI.
var mayFail = regexp.MustCompile(`"CI"`)

var skipping = regexp.MustCompile(`\.Skip(f|Now)?\(`)

// checkSkips allows skipping only in files that ask first whether this is CI.
func checkSkips(f source) []string {
	if tests(f.name) && skipping.MatchString(f.text) && !mayFail.MatchString(f.text) {
		return []string{f.name + " skips a test without asking whether this is CI"}
	}
	return nil
}

var sleeping = regexp.MustCompile(`\btime\.Sleep\(`)

func checkTestLine(name string, n int, line string) []string {
	if sleeping.MatchString(line) {
		return []string{fmt.Sprintf("%s:%d sleeps; poll with a deadline or use synctest", name, n)}
	}
	return nil
}

var generatedLine = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func generated(text string) bool { return generatedLine.MatchString(text) }
