package sqlite

import (
	"github.com/chaperone-agents/chaperone/internal/rules/profile"
)

const profileColumns = `id, provider_name, provider_ref, origins, status, generation, key_version, created_at, updated_at, last_used_at`

const (
	insertProfile = `
INSERT INTO browser_profiles (tenant_id, principal_id, ` + profileColumns + `)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT DO NOTHING`

	selectProfile = `SELECT tenant_id, principal_id, ` + profileColumns + ` FROM browser_profiles` + mine + `AND id = ?3`

	selectProfiles = `SELECT tenant_id, principal_id, ` + profileColumns + ` FROM browser_profiles` + mine + `ORDER BY seq DESC LIMIT ?3`

	// A generation never goes back: that would revive leases and approvals (PSM-07).
	updateProfile = `
UPDATE browser_profiles SET provider_name = ?4, provider_ref = ?5, origins = ?6, status = ?7, generation = ?8,
  key_version = ?9, updated_at = ?10, last_used_at = ?11` + mine + `AND id = ?3 AND generation = ?12 AND generation <= ?8`

	deleteProfile = `DELETE FROM browser_profiles` + mine + `AND id = ?3 AND generation = ?4`

	profileExists = `SELECT 1 FROM browser_profiles` + mine + `AND id = ?3`
)

func profileStatements() []string {
	return []string{insertProfile, selectProfile, selectProfiles, updateProfile, deleteProfile, profileExists}
}

func scanProfile(r row) (p profile.Profile, err error) {
	err = r.Scan(&p.Tenant, &p.Principal, &p.ID, maybe{&p.ProviderName}, maybe{&p.ProviderRef}, document{&p.Origins}, &p.Status,
		&p.Generation, maybe{&p.KeyVersion}, stamp{&p.CreatedAt}, stamp{&p.UpdatedAt}, stamp{&p.LastUsedAt})
	return p, err
}

func (t *tx) InsertProfile(p profile.Profile) error {
	origins, err := encode(p.Origins)
	if err != nil {
		return t.fail(err)
	}
	return t.insert(p.Scope, insertProfile, p.ID, text(p.ProviderName), text(p.ProviderRef), origins, p.Status,
		p.Generation, text(p.KeyVersion), micros(p.CreatedAt), micros(p.UpdatedAt), micros(p.LastUsedAt))
}

func (t *tx) Profile(id string) (profile.Profile, error) {
	return one(t, selectProfile, scanProfile, id)
}

func (t *tx) Profiles(limit int) ([]profile.Profile, error) {
	return list(t, selectProfiles, limit, scanProfile)
}

func (t *tx) UpdateProfile(p profile.Profile, expected int64) error {
	origins, err := encode(p.Origins)
	if err != nil {
		return t.fail(err)
	}
	return t.change(p.Scope, updateProfile, profileExists, p.ID, text(p.ProviderName), text(p.ProviderRef), origins, p.Status,
		p.Generation, text(p.KeyVersion), micros(p.UpdatedAt), micros(p.LastUsedAt), expected)
}

func (t *tx) DeleteProfile(id string, expected int64) error {
	return t.change(t.scope, deleteProfile, profileExists, id, expected)
}
