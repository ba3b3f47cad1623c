//! Properties of x86-64 kernels and packages.

pub mod image;

use super::Recipe;
use crate::tool::Tool;

/// Debian's name of the architecture.
pub const DEBIAN: &str = "amd64";
/// The kernel's function that switches tasks (`arch/x86/entry/entry_64.S`).
pub const SWITCH: &str = "__switch_to_asm";
/// The directory of the architecture in the kernel's source.
pub(crate) const SOURCE: &str = "arch/x86";
/// The script by which modules are linked, if the architecture has one.
pub(crate) const MODULE_SCRIPT: &str = "arch/x86/module.lds";
/// The name of the compressed image in a kernel's build.
pub(crate) const COMPRESSED: &str = "bzImage";

/// How kernels are built.
pub(crate) const RECIPE: Recipe = Recipe {
    small: include_str!("x86_64/vm.config"),
    configured: &["x86", "x86_64"],
    target: "vmlinux",
    images: &["vmlinux", "arch/x86/boot/bzImage"],
    output: "output",
    make: None,
    prefix: "",
    package: "gcc",
    strip: Tool { name: "strip", hint: "install the package binutils" },
    text: 0xffff_ffff_8100_0000,
};
