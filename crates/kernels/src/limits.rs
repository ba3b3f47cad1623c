//! The limits of kernels and packages. What exceeds them is refused.

/// The largest number of files and directories of a kernel and of a package.
pub(crate) const MAX_FILES: usize = 200_000;
/// The largest size of all files of a package. Modules with debug information take some gigabytes.
pub(crate) const MAX_BYTES: u64 = 16 << 30;
/// The deepest nesting of directories in them.
pub(crate) const MAX_DEPTH: usize = 64;
