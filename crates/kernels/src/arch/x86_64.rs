//! Properties of x86-64 kernels and packages.

pub mod image;

/// Debian's name of the architecture.
pub const DEBIAN: &str = "amd64";
/// The kernel's function that switches tasks (`arch/x86/entry/entry_64.S`).
pub const SWITCH: &str = "__switch_to_asm";
/// The directory of the architecture in the kernel's source.
pub(crate) const SOURCE: &str = "arch/x86";
/// The script by which modules are linked, if the architecture has one.
pub(crate) const MODULE_SCRIPT: &str = "arch/x86/module.lds";
/// The names of the architecture in configurations. The first one is usual.
pub(crate) const CONFIGURED: [&str; 2] = ["x86", "x86_64"];
/// The small configuration for VMs.
pub(crate) const SMALL: &str = include_str!("x86_64/vm.config");
/// The target of `make` that machines can boot.
pub(crate) const BUILT: &str = "vmlinux";
/// The name of the compressed image in a kernel's build.
pub(crate) const COMPRESSED: &str = "bzImage";
/// The compressed image in the directory of a build.
pub(crate) const IMAGE: &str = "arch/x86/boot/bzImage";
