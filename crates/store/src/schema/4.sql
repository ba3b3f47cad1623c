-- The image of packages that workloads ran in, and what is in it.

ALTER TABLE boots ADD COLUMN userspace_digest TEXT NOT NULL DEFAULT '';
ALTER TABLE boots ADD COLUMN userspace INTEGER REFERENCES texts; -- package=version, a line each
