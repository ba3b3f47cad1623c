//! Statistics on plain numbers: summaries of samples, gains between them, intervals, tests, and the behaviour of
//! series over time. Other crates decide what the numbers mean, which of them belong together, and how they are
//! printed.

mod components;
pub mod counted;
mod gain;
mod modes;
mod multiplicity;
pub mod order;
mod outliers;
mod pelt;
mod power;
mod ratio;
mod relabel;
pub mod sequential;
#[cfg(test)]
mod simulate;
mod steady;
mod student;
mod summary;
mod trend;
mod warmup;

pub use components::{Components, pooled_variance, variance_components};
pub use counted::{Counted, RepeatedValue};
pub use gain::gain;
pub use modes::{Mode, Modes, modes};
pub use multiplicity::{benjamini_hochberg, holm, least_p};
pub use outliers::outliers;
pub use pelt::pelt;
pub use power::{Design, detectable, power, required};
pub use ratio::{RatioInterval, RatioTest, ratio_interval};
pub use relabel::{Floor, floors};
pub use steady::{Steady, steady};
pub use student::{Estimate, Welch, welch};
pub use summary::Summary;
pub use trend::trend;
pub use warmup::{WarmUp, warm_up};
