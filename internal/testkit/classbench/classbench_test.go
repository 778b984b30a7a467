package main

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/rules/consequence"
)

// The readers find the messages of each format (CLS-01).
func TestReaders(t *testing.T) {
	dir := t.TempDir()
	po := filepath.Join(dir, "sale", "locale", "de.po")
	if err := os.MkdirAll(filepath.Dir(po), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file, text string
		read       func(path, lang string) (messages, error)
		lang, key  string
		want       string
	}{
		{"a.json", `{"@metadata":{"authors":[]},"cancel":"Abbrechen","plural":["a","b"]}`, readJSON, "de", "cancel", "Abbrechen"},
		{"a.yml", "de:\n  date:\n    names: [~, Januar]\n  twice: first\n  twice: second\n", readYAML, "de", "date.names.1", "Januar"},
		{"b.yml", "de:\n  twice: first\n  twice: second\n", readYAML, "de", "twice", "second"},
		{"a.inc", "<?php\n$labels['save'] = 'Speichern';\n$labels['it'] = 'it\\'s';\n", readPHP, "de", "it", "it's"},
		{"b.inc", "$labels['both'] = \"it's\";\n", readPHP, "de", "both", "it's"},
		{"sale/locale/de.po", "msgctxt \"button:x\"\nmsgid \"Pay\"\nmsgstr \"Zahlen\"\n", readPO, "de", "sale/button:x", "Zahlen"},
		{"sale/locale/fr.po", "msgctxt \"button:x\"\nmsgid \"Pay\"\nmsgstr \"Payer\"\n", readPO, "en", "sale/button:x", "Pay"},
	} {
		file := filepath.Join(dir, filepath.FromSlash(c.file))
		if err := os.WriteFile(file, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		lang := c.lang
		if strings.HasSuffix(c.file, "fr.po") {
			lang = "fr"
		}
		got, err := c.read(file, lang)
		if err != nil || got[c.lang][c.key] != c.want {
			t.Errorf("%s: %v, %v", c.file, got, err)
		}
	}
}

// Every pattern of the mapping is one, stands once, and belongs to a set that
// is read.
func TestMapping(t *testing.T) {
	names := []string{"miniflux"}
	for _, s := range sets {
		names = append(names, s.name)
	}
	seen := map[string]bool{}
	for _, r := range rules {
		if !slices.Contains(names, r.set) || !slices.Contains(consequence.All(), r.class) {
			t.Errorf("a rule for %s and %s", r.set, r.class)
		}
		for p := range strings.FieldsSeq(r.patterns) {
			if _, err := path.Match(p, "x"); err != nil {
				t.Errorf("%s: %v", p, err)
			}
			if seen[r.set+p] {
				t.Errorf("%s has %s twice", r.set, p)
			}
			seen[r.set+p] = true
		}
	}
	for key, want := range map[string]consequence.Consequence{
		"mediawiki:delete": consequence.Destructive, "redmine:date.month_names.3": consequence.Unknown, "miniflux:menu.edit_feed": consequence.SecurityChange,
	} {
		if got, ok := classOf(key); !ok || got != want {
			t.Errorf("%s: %s %v", key, got, ok)
		}
	}
	if got, ok := classOf("mediawiki:nothing-of-this-name"); ok {
		t.Errorf("an unlisted key is %s", got)
	}
}

// What is measured are labels, each once, in the right half; and the sums say
// what was counted.
func TestLabelsAndSums(t *testing.T) {
	c := collector{texts: map[string]map[string]string{
		"mediawiki:delete":  {"en": "Delete", "de": "Löschen", "fr": "Delete", "pt": "Eliminar", "pt-br": "eliminar", "es": "Borrar $1"},
		"roundcube:delete":  {"en_US": "Delete", "de_DE": "Wegmachen"},
		"mediawiki:monday":  {"en": "Monday", "de": "Kontotag"},
		"mediawiki:unknown": {"en": "Nothing"},
		"mediawiki:help":    {"en": strings.Repeat("long ", 20)},
	}}
	labels := c.labels()
	var got []string
	for _, l := range labels {
		got = append(got, l.lang+" "+strings.ToLower(l.text))
		if l.tuning != tuning(l.key) {
			t.Errorf("%v is in the other half", l)
		}
	}
	want := []string{"de löschen", "de kontotag", "de wegmachen", "en delete", "en monday", "pt eliminar"}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	var all, alarms, named int
	for at, n := range measure(labels) {
		all += n.all
		if at.class.Named() {
			named += n.named
		} else {
			alarms += n.named
		}
	}
	if all != 6 || named != 3 || alarms != 1 {
		t.Errorf("%d labels, %d gated, %d false alarms", all, named, alarms)
	}
	halves := map[bool]int{}
	for _, r := range rules {
		for p := range strings.FieldsSeq(r.patterns) {
			halves[tuning(r.set+":"+p)]++
		}
	}
	if 3*halves[true] < 2*halves[false] || 3*halves[false] < 2*halves[true] {
		t.Errorf("the halves are %v", halves)
	}
}
