package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
	"github.com/chaperone-agents/chaperone/internal/rules/run"
	"github.com/chaperone-agents/chaperone/internal/store"
)

var me = caller.Scope{Tenant: "local", Principal: "ana"}

func openFresh(t *testing.T) *Store {
	t.Helper()
	s, err := Open(Config{Path: filepath.Join(t.TempDir(), "data", "chaperone.db"), Log: slog.New(slog.DiscardHandler)})
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

// PSM-11: every statement that reads or changes rows names the scope first.
// The two that cannot are these.
func TestEveryStatementCarriesTheScope(t *testing.T) {
	unscoped := map[string]bool{selectAnyDevice: true, selectScopes: true}
	insert := regexp.MustCompile(`^\s*INSERT INTO \w+ \(tenant_id, principal_id, [^)]*\)\s+VALUES \(\?1, \?2, `)
	seen := map[string]bool{}
	for _, query := range statements() {
		if seen[query] {
			t.Errorf("listed twice: %s", query)
		}
		seen[query] = true
		tables := strings.Count(query, "FROM ") + strings.Count(query, "UPDATE ") - strings.Count(query, "FROM json_each") - strings.Count(query, "FROM (")
		if !unscoped[query] && !insert.MatchString(query) && (tables == 0 || strings.Count(query, "tenant_id = ?1 AND principal_id = ?2") != tables) {
			t.Errorf("without the scope: %s", query)
		}
	}
	if len(seen) < 40 {
		t.Errorf("only %d statements are listed", len(seen))
	}
}

// Every statement prepares, on both kinds of connection.
func TestStatementsPrepare(t *testing.T) {
	s := openFresh(t)
	for _, query := range statements() {
		for _, p := range []pool{s.read, s.write} {
			prepared, err := p.db.Prepare(query)
			if err != nil {
				t.Errorf("%v: %s", err, query)
				continue
			}
			prepared.Close()
		}
	}
}

// No statement reads a whole table, or a scope's whole share of one when it
// names something narrower. Only lists by status sort, which are short.
func TestStatementsUseIndexes(t *testing.T) {
	s := openFresh(t)
	narrow := map[string]string{ // what a statement says, and what its plan must then say
		"AND id = ?": " AND id=?", "session_id = ?": " AND session_id=?", "AND profile_id = ?": " AND profile_id=?",
		"fingerprint = ?": "fingerprint=?", "digest = ?4": " AND digest=?", "number > ?": "AND number>?",
		"outcome = 'running' ORDER": "invocations_running", "AND ended_at IS NULL AND": "sessions_live",
	}
	for _, query := range statements() {
		if query == selectScopes { // runs once, at start
			continue
		}
		plan := s.plan(t, query)
		for says, must := range narrow {
			if strings.Contains(query, says) && !strings.Contains(plan, must) {
				t.Errorf("the plan does not use %q: %s\n%s", must, query, plan)
			}
		}
		plan = strings.NewReplacer("SCAN json_each", "", "SCAN (subquery", "").Replace(plan)
		if strings.Contains(plan, "SCAN ") {
			t.Errorf("reads a whole table: %s\n%s", query, plan)
		}
		if strings.Contains(plan, "USE TEMP B-TREE FOR ORDER BY") && !strings.Contains(query, "status IN (SELECT") && query != selectAuditTail {
			t.Errorf("sorts: %s\n%s", query, plan)
		}
	}
}

func (s *Store) plan(t *testing.T, query string) string {
	t.Helper()
	rows, err := s.read.db.Query("EXPLAIN QUERY PLAN "+query, make([]any, len(uniqueParameters(query)))...)
	if err != nil {
		t.Fatalf("%v: %s", err, query)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(detail + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}

func uniqueParameters(query string) map[string]bool {
	found := map[string]bool{}
	for _, p := range regexp.MustCompile(`\?\d+`).FindAllString(query, -1) {
		found[p] = true
	}
	return found
}

// An unlisted statement does not run, and ends its transaction.
func TestUnlistedStatementIsRefused(t *testing.T) {
	s := openFresh(t)
	err := s.Tx(t.Context(), me, func(tx store.Tx) error {
		_, _ = tx.(interface {
			exec(string, ...any) (int64, error)
		}).exec("DELETE FROM browser_profiles")
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "not a prepared statement") {
		t.Errorf("got %v", err)
	}
}

// Durability and integrity are settings of the connection; these are the ones
// in force.
func TestConnectionSettings(t *testing.T) {
	s := openFresh(t)
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "5000", "trusted_schema": "0", "query_only": "0"} {
		var got string
		if err := s.write.db.QueryRow("PRAGMA " + pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s of the writer is %q, want %q (%v)", pragma, got, want, err)
		}
	}
	var got string
	if err := s.read.db.QueryRow("PRAGMA query_only").Scan(&got); err != nil || got != "1" {
		t.Errorf("query_only of the readers is %q (%v)", got, err)
	}
}

// A full and a read-only database are unavailable, keep what they had, and
// work again afterwards.
func TestFullAndReadOnly(t *testing.T) {
	for name, pragma := range map[string]struct{ spoil, mend string }{
		"full":      {"max_page_count = 1", "max_page_count = 1000000"}, // SQLite takes the present size when that is more
		"read-only": {"query_only = 1", "query_only = 0"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openFresh(t)
			if _, err := s.write.db.Exec("PRAGMA " + pragma.spoil); err != nil {
				t.Fatal(err)
			}
			stored := 0
			var err error
			for ; stored < 1000 && err == nil; stored++ {
				err = insertProfileOf(t, s)
			}
			if !errors.Is(err, store.ErrUnavailable) {
				t.Fatalf("after %d records: %v, want unavailable", stored, err)
			}
			stored-- // the last failed
			if n := countProfiles(t, s); n != stored {
				t.Errorf("%d profiles are there, %d were acknowledged", n, stored)
			}
			if _, err := s.write.db.Exec("PRAGMA " + pragma.mend); err != nil {
				t.Fatal(err)
			}
			if err := insertProfileOf(t, s); err != nil {
				t.Errorf("after it was mended: %v", err)
			}
			if n := countProfiles(t, s); n != stored+1 {
				t.Errorf("%d profiles are there, %d were acknowledged", n, stored+1)
			}
		})
	}
}

// A lock that another process keeps is waited for, and then reported.
func TestLockedByAnother(t *testing.T) {
	s := openFresh(t)
	if _, err := s.write.db.Exec("PRAGMA busy_timeout = 1"); err != nil {
		t.Fatal(err)
	}
	var path string
	if err := s.read.db.QueryRow("SELECT file FROM pragma_database_list").Scan(&path); err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetMaxOpenConns(1)
	if _, err := other.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	if err := insertProfileOf(t, s); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v, want unavailable", err)
	}
	if n := countProfiles(t, s); n != 0 { // reading goes on meanwhile
		t.Errorf("%d profiles", n)
	}
	if _, err := other.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := insertProfileOf(t, s); err != nil {
		t.Errorf("after the other is done: %v", err)
	}
}

func insertProfileOf(t *testing.T, s *Store) error {
	t.Helper()
	origins, err := site.ParseOrigins([]string{"https://wiki.example.org"})
	if err != nil {
		t.Fatal(err)
	}
	return s.Tx(t.Context(), me, func(tx store.Tx) error {
		return tx.InsertProfile(profile.Reserve(me, ident.New(), origins, time.Unix(1, 0)))
	})
}

func countProfiles(t *testing.T, s *Store) (n int) {
	t.Helper()
	if err := s.read.db.QueryRow("SELECT count(*) FROM browser_profiles").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TOOL-10: a session from before there were contracts keeps the tools it had,
// and one without a known contract is not stored.
func TestOldSessionsKeepTheirTools(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chaperone.db")
	db, err := sql.Open("sqlite", dsn(path, nil))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, dir, goose.WithDisableGlobalRegistry(true))
	if err == nil {
		_, err = p.UpTo(t.Context(), 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		fmt.Sprintf("PRAGMA application_id = %d", applicationID),
		`INSERT INTO sessions (tenant_id, principal_id, id, origins, headed, created_at) VALUES ('local', 'ana', 'old', '["https://a.example"]', 0, 1)`,
	} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(db.Close(), os.Chmod(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	s, err := Open(Config{Path: path, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.View(t.Context(), me, func(tx store.Tx) error {
		old, err := tx.Session("old")
		if err == nil && old.Contract != "1.0.0" {
			t.Errorf("an old session has the tools of %q", old.Contract)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, unknown := range []contract.Set{"", "2.0.0"} {
		err := s.Tx(t.Context(), me, func(tx store.Tx) error {
			return tx.InsertSession(run.Session{Scope: me, ID: ident.New(), Origins: origins(t), Contract: unknown, CreatedAt: time.Now()})
		})
		if err == nil {
			t.Errorf("a session with the contract %q was stored", unknown)
		}
	}
	if set := contract.Sets(); len(set) != 5 {
		t.Errorf("the schema knows five contracts, the registry has %v", set)
	}
}

func origins(t *testing.T) site.Origins {
	t.Helper()
	o, err := site.ParseOrigins([]string{"https://a.example"})
	if err != nil {
		t.Fatal(err)
	}
	return o
}
