//! Keeps experiments, boots, samples and series in one SQLite file.
//!
//! A boot is one transaction: the file has all of it or nothing, however the program ends. Checksums are
//! verified at each read. A boot is a list of parts: its head, samples, and series as compressed column chunks by
//! source and phase. Nothing is computed here; other crates compute means and verdicts.

mod boots;
mod check;
mod chunk;
mod edit;
mod error;
mod experiments;
mod nine;
mod packed;
mod parts;
mod profile;
mod record;
mod samples;
mod schema;
mod series;
mod store;
#[cfg(test)]
mod tests;

pub use boots::Standing;
pub use check::{Checked, Lost};
pub use error::{Error, Trouble};
pub use experiments::{ExperimentId, ExperimentRow, runs_the_same};
pub use parts::Detail;
pub use record::BootEntry;
pub use series::{Deltas, Series};
pub use store::{Store, say_waits};
