//! Code that depends on the architecture: pages, the console, and the marks of the profile.

mod x86_64;

pub use x86_64::*;
