-- The kept workspace that a sandbox has; null where it has one of its own.
ALTER TABLE sandboxes ADD COLUMN workspace TEXT;

-- Sandboxes are also found by their keys, the newest first.
CREATE INDEX sandboxes_by_key ON sandboxes (key, created_at_ms);
