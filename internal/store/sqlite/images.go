package sqlite

import (
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/store"
)

const imageColumns = `id, session_id, origin, media_type, size, width, height, sha256, created_at, expires_at`

const (
	insertImage = `
INSERT INTO images (tenant_id, principal_id, ` + imageColumns + `)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT DO NOTHING`

	selectImage = `SELECT tenant_id, principal_id, ` + imageColumns + ` FROM images` + mine + `AND id = ?3`

	selectImages = `SELECT tenant_id, principal_id, ` + imageColumns + ` FROM images` + mine + `ORDER BY seq DESC LIMIT ?3`

	selectSessionImages = `
SELECT tenant_id, principal_id, ` + imageColumns + ` FROM images` + mine + `AND session_id = ?4 ORDER BY seq DESC LIMIT ?3`

	selectImageUse = `SELECT COUNT(*), COALESCE(SUM(size), 0) FROM images` + mine

	deleteImage = `DELETE FROM images` + mine + `AND id = ?3`
)

func imageStatements() []string {
	return []string{insertImage, selectImage, selectImages, selectSessionImages, selectImageUse, deleteImage}
}

func scanImage(r row) (i artifact.Image, err error) {
	err = r.Scan(&i.Tenant, &i.Principal, &i.ID, &i.SessionID, &i.Origin, &i.Type, &i.Size, &i.Width, &i.Height, &i.SHA256,
		stamp{&i.CreatedAt}, stamp{&i.ExpiresAt})
	return i, err
}

func (t *tx) InsertImage(i artifact.Image) error {
	return t.insert(i.Scope, insertImage, i.ID, i.SessionID, string(i.Origin), string(i.Type), i.Size, i.Width, i.Height, i.SHA256,
		micros(i.CreatedAt), micros(i.ExpiresAt))
}

func (t *tx) Image(id string) (artifact.Image, error) { return one(t, selectImage, scanImage, id) }

func (t *tx) Images(sessionID string, limit int) ([]artifact.Image, error) {
	if sessionID == "" {
		return list(t, selectImages, limit, scanImage)
	}
	return list(t, selectSessionImages, limit, scanImage, sessionID)
}

func (t *tx) ImageUse() (artifact.Use, error) {
	return one(t, selectImageUse, func(r row) (u artifact.Use, err error) { return u, r.Scan(&u.Images, &u.Bytes) })
}

func (t *tx) DeleteImage(id string) error {
	n, err := t.exec(deleteImage, id)
	if err == nil && n == 0 {
		return store.ErrAbsent
	}
	return err
}
