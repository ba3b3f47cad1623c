//! The properties of kernels and packages that depend on the guest's architecture.

pub mod arm64;
mod x86_64;

use model::Architecture;

use crate::image::{banner, release};
use crate::tool::Tool;

/// The kernel's function that switches tasks. `None` where the running task is known without it.
pub const fn switch(arch: Architecture) -> Option<&'static str> {
    match arch {
        Architecture::X86_64 => Some(x86_64::SWITCH),
        Architecture::Arm64 => None,
    }
}

/// How kernels of an architecture are built from source.
pub(crate) struct Recipe {
    /// The small configuration for VMs.
    pub small: &'static str,
    /// The names of the architecture in configurations. The first one is usual.
    pub configured: &'static [&'static str],
    /// The target of `make` that makes what machines boot.
    pub target: &'static str,
    /// The images in the directory of a build. Machines boot the first one, which `target` makes.
    pub images: &'static [&'static str],
    /// The output directory, below the source.
    pub output: &'static str,
    /// The word for `make` that chooses the architecture, unless it is the host's.
    pub make: Option<&'static str>,
    /// What the names of GNU's programs for it begin with.
    pub prefix: &'static str,
    /// The Debian package of GCC for it, without the suffix of a version.
    pub package: &'static str,
    /// The program that strips debug information from its modules.
    pub strip: Tool,
    /// An address of kernel code, at which an object can be linked alone.
    pub text: u64,
}

/// How kernels of an architecture are built from source.
pub(crate) const fn recipe(arch: Architecture) -> &'static Recipe {
    match arch {
        Architecture::X86_64 => &x86_64::RECIPE,
        Architecture::Arm64 => &arm64::RECIPE,
    }
}

// Only x86-64 kernels come with headers.
pub(crate) use x86_64::{COMPRESSED, MODULE_SCRIPT, SOURCE};
pub use x86_64::{DEBIAN, image};

/// The architecture of an image that machines can boot, and the kernel's release if the image has it. The error says
/// why no machine can.
pub(crate) fn identify(file: &[u8]) -> Result<(Architecture, Option<String>), String> {
    match arm64::image::unpack(file) {
        Err(arm64::image::Error::NotImage) => {
            image::check(file).map_err(|error| error.to_string())?;
            Ok((Architecture::X86_64, image::release(file)))
        }
        Err(error) => Err(error.to_string()),
        Ok(unpacked) => {
            let plain = unpacked.as_deref().unwrap_or(file);
            Ok((Architecture::Arm64, banner(plain).and_then(release)))
        }
    }
}

/// Debian's name of an architecture.
pub const fn debian(arch: Architecture) -> &'static str {
    match arch {
        Architecture::X86_64 => DEBIAN,
        Architecture::Arm64 => arm64::DEBIAN,
    }
}
