package sqlite

import (
	"github.com/chaperone-agents/chaperone/internal/rules/ceremony"
)

const ceremonyColumns = `id, profile_id, status, expires_at, created_at, updated_at`

const (
	insertCeremony = `
INSERT INTO ceremonies (tenant_id, principal_id, ` + ceremonyColumns + `)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING`

	selectCeremony = `SELECT tenant_id, principal_id, ` + ceremonyColumns + ` FROM ceremonies` + mine + `AND id = ?3`

	selectLatestCeremony = `
SELECT tenant_id, principal_id, ` + ceremonyColumns + ` FROM ceremonies` + mine + `AND profile_id = ?3 ORDER BY seq DESC LIMIT 1`

	updateCeremony = `
UPDATE ceremonies SET status = ?4, expires_at = ?5, updated_at = ?6` + mine + `AND id = ?3 AND status = ?7`

	ceremonyExists = `SELECT 1 FROM ceremonies` + mine + `AND id = ?3`
)

func ceremonyStatements() []string {
	return []string{insertCeremony, selectCeremony, selectLatestCeremony, updateCeremony, ceremonyExists}
}

func scanCeremony(r row) (c ceremony.Ceremony, err error) {
	err = r.Scan(&c.Tenant, &c.Principal, &c.ID, &c.ProfileID, &c.Status, stamp{&c.ExpiresAt}, stamp{&c.CreatedAt}, stamp{&c.UpdatedAt})
	return c, err
}

func (t *tx) InsertCeremony(c ceremony.Ceremony) error {
	return t.insert(c.Scope, insertCeremony, c.ID, c.ProfileID, c.Status, micros(c.ExpiresAt), micros(c.CreatedAt), micros(c.UpdatedAt))
}

func (t *tx) Ceremony(id string) (ceremony.Ceremony, error) {
	return one(t, selectCeremony, scanCeremony, id)
}

func (t *tx) LatestCeremony(profileID string) (ceremony.Ceremony, error) {
	return one(t, selectLatestCeremony, scanCeremony, profileID)
}

func (t *tx) UpdateCeremony(c ceremony.Ceremony, expected ceremony.Status) error {
	return t.change(c.Scope, updateCeremony, ceremonyExists, c.ID, c.Status, micros(c.ExpiresAt), micros(c.UpdatedAt), expected)
}
