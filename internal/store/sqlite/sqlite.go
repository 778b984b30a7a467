// Package sqlite keeps the orchestrator's metadata in one SQLite file, the
// embedded default (META-01 to META-05, PSM-07, PSM-11, REL-01, GATE-07).
//
// One connection writes and a few read. A write transaction takes the write
// lock when it begins (BEGIN IMMEDIATE), so transactions are serialised, and it
// is synced to disk when it returns, unless it is a note. All SQL is in the files named after
// their records; the scope is the first two parameters of every statement and
// is bound in one place, so that no statement can be run without it.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// Store implements store.Store.
type Store struct {
	log         *slog.Logger
	write, read pool
}

var _ store.Store = (*Store)(nil)

// pool is the connections of one kind with their prepared statements.
type pool struct {
	db         *sql.DB
	statements map[string]*sql.Stmt
}

// statements lists every statement; one that is not listed cannot be run.
func statements() []string {
	return slices.Concat(profileStatements(), ceremonyStatements(), sessionStatements(), approvalStatements(),
		invocationStatements(), imageStatements(), deviceStatements(), auditStatements(), scopeStatements())
}

func (p *pool) prepare() error {
	p.statements = make(map[string]*sql.Stmt)
	for _, query := range statements() {
		s, err := p.db.Prepare(query)
		if err != nil {
			return fmt.Errorf("prepare %q: %w", query, err)
		}
		p.statements[query] = s
	}
	return nil
}

// Tx implements store.Store.
func (s *Store) Tx(ctx context.Context, scope caller.Scope, fn func(store.Tx) error) error {
	return s.write.run(ctx, scope, synced, fn)
}

// Note implements store.Store.
func (s *Store) Note(ctx context.Context, scope caller.Scope, fn func(store.Tx) error) error {
	return s.write.run(ctx, scope, noted, fn)
}

// View implements store.Store.
func (s *Store) View(ctx context.Context, scope caller.Scope, fn func(store.Tx) error) error {
	return s.read.run(ctx, scope, reading, fn)
}

// kind is what a transaction may do, and what its commit waits for.
type kind int

const (
	reading kind = iota
	synced       // waits for the disk
	noted        // does not: the log is synced by the next commit that does, and always before it is folded into the file
)

// level is the statement before a transaction that writes. It names the level
// every time, so that none depends on what the one before it left behind.
func (k kind) level() string {
	if k == noted {
		return "PRAGMA synchronous = NORMAL"
	}
	return "PRAGMA synchronous = FULL"
}

func (p *pool) run(ctx context.Context, scope caller.Scope, k kind, fn func(store.Tx) error) error {
	if !scope.Valid() {
		return errors.New("sqlite: the scope is not valid")
	}
	conn, err := p.db.Conn(ctx)
	if err != nil {
		return translate(err)
	}
	defer conn.Close()
	// The driver never sees the caller's cancellation: a commit that it
	// interrupts could have happened all the same.
	whole := context.WithoutCancel(ctx)
	if k != reading {
		if _, err := conn.ExecContext(whole, k.level()); err != nil {
			return translate(err)
		}
	}
	begun, err := conn.BeginTx(whole, &sql.TxOptions{ReadOnly: k == reading})
	if err != nil {
		return translate(err)
	}
	defer begun.Rollback() // also when fn panics; does nothing after Commit
	t := &tx{ctx: whole, cancelled: ctx.Err, sql: begun, statements: p.statements, scope: scope, readOnly: k == reading}
	if err := fn(t); err != nil {
		return err
	}
	if t.broken != nil {
		return t.broken
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return translate(begun.Commit())
}

// Close implements store.Store.
func (s *Store) Close() error {
	var errs []error
	// Readers first: the last connection folds the log into the file.
	for _, p := range []pool{s.read, s.write} {
		if p.db != nil {
			errs = append(errs, p.db.Close())
		}
	}
	return errors.Join(errs...)
}

// Scopes implements store.Store.
func (s *Store) Scopes(ctx context.Context) ([]caller.Scope, error) {
	rows, err := s.read.statements[selectScopes].QueryContext(ctx)
	return collect(rows, err, func(r row) (c caller.Scope, err error) {
		return c, r.Scan(&c.Tenant, &c.Principal)
	})
}

const selectScopes = `
SELECT tenant_id, principal_id FROM browser_profiles
UNION SELECT tenant_id, principal_id FROM sessions
UNION SELECT tenant_id, principal_id FROM devices
ORDER BY tenant_id, principal_id`

func scopeStatements() []string { return []string{selectScopes} }
