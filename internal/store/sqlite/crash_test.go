package sqlite_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
	"github.com/chaperone-agents/chaperone/internal/store"
	"github.com/chaperone-agents/chaperone/internal/store/sqlite"
	"github.com/chaperone-agents/chaperone/internal/store/storetest"
)

func openAt(path string) (store.Store, error) {
	return sqlite.Open(sqlite.Config{Path: path, Log: slog.New(slog.DiscardHandler)})
}

// REL-01: what was acknowledged survives SIGKILL, and nothing is there in part.
func TestSurvivesSIGKILL(t *testing.T) {
	if err := storetest.Crash(t, fresh(t), openAt); err != nil {
		t.Error(err)
	}
}

// late acknowledges transactions that it carries out five calls later.
type late struct {
	store.Store
	waiting []func() error
}

func (l *late) Tx(ctx context.Context, scope caller.Scope, fn func(store.Tx) error) error {
	l.waiting = append(l.waiting, func() error { return l.Store.Tx(ctx, scope, fn) })
	if len(l.waiting) <= 5 {
		return nil
	}
	next := l.waiting[0]
	l.waiting = l.waiting[1:]
	return next()
}

// halves loses a part of each transaction.
type halves struct{ store.Store }

func (h halves) Tx(ctx context.Context, scope caller.Scope, fn func(store.Tx) error) error {
	return h.Store.Tx(ctx, scope, func(tx store.Tx) error { return fn(forgetful{tx}) })
}

// forgetful stores no sessions.
type forgetful struct{ store.Tx }

func (forgetful) InsertSession(run.Session) error { return nil }

func TestCrashCatchesLateWriter(t *testing.T) {
	err := storetest.Crash(t, fresh(t), func(path string) (store.Store, error) {
		s, err := openAt(path)
		return &late{Store: s}, err
	})
	if err == nil {
		t.Error("transactions that were acknowledged too early were not missed")
	}
	t.Log(err)
}

func TestCrashCatchesPartialWriter(t *testing.T) {
	err := storetest.Crash(t, fresh(t), func(path string) (store.Store, error) {
		s, err := openAt(path)
		return halves{s}, err
	})
	if err == nil {
		t.Error("transactions that are there in part were not noticed")
	}
	t.Log(err)
}
