-- Every blob is made by the code of this crate, and its SHA-256 is known before it is written. Columns beside the
-- blobs are for queries.

CREATE TABLE experiments (
    id INTEGER PRIMARY KEY,
    record BLOB NOT NULL,     -- with the list of its boots: see src/record.rs
    digest BLOB NOT NULL      -- of the record
) STRICT;

CREATE TABLE definitions (
    experiment INTEGER PRIMARY KEY REFERENCES experiments,
    definition BLOB NOT NULL  -- JSON with sorted keys, without `boots`
) STRICT;

CREATE TABLE boots (
    id INTEGER PRIMARY KEY,
    experiment INTEGER NOT NULL REFERENCES experiments,
    contents BLOB NOT NULL    -- the list of its parts with their digests: see src/parts.rs
) STRICT;

CREATE INDEX boots_by_experiment ON boots (experiment);

-- Rows have numbers, because large blobs do not belong into the tree of an index.
CREATE TABLE parts (
    boot INTEGER NOT NULL REFERENCES boots,
    place INTEGER NOT NULL,   -- in the list of parts, from 0
    bytes BLOB NOT NULL,
    PRIMARY KEY (boot, place)
) STRICT;

-- Large parts that many boots share.
CREATE TABLE texts (
    digest BLOB PRIMARY KEY,
    bytes BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- `experiments`: all experiments, with what they are found by. `numbers`: the lowest numbers for the next experiment and boot.
CREATE TABLE lists (
    name TEXT PRIMARY KEY,
    list BLOB NOT NULL,
    digest BLOB NOT NULL      -- of both
) STRICT;
