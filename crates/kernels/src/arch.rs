//! The properties of kernels and packages that depend on the guest's architecture.

pub mod arm64;
mod x86_64;

use model::Architecture;

// Only x86-64 kernels are built, come with headers, or are the user's own.
pub use x86_64::*;

/// Debian's name of an architecture.
pub const fn debian(arch: Architecture) -> &'static str {
    match arch {
        Architecture::X86_64 => DEBIAN,
        Architecture::Arm64 => arm64::DEBIAN,
    }
}
