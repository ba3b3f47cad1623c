//! The commands and their options.

mod attempt;
mod beside;
mod boots;
mod build;
mod culprit;
mod kernel;
mod names;
mod record;
mod results;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use model::{Better, BootId, Millis};

use crate::failure;

pub use attempt::TryArgs;
pub use beside::beside_a_file;
pub use boots::{
    AccelArg, ArchArg, BootsArg, CHANGED, CountArg, ExactArgs, MachineArgs, ModeArg, PlaceArgs,
    ProfileArg, SequentialArgs, SettingArg, TurnArgs,
};
pub use build::{BuildArgs, ConfigArgs};
pub use culprit::{CulpritArgs, CulpritFormat, FigureArgs};
pub use kernel::{EventCommand, KernelAddArgs, KernelCommand, KernelPruneArgs};
pub use record::RecordArgs;
pub use results::{
    CompareArgs, CoverArgs, DiffArgs, DiffFormat, ExplainArgs, ExplainFormat, ExportArgs,
    ExportFormat, Format, Warmup,
};

/// The end of `--help`, after the exit codes.
const ENVIRONMENT: &str = "Environment:
  FAULTLINE_STORE      the store, unless --store names one
  XDG_DATA_HOME        the default store is faultline/faultline.db in it [default: ~/.local/share]
  XDG_CACHE_HOME       kernels and images are in faultline/ in it [default: ~/.cache]
  FAULTLINE_GUEST      directory of the guest's programs [default: where `make install` puts them]
  FAULTLINE_LIBRARIES  directory of the libraries that QEMU loads in exact mode [default: likewise]
  TMPDIR               temporary files [default: /tmp]
  NO_COLOR             if set, messages have no colour
XDG variables must be absolute paths. There is no settings file.";

/// Compares the memory management of Linux kernels: did performance change, by how much, and why?
#[derive(Debug, Parser)]
#[command(
    name = "faultline",
    version,
    max_term_width = 100,
    after_help = format!("{}\n\n{ENVIRONMENT}", failure::EXIT_CODES)
)]
pub struct Cli {
    /// File that keeps experiments and boots [default: faultline/faultline.db in $XDG_DATA_HOME or
    /// ~/.local/share]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "FAULTLINE_STORE",
        hide_env_values = true
    )]
    pub store: Option<PathBuf>,
    /// Print what Faultline does, such as the programs that it starts
    #[arg(short, long, global = true)]
    pub verbose: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Fetch, build, list or remove kernels
    #[command(subcommand)]
    Kernel(KernelCommand),
    /// List the events that can be counted
    #[command(subcommand)]
    Event(EventCommand),
    /// Pin, list, renew or remove the disk images of Debian packages that workloads run in
    #[command(subcommand)]
    Userspace(UserspaceCommand),
    /// List, show, make or check workloads
    #[command(subcommand)]
    Workload(WorkloadCommand),
    /// Run an experiment: boot its variants, run its workloads, keep the results
    Run(Box<RunArgs>),
    /// Compare a program of your own on several kernels, such as `try 6.12,newest -- ./test.sh`
    Try(Box<TryArgs>),
    /// Record counters and events around a command on this host, without a VM, and exit with the status of the command
    Record(RecordArgs),
    /// Boot one kernel, and print what it reports or open a shell in it
    Boot(BootArgs),
    /// Print verdicts and tables of an experiment; the baseline is in the first column
    Compare(CompareArgs),
    /// Repeat boots of exact mode, and check that the results are identical
    Replay(ReplayArgs),
    /// Show which functions hold the difference between two variants, by exact mode or by samples, or what a
    /// counter means
    Explain(ExplainArgs),
    /// Search the commit or the option at which a figure changed, prove it by measuring it, its parent and its revert
    Culprit(Box<CulpritArgs>),
    /// Show which functions' machine code differs between two kernels; addresses do not count
    Diff(DiffArgs),
    /// Show which of the functions that differ between two kernels the stored profiles of exact mode enter
    Cover(CoverArgs),
    /// Compare a kernel with itself: shows which changes this machine can detect
    Selftest(SelftestArgs),
    /// Export the samples of an experiment, or the profile of a boot, for other tools
    Export(ExportArgs),
    /// Read benchmark tables in mails, patches and commit messages
    Table(TableArgs),
    /// Import results of another tool as an experiment
    #[command(subcommand)]
    Import(ImportCommand),
    /// List the experiments in the store
    List,
    /// Remove experiments and all their boots
    Rm(RmArgs),
    /// Rename an experiment
    Rename {
        /// Name or number of the experiment
        experiment: String,
        /// The new name
        name: String,
    },
    /// Attach a note to an experiment; `list`, `show` and `compare` print it, a mail does not
    Note {
        /// Name or number of the experiment
        experiment: String,
        /// The note; it replaces an older one, and "" removes it
        text: String,
    },
    /// Show an experiment and its boots, or one boot with its log
    Show(ShowArgs),
    /// Say what this host is good for, or put its settings back
    #[command(subcommand)]
    Machine(MachineCommand),
    /// Check the store
    #[command(subcommand)]
    Store(StoreCommand),
    /// Write man pages, shell completions and the reference of `docs/cli.md` into a directory
    #[command(hide = true)]
    Generate {
        /// The directory
        directory: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub enum MachineCommand {
    /// Say what can be done on a machine and what not, what it is, how noisy it is, and how many sessions a change of 1 %
    /// takes. Changes nothing, and takes seconds
    Check {
        /// The machine: this host
        #[arg(value_name = "NAME", default_value = "host", value_parser = ["host"])]
        name: String,
    },
    /// Put settings of this host back that a killed run left. Each run does so when it starts
    Restore,
}

#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Verify every checksum, and list damaged parts
    Check,
}

