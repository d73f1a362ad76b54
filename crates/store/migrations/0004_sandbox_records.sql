-- What a workspace's UI notes about sandboxes elsewhere. Nothing is started from it.
CREATE TABLE sandbox_records (
    id            TEXT    PRIMARY KEY,
    -- As it was asked: JSON.
    request       TEXT    NOT NULL,
    status        TEXT    NOT NULL CHECK (status IN ('pending', 'running', 'stopped')),
    -- 1 of the one that is used, else NULL.
    active        INTEGER UNIQUE CHECK (active = 1),
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    started_at_ms INTEGER,
    stopped_at_ms INTEGER
) STRICT;

CREATE INDEX sandbox_records_by_time ON sandbox_records (created_at_ms);
