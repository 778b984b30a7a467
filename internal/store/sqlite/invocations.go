package sqlite

import (
	"github.com/chaperone-agents/chaperone/internal/rules/run"
)

const invocationColumns = `id, session_id, tool, digest, approval_id, outcome, code, started_at, effect_sent_at, finished_at`

const (
	insertInvocation = `
INSERT INTO invocations (tenant_id, principal_id, ` + invocationColumns + `)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT DO NOTHING`

	// The effect watermark is not among what changes (REL-01).
	finishInvocation = `
UPDATE invocations SET outcome = ?4, code = ?5, finished_at = ?6` + mine + `AND id = ?3 AND outcome = 'running'`

	invocationExists = `SELECT 1 FROM invocations` + mine + `AND id = ?3`

	selectRunningInvocations = `
SELECT tenant_id, principal_id, ` + invocationColumns + ` FROM invocations` + mine + `AND outcome = 'running' ORDER BY seq DESC LIMIT ?3`

	selectInvocations = `
SELECT tenant_id, principal_id, ` + invocationColumns + ` FROM invocations` + mine + `AND session_id = ?4 ORDER BY seq DESC LIMIT ?3`
)

func invocationStatements() []string {
	return []string{insertInvocation, finishInvocation, invocationExists, selectRunningInvocations, selectInvocations}
}

func scanInvocation(r row) (i run.Invocation, err error) {
	err = r.Scan(&i.Tenant, &i.Principal, &i.ID, &i.SessionID, &i.Tool, &i.Digest, maybe{&i.ApprovalID}, &i.Outcome, &i.Code,
		stamp{&i.StartedAt}, stamp{&i.EffectSentAt}, stamp{&i.FinishedAt})
	return i, err
}

func (t *tx) InsertInvocation(i run.Invocation) error {
	return t.insert(i.Scope, insertInvocation, i.ID, i.SessionID, i.Tool, i.Digest, text(i.ApprovalID), i.Outcome, i.Code,
		micros(i.StartedAt), micros(i.EffectSentAt), micros(i.FinishedAt))
}

func (t *tx) FinishInvocation(i run.Invocation) error {
	return t.change(i.Scope, finishInvocation, invocationExists, i.ID, i.Outcome, i.Code, micros(i.FinishedAt))
}

func (t *tx) RunningInvocations(limit int) ([]run.Invocation, error) {
	return list(t, selectRunningInvocations, limit, scanInvocation)
}

func (t *tx) Invocations(sessionID string, limit int) ([]run.Invocation, error) {
	return list(t, selectInvocations, limit, scanInvocation, sessionID)
}