#[derive(Debug, Subcommand)]
pub enum UserspaceCommand {
    /// Write the exact packages of workloads to a lock file, for the key `userspace` of an experiment
    Lock(UserspaceLockArgs),
    /// List the user-space images in the cache
    List,
    /// Build images again from the current Debian packages; old images stay in the cache
    Renew {
        /// Workloads that share an image: names or manifest files [default: all images]
        workloads: Vec<String>,
    },
    /// Remove an image from the cache
    Remove {
        /// The image's digest or the first digits of it, as `userspace list` prints it; for a damaged image
        /// the name of its directory
        image: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum WorkloadCommand {
    /// List the built-in workloads, and those in ./workloads and $XDG_CONFIG_HOME/faultline/workloads
    List,
    /// Show a workload: parameters, metrics, phases, what it needs, how long it took
    Show {
        /// Name of the workload, or the file of its manifest
        workload: String,
    },
    /// Write the manifest and the program of a new workload into ./workloads
    New {
        /// Name of the workload
        name: String,
        /// The program's language
        #[arg(long, value_enum, default_value_t = Language::C)]
        language: Language,
    },
    /// Boot a kernel, run a workload once in it, and print what it yields; keeps nothing
    Check(Box<WorkloadCheckArgs>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// C, linked statically
    C,
    /// A shell script
    Shell,
    /// Python
    Python,
}

#[derive(Debug, Args)]
pub struct WorkloadCheckArgs {
    /// Name of the workload, or the file of its manifest
    pub workload: String,
    /// The kernel: a name in the cache, debian:6.1, 6.1, or a place as in `kernel add --help`
    #[arg(long, default_value = "6.12")]
    pub kernel: String,
    /// Set a parameter of the workload; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub parameters: Vec<(String, String)>,
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Measure time, or count instructions [default: measured]
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
    /// How long the workload may take
    #[arg(long, value_name = "TIME", default_value = "2m")]
    pub timeout: Millis,
    /// Print only results, no progress
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, Args)]
pub struct UserspaceLockArgs {
    /// Workloads that share an image: names or manifest files. The lock has the packages of their image in
    /// the cache, or else Debian's current ones
    #[arg(required_unless_present = "boot", conflicts_with = "boot")]
    pub workloads: Vec<String>,
    /// Lock the packages that this boot had, such as b12
    #[arg(long, value_parser = boot_number)]
    pub boot: Option<BootId>,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// The experiment file
    #[arg(conflicts_with_all = [
        "kernels", "on", "sysctl", "sysfs", "workload", "parameters", "iterations", "arch", "cpus", "memory", "nodes",
        "accel", "disk", "at_most", "margin", "budget", "tree", "patches", "revert", "pick", "kconfig", "fragments",
        "build_modules", "compiler", "events",
    ])]
    pub experiment: Option<PathBuf>,
    /// Boot the seeds of this experiment of exact mode again, and keep the lines of the functions in --lines
    #[arg(long, value_name = "EXPERIMENT", requires = "lines", conflicts_with_all = [
        "experiment", "kernels", "on", "sysctl", "sysfs", "workload", "parameters", "iterations", "boots", "arch",
        "cpus", "memory", "nodes", "accel", "disk", "at_most", "margin", "budget", "tree", "patches", "revert", "pick", "kconfig", "fragments",
        "build_modules", "compiler", "events", "mode", "seeds", "profile",
    ])]
    pub again: Option<String>,
    /// Without a file: kernels to compare, such as 6.1,6.12; the first is the baseline. A source is built:
    /// git:COMMIT, worktree, src:PATH, debian-source:6.12
    #[arg(long, value_delimiter = ',', value_name = "KERNEL,...")]
    pub kernels: Vec<String>,
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Without a file: the workload, by its name or the file of its manifest; `faultline workload list` lists
    /// the names
    #[arg(long, default_value = "autonuma")]
    pub workload: String,
    /// Without a file: set a parameter of the workload; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub parameters: Vec<(String, String)>,
    /// Without a file: boots of each kernel; auto boots until every verdict is decided [default: 3]
    #[arg(long, conflicts_with_all = ["experiment", "seeds"], value_name = "NUMBER|auto")]
    pub boots: Option<BootsArg>,
    #[command(flatten)]
    pub sequential: SequentialArgs,
    /// Without a file: events to count by perf's names, such as tlb:tlb_flush,page-faults
    #[arg(long, value_delimiter = ',', value_name = "EVENT,...")]
    pub events: Vec<String>,
    /// Without a file: iterations in each boot
    #[arg(long, default_value_t = 1)]
    pub iterations: u32,
    #[command(flatten)]
    pub machine: MachineArgs,
    #[command(flatten)]
    pub exact: ExactArgs,
    /// Repeat failed boots; the results of the failed ones stay in the store
    #[arg(long)]
    pub retry_failed: bool,
    #[command(flatten)]
    pub turn: TurnArgs,
    /// Print the boots, their order and the estimated time, and boot nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print only results, no progress
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub build: BuildArgs,
    /// With --patch: a variant for each patch of the series, with all patches up to it
    #[arg(long, requires = "patches", conflicts_with_all = ["experiment", "revert", "pick"])]
    pub each: bool,
}

