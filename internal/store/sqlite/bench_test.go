package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// BenchmarkCall is what one approved call costs before anything is sent: a
// transaction that spends the approval and records invocation and audit. Beside
// its median it reports that of a plain write and sync of one page to the same
// disk, and the ratio of the two.
func BenchmarkCall(b *testing.B) {
	s := open(b, fresh(b))
	session := run.Session{Scope: scope, ID: ident.New(), Origins: origins(b), CreatedAt: now}
	pending := make([]approval.Approval, b.N)
	err := s.Tx(b.Context(), scope, func(tx store.Tx) error {
		errs := []error{tx.InsertSession(session)}
		for i := range pending {
			pending[i] = approval.Approval{Scope: scope, ID: ident.New(), SessionID: session.ID, Tool: action.Act, Digest: ident.Hex(32),
				Status: approval.Approved, DecidedBy: ident.Hex(16), DecidedAt: now, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
			errs = append(errs, tx.InsertApproval(pending[i]))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		b.Fatal(err)
	}
	calls := make([]time.Duration, 0, b.N)
	b.ResetTimer()
	for _, a := range pending {
		start := time.Now()
		err := s.Tx(b.Context(), scope, func(tx store.Tx) error {
			a.Status = approval.Used
			_, err := tx.Append(audit.Entry{Scope: scope, At: now, Kind: audit.CallAuthorized, Subject: a.ID, Tool: string(a.Tool), Digest: a.Digest})
			return errors.Join(err, tx.UpdateApproval(a, approval.Approved), tx.InsertInvocation(run.Invocation{Scope: scope, ID: ident.New(),
				SessionID: session.ID, Tool: a.Tool, Digest: a.Digest, ApprovalID: a.ID, Outcome: run.Running, StartedAt: now, EffectSentAt: now}))
		})
		if err != nil {
			b.Fatal(err)
		}
		calls = append(calls, time.Since(start))
	}
	b.StopTimer()
	call, sync := median(calls), median(syncs(b))
	b.ReportMetric(float64(call.Microseconds()), "median-µs")
	b.ReportMetric(float64(sync.Microseconds()), "sync-µs")
	b.ReportMetric(float64(call)/float64(sync), "ratio")
}

// BenchmarkView is what one look-up in a snapshot costs.
func BenchmarkView(b *testing.B) {
	s := open(b, fresh(b))
	session := run.Session{Scope: scope, ID: ident.New(), Origins: origins(b), CreatedAt: now}
	if err := s.Tx(b.Context(), scope, func(tx store.Tx) error { return tx.InsertSession(session) }); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := s.View(b.Context(), scope, func(tx store.Tx) error { _, err := tx.Session(session.ID); return err }); err != nil {
			b.Fatal(err)
		}
	}
}

// syncs times a write of one page followed by a sync.
func syncs(b *testing.B) (all []time.Duration) {
	f, err := os.Create(filepath.Join(b.TempDir(), "page"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for range 200 {
		start := time.Now()
		_, err := f.Write(make([]byte, 4096))
		if err := errors.Join(err, f.Sync()); err != nil {
			b.Fatal(err)
		}
		all = append(all, time.Since(start))
	}
	return all
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}
