-- The first and the last sample of each series of more than two: differences need no more, and
-- series may be long.

CREATE TABLE chunk_ends (
    boot INTEGER NOT NULL,
    place INTEGER NOT NULL,   -- that of the chunk
    packed BLOB NOT NULL,     -- times and columns: see src/chunk.rs
    PRIMARY KEY (boot, place)
) STRICT;
