//! Commands on kernels.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::BuildArgs;

#[derive(Debug, Subcommand)]
pub enum EventCommand {
    /// List the tracepoints of a kernel, software events, and events of processors and their caches
    List {
        /// The kernel: a name in the cache, debian:6.1, 6.1, or a place as in `kernel add --help`
        kernel: String,
        /// List only names with this text; with * in it, only names that match it as a whole
        pattern: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub enum KernelCommand {
    /// Add a kernel to the cache
    Add(Box<KernelAddArgs>),
    /// List the kernels in the cache
    List,
    /// Remove a kernel from the cache
    Remove {
        /// Name of the kernel, as `kernel list` prints it
        name: String,
    },
    /// Remove kernels that were built from source and not used for long. Packaged kernels and kernels that
    /// you added stay
    Prune(KernelPruneArgs),
}

#[derive(Debug, Args)]
pub struct KernelPruneArgs {
    /// Remove kernels that were not used for this many days
    #[arg(long, value_name = "DAYS", default_value = "30", value_parser = days)]
    pub older: Duration,
    /// Also remove all that a build can make again: sources, objects, ccache. Without it our copies of sources
    /// are removed if they exceed 2 GB
    #[arg(long)]
    pub builds: bool,
    /// Only print what would be removed
    #[arg(long)]
    pub dry_run: bool,
}

/// The end of the help of `kernel add`: all names of kernels that are no names in the cache.
const KERNELS: &str = "\
Kernels, as `kernel add`, `run`, `try`, other commands and experiment files name them:
  debian:6.1, 6.1      newest kernel of a series in Debian's archive; also debian:newest, a package
                       version (debian:6.1.176-1), a release (6.1.0-56-cloud-amd64)
  6.1@arm64            the same for arm64, also debian:newest@arm64
  6.12-16k             for arm64 with pages of 16 KiB, also newest-16k
  FILE.deb, FILE.rpm, A.deb+B.deb
                       packages of one kernel: image, modules, headers, as distributions, `make
                       bindeb-pkg` and `make binrpm-pkg` have them; `kernel add A.deb B.deb` also works
  FILE.tar.zst         archive of `make tarzst-pkg`; also .tar, .tar.gz, .tgz and .tar.xz
  mainline:6.13-rc2    Ubuntu's build of this tag (kernel.ubuntu.com/mainline)
  dir:PATH             directory in which a kernel was built: image, modules, .config, System.map
                       and headers are copied, and nothing is built
  host                 kernel that this host runs, from /boot and /lib/modules
  git:COMMIT, worktree, src:PATH, debian-source:6.12
                       source, which is built; also git:COMMIT@arm64";

#[derive(Debug, Args)]
#[command(after_help = KERNELS)]
pub struct KernelAddArgs {
    /// The kernel, such as debian:6.1, linux.deb, dir:PATH or git:COMMIT; all forms are listed below
    #[arg(required_unless_present = "image", conflicts_with = "image")]
    pub kernel: Vec<String>,
    /// Search only this suite of Debian, such as trixie-backports
    #[arg(long, conflicts_with = "image")]
    pub suite: Option<String>,
    /// A kernel image of your own: bzImage, or a vmlinux with PVH entry (CONFIG_PVH); for arm64 Image or Image.gz
    #[arg(long, value_name = "FILE")]
    pub image: Option<PathBuf>,
    /// Its modules: the directory lib/modules/RELEASE
    #[arg(long, value_name = "DIR", conflicts_with = "kernel")]
    pub modules: Option<PathBuf>,
    /// Its build tree, or /usr/src/linux-headers-RELEASE: needed to build our modules for it. The needed
    /// files are copied
    #[arg(long, value_name = "DIR", conflicts_with = "kernel")]
    pub headers: Option<PathBuf>,
    /// Its .config, compressed or not [default: the .config in the headers]
    #[arg(long, value_name = "FILE", conflicts_with = "kernel")]
    pub config: Option<PathBuf>,
    /// Its System.map: exact mode needs it if the kernel has no CONFIG_KALLSYMS
    #[arg(long, value_name = "FILE", conflicts_with = "kernel")]
    pub map: Option<PathBuf>,
    /// Name in the cache, for --image, packages, dir:PATH and host [default: the release; for dir:PATH and
    /// host followed by a digest of the files]
    #[arg(long)]
    pub name: Option<String>,
    #[command(flatten)]
    pub build: BuildArgs,
}

fn days(text: &str) -> Result<Duration, String> {
    let days: Option<u32> = text.strip_suffix('d').unwrap_or(text).parse().ok();
    let seconds = days.map(|days| u64::from(days) * 24 * 60 * 60);
    seconds.map(Duration::from_secs).ok_or_else(|| "expected a number of days, such as 30".into())
}
