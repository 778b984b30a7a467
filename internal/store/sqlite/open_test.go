package sqlite_test

import (
	"bytes"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/ident"
	"github.com/chaperone-agents/chaperone/internal/base/site"
	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
	"github.com/chaperone-agents/chaperone/internal/store"
	"github.com/chaperone-agents/chaperone/internal/store/sqlite"
)

var scope = caller.Scope{Tenant: "local", Principal: "ana"}

// raw opens the file without the code under test.
func raw(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func query(t *testing.T, db *sql.DB, text string) {
	t.Helper()
	if _, err := db.Exec(text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// fill stores n profiles and returns the newest.
func fill(t *testing.T, s store.Store, n int) (last profile.Profile) {
	t.Helper()
	for range n {
		last = profile.Reserve(scope, ident.New(), origins(t), now)
		if err := insert(t, s, last); err != nil {
			t.Fatal(err)
		}
	}
	return last
}

func insert(t *testing.T, s store.Store, p profile.Profile) error {
	t.Helper()
	return s.Tx(t.Context(), scope, func(tx store.Tx) error {
		_, err := tx.Append(audit.Entry{Scope: scope, At: now, Kind: audit.ProfileCreated, Subject: p.ID})
		return errors.Join(err, tx.InsertProfile(p))
	})
}

func origins(t testing.TB) site.Origins {
	t.Helper()
	list, err := site.ParseOrigins([]string{"https://wiki.example.org"})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// closed is the path of a database with some content that nobody has open.
func closed(t *testing.T) string {
	t.Helper()
	path := fresh(t)
	s, err := openAt(path)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, 50)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFilesAreTheOwnersAlone(t *testing.T) {
	path := fresh(t)
	fill(t, open(t, path), 1)
	dir := filepath.Dir(path)
	for name, want := range map[string]os.FileMode{dir: 0o700 | os.ModeDir, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", filepath.Base(name), info.Mode(), want)
		}
	}
}

func TestReopenKeepsEverything(t *testing.T) {
	path := closed(t)
	for range 2 {
		s, err := openAt(path)
		if err != nil {
			t.Fatal(err)
		}
		err = s.View(t.Context(), scope, func(tx store.Tx) error {
			list, err := tx.Profiles(200)
			if len(list) != 50 {
				t.Errorf("%d profiles, want 50", len(list))
			}
			return err
		})
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for _, left := range []string{"-wal", "-shm", "-journal"} {
		if _, err := os.Stat(path + left); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left after Close: %v", left, err)
		}
	}
}

func TestPathIsTakenLiterally(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data", "a b?mode=memory#c%20d&_pragma=x.db")
	fill(t, open(t, path), 1)
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

// A file made just before a crash is empty, and is used.
func TestEmptyFileIsUsed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chaperone.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fill(t, open(t, path), 1)
}

// What cannot be trusted is refused, with words that say what to do, and left
// byte for byte as it was.
func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		prepare     func(t *testing.T) (path string)
		says        string
		unavailable bool
	}{
		"a relative path": {func(*testing.T) string { return "chaperone.db" }, "absolute", false},
		"a text file": {func(t *testing.T) string {
			return file(t, bytes.Repeat([]byte("not a database\n"), 100))
		}, "not a Chaperone database", false},
		"a short file": {func(t *testing.T) string { return file(t, []byte("SQLite format 3\x00")) }, "not a Chaperone database", false},
		"another program's database": {func(t *testing.T) string {
			path := file(t, nil)
			db := raw(t, path)
			query(t, db, "CREATE TABLE t (x)")
			db.Close()
			return path
		}, "not a Chaperone database", false},
		"a newer schema": {func(t *testing.T) string {
			path := closed(t)
			db := raw(t, path)
			query(t, db, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, 1)")
			db.Close()
			return path
		}, "newer", false},
		"a corrupt file": {func(t *testing.T) string { return damaged(t, 4096, false) }, "", true},
		"a corrupt page that opening does not read": {func(t *testing.T) string { return damaged(t, 4096, true) }, "corrupt", true},
		"a truncated file": {func(t *testing.T) string {
			path := closed(t)
			if err := os.Truncate(path, 3*4096); err != nil {
				t.Fatal(err)
			}
			return path
		}, "", true},
		"a file others can read": {func(t *testing.T) string { return chmod(t, closed(t), 0o640) }, "chmod 600", false},
		"a folder others can write": {func(t *testing.T) string {
			path := closed(t)
			chmod(t, filepath.Dir(path), 0o770)
			return path
		}, "chmod 700", false},
		"a link": {func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "link.db")
			if err := os.Symlink(closed(t), path); err != nil {
				t.Fatal(err)
			}
			return path
		}, "regular", false},
		"a folder": {func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "folder.db")
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
			return path
		}, "regular", false},
		"a folder that cannot exist": {func(t *testing.T) string {
			return filepath.Join(file(t, nil), "data", "chaperone.db")
		}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			path := c.prepare(t)
			before, _ := os.ReadFile(path)
			s, err := openAt(path)
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error %q does not say %q", err, c.says)
			}
			if errors.Is(err, store.ErrUnavailable) != c.unavailable {
				t.Errorf("the error %q: unavailable should be %v", err, c.unavailable)
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
	if _, err := sqlite.Open(sqlite.Config{Path: fresh(t)}); err == nil {
		t.Error("a Config without a Log was accepted")
	}
	if _, err := sqlite.Open(sqlite.Config{Path: "x.db", Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("a relative path was accepted")
	}
}

func file(t *testing.T, body []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "some.db")
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func chmod(t *testing.T, path string, mode os.FileMode) string {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// damaged is a database with rubbish in all pages but the first, or in the
// last one only.
func damaged(t *testing.T, page int64, lastOnly bool) string {
	t.Helper()
	path := closed(t)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	from := page
	if lastOnly {
		from = info.Size() - page
	}
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xA5}, int(info.Size()-from)), from); err != nil {
		t.Fatal(err)
	}
	return path
}

