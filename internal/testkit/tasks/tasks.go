// Package tasks is the twelve component tasks: pages, a reader that goes on
// the way a model would, and a server that counts what really happened
// (CTASK-01, CTASK-02). No model is called. A task passes only if its server
// got exactly the expected effects with the expected payloads; that an input
// was dispatched says nothing.
package tasks

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
)

// Host serves every fixture.
const Host = "tasks.practice.example"

// Task is one entry of the manifest.
type Task struct {
	ID      string   `json:"id"`
	Fixture string   `json:"fixture"`
	Role    string   `json:"role"`
	Target  string   `json:"target"`  // accessible name
	Effects []string `json:"effects"` // bodies that the server must get, in order, and no other
	Budget  int      `json:"budget"`  // bytes of one answer
}

//go:embed manifest.json
var manifest []byte

// All reads the manifest.
func All() ([]Task, error) {
	var m struct {
		Version int    `json:"version"`
		Kind    string `json:"kind"`
		Tasks   []Task `json:"tasks"`
	}
	if err := json.Unmarshal(manifest, &m); err != nil {
		return nil, err
	}
	if m.Version != 1 || m.Kind != "scripted_browser_component_tasks" {
		return nil, fmt.Errorf("tasks: the manifest is of kind %s, version %d", m.Kind, m.Version)
	}
	return m.Tasks, nil
}

// Report is what is known of one run of a task. It has no text of a page.
type Report struct {
	ID           string `json:"id"`
	Verified     bool   `json:"verified"`
	Observations int    `json:"observations"`
	Actions      int    `json:"actions"`
	Effects      int    `json:"effects"`
	Budget       int    `json:"budget"`
	Largest      int    `json:"largest_answer"`
	Milliseconds int64  `json:"ms"`
}

// Verify holds what the server got against the task, whatever the driver of
// the task believes.
func (t Task) Verify(got []string) error {
	if !slices.Equal(got, t.Effects) {
		return fmt.Errorf("tasks: %s had the effects %q, want %q", t.ID, got, t.Effects)
	}
	return nil
}

// Complete reports which tasks of the manifest have no verified report.
func Complete(all []Task, reports []Report) error {
	var missing []string
	for _, t := range all {
		ok := slices.ContainsFunc(reports, func(r Report) bool {
			return r.ID == t.ID && r.Verified && r.Effects == len(t.Effects) && r.Budget == t.Budget
		})
		if !ok {
			missing = append(missing, t.ID)
		}
	}
	if len(all) != 12 || len(missing) > 0 {
		return fmt.Errorf("tasks: %d tasks, not verified: %q", len(all), missing)
	}
	return nil
}
