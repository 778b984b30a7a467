package sqlite

import (
	"time"

	"github.com/chaperone-agents/chaperone/internal/rules/audit"
	"github.com/chaperone-agents/chaperone/internal/store"
)

const auditColumns = `number, at, kind, device, subject, tool, digest, code, detail`

const (
	selectAuditLast = `SELECT COALESCE(MAX(number), 0) FROM audit_entries` + mine

	insertAudit = `
INSERT INTO audit_entries (tenant_id, principal_id, ` + auditColumns + `) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)`

	selectAudit = `SELECT tenant_id, principal_id, ` + auditColumns + ` FROM audit_entries` + mine + `AND number > ?4 ORDER BY number LIMIT ?3`

	selectAuditTail = `
SELECT * FROM (
  SELECT tenant_id, principal_id, ` + auditColumns + ` FROM audit_entries` + mine + `ORDER BY number DESC LIMIT ?3
) ORDER BY number`
)

func auditStatements() []string {
	return []string{selectAuditLast, insertAudit, selectAudit, selectAuditTail}
}

func scanAudit(r row) (e audit.Entry, err error) {
	err = r.Scan(&e.Tenant, &e.Principal, &e.Number, stamp{&e.At}, &e.Kind, &e.Device, &e.Subject, &e.Tool, &e.Digest, &e.Code, &e.Detail)
	return e, err
}

// Append numbers the entry inside the serialised transaction, so numbers have
// no gaps and a transaction that fails uses none up.
func (t *tx) Append(e audit.Entry) (audit.Entry, error) {
	if e.Scope != t.scope {
		return audit.Entry{}, store.ErrAbsent
	}
	last, err := one(t, selectAuditLast, func(r row) (n int64, err error) { return n, r.Scan(&n) })
	if err != nil {
		return audit.Entry{}, err
	}
	e.Number, e.At = last+1, e.At.UTC().Truncate(time.Microsecond)
	if _, err := t.exec(insertAudit, e.Number, micros(e.At), e.Kind, e.Device, e.Subject, e.Tool, e.Digest, e.Code, e.Detail); err != nil {
		return audit.Entry{}, err
	}
	return e, nil
}

func (t *tx) Audit(after int64, limit int) ([]audit.Entry, error) {
	return list(t, selectAudit, limit, scanAudit, after)
}

func (t *tx) AuditTail(limit int) ([]audit.Entry, error) {
	return list(t, selectAuditTail, limit, scanAudit)
}
