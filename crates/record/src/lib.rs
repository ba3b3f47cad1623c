//! Turns what a boot left behind (frames, series, profiles, console) into a boot that can be
//! stored.

pub mod clock;
pub mod collect;
pub mod conclude;
pub mod exact;
mod fields;
pub mod memory;
pub mod metrics;
mod misses;
mod order;
mod profile;
pub mod salvage;
mod sampled;
mod series;
mod span;
mod table;
