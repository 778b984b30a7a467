package product_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/testkit/leak"
	"github.com/chaperone-agents/chaperone/internal/testkit/practice"
	"github.com/chaperone-agents/chaperone/internal/testkit/product"
)

var (
	desk    = practice.URL(practice.Desk, "")
	tickets = practice.URL(practice.Desk, "/tickets")
)

func TestMain(m *testing.M) {
	status := m.Run()
	if err := errors.Join(product.Clean(), os.RemoveAll(shared.dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(status)
}

// profile creates a profile for the desk, and further origins, and returns its id.
func profile(t *testing.T, r *product.Running, more ...string) string {
	t.Helper()
	var created struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	}
	args := []string{"profile", "create", "--json", "--origin", desk}
	for _, origin := range more {
		args = append(args, "--origin", origin)
	}
	r.Must(&created, args...)
	if created.ID == "" || created.Status != "authentication_required" {
		t.Fatalf("created %+v", created)
	}
	return created.ID
}

// openTicket brings an agent to the form of a new ticket with a title typed,
// which takes the owner's approval.
func newTicket(t *testing.T, r *product.Running, a *product.Agent, title string) product.Answer {
	t.Helper()
	form := a.Open(practice.URL(practice.Desk, "/tickets/new"))
	return approve(t, r, a, form, "type", "Title", map[string]any{"value": title})
}

// approve lets the owner approve an act of the agent through the command line.
func approve(t *testing.T, r *product.Running, a *product.Agent, on product.Answer, kind, name string, more map[string]any) product.Answer {
	t.Helper()
	asked := a.Act(on, kind, name, more)
	if asked.Code != "approval_pending" || asked.Approval == nil {
		t.Fatalf("%s %s: %+v", kind, name, asked)
	}
	r.Must(nil, "approvals", "approve", asked.Approval.ID)
	done := a.Act(on, kind, name, more)
	if done.Code != "" {
		t.Fatalf("%s %s after the approval: %s %s", kind, name, done.Code, done.Message)
	}
	return done
}

// The main job through the real programs: sign in once, read and write with
// the owner's consent, restart, still signed in, revoke, gone. Every effect is
// read from the site's own record (GATE-01, GATE-03, GATE-05, GATE-06,
// GATE-08, GATE-09, ACC-03, ACC-06, CER-05, PSM-10, PSM-11, READY-04).
func TestMainJob(t *testing.T) {
	site := product.Practice(t)
	dev := product.DevFile(t, site, "")
	data := product.Folder(t)
	r := product.Up(t, data, "--dev", dev, "--approval-wait", "0s")
	id := profile(t, r)
	if got := product.Run(t, data, "mcp", "--profile", id); got.Status == 0 {
		t.Error("an agent got a profile that nobody signed in to")
	}
	r.SignIn(site, id)

	agent := product.NewAgent(t, data, "--profile", id)
	list := agent.Open(tickets)
	if list.Title == "" || list.URL != tickets {
		t.Fatalf("not signed in: %+v", list)
	}

	before := len(site.Tickets())
	typed := newTicket(t, r, agent, "Printer on fire")
	if n := len(site.Tickets()); n != before {
		t.Fatalf("%d tickets before saving", n-before)
	}
	asked := agent.Act(typed, "click", "Save ticket", nil)
	r.Must(nil, "approvals", "deny", asked.Approval.ID, "--reason", "not now")
	if denied := agent.Act(typed, "click", "Save ticket", nil); denied.Code != "approval_denied" || len(site.Tickets()) != before {
		t.Fatalf("denied: %+v, %d tickets", denied, len(site.Tickets())-before)
	}
	again := agent.Call("browser.observe", struct{}{})
	if stale := agent.Act(typed, "click", "Save ticket", nil); stale.Code != "tool.browser.page_changed" || len(site.Tickets()) != before {
		t.Fatalf("stale: %+v", stale)
	}
	saved := approve(t, r, agent, again, "click", "Save ticket", nil)
	made := site.Effects(practice.TicketCreated)
	if len(made) != 1 || made[0].Detail != "Printer on fire" || len(site.Tickets()) != before+1 {
		t.Fatalf("effects %+v, %d new tickets; the page says %+v", made, len(site.Tickets())-before, saved)
	}
	if off := agent.Call("browser.navigate", map[string]string{"url": practice.URL(practice.Elsewhere, "/")}); off.Code != "tool.browser.url_disallowed" {
		t.Errorf("off-origin: %+v", off)
	}
	if c := site.Connections(practice.Elsewhere); len(c) != 0 {
		t.Errorf("%d connections off the origin", len(c))
	}
	agent.Close()

	family := r.Family()
	r.Stop()
	first := r.Log.String()
	leak.NoProcess(t, 30*time.Second, family)
	r = product.Up(t, data, "--dev", dev, "--approval-wait", "0s")
	agent = product.NewAgent(t, data, "--profile", id)
	mark := site.Mark()
	if v := agent.Open(tickets); v.URL != tickets {
		t.Fatalf("after a restart: %+v", v)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := site.WaitEffect(ctx, practice.DeviceKnown, mark); err != nil {
		t.Errorf("localStorage did not come back: %v", err)
	}

	mark = site.Mark()
	r.Must(nil, "profile", "revoke", id)
	agent.Ends()
	if again, err := (product.Person{}).TryAgent(t, data, "--profile", id); err == nil {
		t.Error("an agent got a revoked profile")
	} else if !strings.Contains(again.Log.String(), "revoked") {
		t.Errorf("refused with %s", again.Log)
	}
	if site.Mark() != mark {
		t.Error("the site was visited after the revocation")
	}
	r.Must(nil, "profile", "delete", id)
	if left := seals(t, data); len(left) != 0 {
		t.Errorf("sealed material is left: %v", left)
	}
	if got := product.Run(t, data, "profile", "show", id); got.Status != 3 {
		t.Errorf("a deleted profile answers with status %d: %s", got.Status, got.Err)
	}
	agent.Close()
	r.Stop()
	// ACC-03, STORE-02: nothing that was ever written holds a password, a code,
	// a cookie or a storage value.
	leak.NoSecret(t, site.Secrets(), data)
	for _, s := range site.Secrets() {
		if strings.Contains(r.Log.String()+first+agent.Log.String(), s) {
			t.Error("a log holds a secret")
		}
	}
}

func seals(t *testing.T, data string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(data, "profiles", "*.profile"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// `chaperone mcp --ephemeral --dev` works alone, and leaves nothing behind
// (EPH-01, EPH-02).
func TestEphemeralAlone(t *testing.T) {
	product.Bin(t) // built where it stays
	private := filepath.Dir(product.Folder(t))
	if err := os.Chmod(private, 0o755); err != nil { // the worker is another user
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", private) // other tests have folders in the common one, and come and go
	site := product.Practice(t)
	dev := product.DevFile(t, site, "approve_all: true")
	before := folders(t)
	agent := product.NewAgent(t, product.Folder(t), "--ephemeral", "--dev", dev, "--origin", desk, "--tool-names", "underscore")
	page := agent.Call("browser_navigate", map[string]string{"url": practice.URL(practice.Desk, "/signin")})
	if page.Code != "" || page.Title == "" || len(page.Elements) == 0 {
		t.Fatalf("page %+v", page)
	}
	agent.Close()
	if after := folders(t); !slices.Equal(before, after) {
		t.Errorf("folders before %v, after %v", before, after)
	}
	leak.NoProcess(t, 30*time.Second, leak.ByMarker(dev))
}

func folders(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.TempDir(), "chaperone-[0-9]*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}
