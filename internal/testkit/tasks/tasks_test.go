package tasks_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/app/broker"
	"github.com/chaperone-agents/chaperone/internal/app/notify"
	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/browser/driver"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
	"github.com/chaperone-agents/chaperone/internal/store"
	"github.com/chaperone-agents/chaperone/internal/store/sqlite"
	"github.com/chaperone-agents/chaperone/internal/testkit/chromiumtest"
	"github.com/chaperone-agents/chaperone/internal/testkit/tasks"
)

func TestMain(m *testing.M) { os.Exit(chromiumtest.Main(m)) }

// CTASK-01, CTASK-02: every task, under its budget, in the newest contract and
// in the newest of the specification.
func TestComponentTasks(t *testing.T) {
	all, err := tasks.All()
	if err != nil {
		t.Fatal(err)
	}
	web := serve(t, all)
	origins, err := site.ParseOrigins([]string{"https://" + tasks.Host})
	if err != nil {
		t.Fatal(err)
	}
	page, err := driver.Launch(t.Context(), driver.Config{
		Origins: origins, Proxy: web.Proxy, Home: chromiumtest.Home(t), Chromium: chromiumtest.Chromium(t), Xvfb: chromiumtest.Xvfb(t),
		TrustedCA: web.CA, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := page.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, set := range []contract.Set{"1.8.0", contract.Newest} {
		t.Run(string(set), func(t *testing.T) {
			var reports []tasks.Report
			for _, task := range all {
				t.Run(task.ID, func(t *testing.T) {
					r := newReader(t, tasks.OnePage{Page: page}, origins, set, task.Budget)
					before := len(effects(web))
					if err := r.Do(t.Context(), task); err != nil {
						t.Error(err)
					}
					got := settled(t, web, before, len(task.Effects))
					r.Report.Effects = len(got)
					if err := task.Verify(got); err != nil {
						t.Error(err)
					} else {
						r.Report.Verified = true
					}
					reports = append(reports, r.Report)
				})
			}
			if err := tasks.Complete(all, reports); err != nil {
				t.Error(err)
			}
			baseline, err := json.Marshal(map[string]any{"version": 2, "contract": set, "tasks": reports})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s", baseline)
		})
	}
}

// serve starts the site of the fixtures, which records every effect.
func serve(t *testing.T, all []tasks.Task) *chromiumtest.Site {
	t.Helper()
	web := chromiumtest.NewSite(t, tasks.Host)
	web.Handle(tasks.Host+"/effect", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	served := map[string]bool{}
	for _, task := range all {
		body, ok := tasks.Fixture(task.Fixture)
		if !ok {
			t.Fatalf("there is no fixture %s", task.Fixture)
		}
		if !served[task.Fixture] {
			web.Page(tasks.Host+"/"+task.Fixture, body)
			served[task.Fixture] = true
		}
	}
	return web
}

// effects is what the server got, in order.
func effects(web *chromiumtest.Site) []string {
	var got []string
	for _, r := range web.Requests(tasks.Host) {
		if r.Path == "/effect" {
			got = append(got, r.Method+" "+r.Body)
		}
	}
	return got
}

// settled waits for the effects behind the first before, and a little longer
// than the last of them for one too many.
func settled(t *testing.T, web *chromiumtest.Site, before, want int) []string {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for len(effects(web))-before < want && time.Now().Before(deadline) {
		<-time.After(10 * time.Millisecond)
	}
	<-time.After(100 * time.Millisecond)
	var got []string
	for _, e := range effects(web)[before:] {
		if len(e) < 5 || e[:5] != "POST " {
			t.Errorf("an effect came as %q", e)
			continue
		}
		got = append(got, e[5:])
	}
	return got
}

func newReader(t *testing.T, service tasks.OnePage, origins site.Origins, set contract.Set, budget int) *tasks.Reader {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	db, err := sqlite.Open(sqlite.Config{Path: filepath.Join(chromiumtest.Home(t), "data", "test.db"), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	scope := caller.Scope{Tenant: "local", Principal: "owner"}
	session := run.Session{Scope: scope, ID: ident.New(), Origins: origins, Contract: set, CreatedAt: time.Now()}
	if err := db.Tx(t.Context(), scope, func(tx store.Tx) error { return tx.InsertSession(session) }); err != nil {
		t.Fatal(err)
	}
	b, err := broker.New(broker.Config{
		Store: db, Service: service, Hub: notify.New(), Log: log, Budget: budget,
		ApproveAll: true, ApprovalURL: func(string) string { return "https://owner.example/" },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Shutdown(context.Background()) })
	return &tasks.Reader{Broker: b, Agent: caller.Caller{Scope: scope, Device: ident.Hex(16), Role: caller.Agent, Session: session.ID}}
}

// A run that misses an effect, has one too many, another payload or another
// order, and a list of reports with a gap, are not verified.
func TestVerificationCatchesBrokenRuns(t *testing.T) {
	all, err := tasks.All()
	if err != nil {
		t.Fatal(err)
	}
	var good []tasks.Report
	for _, task := range all {
		good = append(good, tasks.Report{ID: task.ID, Verified: true, Effects: len(task.Effects), Budget: task.Budget})
		if err := task.Verify(slices.Clone(task.Effects)); err != nil {
			t.Error(err)
		}
		for name, got := range map[string][]string{
			"none": nil, "one too many": append(slices.Clone(task.Effects), task.Effects[0]), "another": append(slices.Clone(task.Effects[1:]), "other"),
		} {
			if task.Verify(got) == nil {
				t.Errorf("%s: %s is verified", task.ID, name)
			}
		}
	}
	if tasks.Complete(all, good) != nil || tasks.Complete(all, good[1:]) == nil || tasks.Complete(all[1:], good[1:]) == nil {
		t.Error("which runs are complete is wrong")
	}
	for _, spoil := range []func(*tasks.Report){
		func(r *tasks.Report) { r.Verified = false }, func(r *tasks.Report) { r.Effects++ }, func(r *tasks.Report) { r.Budget *= 4 },
	} {
		bad := slices.Clone(good)
		spoil(&bad[3])
		if tasks.Complete(all, bad) == nil {
			t.Errorf("%+v is verified", bad[3])
		}
	}
}