#[derive(Debug, Args)]
pub struct SelftestArgs {
    /// The kernel: a name in the cache, debian:6.1, 6.1, or a place as in `kernel add --help`
    #[arg(long, default_value = "6.1")]
    pub kernel: String,
    /// The workload
    #[arg(long, default_value = "autonuma")]
    pub workload: String,
    /// Set a parameter of the workload; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub parameters: Vec<(String, String)>,
    /// Boots of each side
    #[arg(long, default_value_t = 5)]
    pub boots: u32,
    /// Iterations in each boot
    #[arg(long, default_value_t = 1)]
    pub iterations: u32,
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Boot nothing: split the stored boots of one variant of an experiment in two
    #[arg(long, num_args = 2, value_names = ["EXPERIMENT", "VARIANT"],
          conflicts_with_all = ["kernel", "workload", "parameters", "boots", "iterations",
                                "arch", "cpus", "memory", "nodes", "accel", "disk"])]
    pub from: Option<Vec<String>>,
    #[command(flatten)]
    pub turn: TurnArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t = SelftestFormat::Text)]
    pub format: SelftestFormat,
    /// Print only results, no progress
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SelftestFormat {
    /// Text
    Text,
    /// JSON
    Json,
}

#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Boots, such as b12 b13
    #[arg(value_parser = boot_number, required = true, value_name = "BOOT")]
    pub boots: Vec<BootId>,
    /// Number of parallel boots [default: as many as CPUs and free memory allow]
    #[arg(long, value_name = "BOOTS", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,
    /// Keep the recording, console and counts of one replayed boot in this directory
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    #[command(flatten)]
    pub turn: TurnArgs,
    /// Print only results, no progress
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, Args)]
pub struct BootArgs {
    /// The kernel: a name in the cache, debian:6.1, 6.1, or a place as in `kernel add --help`
    pub kernel: String,
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Words added to the kernel's command line
    #[arg(long, default_value = "")]
    pub cmdline: String,
    /// Open a shell in the guest
    #[arg(long)]
    pub shell: bool,
}

