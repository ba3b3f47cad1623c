-- Checksums of all else: see src/checksums.rs.

CREATE TABLE checksums (
    of TEXT PRIMARY KEY,      -- `store`, `experiment 1`, `boot b1`
    sums BLOB NOT NULL,
    digest BLOB NOT NULL      -- of both
) STRICT;
