-- What was set in a chat while its program ran, for the programs that go on with it.
CREATE TABLE chat_settings (
    -- The one that was set last has the greatest.
    seq    INTEGER PRIMARY KEY,
    -- Which conversation, and whose.
    chat   TEXT    NOT NULL UNIQUE,
    -- What its newest client came with: JSON.
    asked  TEXT    NOT NULL,
    -- What was said since: JSON, and only what was said.
    chosen TEXT    NOT NULL
) STRICT;
