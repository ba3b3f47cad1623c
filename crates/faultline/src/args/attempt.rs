//! Options of `faultline try`.

use std::path::PathBuf;

use clap::Args;
use model::{Bytes, MemoryModel, Millis};

use super::boots::DiskArg;
use super::{ArchArg, BuildArgs, MachineArgs, PlaceArgs, TurnArgs};

#[derive(Clone, Debug, Args)]
#[command(override_usage = "faultline try [OPTIONS] KERNEL,... -- PROGRAM [ARGUMENT]...
       faultline try [OPTIONS] --on host --sysctl NAME=VALUE,... -- PROGRAM [ARGUMENT]...")]
pub struct TryArgs {
    /// Kernels to compare, such as 6.12,newest; the first is the baseline. A source is built: git:COMMIT,
    /// worktree, src:PATH, debian-source:6.12
    #[arg(value_name = "KERNEL,...")]
    pub kernels: Option<String>,
    /// Words without `--` before them.
    #[arg(hide = true)]
    pub stray: Vec<String>,
    /// The program and its arguments
    #[arg(last = true, value_names = ["PROGRAM", "ARGUMENT"])]
    pub command: Vec<String>,
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Take this file or directory along, to the same path; may be repeated. The program's interpreter and
    /// libraries, files among its arguments and commands that a shell script names are taken anyway
    #[arg(long, value_name = "FILE")]
    pub with: Vec<PathBuf>,
    /// Count instructions, in exact mode [default: where KVM does not work]
    #[arg(long, conflicts_with = "measured")]
    pub exact: bool,
    /// Compare times [default: where KVM works]
    #[arg(long)]
    pub measured: bool,
    /// Take a change between two kernels apart: also build each one's source with the other one's
    /// configuration, and compare
    #[arg(long, conflicts_with_all = ["patches", "revert", "pick", "kconfig", "save"])]
    pub split: bool,
    /// How long the program may take, in the guest's time
    #[arg(long, value_name = "TIME", default_value = "30m")]
    pub timeout: Millis,
    /// Exact mode: seeds of each kernel, one boot each [default: 5, or 1 of a single kernel]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: Option<u32>,
    /// Exact mode: count what misses in a model of caches and TLBs: skylake-2s, sapphire-2s, milan-2s, or a file with
    /// sizes: docs/memory-model.md
    #[arg(long, value_name = "NAME|FILE", value_parser = plan::memory_model::find)]
    pub memory_model: Option<MemoryModel>,
    /// Exact mode: count the lines of memory that CPUs take from each other, by function and by field:
    /// `explain --cost transfers`. Use it with --cpus
    #[arg(long)]
    pub transfers: bool,
    /// Exact mode: number of parallel boots [default: as many as CPUs and free memory allow]
    #[arg(long, value_name = "BOOTS", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,
    /// Measured mode: at most this many boots of each kernel [default: 32]
    #[arg(long, value_name = "BOOTS")]
    pub at_most: Option<u32>,
    /// Measured mode: start no further boots after this time, such as 10m [default: no limit]
    #[arg(long, value_name = "TIME")]
    pub budget: Option<Millis>,
    /// Architecture of machine and kernels [default: as the kernels' names say, or x86_64]. For arm64 the program is a
    /// C file or a static program
    #[arg(long, value_enum)]
    pub arch: Option<ArchArg>,
    /// CPUs [default: 1]
    #[arg(long)]
    pub cpus: Option<u32>,
    /// Memory of all nodes together, such as 512M or 2G [default: 1G]
    #[arg(long)]
    pub memory: Option<Bytes>,
    /// NUMA nodes; CPUs and memory are divided evenly among them [default: 1]
    #[arg(long)]
    pub nodes: Option<u32>,
    /// A disk with a file system on /disk0, such as 4G or 4G,xfs [default: none; ext4]
    #[arg(long, value_name = "SIZE[,FILESYSTEM]")]
    pub disk: Option<DiskArg>,
    /// Write the experiment into this directory, and boot nothing: `faultline run` repeats it from there
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// Repeat failed boots; the results of the failed ones stay in the store
    #[arg(long)]
    pub retry_failed: bool,
    #[command(flatten)]
    pub turn: TurnArgs,
    /// Print only results, no progress
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub build: BuildArgs,
}

impl TryArgs {
    /// The options of the machine as other commands have them.
    pub fn machine(&self) -> MachineArgs {
        let Self { arch, cpus, memory, nodes, disk, .. } = *self;
        let given = MachineArgs { arch, cpus, memory, nodes, disk, accel: None };
        if self.place.is_host() {
            return given;
        }
        MachineArgs {
            cpus: cpus.or(Some(1)),
            memory: memory.or(Some(Bytes::mib(1024))),
            nodes: nodes.or(Some(1)),
            ..given
        }
    }
}
