package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/app/broker"
	"github.com/chaperone-agents/chaperone/internal/app/notify"
	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser/fake"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
	"github.com/chaperone-agents/chaperone/internal/rules/projection"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
	"github.com/chaperone-agents/chaperone/internal/store"
	"github.com/chaperone-agents/chaperone/internal/store/sqlite"
)

const home = "https://desk.practice.example/"

// bench is a broker over SQLite and the fake web, with one ready profile and
// one agent session.
type bench struct {
	store   store.Store
	world   *fake.World
	service *fake.Service
	hub     *notify.Hub
	broker  *broker.Broker
	agent   caller.Caller
	profile string
	clock   *clock
}

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }
func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// newBench builds a bench; wrap may put a faulty store between the broker and
// the real one, and change the configuration.
func newBench(t testing.TB, wrap func(store.Store) store.Store, change func(*broker.Config)) *bench {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	real, err := sqlite.Open(sqlite.Config{Path: filepath.Join(t.TempDir(), "data", "test.db"), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { real.Close() })
	b := &bench{store: real, world: &fake.World{}, hub: notify.New(), clock: &clock{now: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)}}
	b.service = &fake.Service{World: b.world, Now: b.clock.Now}
	b.world.Put(home, fake.Doc{Title: "Desk", Text: "Tickets", Controls: []fake.Control{
		{Role: "button", Name: "Save"},
		{Role: "textbox", Name: "Subject", Field: observe.FieldText},
		{Role: "textbox", Name: "Password", Field: observe.FieldPassword},
	}})
	scope := caller.Scope{Tenant: "local", Principal: "owner"}
	origins, err := site.ParseOrigins([]string{home})
	if err != nil {
		t.Fatal(err)
	}
	b.profile = ident.New()
	made, err := b.service.Provision(t.Context(), scope, b.profile, origins)
	if err != nil {
		t.Fatal(err)
	}
	session := run.Session{Scope: scope, ID: ident.New(), ProfileID: b.profile, Origins: origins, Contract: contract.Newest, CreatedAt: b.clock.Now()}
	err = real.Tx(t.Context(), scope, func(tx store.Tx) error {
		p, err := profile.Reserve(scope, b.profile, origins, b.clock.Now()).Bind(made.ProviderName, made.ProviderRef, made.KeyVersion, b.clock.Now())
		if err == nil {
			p, err = p.To(profile.Ready, b.clock.Now())
		}
		return errors.Join(err, tx.InsertProfile(p), tx.InsertSession(session))
	})
	if err != nil {
		t.Fatal(err)
	}
	b.agent = caller.Caller{Scope: scope, Device: ident.Hex(16), Role: caller.Agent, Session: session.ID}
	var seen store.Store = real
	if wrap != nil {
		seen = wrap(real)
	}
	config := broker.Config{
		Store: seen, Service: b.service, Hub: b.hub, ApprovalURL: func(id string) string { return "http://127.0.0.1:8787/#approval=" + id },
		Now: b.clock.Now, Log: log,
	}
	if change != nil {
		change(&config)
	}
	if b.broker, err = broker.New(config); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) call(tool action.Tool, args any) (projection.View, error) {
	body, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return b.broker.Call(context.Background(), b.agent, tool, body, nil)
}

