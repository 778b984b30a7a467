package hostilesite_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/testkit/hostilesite"
	"github.com/chaperone-agents/chaperone/internal/testkit/leak"
	"github.com/chaperone-agents/chaperone/internal/testkit/practice"
	"github.com/chaperone-agents/chaperone/internal/testkit/product"
)

// checks is how many random pages `make test` tries.
const checks = "12"

// patience is how long what must happen is waited for.
const patience = 30 * time.Second

// shared is the programs that every test of this package uses.
var shared bench

func TestMain(m *testing.M) {
	flag.Parse()
	asked := os.Getenv("RAPID_CHECKS") != ""
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if !asked {
		if err := flag.Set("rapid.checks", checks); err != nil {
			panic(err)
		}
	}
	status := m.Run()
	for _, err := range append(shared.close(), product.Clean()) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "hostilesite:", err)
			status = 1
		}
	}
	os.Exit(status)
}

// stage is the test that is running, to programs that outlive it.
type stage struct {
	testing.TB
	undo   []func()
	failed []error
}

func (s *stage) Cleanup(f func()) { s.undo = append(s.undo, f) }

func (s *stage) Error(args ...any) { s.failed = append(s.failed, errors.New(fmt.Sprint(args...))) }

func (s *stage) Errorf(format string, args ...any) {
	s.failed = append(s.failed, fmt.Errorf(format, args...))
}

// Failed and Logf are asked after the last test.
func (s *stage) Failed() bool        { return false }
func (s *stage) Logf(string, ...any) {}

// bench is one `chaperone up`, an agent of it, and the hostile site.
type bench struct {
	person product.Person
	stage  stage
	dir    string
	site   *hostilesite.Site
	data   string
	run    *product.Running
	agent  *product.Agent
	agents []*product.Agent
	tried  []tried
}

// tried is an act, to be judged again when all is over.
type tried struct {
	name, id, code string
	silent         bool
}

// begin lends the programs to the test; they are started if they do not run.
func (b *bench) begin(t testing.TB) {
	t.Helper()
	b.stage.TB = t
	if b.run != nil {
		return
	}
	var err error
	if b.dir, err = os.MkdirTemp("", "ch-"); err != nil {
		t.Fatal(err)
	}
	if b.site, err = hostilesite.Start(); err != nil {
		t.Fatal(err)
	}
	dev, err := b.site.DevFile(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	b.data = filepath.Join(b.dir, "data")
	b.run = b.person.Up(&b.stage, b.data, "--dev", dev, "--approval-wait", "0s")
}

// open brings the agent to an address. One whose browser has not come back from
// the last page is replaced.
func (b *bench) open(address string) product.Answer {
	b.stage.Helper()
	var v product.Answer
	for range 2 {
		if b.agent == nil {
			b.agent = b.person.Agent(&b.stage, b.data, "--ephemeral", "--origin", practice.URL(hostilesite.Host, ""))
			b.agents = append(b.agents, b.agent)
		}
		if v = b.agent.Call("browser.navigate", map[string]string{"url": address}); v.Code == "" {
			return v
		}
		b.agent.Close()
		b.agent = nil
	}
	b.stage.Fatalf("open %s: %s %s", address, v.Code, v.Message)
	return v
}

// close ends all, and says what was wrong from first to last: forbidden
// connections, secrets in what was given out or kept, effects that came late.
func (b *bench) close() []error {
	if b.run == nil {
		return nil
	}
	found := b.late()
	family := leak.ByMarker(b.dir)
	for _, f := range slices.Backward(b.stage.undo) {
		f()
	}
	found = append(found, b.stage.failed...)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if left, err := leak.Survivors(ctx, family); err != nil || len(left) > 0 {
		found = append(found, fmt.Errorf("processes are left: %v %v", left, err))
	}
	egress, err := os.ReadFile(filepath.Join(b.data, "egress.jsonl"))
	if err != nil || !strings.Contains(string(egress), hostilesite.Host) {
		found = append(found, fmt.Errorf("the egress log shows nothing: %v", err))
	}
	if strings.Contains(string(egress), hostilesite.Forbidden) {
		found = append(found, errors.New("the egress log has a way to a forbidden origin"))
	}
	found = append(found, b.outputs()...)
	return append(found, b.site.Close(), os.RemoveAll(b.dir))
}

// late judges every act once more, after all that could still arrive.
func (b *bench) late() (found []error) {
	for _, c := range b.tried {
		if err := hostilesite.Judge(c.code, b.site.Effects(c.id), c.silent); err != nil {
			found = append(found, fmt.Errorf("%s, in the end: %w", c.name, err))
		}
	}
	if c := b.site.Connections(hostilesite.Forbidden); len(c) != 0 {
		found = append(found, fmt.Errorf("%d connections to a forbidden origin", len(c)))
	}
	return found
}

// outputs looks for secrets in everything that was given out or written.
func (b *bench) outputs() (found []error) {
	said := b.run.Log.String()
	for _, a := range b.agents {
		said += a.Log.String() + a.Wire.String()
	}
	if err := os.WriteFile(filepath.Join(b.dir, "said"), []byte(said), 0o600); err != nil {
		return []error{err}
	}
	hits, err := leak.Find(context.Background(), b.dir, b.site.Secrets())
	for _, h := range hits {
		found = append(found, errors.New(h.String()))
	}
	return append(found, err)
}

// do opens a page, gets the act approved, lets the page change, acts, and acts
// once more with the same yes. It returns the answer and the page's number.
func (b *bench) do(t testing.TB, body, later string, kind, target string, more map[string]any) (product.Answer, string) {
	t.Helper()
	b.begin(t)
	id, address := b.site.Page(body, later)
	page := b.open(address)
	args := map[string]any{"kind": kind, "expected_revision": page.Revision, "ref": find(t, page, target)}
	for k, v := range more {
		args[k] = v
	}
	act := func() product.Answer { return b.agent.Call("browser.act", args) }
	answer := act()
	if answer.Approval != nil {
		if got := b.person.Run(t, b.data, "approvals", "approve", answer.Approval.ID); got.Status != 0 {
			t.Fatalf("approve: %s", got.Err)
		}
		if later != "" {
			if err := b.site.Change(id, patience); err != nil {
				t.Fatal(err)
			}
		}
		answer = act()
	}
	if again := act(); again.Code == "" {
		if answer.Code == "" || answer.Code == "tool.browser.outcome_unknown" {
			t.Errorf("one yes was used twice: %q, then done", answer.Code)
		}
		answer = again // what was refused for the moment is still approved
	}
	return answer, id
}

// find is the reference of the only control with the name.
func find(t testing.TB, page product.Answer, name string) string {
	t.Helper()
	var refs []string
	for _, e := range page.Elements {
		if e.Name == name {
			refs = append(refs, e.Ref)
		}
	}
	if len(refs) != 1 {
		said, _ := json.Marshal(page.Elements)
		t.Fatalf("%d controls %q in %s", len(refs), name, said)
	}
	return refs[0]
}

// verdict waits for an effect that was said, leaves the page, and judges.
func (b *bench) verdict(name, id string, answer product.Answer, silent bool) error {
	if answer.Code == "" && !silent {
		b.site.Await(id, patience, func(words []string) bool { return slices.Contains(words, hostilesite.OK) })
	}
	_, end := b.site.Page("<h1>End</h1>", "")
	b.open(end)
	b.tried = append(b.tried, tried{name, id, answer.Code, silent})
	return hostilesite.Judge(answer.Code, b.site.Effects(id), silent)
}
