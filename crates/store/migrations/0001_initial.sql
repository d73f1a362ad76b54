-- Times are milliseconds: "wall" since the Unix epoch, "boot" since the machine started.

CREATE TABLE instance (
    only_row      INTEGER PRIMARY KEY CHECK (only_row = 1),
    instance_id   TEXT    NOT NULL,
    created_at_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE sandboxes (
    id                  TEXT    PRIMARY KEY,
    key                 TEXT    NOT NULL,
    state               TEXT    NOT NULL
        CHECK (state IN ('creating', 'running', 'paused', 'stopping', 'gone', 'failed')),
    -- Why it is ending or has ended: JSON, null while it lives.
    cause               TEXT,
    engine              TEXT    NOT NULL,
    image               TEXT    NOT NULL,
    runtime             TEXT    NOT NULL,
    network             TEXT    NOT NULL,
    limits              TEXT    NOT NULL,
    -- The allow-list: a JSON array of port numbers.
    ports               TEXT    NOT NULL,
    created_at_ms       INTEGER NOT NULL,
    idle_ttl_ms         INTEGER NOT NULL,
    -- Both clocks, because a wall clock may be set while the daemon is down.
    last_active_wall_ms INTEGER NOT NULL,
    last_active_boot_ms INTEGER NOT NULL,
    ends_at_wall_ms     INTEGER,
    ends_at_boot_ms     INTEGER,
    -- The boot that the boot times belong to.
    boot_id             TEXT    NOT NULL,
    -- As last seen: a paused sandbox cannot be asked.
    commands            INTEGER NOT NULL,
    closed_at_ms        INTEGER
) STRICT;

CREATE INDEX open_sandboxes ON sandboxes (created_at_ms) WHERE closed_at_ms IS NULL;
CREATE INDEX closed_sandboxes ON sandboxes (closed_at_ms) WHERE closed_at_ms IS NOT NULL;

CREATE TABLE ports (
    sandbox_id TEXT    NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    port       INTEGER NOT NULL CHECK (port BETWEEN 1 AND 65535),
    host_port  INTEGER NOT NULL CHECK (host_port BETWEEN 1 AND 65535),
    PRIMARY KEY (sandbox_id, port)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    seq        INTEGER PRIMARY KEY,
    time_ms    INTEGER NOT NULL,
    -- Not a reference: an event outlives what it tells about.
    sandbox_id TEXT,
    kind       TEXT    NOT NULL,
    detail     TEXT    NOT NULL
) STRICT;

CREATE TRIGGER events_are_never_rewritten BEFORE UPDATE ON events
BEGIN
    SELECT RAISE(ABORT, 'events are append-only');
END;

CREATE TABLE post_mortems (
    sandbox_id  TEXT    PRIMARY KEY REFERENCES sandboxes (id) ON DELETE CASCADE,
    ended_at_ms INTEGER NOT NULL,
    body        TEXT    NOT NULL
) STRICT;

CREATE INDEX post_mortems_by_end ON post_mortems (ended_at_ms);

CREATE TABLE tokens (
    token_id      INTEGER PRIMARY KEY,
    name          TEXT    NOT NULL,
    scope         TEXT    NOT NULL,
    -- Never the token itself.
    sha256        BLOB    NOT NULL UNIQUE CHECK (length(sha256) = 32),
    created_at_ms INTEGER NOT NULL,
    revoked_at_ms INTEGER
) STRICT;

CREATE UNIQUE INDEX live_token_names ON tokens (name) WHERE revoked_at_ms IS NULL;
