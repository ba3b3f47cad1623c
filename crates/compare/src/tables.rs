//! The tables of a comparison: metrics, durations, counters and events.

mod accesses;
pub mod chosen;
pub mod classes;
pub mod counters;
pub mod duration;
pub mod events;
pub mod metrics;
pub mod oddities;
mod rows;
pub mod table;
