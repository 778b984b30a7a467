package isolated

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/browser/egress"
)

// PROXY-01: one private JSON line per decision, appended over restarts, with
// one older file kept.
func TestEgressLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "egress.jsonl")
	l := openLog(t, path)
	write(t, l)
	l.Close()
	l = openLog(t, path)
	write(t, l)
	body, err := os.ReadFile(path)
	if err != nil || strings.Count(string(body), "\n") != 2 {
		t.Fatalf("%v\n%s", err, body)
	}
	for line := range strings.Lines(string(body)) {
		var d map[string]any
		if err := json.Unmarshal([]byte(line), &d); err != nil || len(d) == 0 {
			t.Errorf("%v: %s", err, line)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	l.size = maxEgressLog + 1
	write(t, l)
	old, err := os.ReadFile(path + ".1")
	now, err2 := os.ReadFile(path)
	if err != nil || err2 != nil || string(old) != string(body) || strings.Count(string(now), "\n") != 1 {
		t.Errorf("set aside: %v, %v\n%s---\n%s", err, err2, old, now)
	}
	l.Close()
	if err := l.Write(egress.Decision{}); err == nil {
		t.Error("a decision that is not in the file was let out")
	}
}

func openLog(t *testing.T, path string) *egressLog {
	t.Helper()
	l, err := openEgressLog(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func write(t *testing.T, l *egressLog) {
	t.Helper()
	if err := l.Write(egress.Decision{}); err != nil {
		t.Fatal(err)
	}
}

// HCP-01: a configuration with a gap starts nothing.
func TestRunRefusesAnIncompleteConfiguration(t *testing.T) {
	dir := t.TempDir()
	whole := Config{Socket: dir + "/s", ServiceCredential: dir + "/c", Keys: dir + "/k", Profiles: dir + "/p", EgressLog: dir + "/e", Log: slog.New(slog.DiscardHandler)}
	for name, gap := range map[string]func(*Config){
		"socket":     func(c *Config) { c.Socket = "relative" },
		"credential": func(c *Config) { c.ServiceCredential = "" },
		"keys":       func(c *Config) { c.Keys = "" },
		"profiles":   func(c *Config) { c.Profiles = "" },
		"egress":     func(c *Config) { c.EgressLog = "" },
		"no files":   func(*Config) {}, // without Create there is no credential to read
	} {
		c := whole
		gap(&c)
		if err := Run(t.Context(), c, nil); err == nil {
			t.Errorf("%s: it ran", name)
		}
	}
	if left, err := filepath.Glob(dir + "/*"); err != nil || len(left) != 0 {
		t.Errorf("made %v, %v", left, err)
	}
}
