-- What makes a boot of exact mode the same again, and what was counted in it. Digests are
-- hexadecimal, empty where they were not kept.

ALTER TABLE boots ADD COLUMN initramfs_digest TEXT NOT NULL DEFAULT '';
ALTER TABLE boots ADD COLUMN recording_digest TEXT NOT NULL DEFAULT '';

CREATE TABLE profiles (
    boot INTEGER NOT NULL REFERENCES boots,
    place INTEGER NOT NULL,
    workload TEXT NOT NULL,
    iteration INTEGER NOT NULL,
    phase TEXT NOT NULL,
    packed BLOB NOT NULL,     -- see src/profile.rs
    PRIMARY KEY (boot, place)
) STRICT;
