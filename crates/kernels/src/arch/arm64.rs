//! Properties of arm64 kernels and packages.

pub mod image;

/// Debian's name of the architecture.
pub const DEBIAN: &str = "arm64";
/// What ends the names of kernels with pages of 16 KiB, a flavour of Debian's.
pub const LARGE_PAGES: &str = "-16k";
