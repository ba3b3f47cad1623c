-- When that was over what a sample measured, where it says so: nanoseconds of guest time.

ALTER TABLE samples ADD COLUMN ended INTEGER;
