//! Reads results from the store for a comparison, of one experiment or of several.

pub mod across;
pub mod analysis;
pub mod coverage;
pub mod differences;
pub mod explanation;
pub mod names;
pub mod sampled;
