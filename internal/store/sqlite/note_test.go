package sqlite

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// REL-01: every transaction says itself whether its commit waits for the disk.
func TestOnlyNotesDoNotWait(t *testing.T) {
	s := openFresh(t)
	const normal, full = 1, 2
	for i, c := range []struct {
		run  func(context.Context, caller.Scope, func(store.Tx) error) error
		want int
	}{{s.Tx, full}, {s.Note, normal}, {s.Note, normal}, {s.Tx, full}, {s.Note, normal}} {
		err := c.run(t.Context(), me, func(mine store.Tx) error {
			var level int
			if err := mine.(*tx).sql.QueryRow("PRAGMA synchronous").Scan(&level); err != nil {
				return err
			}
			if level != c.want {
				t.Errorf("transaction %d runs at level %d, want %d", i, level, c.want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A machine that stops may lose the end of the log that was not synced. For
// every place where it may end: what is left is whole transactions from the
// first on, and never less than what was there when a Tx returned.
func TestLosingNotes(t *testing.T) {
	s := openFresh(t)
	var file string
	if err := s.write.db.QueryRow("SELECT file FROM pragma_database_list").Scan(&file); err != nil {
		t.Fatal(err)
	}
	write := func(run func(context.Context, caller.Scope, func(store.Tx) error) error, entries int) int64 {
		t.Helper()
		err := run(t.Context(), me, func(tx store.Tx) error {
			for range entries {
				if _, err := tx.Append(audit.Entry{Scope: me, At: time.Unix(1, 0), Kind: audit.CallCompleted}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		log, err := os.Stat(file + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return log.Size()
	}
	write(s.Tx, 1)
	synced := write(s.Tx, 1)
	write(s.Note, 2)
	write(s.Note, 2)
	end := write(s.Note, 2)
	base, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(file + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(log)) < end || synced == end {
		t.Fatalf("the log has %d bytes; %d were synced, and %d written", len(log), synced, end)
	}
	seen := map[int]bool{}
	for at := synced; at <= end; at = max(at+1, min(at+1024, end)) {
		path := filepath.Join(t.TempDir(), "chaperone.db")
		for name, body := range map[string][]byte{path: base, path + "-wal": log[:at]} {
			if err := os.WriteFile(name, body, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		n := left(t, path)
		if n < 2 || n%2 != 0 {
			t.Errorf("with %d of %d bytes of the log, %d entries are there", at, end, n)
		}
		seen[n] = true
	}
	if !seen[2] || !seen[8] {
		t.Errorf("no cut lost everything, or none lost nothing: %v", seen)
	}
}

func left(t *testing.T, path string) (n int) {
	t.Helper()
	s, err := Open(Config{Path: path, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.View(t.Context(), me, func(tx store.Tx) error {
		all, err := tx.Audit(0, 200)
		n = len(all)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
