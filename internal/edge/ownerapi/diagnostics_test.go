package ownerapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/client"
	"github.com/chaperone-agents/chaperone/internal/app/broker"
	"github.com/chaperone-agents/chaperone/internal/app/owner"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
)

// OPD-01 to OPD-04, G11: the owner reads the phases of their own calls, whole
// and bounded; an agent and another owner read none of them.
func TestDiagnostics(t *testing.T) {
	h := newHouse(t)
	now := time.Now().UTC().Truncate(time.Second)
	h.calls[ana.Scope] = []broker.Diagnostics{
		{Version: 1, EndedAt: now, Category: broker.InvalidArguments},
		{Version: 1, Tool: action.Act, EndedAt: now, ElapsedMS: 215, Truncated: true, Category: broker.UnknownOutcome, Phases: []broker.Span{
			{Phase: broker.PhasePrepare, Placement: broker.Orchestrator, ElapsedMS: 1},
			{Phase: broker.PhasePermit, Placement: broker.Database, ElapsedMS: 4},
			{Phase: broker.PhaseDispatch, Placement: broker.Isolated, Category: broker.UnknownOutcome, ElapsedMS: 210},
		}},
	}
	stamp := now.Format(time.RFC3339)
	first := `{"elapsed_ms":0,"ended_at":"` + stamp + `","failure":"invalid_arguments","outcome":"failed","phases":[],"truncated":false,"version":1}`
	second := `{"elapsed_ms":215,"ended_at":"` + stamp + `","failure":"outcome_unknown","outcome":"failed","phases":[` +
		`{"elapsed_ms":1,"outcome":"succeeded","phase":"prepare","placement":"orchestrator"},` +
		`{"elapsed_ms":4,"outcome":"succeeded","phase":"permit","placement":"database"},` +
		`{"elapsed_ms":210,"failure":"outcome_unknown","outcome":"failed","phase":"dispatch","placement":"isolated"}],` +
		`"tool":"browser.act","truncated":true,"version":1}`
	all, err := h.api.ListDiagnosticsWithResponse(t.Context(), nil)
	h.status("list", err, all.StatusCode(), 200, all.Body)
	if got := strings.TrimSpace(string(all.Body)); got != `{"calls":[`+first+`,`+second+`]}` {
		t.Errorf("%s", got)
	}
	one := 1
	last, err := h.api.ListDiagnosticsWithResponse(t.Context(), &client.ListDiagnosticsParams{Limit: &one})
	h.status("last", err, last.StatusCode(), 200, last.Body)
	if got := strings.TrimSpace(string(last.Body)); got != `{"calls":[`+second+`]}` {
		t.Errorf("%s", got)
	}
	others, err := h.client(h.pair(ben)).ListDiagnosticsWithResponse(t.Context(), nil)
	h.status("another owner", err, others.StatusCode(), 200, others.Body)
	if got := strings.TrimSpace(string(others.Body)); got != `{"calls":[]}` {
		t.Errorf("another owner reads %s", got)
	}
	_, agent, err := h.owner.CreateSession(t.Context(), ana, owner.NewSession{Origins: []string{wiki}})
	if err != nil {
		t.Fatal(err)
	}
	refused := h.raw("GET", "/v1/diagnostics", "", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+agent.Reveal()) })
	if refused.status != 403 || strings.Contains(refused.body, "elapsed") {
		t.Errorf("an agent reads %d %s", refused.status, refused.body)
	}
}

// The contract's lists are the broker's own: a phase, placement or category
// that is added there has to be added here.
func TestDiagnosticsListsAreClosed(t *testing.T) {
	for i := range 16 {
		if p := client.PhaseDiagnosticsPhase(broker.Phase(i).String()); p.Valid() != (p != "unknown") {
			t.Errorf("phase %q", p)
		}
		if p := client.PhaseDiagnosticsPlacement(broker.Placement(i).String()); p.Valid() != (p != "unknown") {
			t.Errorf("placement %q", p)
		}
		if c := client.FailureCategory(broker.Category(i).String()); c.Valid() != (c != "unknown" && c != "none") {
			t.Errorf("category %q", c)
		}
	}
}
