-- +goose Up
-- UPL-06: what is known of the images of a session; their bytes are files.
CREATE TABLE images (
    seq          INTEGER PRIMARY KEY,
    tenant_id    TEXT    NOT NULL CHECK (length(tenant_id) BETWEEN 1 AND 255),
    principal_id TEXT    NOT NULL CHECK (length(principal_id) BETWEEN 1 AND 255),
    id           TEXT    NOT NULL CHECK (length(id) = 36),
    session_id   TEXT    NOT NULL,
    origin       TEXT    NOT NULL CHECK (origin <> ''),
    media_type   TEXT    NOT NULL CHECK (media_type IN ('image/png', 'image/jpeg', 'image/webp')),
    size         INTEGER NOT NULL CHECK (size BETWEEN 1 AND 5242880),
    width        INTEGER NOT NULL CHECK (width >= 1),
    height       INTEGER NOT NULL CHECK (height >= 1),
    sha256       TEXT    NOT NULL CHECK (length(sha256) = 64),
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    UNIQUE (tenant_id, principal_id, id),
    FOREIGN KEY (tenant_id, principal_id, session_id) REFERENCES sessions (tenant_id, principal_id, id)
) STRICT;
CREATE INDEX images_creation ON images (tenant_id, principal_id, seq);
CREATE INDEX images_session ON images (tenant_id, principal_id, session_id, seq);
