//! What of QEMU's machine and of the kernel's command line depends on the guest's architecture.

mod x86_64;

pub use x86_64::*;
