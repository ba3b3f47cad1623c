//! x86-64.

pub mod image;

/// Debian's name of the architecture.
pub const DEBIAN: &str = "amd64";
/// The kernel's function that switches tasks (`arch/x86/entry/entry_64.S`).
pub const SWITCH: &str = "__switch_to_asm";
/// The directory of the architecture in the kernel's source.
pub(crate) const SOURCE: &str = "arch/x86";
/// The script by which modules are linked, if the architecture has one.
pub(crate) const MODULE_SCRIPT: &str = "arch/x86/module.lds";
/// What configurations call the architecture. The first one is usual.
pub(crate) const CONFIGURED: [&str; 2] = ["x86", "x86_64"];
/// The small configuration for VMs.
pub(crate) const SMALL: &str = include_str!("x86_64/vm.config");
/// What `make` builds so that machines can boot it.
pub(crate) const BUILT: &str = "vmlinux";
/// The compressed image, as a kernel's build calls it.
pub(crate) const COMPRESSED: &str = "bzImage";
