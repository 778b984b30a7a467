package sqlite

import (
	"github.com/chaperone-agents/chaperone/internal/rules/approval"
)

const approvalColumns = `id, session_id, profile_id, generation, tool, digest, status, summary, view, reason, decided_by, created_at, expires_at, decided_at`

const (
	insertApproval = `
INSERT INTO approvals (tenant_id, principal_id, ` + approvalColumns + `)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16) ON CONFLICT DO NOTHING`

	selectApproval = `SELECT tenant_id, principal_id, ` + approvalColumns + ` FROM approvals` + mine + `AND id = ?3`

	selectOpenApproval = `
SELECT tenant_id, principal_id, ` + approvalColumns + ` FROM approvals` + mine + `
  AND session_id = ?3 AND digest = ?4 AND status IN ('pending', 'approved')`

	selectLastApproval = `
SELECT tenant_id, principal_id, ` + approvalColumns + ` FROM approvals` + mine + `
  AND session_id = ?3 AND digest = ?4 ORDER BY seq DESC LIMIT 1`

	selectApprovals = `
SELECT tenant_id, principal_id, ` + approvalColumns + ` FROM approvals` + mine + `ORDER BY seq DESC LIMIT ?3`

	selectApprovalsByStatus = `
SELECT tenant_id, principal_id, ` + approvalColumns + ` FROM approvals` + mine + `
  AND status IN (SELECT value FROM json_each(?4)) ORDER BY seq DESC LIMIT ?3`

	// +seq: sorting one session's is cheaper than going through all of a scope's.
	selectSessionApprovals = `
SELECT tenant_id, principal_id, ` + approvalColumns + ` FROM approvals` + mine + `
  AND session_id = ?5 AND (?4 = 'null' OR status IN (SELECT value FROM json_each(?4))) ORDER BY +seq DESC LIMIT ?3`

	// What an approval is about is not among what changes.
	updateApproval = `
UPDATE approvals SET status = ?4, reason = ?5, decided_by = ?6, expires_at = ?7, decided_at = ?8` + mine + `AND id = ?3 AND status = ?9`

	approvalExists = `SELECT 1 FROM approvals` + mine + `AND id = ?3`
)

func approvalStatements() []string {
	return []string{insertApproval, selectApproval, selectOpenApproval, selectLastApproval, selectApprovals,
		selectApprovalsByStatus, selectSessionApprovals, updateApproval, approvalExists}
}

func scanApproval(r row) (a approval.Approval, err error) {
	err = r.Scan(&a.Tenant, &a.Principal, &a.ID, &a.SessionID, maybe{&a.ProfileID}, &a.Generation, &a.Tool, &a.Digest, &a.Status,
		&a.Summary, document{&a.View}, &a.Reason, &a.DecidedBy, stamp{&a.CreatedAt}, stamp{&a.ExpiresAt}, stamp{&a.DecidedAt})
	return a, err
}

func (t *tx) InsertApproval(a approval.Approval) error {
	view, err := encode(a.View)
	if err != nil {
		return t.fail(err)
	}
	return t.insert(a.Scope, insertApproval, a.ID, a.SessionID, text(a.ProfileID), a.Generation, a.Tool, a.Digest, a.Status,
		a.Summary, view, a.Reason, a.DecidedBy, micros(a.CreatedAt), micros(a.ExpiresAt), micros(a.DecidedAt))
}

func (t *tx) Approval(id string) (approval.Approval, error) {
	return one(t, selectApproval, scanApproval, id)
}

func (t *tx) OpenApproval(sessionID, digest string) (approval.Approval, error) {
	return one(t, selectOpenApproval, scanApproval, sessionID, digest)
}

func (t *tx) LastApproval(sessionID, digest string) (approval.Approval, error) {
	return one(t, selectLastApproval, scanApproval, sessionID, digest)
}

func (t *tx) Approvals(sessionID string, limit int, statuses ...approval.Status) ([]approval.Approval, error) {
	wanted, err := encode(statuses)
	switch {
	case err != nil:
		return nil, t.fail(err)
	case sessionID != "":
		return list(t, selectSessionApprovals, limit, scanApproval, wanted, sessionID)
	case len(statuses) > 0:
		return list(t, selectApprovalsByStatus, limit, scanApproval, wanted)
	}
	return list(t, selectApprovals, limit, scanApproval)
}

func (t *tx) UpdateApproval(a approval.Approval, expected approval.Status) error {
	return t.change(a.Scope, updateApproval, approvalExists, a.ID, a.Status, a.Reason, a.DecidedBy, micros(a.ExpiresAt), micros(a.DecidedAt), expected)
}
