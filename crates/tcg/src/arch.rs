//! Code that depends on the guest's architecture.

mod x86_64;

pub use x86_64::*;
