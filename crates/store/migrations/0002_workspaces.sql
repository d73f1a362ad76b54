-- The kept workspace that a sandbox has; null where it has one of its own.
ALTER TABLE sandboxes ADD COLUMN workspace TEXT;
