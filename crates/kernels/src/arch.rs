//! The properties of kernels and packages that depend on the guest's architecture.

mod x86_64;

pub use x86_64::*;
