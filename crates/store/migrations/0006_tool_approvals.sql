-- Calls of tools that a rule stopped or a person was asked about. Never executed from here.
CREATE TABLE tool_approvals (
    id            TEXT    PRIMARY KEY,
    session       TEXT    NOT NULL,
    tool          TEXT    NOT NULL,
    -- As it was called: JSON.
    input         TEXT    NOT NULL,
    -- Of session, tool and input: what a decision is about.
    digest        TEXT    NOT NULL,
    -- Why it was stopped or asked about.
    rule          TEXT    NOT NULL,
    outcome       TEXT    NOT NULL
        CHECK (outcome IN ('waiting', 'allowed', 'denied', 'expired', 'withdrawn', 'abandoned')),
    -- Whose token, or what else decided.
    decided_by    TEXT,
    asked_at_ms   INTEGER NOT NULL,
    deadline_ms   INTEGER NOT NULL,
    decided_at_ms INTEGER
) STRICT;

CREATE INDEX tool_approvals_by_time ON tool_approvals (asked_at_ms);
CREATE INDEX waiting_tool_approvals ON tool_approvals (asked_at_ms) WHERE outcome = 'waiting';
