//! What is to be run, before anything runs: reads and writes experiment files and manifests, checks what options and
//! files ask for, and makes the schedule.

pub mod file;
pub mod form;
pub mod memory_model;
mod request;
pub mod schedule;
pub mod search;
pub mod sequential;
pub mod workloads;

pub use request::Request;
pub use search::Search;
