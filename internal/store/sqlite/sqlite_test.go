package sqlite_test

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/store"
	"github.com/chaperone-agents/chaperone/internal/store/sqlite"
	"github.com/chaperone-agents/chaperone/internal/store/storetest"
)

// open opens a database that is closed when the test ends.
func open(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(sqlite.Config{Path: path, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// now has every digit that the store keeps.
var now = time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)

// fresh is a path in a folder that does not exist yet.
func fresh(t testing.TB) string { return filepath.Join(t.TempDir(), "data", "chaperone.db") }

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, fresh(t)) })
}
