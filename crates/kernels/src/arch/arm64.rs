//! Properties of arm64 kernels and packages.

pub mod image;

/// Debian's name of the architecture.
pub const DEBIAN: &str = "arm64";