func (b *bench) open(t testing.TB) projection.View {
	t.Helper()
	v, err := b.call(action.Navigate, map[string]string{"url": home})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// act is the arguments of an act on the control with the name.
func act(v projection.View, kind, name string, more ...any) map[string]any {
	args := map[string]any{"kind": kind, "expected_revision": v.Revision, "ref": "none"}
	for _, e := range v.Elements {
		if e.Name == name {
			args["ref"] = e.Ref
		}
	}
	for i := 0; i+1 < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	return args
}

func (b *bench) approvals(t testing.TB, statuses ...approval.Status) []approval.Approval {
	t.Helper()
	var list []approval.Approval
	err := b.store.View(context.Background(), b.agent.Scope, func(tx store.Tx) (err error) {
		list, err = tx.Approvals("", 200, statuses...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// decide answers an approval as the owner's API does.
func (b *bench) decide(t testing.TB, id string, d approval.Decision) {
	t.Helper()
	err := b.store.Tx(context.Background(), b.agent.Scope, func(tx store.Tx) error {
		a, err := tx.Approval(id)
		if err != nil {
			return err
		}
		decided, err := a.Decide(d, "", "owner-device", b.clock.Now())
		if err != nil {
			return err
		}
		return tx.UpdateApproval(decided, a.Status)
	})
	if err != nil {
		t.Fatal(err)
	}
	b.hub.Changed(b.agent.Scope)
}

func (b *bench) kinds(t testing.TB) []audit.Kind {
	t.Helper()
	var kinds []audit.Kind
	err := b.store.View(context.Background(), b.agent.Scope, func(tx store.Tx) error {
		entries, err := tx.Audit(0, 200)
		for _, e := range entries {
			kinds = append(kinds, e.Kind)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

func wantCode(t testing.TB, err error, code fault.Code) {
	t.Helper()
	if !fault.Is(err, code) {
		t.Fatalf("error %v, want code %s", err, code)
	}
}

// TOOL-02, TOOL-03, SCRL-01, POL-01: reads and bounded scrolls need nobody.
func TestReadsAndScrollNeedNoApproval(t *testing.T) {
	b := newBench(t, nil, nil)
	v := b.open(t)
	if v.Trust != projection.Trust || v.Title != "Desk" || len(v.Elements) != 3 {
		t.Fatalf("view %+v", v)
	}
	if _, err := b.call(action.Act, act(v, "scroll", "Save", "delta_y", 300)); err != nil {
		t.Fatal(err)
	}
	if n := len(b.approvals(t)); n != 0 {
		t.Errorf("%d approvals were asked for", n)
	}
	want := []audit.Kind{audit.CallAuthorized, audit.CallCompleted, audit.CallAuthorized, audit.CallCompleted}
	if got := b.kinds(t); !slices.Equal(got, want) {
		t.Errorf("audit %v, want %v", got, want)
	}
}

// GATE-03, TOOL-08: a URL off the session's origins is refused before any
// request, and written down.
func TestOffOriginNavigationSendsNothing(t *testing.T) {
	b := newBench(t, nil, nil)
	_, err := b.call(action.Navigate, map[string]string{"url": "https://elsewhere.example/"})
	wantCode(t, err, fault.URLDisallowed)
	if r := b.world.Requests(); len(r) != 0 || b.world.Launched() != 0 {
		t.Errorf("requests %v, %d browsers", r, b.world.Launched())
	}
	if got := b.kinds(t); !slices.Equal(got, []audit.Kind{audit.CallDenied}) {
		t.Errorf("audit %v", got)
	}
}

// TOOL-06, GATE-05, GATE-07: one approval, one effect, whatever is repeated.
func oneEffect(t testing.TB, b *bench) error {
	v := b.open(t)
	args := act(v, "click", "Save")
	for range 2 {
		_, err := b.call(action.Act, args)
		var pending *broker.PendingError
		if !errors.As(err, &pending) || pending.Address == "" {
			return fmt.Errorf("an undecided act answered %v", err)
		}
	}
	asked := b.approvals(t)
	if len(asked) != 1 || asked[0].View.ElementName != "Save" || asked[0].Summary != "Click a button on desk.practice.example/" {
		return fmt.Errorf("approvals %+v", asked)
	}
	if n := len(b.world.Effects()); n != 0 {
		return fmt.Errorf("%d effects before the decision", n)
	}
	b.decide(t, asked[0].ID, approval.ApproveOnce)
	var wg sync.WaitGroup
	var mu sync.Mutex
	succeeded := 0
	for range 8 {
		wg.Go(func() {
			if _, err := b.call(action.Act, args); err == nil {
				mu.Lock()
				succeeded++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if n := len(b.world.Effects()); n != 1 || succeeded != 1 {
		return fmt.Errorf("%d effects, %d calls that say so; want one of each", n, succeeded)
	}
	if _, err := b.call(action.Act, args); !fault.Is(err, fault.PageChanged) {
		return fmt.Errorf("a repeated call answered %v", err)
	}
	if a := b.approvals(t); len(a) != 1 || a[0].Status != approval.Used {
		return fmt.Errorf("approvals %+v, want the one, used", a)
	}
	calls := b.invocations(t)
	if len(calls) != 2 || calls[0].ApprovalID != asked[0].ID || calls[0].Outcome != run.Succeeded || calls[0].EffectSentAt.IsZero() {
		return fmt.Errorf("invocations %+v, want the navigation and the act with its approval and effect mark", calls)
	}
	return nil
}

func (b *bench) invocations(t testing.TB) (list []run.Invocation) {
	t.Helper()
	err := b.store.View(context.Background(), b.agent.Scope, func(tx store.Tx) (err error) {
		list, err = tx.Invocations(b.agent.Session, 200)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestOneApprovalOneEffect(t *testing.T) {
	if err := oneEffect(t, newBench(t, nil, nil)); err != nil {
		t.Error(err)
	}
}

// A broker is only as good as its store: the suite must notice a store that
// forgets that an approval was used, or loses the intent.
func TestSuiteCatchesABrokenStore(t *testing.T) {
	for name, wrap := range map[string]func(store.Tx) store.Tx{
		"forgets that an approval was used": func(tx store.Tx) store.Tx { return forgetsUse{tx} },
		"loses the effect mark":             func(tx store.Tx) store.Tx { return losesMark{tx} },
	} {
		b := newBench(t, func(s store.Store) store.Store { return faulty{s, wrap} }, nil)
		if err := oneEffect(t, b); err == nil {
			t.Errorf("the suite did not notice a store that %s", name)
		}
	}
}

type losesMark struct{ store.Tx }

func (l losesMark) InsertInvocation(i run.Invocation) error {
	i.EffectSentAt = time.Time{}
	return l.Tx.InsertInvocation(i)
}

type faulty struct {
	store.Store
	wrap func(store.Tx) store.Tx
}

func (f faulty) Tx(ctx context.Context, scope caller.Scope, fn func(store.Tx) error) error {
	return f.Store.Tx(ctx, scope, func(tx store.Tx) error { return fn(f.wrap(tx)) })
}

func (f faulty) Note(ctx context.Context, scope caller.Scope, fn func(store.Tx) error) error {
	return f.Store.Note(ctx, scope, func(tx store.Tx) error { return fn(f.wrap(tx)) })
}

type forgetsUse struct{ store.Tx }

func (f forgetsUse) UpdateApproval(a approval.Approval, expected approval.Status) error {
	if a.Status == approval.Used {
		return nil
	}
	return f.Tx.UpdateApproval(a, expected)
}
