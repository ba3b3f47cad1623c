-- What the user remarks on an experiment.

ALTER TABLE experiments ADD COLUMN note TEXT NOT NULL DEFAULT '';
