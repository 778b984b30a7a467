-- +goose Up
-- Every key begins with the scope that owns the row. "seq" is the order of
-- insertion; "newest" always means it, so a clock that goes back cannot make
-- an old sign-in the latest one. Times are microseconds since 1970, UTC.

-- META-01: no column for material, cookies, tokens, headers or blobs.
CREATE TABLE browser_profiles (
    seq           INTEGER PRIMARY KEY,
    tenant_id     TEXT    NOT NULL CHECK (length(tenant_id) BETWEEN 1 AND 255),
    principal_id  TEXT    NOT NULL CHECK (length(principal_id) BETWEEN 1 AND 255),
    id            TEXT    NOT NULL CHECK (id <> ''),
    provider_name TEXT    CHECK (provider_name <> ''),
    provider_ref  TEXT    CHECK (provider_ref <> ''),
    origins       TEXT    NOT NULL CHECK (json_array_length(origins) BETWEEN 1 AND 64),
    status        TEXT    NOT NULL CHECK (status IN ('provisioning', 'authentication_required', 'ready', 'needs_user', 'revoked')),
    generation    INTEGER NOT NULL CHECK (generation >= 0),
    key_version   TEXT    CHECK (key_version <> ''),
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    last_used_at  INTEGER,
    UNIQUE (tenant_id, principal_id, id),
    -- META-02: bound wholly or not at all, and unbound only before or instead of provisioning.
    CHECK ((provider_name IS NULL) = (provider_ref IS NULL) AND (provider_ref IS NULL) = (key_version IS NULL)),
    CHECK (CASE status WHEN 'provisioning' THEN provider_ref IS NULL WHEN 'revoked' THEN TRUE ELSE provider_ref IS NOT NULL END)
) STRICT;
-- META-03: across scopes, because a reference names material of one profile.
CREATE UNIQUE INDEX browser_profiles_live_ref ON browser_profiles (provider_ref) WHERE provider_ref IS NOT NULL AND status <> 'revoked';
CREATE INDEX browser_profiles_creation ON browser_profiles (tenant_id, principal_id, seq);

