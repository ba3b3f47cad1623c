//! Properties of arm64 kernels and packages.

pub mod image;

use super::Recipe;
use crate::tool::Tool;

/// Debian's name of the architecture.
pub const DEBIAN: &str = "arm64";
/// What ends the names of kernels with pages of 16 KiB, a flavour of Debian's.
pub const LARGE_PAGES: &str = "-16k";

/// How kernels are built.
pub(crate) const RECIPE: Recipe = Recipe {
    small: include_str!("arm64/vm.config"),
    configured: &["arm64"],
    target: "Image",
    images: &["arch/arm64/boot/Image", "arch/arm64/boot/Image.gz"],
    output: "output-arm64",
    make: Some("ARCH=arm64"),
    prefix: "aarch64-linux-gnu-",
    package: "gcc-aarch64-linux-gnu",
    strip: Tool {
        name: "aarch64-linux-gnu-strip",
        hint: "install the package binutils-aarch64-linux-gnu",
    },
    text: 0xffff_8000_8000_0000,
};
