-- Times are seconds since 1970, digests SHA-256, packed blobs zstd frames. REAL columns hold NULL
-- for NaN, which SQLite has not. `place` is the position within the boot, from 0.

CREATE TABLE experiments (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    definition TEXT NOT NULL, -- JSON with sorted keys, without `boots`
    digest BLOB NOT NULL,     -- of the definition
    boots INTEGER NOT NULL,   -- wanted of each variant
    created INTEGER NOT NULL DEFAULT (unixepoch()),
    used INTEGER NOT NULL,    -- rises whenever the experiment is kept again
    note TEXT NOT NULL DEFAULT '', -- of the user
    UNIQUE (name, digest)
) STRICT;

-- Large texts that many boots share.
CREATE TABLE texts (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    packed BLOB NOT NULL
) STRICT;

CREATE TABLE boots (
    id INTEGER PRIMARY KEY,
    experiment INTEGER NOT NULL REFERENCES experiments,
    variant TEXT NOT NULL,
    replicate INTEGER NOT NULL,
    block INTEGER NOT NULL,
    started INTEGER NOT NULL,
    outcome TEXT NOT NULL,    -- complete, partial, failed, panicked, timed-out, died, invalid or interrupted
    detail TEXT NOT NULL,     -- of the outcome, if it has any
    superseded INTEGER NOT NULL DEFAULT FALSE, -- failed, and to be done again
    release TEXT NOT NULL,
    version TEXT NOT NULL,
    banner TEXT NOT NULL,
    cmdline TEXT NOT NULL,
    preemption TEXT NOT NULL,
    cpus INTEGER NOT NULL,
    nodes INTEGER NOT NULL,
    memory INTEGER NOT NULL,
    page_size INTEGER NOT NULL,
    accel TEXT NOT NULL,
    emulator TEXT NOT NULL,
    kernel_origin TEXT NOT NULL,
    kernel_digest TEXT NOT NULL,
    config INTEGER REFERENCES texts, -- NULL if unknown
    load_before REAL,
    load_after REAL,
    steal REAL,
    wall REAL,
    console BLOB NOT NULL,    -- packed
    initramfs_digest TEXT NOT NULL DEFAULT '', -- hexadecimal, empty if not kept
    recording_digest TEXT NOT NULL DEFAULT '', -- likewise
    userspace_digest TEXT NOT NULL DEFAULT '', -- of the image of packages
    userspace INTEGER REFERENCES texts -- package=version, a line each
) STRICT;

CREATE INDEX boots_of_experiment ON boots (experiment);
CREATE UNIQUE INDEX boots_done ON boots (experiment, variant, replicate)
    WHERE outcome <> 'interrupted' AND NOT superseded;

CREATE TABLE problems (
    boot INTEGER NOT NULL REFERENCES boots,
    place INTEGER NOT NULL,
    kind TEXT NOT NULL,       -- warning, bug, stall, oom-kill, taint or series-dropped
    text TEXT NOT NULL,
    PRIMARY KEY (boot, place)
) STRICT, WITHOUT ROWID;

CREATE TABLE notes (
    boot INTEGER NOT NULL REFERENCES boots,
    place INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (boot, place)
) STRICT, WITHOUT ROWID;

CREATE TABLE samples (
    boot INTEGER NOT NULL REFERENCES boots,
    place INTEGER NOT NULL,
    workload TEXT NOT NULL,
    iteration INTEGER NOT NULL,
    phase TEXT NOT NULL,
    metric TEXT NOT NULL,
    label TEXT NOT NULL,
    value REAL,
    ended INTEGER, -- nanoseconds of guest time, where known
    count INTEGER NOT NULL DEFAULT 1, -- how many times in a row the value was measured
    PRIMARY KEY (boot, place)
) STRICT, WITHOUT ROWID;

-- Seconds.
CREATE TABLE usage (
    boot INTEGER NOT NULL REFERENCES boots,
    place INTEGER NOT NULL,
    workload TEXT NOT NULL,
    iteration INTEGER NOT NULL,
    user REAL,
    system REAL,
    elapsed REAL,
    PRIMARY KEY (boot, place)
) STRICT, WITHOUT ROWID;

-- With row numbers: large blobs do not belong into the tree of an index.
CREATE TABLE chunks (
    boot INTEGER NOT NULL REFERENCES boots,
    place INTEGER NOT NULL,
    workload TEXT NOT NULL,
    iteration INTEGER NOT NULL,
    phase TEXT NOT NULL,
    source TEXT NOT NULL,
    samples INTEGER NOT NULL, -- number of times
    packed BLOB NOT NULL,     -- times and columns: see src/chunk.rs
    PRIMARY KEY (boot, place)
) STRICT;

-- The first and the last sample of each series of more than two: differences need no more, and series may be
-- long.
CREATE TABLE chunk_ends (
    boot INTEGER NOT NULL,
    place INTEGER NOT NULL,   -- that of the chunk
    packed BLOB NOT NULL,     -- times and columns: see src/chunk.rs
    PRIMARY KEY (boot, place)
) STRICT;

-- What exact mode counted.
CREATE TABLE profiles (
    boot INTEGER NOT NULL REFERENCES boots,
    place INTEGER NOT NULL,
    workload TEXT NOT NULL,
    iteration INTEGER NOT NULL,
    phase TEXT NOT NULL,
    packed BLOB NOT NULL,     -- see src/profile.rs
    PRIMARY KEY (boot, place)
) STRICT;

-- Checksums of all tables above: see src/checksums.rs.
CREATE TABLE checksums (
    of TEXT PRIMARY KEY,      -- `store`, `experiment 1`, `boot b1`
    sums BLOB NOT NULL,
    digest BLOB NOT NULL      -- of both
) STRICT;
