//! Reads what a question needs from the store, and has the crate `compare` answer it. A question is
//! about one experiment or several.

mod across;
mod analysis;
mod changed;
mod coverage;
mod differences;
mod error;
mod executed;
pub mod explanation;
mod layouts;
mod lines;
mod names;
mod sampled;

pub use analysis::{Analysis, Question, place_of};
pub use changed::{MOST_CHANGED, changed_functions};
pub use coverage::coverage;
pub use differences::{KeyDifference, differences};
pub use error::AnalysisError;
pub use executed::executed;
pub use explanation::Explained;
pub use lines::{Functions, LinesQuestion, lines, with_lines};
pub use names::use_mmtests_names;
pub use sampled::SampledProfiles;
