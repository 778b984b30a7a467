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
	"sync"
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

// bench is one `chaperone up` and the hostile site.
type bench struct {
	person product.Person
	stage  stage
	dir    string
	site   *hostilesite.Site
	data   string
	run    *product.Running

	mu     sync.Mutex
	agents []*product.Agent
	tried  []tried
}

// tried is an act, to be judged again when all is over.
type tried struct {
	name, id, code string
	silent         bool
}

// lane is one agent after another, each with a browser of its own. A lane is
// for one test at a time.
type lane struct {
	*bench
	stage stage
	agent *product.Agent
}

// begin starts the programs if they do not run.
func (b *bench) begin(t testing.TB) {
	t.Helper()
	if b.run != nil {
		return
	}
	b.stage.TB = t
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
func (l *lane) open(t testing.TB, address string) product.Answer {
	t.Helper()
	l.stage.TB = t
	var v product.Answer
	for range 2 {
		if l.agent == nil {
			l.agent = l.person.Agent(&l.stage, l.data, "--ephemeral", "--origin", practice.URL(hostilesite.Host, ""))
			l.mu.Lock()
			l.agents = append(l.agents, l.agent)
			l.mu.Unlock()
		}
		if v = l.agent.Call("browser.navigate", map[string]string{"url": address}); v.Code == "" {
			return v
		}
		l.agent.Close()
		l.agent = nil
	}
	t.Fatalf("open %s: %s %s", address, v.Code, v.Message)
	return v
}

// end ends the lane's agent.
func (l *lane) end() {
	for _, f := range slices.Backward(l.stage.undo) {
		f()
	}
	l.agent, l.stage.undo = nil, nil
}

// close ends all, and says what was wrong from first to last: forbidden
// connections, secrets in what was given out or kept, effects that came late.
func (b *bench) close() []error {
	if b.run == nil {
		return nil
	}
	found := b.late()
	for _, f := range slices.Backward(b.stage.undo) {
		f()
	}
	found = append(found, b.stage.failed...)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if left, err := leak.Survivors(ctx, leak.ByMarker(b.dir)); err != nil || len(left) > 0 {
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

// do opens a page, gets the act approved, lets the page change, and acts; then
// once more with the same yes, unless nothing was sent. It returns the answer
// and the page's number.
func (l *lane) do(t testing.TB, body, later string, kind, target string, more map[string]any) (product.Answer, string) {
	t.Helper()
	id, address := l.site.Page(body, later)
	page := l.open(t, address)
	args := map[string]any{"kind": kind, "expected_revision": page.Revision, "ref": find(t, page, target)}
	for k, v := range more {
		args[k] = v
	}
	act := func() product.Answer { return l.agent.Call("browser.act", args) }
	answer := act()
	if answer.Approval == nil {
		return answer, id
	}
	if got := l.person.Run(t, l.data, "approvals", "approve", answer.Approval.ID); got.Status != 0 {
		t.Fatalf("approve: %s", got.Err)
	}
	if later != "" {
		if err := l.site.Change(id, patience); err != nil {
			t.Fatal(err)
		}
	}
	answer = act()
	if answer.Code == "" || hostilesite.Sent(answer.Code) {
		if again := act(); again.Code == "" {
			t.Errorf("one yes was used twice: %q, then done", answer.Code)
		}
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
func (l *lane) verdict(t testing.TB, name, id string, answer product.Answer, silent bool) error {
	t.Helper()
	if answer.Code == "" && !silent {
		l.site.Await(id, patience, func(words []string) bool { return slices.Contains(words, hostilesite.OK) })
	}
	_, end := l.site.Page("<h1>End</h1>", "")
	l.open(t, end)
	l.mu.Lock()
	l.tried = append(l.tried, tried{name, id, answer.Code, silent})
	l.mu.Unlock()
	return hostilesite.Judge(answer.Code, l.site.Effects(id), silent)
}
