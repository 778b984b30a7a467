package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/store"
)

// mine restricts a statement to the rows of its scope.
const mine = ` WHERE tenant_id = ?1 AND principal_id = ?2 `

// maxRows is the longest list that may be asked for.
const maxRows = 200

// tx implements store.Tx.
type tx struct {
	ctx        context.Context // without the caller's cancellation
	cancelled  func() error    // the caller's, asked before every statement
	sql        *sql.Tx
	statements map[string]*sql.Stmt
	scope      caller.Scope
	readOnly   bool
	// broken is the first failure that is not an answer (absent, stale,
	// exists). SQLite may have rolled back by itself, after which a statement
	// would commit alone; so nothing runs after it and Tx returns it.
	broken error
}

// fail translates err and remembers it unless it is an answer.
func (t *tx) fail(err error) error {
	err = translate(err)
	if t.broken == nil {
		t.broken = err
	}
	return err
}

func (t *tx) statement(query string) (*sql.Stmt, error) {
	if t.broken != nil {
		return nil, t.broken
	}
	if err := t.cancelled(); err != nil {
		return nil, t.fail(err)
	}
	s, ok := t.statements[query]
	if !ok {
		return nil, t.fail(fmt.Errorf("sqlite: not a prepared statement: %q", query))
	}
	return t.sql.StmtContext(t.ctx, s), nil
}

func (t *tx) args(more []any) []any {
	return append([]any{t.scope.Tenant, t.scope.Principal}, more...)
}

// exec runs a writing statement; args begin at ?3. It returns the number of
// rows written.
func (t *tx) exec(query string, args ...any) (int64, error) {
	if t.readOnly {
		return 0, t.fail(errors.New("sqlite: a write inside View"))
	}
	s, err := t.statement(query)
	if err != nil {
		return 0, err
	}
	result, err := s.ExecContext(t.ctx, t.args(args)...)
	if err != nil {
		return 0, t.fail(err)
	}
	n, err := result.RowsAffected()
	if err != nil {
		return 0, t.fail(err)
	}
	return n, nil
}

// insert stores a record that carries owner; every such statement does nothing
// on a conflict, which is ErrExists.
func (t *tx) insert(owner caller.Scope, query string, args ...any) error {
	if owner != t.scope {
		return store.ErrAbsent
	}
	n, err := t.exec(query, args...)
	if err == nil && n == 0 {
		return store.ErrExists
	}
	return err
}

// change updates or deletes the record with the id (always ?3) if the rest of
// the statement's condition holds. When it does not, exists tells ErrStale
// from ErrAbsent (META-05).
func (t *tx) change(owner caller.Scope, query, exists, id string, args ...any) error {
	if owner != t.scope {
		return store.ErrAbsent
	}
	n, err := t.exec(query, append([]any{id}, args...)...)
	if err != nil || n > 0 {
		return err
	}
	if _, err := one(t, exists, func(r row) (n int, err error) { return n, r.Scan(&n) }, id); err != nil {
		return err
	}
	return store.ErrStale
}

// touch sets one time of the record with the id; ErrAbsent if there is none.
func (t *tx) touch(query, id string, at time.Time) error {
	n, err := t.exec(query, id, micros(at))
	if err == nil && n == 0 {
		return store.ErrAbsent
	}
	return err
}

// row is what a record is scanned from.
type row interface{ Scan(...any) error }

// one reads one record; args begin at ?3.
func one[T any](t *tx, query string, scan func(row) (T, error), args ...any) (T, error) {
	var zero T
	s, err := t.statement(query)
	if err != nil {
		return zero, err
	}
	v, err := scan(s.QueryRowContext(t.ctx, t.args(args)...))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return zero, store.ErrAbsent
	case err != nil:
		return zero, t.fail(err)
	}
	return v, nil
}

// list reads at most limit records; limit is ?3, args begin at ?4.
func list[T any](t *tx, query string, limit int, scan func(row) (T, error), args ...any) ([]T, error) {
	if limit < 1 || limit > maxRows {
		return nil, t.fail(fmt.Errorf("sqlite: a limit of %d is not between 1 and %d", limit, maxRows))
	}
	s, err := t.statement(query)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(t.ctx, t.args(append([]any{limit}, args...))...)
	found, err := collect(rows, err, scan)
	if err != nil {
		return nil, t.fail(err)
	}
	return found, nil
}

func collect[T any](rows *sql.Rows, err error, scan func(row) (T, error)) ([]T, error) {
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	var out []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, translate(err)
		}
		out = append(out, v)
	}
	return out, translate(rows.Err())
}

// text stores "" as NULL.
func text(s string) sql.NullString { return sql.NullString{String: s, Valid: s != ""} }

// micros stores a time; the zero time is NULL.
func micros(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMicro(), Valid: !t.IsZero()}
}

// stamp scans what micros stored.
type stamp struct{ to *time.Time }

func (s stamp) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*s.to = time.Time{}
	case int64:
		*s.to = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("a time is stored as %T", v)
	}
	return nil
}

// maybe scans NULL as "".
type maybe struct{ to *string }

func (m maybe) Scan(v any) error {
	var s sql.NullString
	err := s.Scan(v)
	*m.to = s.String
	return err
}

// document scans a value that encode stored.
type document struct{ of any }

func (d document) Scan(v any) error {
	s, ok := v.(string)
	if !ok {
		return fmt.Errorf("a document is stored as %T", v)
	}
	return json.Unmarshal([]byte(s), d.of)
}

// encode makes the JSON text of a value.
func encode(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}
