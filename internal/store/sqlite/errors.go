package sqlite

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/chaperone-agents/chaperone/internal/store"
)

// translate gives an error of the database the meaning that store.go defines.
// The database's own words stay inside the chain, for the log.
func translate(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() {
	case lib.SQLITE_CONSTRAINT_UNIQUE, lib.SQLITE_CONSTRAINT_PRIMARYKEY:
		return fmt.Errorf("%w: %w", store.ErrExists, err)
	case lib.SQLITE_CONSTRAINT_FOREIGNKEY: // what it belongs to is not in this scope
		return fmt.Errorf("%w: %w", store.ErrAbsent, err)
	}
	switch e.Code() & 0xff { // the primary code; the rest is detail
	case lib.SQLITE_FULL, lib.SQLITE_READONLY, lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_IOERR,
		lib.SQLITE_CANTOPEN, lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_PERM, lib.SQLITE_NOMEM, lib.SQLITE_PROTOCOL:
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return err
}