CREATE TABLE ceremonies (
    seq          INTEGER PRIMARY KEY,
    tenant_id    TEXT    NOT NULL,
    principal_id TEXT    NOT NULL,
    id           TEXT    NOT NULL CHECK (id <> ''),
    profile_id   TEXT    NOT NULL,
    status       TEXT    NOT NULL CHECK (status IN ('authentication_required', 'needs_user', 'ready', 'expired', 'cancelled')),
    expires_at   INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    UNIQUE (tenant_id, principal_id, id),
    FOREIGN KEY (tenant_id, principal_id, profile_id) REFERENCES browser_profiles (tenant_id, principal_id, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX ceremonies_profile ON ceremonies (tenant_id, principal_id, profile_id, seq);

-- profile_id has no foreign key: the history outlives the profile.
CREATE TABLE sessions (
    seq          INTEGER PRIMARY KEY,
    tenant_id    TEXT    NOT NULL CHECK (length(tenant_id) BETWEEN 1 AND 255),
    principal_id TEXT    NOT NULL CHECK (length(principal_id) BETWEEN 1 AND 255),
    id           TEXT    NOT NULL CHECK (id <> ''),
    profile_id   TEXT    CHECK (profile_id <> ''),
    origins      TEXT    NOT NULL CHECK (json_array_length(origins) BETWEEN 1 AND 64),
    headed       INTEGER NOT NULL CHECK (headed IN (0, 1)),
    created_at   INTEGER NOT NULL,
    ended_at     INTEGER,
    UNIQUE (tenant_id, principal_id, id)
) STRICT;
CREATE INDEX sessions_creation ON sessions (tenant_id, principal_id, seq);
CREATE INDEX sessions_live ON sessions (tenant_id, principal_id, seq) WHERE ended_at IS NULL;

CREATE TABLE approvals (
    seq          INTEGER PRIMARY KEY,
    tenant_id    TEXT    NOT NULL,
    principal_id TEXT    NOT NULL,
    id           TEXT    NOT NULL CHECK (id <> ''),
    session_id   TEXT    NOT NULL,
    profile_id   TEXT    CHECK (profile_id <> ''),
    generation   INTEGER NOT NULL CHECK (generation >= 0),
    tool         TEXT    NOT NULL CHECK (tool <> ''),
    digest       TEXT    NOT NULL CHECK (digest <> ''),
    status       TEXT    NOT NULL CHECK (status IN ('pending', 'approved', 'used', 'denied', 'expired', 'cancelled')),
    summary      TEXT    NOT NULL,
    view         TEXT    NOT NULL CHECK (json_valid(view)),
    reason       TEXT    NOT NULL CHECK (length(reason) <= 500),
    decided_by   TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    decided_at   INTEGER,
    UNIQUE (tenant_id, principal_id, id),
    FOREIGN KEY (tenant_id, principal_id, session_id) REFERENCES sessions (tenant_id, principal_id, id),
    -- An answer names who gave it.
    CHECK (status NOT IN ('approved', 'used', 'denied') OR (decided_by <> '' AND decided_at IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX approvals_open ON approvals (tenant_id, principal_id, session_id, digest) WHERE status IN ('pending', 'approved');
CREATE INDEX approvals_creation ON approvals (tenant_id, principal_id, seq);
CREATE INDEX approvals_waiting ON approvals (tenant_id, principal_id, status, seq);
CREATE INDEX approvals_session ON approvals (tenant_id, principal_id, session_id, digest, seq);

CREATE TABLE invocations (
    seq            INTEGER PRIMARY KEY,
    tenant_id      TEXT    NOT NULL,
    principal_id   TEXT    NOT NULL,
    id             TEXT    NOT NULL CHECK (id <> ''),
    session_id     TEXT    NOT NULL,
    tool           TEXT    NOT NULL CHECK (tool <> ''),
    digest         TEXT    NOT NULL CHECK (digest <> ''),
    approval_id    TEXT,
    outcome        TEXT    NOT NULL CHECK (outcome IN ('running', 'succeeded', 'failed', 'uncertain')),
    code           TEXT    NOT NULL,
    started_at     INTEGER NOT NULL,
    effect_sent_at INTEGER,
    finished_at    INTEGER,
    UNIQUE (tenant_id, principal_id, id),
    FOREIGN KEY (tenant_id, principal_id, session_id) REFERENCES sessions (tenant_id, principal_id, id),
    FOREIGN KEY (tenant_id, principal_id, approval_id) REFERENCES approvals (tenant_id, principal_id, id),
    CHECK ((outcome = 'running') = (finished_at IS NULL))
) STRICT;
-- GATE-07: whatever the code above does, one approval authorizes one call.
CREATE UNIQUE INDEX invocations_approval ON invocations (tenant_id, principal_id, approval_id) WHERE approval_id IS NOT NULL;
CREATE INDEX invocations_session ON invocations (tenant_id, principal_id, session_id, seq);
CREATE INDEX invocations_running ON invocations (tenant_id, principal_id, seq) WHERE outcome = 'running';

-- A fingerprint is unique across scopes: authentication starts from it alone.
CREATE TABLE devices (
    seq          INTEGER PRIMARY KEY,
    tenant_id    TEXT    NOT NULL CHECK (length(tenant_id) BETWEEN 1 AND 255),
    principal_id TEXT    NOT NULL CHECK (length(principal_id) BETWEEN 1 AND 255),
    fingerprint  TEXT    NOT NULL UNIQUE CHECK (length(fingerprint) = 32),
    name         TEXT    NOT NULL CHECK (length(name) BETWEEN 1 AND 80),
    role         TEXT    NOT NULL CHECK (role IN ('owner', 'agent')),
    session_id   TEXT,
    verifier     BLOB    NOT NULL CHECK (length(verifier) = 32),
    created_at   INTEGER NOT NULL,
    last_seen_at INTEGER,
    revoked_at   INTEGER,
    FOREIGN KEY (tenant_id, principal_id, session_id) REFERENCES sessions (tenant_id, principal_id, id),
    CHECK ((role = 'agent') = (session_id IS NOT NULL))
) STRICT;
CREATE INDEX devices_creation ON devices (tenant_id, principal_id, seq);

CREATE TABLE audit_entries (
    tenant_id    TEXT    NOT NULL CHECK (length(tenant_id) BETWEEN 1 AND 255),
    principal_id TEXT    NOT NULL CHECK (length(principal_id) BETWEEN 1 AND 255),
    number       INTEGER NOT NULL CHECK (number >= 1),
    at           INTEGER NOT NULL,
    kind         TEXT    NOT NULL CHECK (kind <> ''),
    device       TEXT    NOT NULL,
    subject      TEXT    NOT NULL,
    tool         TEXT    NOT NULL,
    digest       TEXT    NOT NULL,
    code         TEXT    NOT NULL,
    detail       TEXT    NOT NULL,
    PRIMARY KEY (tenant_id, principal_id, number)
) STRICT, WITHOUT ROWID;

-- +goose StatementBegin
CREATE TRIGGER audit_entries_unchanged BEFORE UPDATE ON audit_entries
BEGIN
    SELECT RAISE(ABORT, 'audit entries are never changed');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_entries_kept BEFORE DELETE ON audit_entries
BEGIN
    SELECT RAISE(ABORT, 'audit entries are never deleted');
END;
-- +goose StatementEnd
