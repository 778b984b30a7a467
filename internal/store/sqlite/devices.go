package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/chaperone-agents/chaperone/internal/rules/device"
	"github.com/chaperone-agents/chaperone/internal/store"
)

const deviceColumns = `fingerprint, name, role, session_id, verifier, created_at, last_seen_at, revoked_at`

const (
	insertDevice = `
INSERT INTO devices (tenant_id, principal_id, ` + deviceColumns + `)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT DO NOTHING`

	selectDevices = `SELECT tenant_id, principal_id, ` + deviceColumns + ` FROM devices` + mine + `ORDER BY seq DESC LIMIT ?3`

	selectLiveDevices = `
SELECT tenant_id, principal_id, ` + deviceColumns + ` FROM devices` + mine + `
  AND revoked_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM sessions WHERE tenant_id = ?1 AND principal_id = ?2 AND id = devices.session_id AND ended_at IS NOT NULL)
ORDER BY seq DESC LIMIT ?3`

	// The first revocation stands.
	revokeDevice = `UPDATE devices SET revoked_at = COALESCE(revoked_at, ?4)` + mine + `AND fingerprint = ?3`

	seenDevice = `UPDATE devices SET last_seen_at = ?4` + mine + `AND fingerprint = ?3`

	// Authentication knows no scope yet; this is the one look-up without it.
	selectAnyDevice = `SELECT tenant_id, principal_id, ` + deviceColumns + ` FROM devices WHERE fingerprint = ?1`
)

func deviceStatements() []string {
	return []string{insertDevice, selectDevices, selectLiveDevices, revokeDevice, seenDevice, selectAnyDevice}
}

func scanDevice(r row) (d device.Device, err error) {
	err = r.Scan(&d.Tenant, &d.Principal, &d.Fingerprint, &d.Name, &d.Role, maybe{&d.SessionID}, &d.Verifier,
		stamp{&d.CreatedAt}, stamp{&d.LastSeenAt}, stamp{&d.RevokedAt})
	return d, err
}

// Device implements store.Store.
func (s *Store) Device(ctx context.Context, fingerprint string) (device.Device, error) {
	d, err := scanDevice(s.read.statements[selectAnyDevice].QueryRowContext(ctx, fingerprint))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return device.Device{}, store.ErrAbsent
	case err != nil:
		return device.Device{}, translate(err)
	}
	return d, nil
}

func (t *tx) InsertDevice(d device.Device) error {
	return t.insert(d.Scope, insertDevice, d.Fingerprint, d.Name, d.Role, text(d.SessionID), d.Verifier,
		micros(d.CreatedAt), micros(d.LastSeenAt), micros(d.RevokedAt))
}

func (t *tx) Devices(live bool, limit int) ([]device.Device, error) {
	query := selectDevices
	if live {
		query = selectLiveDevices
	}
	return list(t, query, limit, scanDevice)
}

func (t *tx) RevokeDevice(fingerprint string, at time.Time) error {
	return t.touch(revokeDevice, fingerprint, at)
}

func (t *tx) SeenDevice(fingerprint string, at time.Time) error {
	return t.touch(seenDevice, fingerprint, at)
}
