-- How many times in a row a sample's value was measured.

ALTER TABLE samples ADD COLUMN count INTEGER NOT NULL DEFAULT 1;
