//! Reads results from the store for a comparison, of one experiment or of several.

mod across;
mod analysis;
mod coverage;
mod differences;
pub mod explanation;
mod names;
mod sampled;

pub use analysis::{Analysis, AnalysisError, Question, place_of};
pub use coverage::coverage;
pub use differences::{KeyDifference, differences};
pub use explanation::Explained;
pub use names::use_mmtests_names;
pub use sampled::SampledProfiles;
