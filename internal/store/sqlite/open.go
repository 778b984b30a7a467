package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver

	"github.com/chaperone-agents/chaperone/internal/store"
)

// Config of a Store; every field is required.
type Config struct {
	Path string // absolute path of the database file
	Log  *slog.Logger
}

// applicationID marks a file as ours ("Chap"), in the place that SQLite keeps
// for it.
const applicationID = 0x43686170

const (
	busyMillis = 5000 // how long to wait for another process's transaction
	readers    = 4    // connections that serve View
)

//go:embed migrations/*.sql
var migrations embed.FS

// Open opens the database at the path and brings its schema up to date; a
// missing file is created with mode 0600, and a missing folder with 0700. It
// refuses a file that others may read, a folder that others may write, a file
// that is not a Chaperone database (and leaves it untouched), a corrupt one,
// and one with a newer schema. A file that cannot be opened, read or written
// yields store.ErrUnavailable.
func Open(c Config) (*Store, error) {
	if !filepath.IsAbs(c.Path) || c.Log == nil {
		return nil, errors.New("sqlite: Path must be absolute and Log must be set")
	}
	if err := prepareFile(c.Path); err != nil {
		return nil, err
	}
	if err := mark(c.Path); err != nil {
		return nil, fmt.Errorf("database %s: %w", c.Path, translate(err))
	}
	s := &Store{log: c.Log}
	if err := s.open(c.Path); err != nil {
		return nil, errors.Join(fmt.Errorf("database %s: %w", c.Path, translate(err)), s.Close())
	}
	return s, nil
}

// prepareFile makes or checks the folder and the file. It reads the header
// itself, since SQLite would already alter a foreign file by opening it.
func prepareFile(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return unavailable(err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return unavailable(err)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("folder %s can be written by others; chmod 700 it", dir)
	}
	info, err = os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return create(dir, path)
	case err != nil:
		return unavailable(err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("database %s can be read by others; chmod 600 it, and think about who may have", path)
	case info.Size() == 0:
		return nil // created, but not marked before a crash
	}
	return checkHeader(path)
}

func create(dir, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return unavailable(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return unavailable(err)
	}
	d, err := os.Open(dir)
	if err != nil {
		return unavailable(err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return unavailable(err)
	}
	return nil
}

func checkHeader(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return unavailable(err)
	}
	defer f.Close()
	header := make([]byte, 100)
	if _, err := io.ReadFull(f, header); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return unavailable(err)
	}
	if string(header[:16]) != "SQLite format 3\x00" || binary.BigEndian.Uint32(header[68:]) != applicationID {
		return fmt.Errorf("%s is not a Chaperone database; it was left as it is", path)
	}
	return nil
}

func unavailable(err error) error { return fmt.Errorf("%w: %w", store.ErrUnavailable, err) }

// mark makes a new file ours. It runs before the write-ahead log exists, so
// that the mark is in the first page that ever reaches the file.
func mark(path string) error {
	db, err := sql.Open("sqlite", dsn(path, nil))
	if err != nil {
		return err
	}
	defer db.Close()
	var id, version int64
	if err := db.QueryRow("PRAGMA application_id").Scan(&id); err != nil {
		return err
	}
	if id == applicationID {
		return nil
	}
	// Nothing but an empty file comes here: checkHeader refused the others.
	if err := db.QueryRow("PRAGMA schema_version").Scan(&version); err != nil {
		return err
	}
	if version != 0 {
		return errors.New("another program is using this file")
	}
	_, err = db.Exec(fmt.Sprintf("PRAGMA application_id = %d", applicationID))
	return err
}

func (s *Store) open(path string) error {
	var err error
	// FULL syncs the log at every commit: a transaction that returned is on disk.
	// A note lowers it for itself (kind.level).
	if s.write.db, err = sql.Open("sqlite", dsn(path, []string{"journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)"})); err != nil {
		return err
	}
	s.write.db.SetMaxOpenConns(1)
	if err := quickCheck(s.write.db); err != nil {
		return err
	}
	if err := s.migrate(); err != nil {
		return err
	}
	if s.read.db, err = sql.Open("sqlite", dsn(path, []string{"query_only(1)"})); err != nil {
		return err
	}
	s.read.db.SetMaxOpenConns(readers)
	s.read.db.SetMaxIdleConns(readers)
	return errors.Join(s.write.prepare(), s.read.prepare())
}

func quickCheck(db *sql.DB) error {
	var found string
	if err := db.QueryRow("PRAGMA quick_check(1)").Scan(&found); err != nil {
		return err
	}
	if found != "ok" {
		return fmt.Errorf("%w: the file is corrupt; restore a backup (%s)", store.ErrUnavailable, found)
	}
	return nil
}

func (s *Store) migrate() error {
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, s.write.db, dir,
		goose.WithDisableGlobalRegistry(true), goose.WithSlog(s.log))
	if err != nil {
		return err
	}
	ctx := context.Background()
	have, want, err := p.GetVersions(ctx)
	if err != nil {
		return err
	}
	if have > want {
		return fmt.Errorf("its schema is version %d and this program knows up to %d; use the newer program", have, want)
	}
	if _, err := p.Up(ctx); err != nil {
		return err
	}
	if have < want {
		s.log.Info("database schema brought up to date", "from", have, "to", want)
	}
	return nil
}

// dsn names the file as a URI, so that no character of the path is read as an
// option.
func dsn(path string, pragmas []string) string {
	q := url.Values{"_txlock": {"immediate"}, "_dqs": {"0"}}
	q["_pragma"] = append([]string{fmt.Sprintf("busy_timeout(%d)", busyMillis), "trusted_schema(0)"}, pragmas...)
	return (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String()
}
