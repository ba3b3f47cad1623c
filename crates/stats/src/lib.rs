//! Numbers in, numbers out: summaries of samples, gains between them, intervals and tests. What the
//! numbers mean, which of them belong together and how they are printed is left to others.

mod gain;
pub mod order;
mod ratio;
#[cfg(test)]
mod simulate;
mod student;
mod summary;

pub use gain::gain;
pub use ratio::{RatioInterval, RatioTest, ratio_interval, ratio_welch};
pub use student::{Estimate, Welch, welch};
pub use summary::Summary;