#[derive(Debug, Args)]
pub struct TableArgs {
    /// Mails, mailboxes, patches or commit messages; - is standard input [default: -]
    pub files: Vec<PathBuf>,
    /// Compare with this column: its name, a unique part of its name, or #2 for the second column. In a
    /// table of commits: compare with this row
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,
    /// Good direction for rows where it cannot be inferred
    #[arg(long, value_enum, requires = "baseline", conflicts_with = "check")]
    pub better: Option<BetterArg>,
    /// Recompute the printed percentages, and list those that do not match the values
    #[arg(long, conflicts_with = "baseline")]
    pub check: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = TableFormat::Text)]
    pub format: TableFormat,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BetterArg {
    /// Less is better
    Lower,
    /// More is better
    Higher,
}

impl From<BetterArg> for Better {
    fn from(better: BetterArg) -> Self {
        match better {
            BetterArg::Lower => Self::Lower,
            BetterArg::Higher => Self::Higher,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// Tables to paste into a mail
    Text,
    /// JSON
    Json,
    /// One line per value
    Csv,
    /// One self-contained page
    Html,
}

#[derive(Debug, Subcommand)]
pub enum ImportCommand {
    /// Import mmtests' work/log with all its runs, or one run
    Mmtests(ImportMmtestsArgs),
    /// Import what `perf script` or `perf data convert --to-json` wrote, for `explain`: a file is a boot
    Perf(ImportPerfArgs),
}

#[derive(Debug, Args)]
pub struct ImportPerfArgs {
    /// Files, each with the name of its variant. Several files of one variant are its boots
    #[arg(required = true, value_name = "VARIANT=FILE", value_parser = variant_and_file)]
    pub files: Vec<(String, PathBuf)>,
    /// The event whose samples count [default: the first of each file]
    #[arg(long)]
    pub event: Option<String>,
    /// The experiment's name
    #[arg(long, default_value = "perf")]
    pub name: String,
}

#[derive(Debug, Args)]
pub struct ImportMmtestsArgs {
    /// The directory
    pub directory: PathBuf,
    /// The experiment's name [default: the directory's]
    #[arg(long)]
    pub name: Option<String>,
}

#[derive(Debug, Args)]
pub struct RmArgs {
    /// Names or numbers; NAME is the latest experiment of that name, NAME~2 the one before
    #[arg(required = true, value_name = "EXPERIMENT")]
    pub experiments: Vec<String>,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct ShowArgs {
    /// An experiment's name or number, or a boot such as b12 [default: the latest experiment]
    pub what: Option<String>,
}

fn boot_number(text: &str) -> Result<BootId, String> {
    text.parse().map_err(|_| "expected a boot's name, such as b12".into())
}

fn variant_and_file(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((variant, file)) if !variant.is_empty() && !file.is_empty() => {
            Ok((variant.to_owned(), file.into()))
        }
        _ => Err("expected VARIANT=FILE, such as 6.12=perf.txt".into()),
    }
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}
