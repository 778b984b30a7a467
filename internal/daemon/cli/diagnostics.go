package cli

import (
	"fmt"
	"strings"

	"github.com/chaperone-agents/chaperone/client"
)

// diagnosticsCommand prints the phases of the newest calls; they hold no word
// of a page (OPD-01 to OPD-03).
type diagnosticsCommand struct {
	Limit int  `help:"How many calls, 1 to 200." default:"50"`
	JSON  bool `help:"Print JSON."`
}

func (c *diagnosticsCommand) Run(e *environment) error {
	conn, err := e.connect()
	if err != nil {
		return err
	}
	r, err := conn.api.ListDiagnosticsWithResponse(e.ctx, &client.ListDiagnosticsParams{Limit: &c.Limit})
	if err := check(r, err); err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(r.JSON200)
	}
	return e.table("ENDED\tTOOL\tOUTCOME\tMS\tPHASES", func(row func(...string)) {
		for _, d := range r.JSON200.Calls {
			tool := "unknown"
			if d.Tool != nil {
				tool = string(*d.Tool)
			}
			row(when(&d.EndedAt), tool, outcome(d.Outcome, d.Failure), fmt.Sprint(d.ElapsedMs), phases(d))
		}
	})
}

// phases is one cell, such as "prepare 1, dispatch 210 (transport)".
func phases(d client.CallDiagnostics) string {
	var out []string
	for _, p := range d.Phases {
		one := fmt.Sprint(p.Phase, " ", p.ElapsedMs)
		if p.Failure != nil {
			one += " (" + string(*p.Failure) + ")"
		}
		out = append(out, one)
	}
	if d.Truncated {
		out = append(out, "more")
	}
	return strings.Join(out, ", ")
}

// outcome is the failure's category, or that there was none.
func outcome(o client.PhaseOutcome, failure *client.FailureCategory) string {
	if failure != nil {
		return string(*failure)
	}
	return string(o)
}
