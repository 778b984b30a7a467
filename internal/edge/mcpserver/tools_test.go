package mcpserver_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/chaperone-agents/chaperone/internal/app/broker"
	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
)

// TOOL-01 to TOOL-04, TOOL-07, GOAL-03: both doors offer exactly the tools,
// under either spelling, and none that approves or selects anything.
func TestToolsAndSpelling(t *testing.T) {
	b := newBench(t, 0)
	_, credential := b.agent(caller.Agent)
	_, second := b.agent(caller.Agent)
	for name, c := range map[string]struct {
		session *mcp.ClientSession
		want    string
	}{
		"http":  {b.overHTTP(credential, nil), "browser.navigate browser.observe browser.act"},
		"stdio": {b.overStdio(second, "?tool-names=underscore", nil), "browser_navigate browser_observe browser_act"},
	} {
		list, err := c.session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, tool := range list.Tools {
			got[tool.Name] = true
			for _, secretive := range []string{"profile", "tenant", "principal", "grant", "cookie", "credential", "selector", "script"} {
				if strings.Contains(asJSON(t, tool.InputSchema), `"`+secretive) {
					t.Errorf("%s: the schema of %s names %q", name, tool.Name, secretive)
				}
			}
		}
		for _, want := range strings.Fields(c.want) {
			if !got[want] || len(got) != 3 {
				t.Errorf("%s: tools %v, want %s", name, got, c.want)
			}
		}
	}
}

// TOOL-10, TOOL-11, PAGE-09: a session is offered the versions that it began
// with, and the newest list stays small.
func TestToolsOfTheSession(t *testing.T) {
	b := newBenchWith(t, 0, func(c *broker.Config) { c.Images = album{} })
	for _, set := range contract.Sets() {
		_, credential := b.agentWith(caller.Agent, set)
		list, err := b.overHTTP(credential, nil).ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != len(set.Tools()) {
			t.Fatalf("%d tools, %v", len(list.Tools), err)
		}
		for _, want := range set.Tools() {
			var schema any
			if err := json.Unmarshal(want.Schema, &schema); err != nil {
				t.Fatal(err)
			}
			for _, got := range list.Tools {
				if got.Name == want.Name && (asJSON(t, got.InputSchema) != asJSON(t, schema) || got.Description != want.Description) {
					t.Errorf("%s: %s is not version %s", set, got.Name, want.Version)
				}
			}
		}
		if n := len(asJSON(t, list)); set == contract.Newest && n > 8000 {
			t.Errorf("the list of tools has %d bytes", n)
		} else {
			t.Logf("%s: the list of tools has %d bytes", set, n)
		}
	}
}

// album is the images of every session.
type album []artifact.Image

func (a album) Usable(context.Context, caller.Caller) ([]artifact.Image, error) { return a, nil }
func (a album) Resolve(context.Context, caller.Caller, string) (artifact.Payload, bool, error) {
	return artifact.Payload{}, false, nil
}

// UPL-02: an agent is told the identifiers of its images, when it connects and
// when it names another.
func TestAgentsLearnIdentifiers(t *testing.T) {
	images := album{{ID: "3f0c1f9e-6a34-4b57-9a52-0d6c0c1f2a3b"}, {ID: "5e1d9a77-14de-4c9e-8b5f-0c6b3f6f7a11"}}
	b := newBenchWith(t, 0, func(c *broker.Config) { c.Images = images })
	_, credential := b.agent(caller.Agent)
	_, second := b.agent(caller.Agent)
	for name, session := range map[string]*mcp.ClientSession{"http": b.overHTTP(credential, nil), "stdio": b.overStdio(second, "", nil)} {
		about := session.InitializeResult().Instructions
		r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "browser.upload", Arguments: map[string]string{
			"image_id": "00000000-0000-4000-8000-000000000000", "expected_revision": "r", "ref": "r:1"}})
		if err != nil || !r.IsError {
			t.Fatalf("%s: %+v, %v", name, r, err)
		}
		for _, i := range images {
			if !strings.Contains(about, i.ID) || !strings.Contains(asJSON(t, r), i.ID) {
				t.Errorf("%s: %s is not in %q or not in %s", name, i.ID, about, asJSON(t, r))
			}
		}
	}
}
