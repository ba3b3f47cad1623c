//! Numbers in, numbers out: summaries of samples, gains between them, and intervals. What the
//! numbers mean, which of them belong together and how they are printed is left to others.

mod gain;
mod interval;
pub mod order;
mod summary;

pub use gain::gain;
pub use interval::{RatioInterval, ratio_interval};
pub use summary::Summary;
