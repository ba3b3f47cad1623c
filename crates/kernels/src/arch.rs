//! The properties of kernels and packages that depend on the guest's architecture.

pub mod arm64;
mod x86_64;

use model::Architecture;

/// The kernel's function that switches tasks. `None` where the running task is known without it.
pub const fn switch(arch: Architecture) -> Option<&'static str> {
    match arch {
        Architecture::X86_64 => Some(x86_64::SWITCH),
        Architecture::Arm64 => None,
    }
}

// Only x86-64 kernels are built, come with headers, or are the user's own.
pub use x86_64::*;

/// Debian's name of an architecture.
pub const fn debian(arch: Architecture) -> &'static str {
    match arch {
        Architecture::X86_64 => DEBIAN,
        Architecture::Arm64 => arm64::DEBIAN,
    }
}
