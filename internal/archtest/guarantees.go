package archtest

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// heldBy matches one test that a guarantee names: `internal/vault TestX`.
var heldBy = regexp.MustCompile("`([a-z][a-z0-9/-]*) (Test[A-Za-z0-9_]*|Fuzz[A-Za-z0-9_]*)`")

// guarantee matches the heading of one: "### G4 What was approved …".
var guarantee = regexp.MustCompile(`^### (G\d+) `)

// checkGuarantees reads the threat model: every guarantee names tests, and
// every test it names exists in the folder it names.
func checkGuarantees(doc source, files []source) []string {
	exists := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9_]*)\(`)
	for _, f := range files {
		if path.Ext(f.name) != ".go" {
			continue
		}
		for _, m := range declared.FindAllStringSubmatch(f.text, -1) {
			exists[path.Dir(f.name)+" "+m[1]] = true
		}
	}
	var out []string
	named, current := map[string]int{}, ""
	var order []string
	for n, line := range strings.Split(doc.text, "\n") {
		if m := guarantee.FindStringSubmatch(line); m != nil {
			current = m[1]
			order = append(order, current)
		} else if strings.HasPrefix(line, "## ") {
			current = ""
		}
		for _, m := range heldBy.FindAllStringSubmatch(line, -1) {
			named[current]++
			if !exists[m[1]+" "+m[2]] {
				out = append(out, fmt.Sprintf("%s:%d names %s in %s, which does not exist", doc.name, n+1, m[2], m[1]))
			}
		}
	}
	if len(order) == 0 {
		out = append(out, doc.name+" states no guarantee")
	}
	for _, g := range order {
		if named[g] == 0 {
			out = append(out, fmt.Sprintf("%s: %s names no test", doc.name, g))
		}
	}
	return out
}
