-- What somebody wants to do and a person decides about.
CREATE TABLE approvals (
    id            TEXT    PRIMARY KEY,
    -- As it was asked: JSON.
    request       TEXT    NOT NULL,
    status        TEXT    NOT NULL CHECK (status IN ('pending', 'approve', 'deny')),
    reason        TEXT,
    -- Whose token it was decided with.
    decided_by    TEXT,
    created_at_ms INTEGER NOT NULL,
    decided_at_ms INTEGER
) STRICT;

CREATE INDEX approvals_by_time ON approvals (created_at_ms);
