//! Turns what a boot left behind into a boot that can be stored: frames, series, profiles, console.

pub mod clock;
pub mod collect;
pub mod conclude;
pub mod exact;
pub mod metrics;
pub mod order;
pub mod profile;
pub mod salvage;
pub mod sampled;
pub mod series;
pub mod span;
pub mod table;
