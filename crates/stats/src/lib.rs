//! Numbers in, numbers out: summaries of samples and gains between them. What the numbers mean,
//! which of them belong together and how they are printed is left to others.

mod gain;
mod summary;

pub use gain::gain;
pub use summary::Summary;
