//! Directories of logs that mmtests left.

pub mod benchmark;
