//! The parts of QEMU's machine and of the kernel's command line that depend on the guest's architecture.

mod x86_64;

pub use x86_64::*;
