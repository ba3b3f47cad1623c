//! Options for kernels that are built from source.

use std::path::{Path, PathBuf};

use clap::Args;
use kernels::{Request, Source};
use model::{Build, Compiler};

/// How kernels are built from source.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Kernels from source")]
pub struct BuildArgs {
    /// Git repository of kernels; a kernel named without a colon is a commit of it, and `worktree` its files
    /// as they are now. Faultline only reads it
    #[arg(long, value_name = "DIR")]
    pub tree: Option<PathBuf>,
    /// Patch, mailbox or directory of patches to apply; - is standard input; may be repeated
    #[arg(long = "patch", value_name = "FILE")]
    pub patches: Vec<PathBuf>,
    /// Commit to revert; may be repeated
    #[arg(long, value_name = "COMMIT")]
    pub revert: Vec<String>,
    /// Commit to apply; may be repeated
    #[arg(long, value_name = "COMMIT")]
    pub pick: Vec<String>,
    #[command(flatten)]
    pub config: ConfigArgs,
}

/// With which configuration and compiler a kernel is built.
#[derive(Clone, Debug, Default, Args)]
pub struct ConfigArgs {
    /// Configuration: a file, or a kernel such as debian:6.12; debian:6.12+vm has the drivers of the default [default:
    /// a small one for VMs]
    #[arg(long, value_name = "FILE|KERNEL")]
    pub kconfig: Option<String>,
    /// File with options that replace those of the configuration; may be repeated
    #[arg(long = "fragment", value_name = "FILE")]
    pub fragments: Vec<PathBuf>,
    /// Also build the kernel's modules: options at `m`
    #[arg(long)]
    pub build_modules: bool,
    /// Compiler: gcc, gcc-14, llvm or llvm-19 [default: gcc]
    #[arg(long)]
    pub compiler: Option<Compiler>,
}

impl ConfigArgs {
    /// A build of an unchanged source.
    pub fn build(&self, tree: Option<&Path>) -> Build {
        Build {
            tree: tree.map(Path::to_owned),
            config: self.kconfig.clone(),
            fragments: self.fragments.clone(),
            compiler: self.compiler.clone().unwrap_or_default(),
            with_modules: self.build_modules,
            ..Build::default()
        }
    }
}

impl BuildArgs {
    /// Whether any of the options is given.
    pub fn is_given(&self) -> bool {
        let Self { tree, patches, revert, pick, config } = self;
        let ConfigArgs { kconfig, fragments, build_modules, compiler } = config;
        let lists = [revert.is_empty(), pick.is_empty()];
        let files = [patches.is_empty(), fragments.is_empty()];
        tree.is_some()
            || kconfig.is_some()
            || compiler.is_some()
            || *build_modules
            || [lists, files].concat().contains(&false)
    }

    /// The full name of a kernel: with a tree, a name without a colon means a commit.
    pub fn full_name(&self, kernel: &str) -> String {
        let is_other = kernel.contains(':') || Source::is(kernel) || Request::is_place(kernel);
        match self.tree.is_some() && !is_other {
            true => format!("git:{kernel}"),
            false => kernel.to_owned(),
        }
    }

    /// Whether a kernel is changed before it is built.
    pub fn changes(&self) -> bool {
        !self.patches.is_empty() || !self.revert.is_empty() || !self.pick.is_empty()
    }

    /// How a kernel is built with its patches, reverts and picks.
    pub fn changed(&self) -> Build {
        Build {
            patches: self.patches.clone(),
            revert: self.revert.clone(),
            pick: self.pick.clone(),
            ..self.config.build(self.tree.as_deref())
        }
    }
}
