//! The whole laboratory on real kernels, driven as users drive it.

mod balancing;
mod common;
mod faults;
mod host;
mod long;
