//! How a kernel is built from source.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Architecture;

/// The changes to a source before it is built, and the way in which it is built. The source itself is named like a
/// kernel, such as `git:v6.12`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Build {
    /// The architecture that the kernel is for.
    pub arch: Architecture,
    /// The git repository of commits and of the working tree.
    pub tree: Option<PathBuf>,
    /// Commits to revert, in order.
    pub revert: Vec<String>,
    /// Commits to apply after that, in order.
    pub pick: Vec<String>,
    /// Patches, mailboxes and directories of them to apply after that, in order.
    pub patches: Vec<PathBuf>,
    /// Number of patches to apply, from the first; `None` for all.
    pub first: Option<usize>,
    /// The configuration to start from: a file, or a kernel such as `debian:6.12`; `None` for a small one.
    pub config: Option<String>,
    /// The text of the configuration to start from. If it is given, `config` is only its name.
    pub text: Option<String>,
    /// Files with options that replace those of the configuration.
    pub fragments: Vec<PathBuf>,
    /// Options that replace all others, by name.
    pub set: BTreeMap<String, String>,
    /// The compiler that builds the kernel.
    pub compiler: Compiler,
    /// Whether options with the value `m` are built, as modules.
    pub with_modules: bool,
    /// Modules of the kernel whose options are built in, such as `zram`.
    pub modules: Vec<String>,
    /// Whether the headers are kept, because modules are built for it later.
    pub headers: bool,
}

/// A compiler with the suffix of its version, such as `-14`, which may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// GCC with GNU's linker.
    Gcc(String),
    /// Clang with LLVM's linker and tools.
    Llvm(String),
}

impl Default for Compiler {
    fn default() -> Self {
        Self::Gcc(String::new())
    }
}

impl FromStr for Compiler {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, version) = text.split_once('-').unwrap_or((text, ""));
        let is_version = version.bytes().all(|byte| byte.is_ascii_digit());
        let suffix = if version.is_empty() { String::new() } else { format!("-{version}") };
        match name {
            "gcc" if is_version => Ok(Self::Gcc(suffix)),
            "llvm" if is_version => Ok(Self::Llvm(suffix)),
            _ => Err(format!("`{text}` is not a compiler: use gcc, gcc-14, llvm or llvm-19")),
        }
    }
}

impl fmt::Display for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gcc(suffix) => write!(f, "gcc{suffix}"),
            Self::Llvm(suffix) => write!(f, "llvm{suffix}"),
        }
    }
}

/// The byte offsets of fields of `struct task_struct` that identify a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskLayout {
    /// `tgid`, the thread group ID.
    pub tgid: u64,
    /// `comm`, the thread's name.
    pub comm: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_are_read_and_written() {
        for text in ["gcc", "gcc-14", "llvm", "llvm-19"] {
            assert_eq!(text.parse::<Compiler>().unwrap().to_string(), text);
        }
        for text in ["", "cc", "gcc-x", "gcc-1 2", "gcc/../x"] {
            assert!(text.parse::<Compiler>().is_err(), "{text}");
        }
    }
}
