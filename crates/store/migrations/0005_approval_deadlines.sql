-- Whose question it is, and until when it waits. Questions of before are everybody's, and wait an hour.
ALTER TABLE approvals ADD COLUMN asked_by TEXT;
ALTER TABLE approvals ADD COLUMN expires_at_ms INTEGER NOT NULL DEFAULT 0;
UPDATE approvals SET expires_at_ms = created_at_ms + 3600000;
