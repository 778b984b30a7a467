package mcpserver_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
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
	b := newBench(t, 0)
	for _, set := range contract.Sets() {
		_, credential := b.agentWith(caller.Agent, set)
		list, err := b.overHTTP(credential, nil).ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != 3 {
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
