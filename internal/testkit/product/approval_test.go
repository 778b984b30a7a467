package product_test

import (
	"database/sql"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite" // to move an approval's expiry, which no program offers

	"github.com/chaperone-agents/chaperone/internal/testkit/practice"
	"github.com/chaperone-agents/chaperone/internal/testkit/product"
)

// ask lets the agent ask for the order and returns the approval's id.
func ask(t *testing.T, a *product.Agent, page product.Answer) string {
	t.Helper()
	asked := a.Act(page, "click", "Send order", nil)
	if asked.Code != "approval_pending" || asked.Approval == nil || !asked.Retryable {
		t.Fatalf("asked: %+v", asked)
	}
	return asked.Approval.ID
}

// An answer counts once, in time, and for the page it was asked about; each
// effect is counted by the website (POL-02, GATE-02, GATE-07, VIEW-02).
func TestApprovals(t *testing.T) {
	shop, _, dev := newWorkshop(t)
	data := product.Folder(t)
	r := product.Up(t, data, "--dev", dev, "--approval-wait", "0s")
	agent := product.NewAgent(t, data, "--ephemeral", "--origin", shopURL)
	refused := func(id, decision string) {
		t.Helper()
		if got := product.Run(t, data, "approvals", decision, id); got.Status != 5 || got.Err == "" {
			t.Errorf("%s: status %d, %s", decision, got.Status, got.Err)
		}
	}

	page := agent.Open(shopURL + "/")
	id := ask(t, agent, page)
	if again := ask(t, agent, page); again != id {
		t.Errorf("the identical call asked again: %s after %s", again, id)
	}
	r.Must(nil, "approvals", "deny", id, "--reason", "not today")
	refused(id, "approve")
	if v := agent.Act(page, "click", "Send order", nil); v.Code != "approval_denied" {
		t.Errorf("denied: %+v", v)
	}
	shop.has(t, 0, "after a denial")

	page = agent.Open(shopURL + "/")
	id = ask(t, agent, page)
	r.Must(nil, "approvals", "approve", id)
	refused(id, "approve")
	refused(id, "deny")
	if v := agent.Act(page, "click", "Send order", nil); v.Code != "" {
		t.Errorf("approved: %+v", v)
	}
	if v := agent.Act(page, "click", "Send order", nil); v.Code == "" {
		t.Error("one yes was used twice")
	}
	shop.has(t, 1, "after one approval")

	page = agent.Open(shopURL + "/")
	id = ask(t, agent, page)
	expire(t, data, id)
	refused(id, "approve")
	id = ask(t, agent, page) // a question of its own
	r.Must(nil, "approvals", "approve", id)
	expire(t, data, id)
	if v := agent.Act(page, "click", "Send order", nil); v.Code != "approval_pending" {
		t.Errorf("an expired yes: %+v", v)
	}
	shop.has(t, 1, "after expired approvals")

	page = agent.Open(shopURL + "/changing")
	id = ask(t, agent, page)
	close(shop.change)
	within(t, time.Minute, "the change of the page", shop.changed)
	r.Must(nil, "approvals", "approve", id)
	if v := agent.Act(page, "click", "Send order", nil); v.Code != "tool.browser.element_not_found" && v.Code != "tool.browser.page_changed" {
		t.Errorf("a yes about a button that is gone: %+v", v)
	}
	shop.has(t, 1, "after the page changed")
}

// expire moves the end of an approval into the past.
func expire(t *testing.T, data, id string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(data, "chaperone.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	done, err := db.ExecContext(t.Context(), "UPDATE approvals SET expires_at = created_at + 1 WHERE id = ?", id)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := done.RowsAffected(); n != 1 || err != nil {
		t.Fatalf("%d rows, %v", n, err)
	}
}

// Chromium dies while the website holds an order: the outcome is unknown and
// said to be, nothing is sealed, and the order is never sent again (GATE-04,
// GATE-07, LEASE-08).
func TestKilledDuringAnAct(t *testing.T) {
	shop, r, id := signedIn(t)
	data := r.Data
	agent := product.NewAgent(t, data, "--profile", id)
	page := agent.Open(shopURL + "/held")
	r.Must(nil, "approvals", "approve", ask(t, agent, page))
	sealed := read(t, seals(t, data)[0])
	answer := make(chan product.Answer, 1)
	go func() { answer <- agent.Act(page, "click", "Send order", nil) }()
	within(t, time.Minute, "the order", shop.arrived)
	if err := syscall.Kill(r.Child("chromium"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case v := <-answer:
		if v.Code != "tool.browser.outcome_unknown" || v.Retryable {
			t.Errorf("answer: %+v", v)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the call did not end")
	}
	if v := agent.Act(page, "click", "Send order", nil); v.Code == "" || v.Code == "approval_pending" {
		t.Errorf("the identical call: %+v", v)
	}
	shop.has(t, 1, "after the death of the browser")
	if read(t, seals(t, data)[0]) != sealed {
		t.Error("a dead browser was sealed")
	}
	if got := product.Run(t, data, "audit", "tail", "--json"); count(got.Out, `"tool.call.uncertain"`) != 1 || count(got.Out, `"tool.call.failed"`) != 0 {
		t.Errorf("audit trail: %s", got.Out)
	}
	if v := agent.Open(practice.URL(practice.Desk, "/tickets")); v.URL != tickets { // another browser, the same sign-in
		t.Errorf("afterwards: %+v", v)
	}
	shop.has(t, 1, "at the end")
}