// META-01 to META-04: the database itself refuses what the records forbid,
// whoever writes to it.
func TestSchemaRefuses(t *testing.T) {
	path := fresh(t)
	fill(t, open(t, path), 1)
	db := raw(t, path)
	const profiles = "INSERT INTO browser_profiles (tenant_id, principal_id, id, provider_name, provider_ref, key_version, origins, status, generation, created_at, updated_at) VALUES "
	query(t, db, profiles+`('t', 'p', '1', 'hosted', 'ref', 'k', '["https://a.example"]', 'ready', 0, 1, 1)`) // the pattern is good
	query(t, db, profiles+`('t', 'p', '2', NULL, NULL, NULL, '["https://a.example"]', 'revoked', 0, 1, 1)`)
	for name, text := range map[string]string{
		"an unknown status":        profiles + `('t', 'p', '3', 'hosted', 'ref3', 'k', '["https://a.example"]', 'happy', 0, 1, 1)`,
		"a negative generation":    profiles + `('t', 'p', '3', 'hosted', 'ref3', 'k', '["https://a.example"]', 'ready', -1, 1, 1)`,
		"half a binding":           profiles + `('t', 'p', '3', 'hosted', 'ref3', NULL, '["https://a.example"]', 'ready', 0, 1, 1)`,
		"ready without a binding":  profiles + `('t', 'p', '3', NULL, NULL, NULL, '["https://a.example"]', 'ready', 0, 1, 1)`,
		"provisioning but bound":   profiles + `('t', 'p', '3', 'hosted', 'ref3', 'k', '["https://a.example"]', 'provisioning', 0, 1, 1)`,
		"a live reference again":   profiles + `('u', 'q', '3', 'hosted', 'ref', 'k', '["https://a.example"]', 'ready', 0, 1, 1)`,
		"no origins":               profiles + `('t', 'p', '3', 'hosted', 'ref3', 'k', '[]', 'ready', 0, 1, 1)`,
		"no tenant":                profiles + `('', 'p', '3', 'hosted', 'ref3', 'k', '["https://a.example"]', 'ready', 0, 1, 1)`,
		"text as a generation":     profiles + `('t', 'p', '3', 'hosted', 'ref3', 'k', '["https://a.example"]', 'ready', 'x', 1, 1)`,
		"a changed audit entry":    `UPDATE audit_entries SET kind = 'other'`,
		"a deleted audit entry":    `DELETE FROM audit_entries`,
		"an agent without session": `INSERT INTO devices (tenant_id, principal_id, fingerprint, name, role, verifier, created_at) VALUES ('t', 'p', '0123456789abcdef0123456789abcdef', 'n', 'agent', zeroblob(32), 1)`,
	} {
		if _, err := db.Exec(text); err == nil {
			t.Errorf("%s was stored", name)
		}
	}

	// META-01: no column could hold material.
	var columns string
	if err := db.QueryRow(`SELECT group_concat(name, ' ') FROM pragma_table_info('browser_profiles')`).Scan(&columns); err != nil {
		t.Fatal(err)
	}
	const want = "seq tenant_id principal_id id provider_name provider_ref origins status generation key_version created_at updated_at last_used_at"
	if columns != want {
		t.Errorf("browser_profiles has the columns %q, want %q", columns, want)
	}
	var tables, scoped int
	err := db.QueryRow(`SELECT count(*), sum((SELECT count(*) FROM pragma_table_info(m.name) WHERE name IN ('tenant_id', 'principal_id') AND "notnull") = 2)
		FROM sqlite_schema m WHERE type = 'table' AND name NOT LIKE 'goose%' AND name NOT LIKE 'sqlite%'`).Scan(&tables, &scoped)
	if err != nil || tables != 8 || scoped != tables {
		t.Errorf("%d of %d tables carry the scope (%v)", scoped, tables, err)
	}
}
