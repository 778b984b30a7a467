// Package contract is the registry of every published version of the browser
// tools, and of the sets of versions that a session may have. A session keeps
// the set it began with, so that what an agent was told stays true; a version
// that was published is never changed and never removed (TOOL-10, TOOL-11,
// PAGE-09, UPL-10). What goes beyond the specification is 1.9.0 and only adds.
package contract

import (
	"embed"
	"encoding/json"
	"slices"
)

// Set names the versions that one session has, after the newest of them.
type Set string

// Newest is the set of a new session.
const Newest Set = "1.9.0"

// Version of one tool.
type Version string

// Published versions; not every tool has every one.
const (
	V100 Version = "1.0.0" // the whole page, as far as it fits
	V110 Version = "1.1.0" // observe by offsets (ADR-0151)
	V170 Version = "1.7.0" // continuations, regions, extraction, conditions
	V180 Version = "1.8.0" // articles
	V190 Version = "1.9.0" // states, frames, notices, page text by offset, since
)

// Names of the tools, in the order in which they are advertised.
const (
	Navigate = "browser.navigate"
	Observe  = "browser.observe"
	Act      = "browser.act"
	Upload   = "browser.upload" // of providers that can (UPL-10)
)

var names = []string{Navigate, Observe, Act, Upload}

// Tool is one published version of a tool.
type Tool struct {
	Name        string
	Version     Version
	Title       string
	Description string
	ReadOnly    bool
	Schema      json.RawMessage // of the arguments; JSON Schema 2020-12, an object
}

var sets = []struct {
	set                    Set
	navigate, observe, act Version
	upload                 Version // "" where there is none
}{
	{"1.0.0", V100, V100, V100, ""},
	{"1.1.0", V100, V110, V100, ""},
	{"1.7.0", V170, V170, V170, ""},
	{"1.8.0", V170, V180, V170, ""},
	{"1.9.0", V190, V190, V190, V100},
}

// Sets lists every set, oldest first.
func Sets() []Set {
	var all []Set
	for _, s := range sets {
		all = append(all, s.set)
	}
	return all
}

// Known reports whether there is such a set.
func (s Set) Known() bool { return slices.Contains(Sets(), s) }

// Of is the version of the named tool in the set; false for a set or a tool
// that does not exist.
func (s Set) Of(tool string) (Version, bool) {
	for _, x := range sets {
		if x.set != s {
			continue
		}
		switch tool {
		case Navigate:
			return x.navigate, true
		case Observe:
			return x.observe, true
		case Act:
			return x.act, true
		case Upload:
			return x.upload, x.upload != ""
		}
	}
	return "", false
}

// Tools lists the set's tools in the order in which they are advertised.
func (s Set) Tools() []Tool {
	var tools []Tool
	for _, name := range names {
		if v, ok := s.Of(name); ok {
			tools = append(tools, published(name, v))
		}
	}
	return tools
}

// Published lists every version of every tool.
func Published() []Tool {
	var all []Tool
	for _, name := range names {
		seen := map[Version]bool{}
		for _, s := range Sets() {
			if v, ok := s.Of(name); ok && !seen[v] {
				seen[v] = true
				all = append(all, published(name, v))
			}
		}
	}
	return all
}

// AtLeast reports whether v is w or newer.
func (v Version) AtLeast(w Version) bool {
	order := []Version{V100, V110, V170, V180, V190}
	return slices.Index(order, v) >= slices.Index(order, w)
}

//go:embed schema/*.json
var schemas embed.FS

func published(name string, v Version) Tool {
	body, err := schemas.ReadFile("schema/" + name + "-" + string(v) + ".json")
	if err != nil {
		panic("contract: " + err.Error()) // a version in the table without its file; every test would see it
	}
	t := Tool{Name: name, Version: v, Schema: body, ReadOnly: name != Act && name != Upload}
	t.Title, t.Description = describe(name, v)
	return t
}
