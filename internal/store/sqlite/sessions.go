package sqlite

import (
	"time"

	"github.com/chaperone-agents/chaperone/internal/rules/run"
)

const sessionColumns = `id, profile_id, origins, headed, created_at, ended_at, contract`

const (
	insertSession = `
INSERT INTO sessions (tenant_id, principal_id, ` + sessionColumns + `)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING`

	selectSession = `SELECT tenant_id, principal_id, ` + sessionColumns + ` FROM sessions` + mine + `AND id = ?3`

	selectSessions = `
SELECT tenant_id, principal_id, ` + sessionColumns + ` FROM sessions` + mine + `AND (?4 = '' OR profile_id = ?4) ORDER BY seq DESC LIMIT ?3`

	selectLiveSessions = `
SELECT tenant_id, principal_id, ` + sessionColumns + ` FROM sessions` + mine + `
  AND ended_at IS NULL AND (?4 = '' OR profile_id = ?4) ORDER BY seq DESC LIMIT ?3`

	// The first end stands.
	endSession = `UPDATE sessions SET ended_at = COALESCE(ended_at, ?4)` + mine + `AND id = ?3`
)

func sessionStatements() []string {
	return []string{insertSession, selectSession, selectSessions, selectLiveSessions, endSession}
}

func scanSession(r row) (s run.Session, err error) {
	err = r.Scan(&s.Tenant, &s.Principal, &s.ID, maybe{&s.ProfileID}, document{&s.Origins}, &s.Headed, stamp{&s.CreatedAt}, stamp{&s.EndedAt}, &s.Contract)
	return s, err
}

func (t *tx) InsertSession(s run.Session) error {
	origins, err := encode(s.Origins)
	if err != nil {
		return t.fail(err)
	}
	return t.insert(s.Scope, insertSession, s.ID, text(s.ProfileID), origins, s.Headed, micros(s.CreatedAt), micros(s.EndedAt), string(s.Contract))
}

func (t *tx) Session(id string) (run.Session, error) { return one(t, selectSession, scanSession, id) }

func (t *tx) Sessions(profileID string, live bool, limit int) ([]run.Session, error) {
	query := selectSessions
	if live {
		query = selectLiveSessions
	}
	return list(t, query, limit, scanSession, profileID)
}

func (t *tx) EndSession(id string, at time.Time) error { return t.touch(endSession, id, at) }
