//! The command line's grammar.

mod boots;

use std::path::PathBuf;

use ::compare::Month;
use boots::percent;
use clap::{Args, Parser, Subcommand, ValueEnum};
use model::{Better, BootId, Share};

pub use boots::{AccelArg, BootsArg, ExactArgs, MachineArgs, ModeArg, SequentialArgs};

/// The environment variables that the program reads. Man pages fill the lines.
const ENVIRONMENT: &str = "Environment:
FAULTLINE_STORE names the store where --store does not.
XDG_DATA_HOME [default: ~/.local/share] is where the default store is: faultline/faultline.db.
XDG_CACHE_HOME [default: ~/.cache] is where kernels and user spaces are kept: faultline/.
FAULTLINE_GUEST names the directory of the guest's programs, if they are not where `make install` puts them.
FAULTLINE_LIBRARIES names the directory of the libraries that QEMU loads in exact mode, likewise.
TMPDIR [default: /tmp] is where temporary files are.
NO_COLOR, if set, keeps messages free of colour.

The XDG variables count if they are absolute paths. There is no file of settings.";

/// Between kernel A and kernel B, did performance change, by how much, and why?
#[derive(Debug, Parser)]
#[command(name = "faultline", version, max_term_width = 100, after_long_help = ENVIRONMENT)]
pub struct Cli {
    /// The store of experiments and boots [default: $XDG_DATA_HOME/faultline/faultline.db]
    #[arg(long, global = true, value_name = "FILE", env = "FAULTLINE_STORE")]
    pub store: Option<PathBuf>,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Fetch, list and remove kernels
    #[command(subcommand)]
    Kernel(KernelCommand),
    /// Pin, list, renew and remove the images of packages that workloads run in
    #[command(subcommand)]
    Userspace(UserspaceCommand),
    /// Boot the variants of an experiment, run its workloads, keep what they measure
    Run(RunArgs),
    /// Boot one kernel for a look
    Boot(BootArgs),
    /// Print the tables of an experiment: the baseline in the first column
    Compare(CompareArgs),
    /// Boot once more what exact mode booted, and tell whether it did the same
    Replay(ReplayArgs),
    /// Tell where the difference between two variants of exact mode went, or what a counter counts
    Explain(ExplainArgs),
    /// Run one kernel as if it were two: what this machine can and cannot see
    Selftest(SelftestArgs),
    /// Write the samples of an experiment, or the profile of a boot, for other tools
    Export(ExportArgs),
    /// Find and read the benchmark tables of mails, patches and commit messages
    Table(TableArgs),
    /// Make an experiment of what another tool ran and left in files
    #[command(subcommand)]
    Import(ImportCommand),
    /// List the experiments in the store
    List,
    /// Remove experiments with all their boots
    Rm(RmArgs),
    /// Give an experiment another name
    Rename {
        /// Its name or number
        experiment: String,
        /// The new name
        name: String,
    },
    /// Keep a remark on an experiment, which list, show and compare print
    Note {
        /// Its name or number
        experiment: String,
        /// The remark, in the place of the one that there was; "" removes it
        text: String,
    },
    /// Show an experiment's boots, or one boot with its log
    Show(ShowArgs),
    /// The store as a file
    #[command(subcommand)]
    Store(StoreCommand),
    /// Write the man pages and the shells' completions into a directory, for `make install`
    #[command(hide = true)]
    Generate {
        /// The directory
        directory: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Read everything that is kept, and list what is damaged
    Check,
}

#[derive(Debug, Subcommand)]
pub enum KernelCommand {
    /// Add a kernel to the cache
    Add(KernelAddArgs),
    /// List the kernels in the cache
    List,
    /// Remove a kernel from the cache
    Remove {
        /// Its name, as `kernel list` prints it
        name: String,
    },
}

#[derive(Debug, Args)]
pub struct KernelAddArgs {
    /// debian:6.1, debian:newest, an exact version (debian:6.1.176-1), or a path to a .deb
    #[arg(required_unless_present = "image", conflicts_with = "image")]
    pub kernel: Option<String>,
    /// Look in this suite of Debian alone, such as trixie-backports
    #[arg(long, conflicts_with = "image")]
    pub suite: Option<String>,
    /// A kernel image of your own: bzImage, or a vmlinux with PVH entry (CONFIG_PVH)
    #[arg(long, value_name = "FILE")]
    pub image: Option<PathBuf>,
    /// Its modules: the directory lib/modules/RELEASE
    #[arg(long, value_name = "DIR", conflicts_with = "kernel")]
    pub modules: Option<PathBuf>,
    /// What modules are built with for it: the tree in which it was built, or its
    /// /usr/src/linux-headers-RELEASE. What is needed of it is copied
    #[arg(long, value_name = "DIR", conflicts_with = "kernel")]
    pub headers: Option<PathBuf>,
    /// Its .config, packed or not [default: that of the headers]
    #[arg(long, value_name = "FILE", conflicts_with = "kernel")]
    pub config: Option<PathBuf>,
    /// Its System.map, for exact mode where the kernel does not list its symbols itself (CONFIG_KALLSYMS)
    #[arg(long, value_name = "FILE", conflicts_with = "kernel")]
    pub map: Option<PathBuf>,
    /// The name of a kernel of your own [default: the image's release]
    #[arg(long, conflicts_with = "kernel")]
    pub name: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum UserspaceCommand {
    /// Write down the exact packages of workloads, for experiments to name: `userspace = "FILE"`
    Lock(UserspaceLockArgs),
    /// List the images in the cache
    List,
    /// Make images anew of what Debian has now; those of the past stay for boots that had them
    Renew {
        /// Workloads that share a user space: names, or files of manifests [default: all images]
        workloads: Vec<String>,
    },
    /// Remove an image from the cache
    Remove {
        /// Its digest or how it begins, as `userspace list` prints it; of a damaged one its directory's
        /// name
        image: String,
    },
}

#[derive(Debug, Args)]
pub struct UserspaceLockArgs {
    /// Workloads that share a user space: names, or files of manifests. It has what their image in the
    /// cache has, or else what Debian has now
    #[arg(required_unless_present = "boot", conflicts_with = "boot")]
    pub workloads: Vec<String>,
    /// Instead, what this boot had, such as b12
    #[arg(long, value_parser = boot_number)]
    pub boot: Option<BootId>,
    /// Write to this file instead of printing
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// The experiment's file
    #[arg(conflicts_with_all = [
        "kernels", "workload", "parameters", "iterations", "cpus", "memory", "nodes", "accel",
        "at_most", "margin", "budget",
    ])]
    pub experiment: Option<PathBuf>,
    /// Without a file: kernels to compare, such as 6.1,7.3; the first is the baseline
    #[arg(long, value_delimiter = ',', value_name = "KERNEL,...")]
    pub kernels: Vec<String>,
    /// Without a file: the workload
    #[arg(long, default_value = "autonuma")]
    pub workload: String,
    /// Without a file: a parameter of the workload; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub parameters: Vec<(String, String)>,
    /// Without a file: boots of each kernel, or auto: until every verdict is in [default: 3]
    #[arg(long, conflicts_with_all = ["experiment", "seeds"], value_name = "NUMBER|auto")]
    pub boots: Option<BootsArg>,
    #[command(flatten)]
    pub sequential: SequentialArgs,
    /// Without a file: iterations within a boot
    #[arg(long, default_value_t = 1)]
    pub iterations: u32,
    #[command(flatten)]
    pub machine: MachineArgs,
    #[command(flatten)]
    pub exact: ExactArgs,
    /// Do boots again that failed; what they left behind is kept
    #[arg(long)]
    pub retry_failed: bool,
    /// Print what would be booted, in which order, and about how long it takes; boot nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print results only
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, Args)]
pub struct SelftestArgs {
    /// The kernel: a name in the cache, debian:6.1, 6.1, or a path to a .deb
    #[arg(long, default_value = "6.1")]
    pub kernel: String,
    /// The workload
    #[arg(long, default_value = "autonuma")]
    pub workload: String,
    /// A parameter of the workload; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub parameters: Vec<(String, String)>,
    /// Boots of each side
    #[arg(long, default_value_t = 5)]
    pub boots: u32,
    /// Iterations within a boot
    #[arg(long, default_value_t = 1)]
    pub iterations: u32,
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Boot nothing: split the boots that are kept of one variant of an experiment
    #[arg(long, num_args = 2, value_names = ["EXPERIMENT", "VARIANT"],
          conflicts_with_all = ["kernel", "workload", "parameters", "boots", "iterations",
                                "cpus", "memory", "nodes", "accel"])]
    pub from: Option<Vec<String>>,
    /// How to print
    #[arg(long, value_enum, default_value_t = SelftestFormat::Text)]
    pub format: SelftestFormat,
    /// Print results only
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SelftestFormat {
    /// Text
    Text,
    /// The same for programs
    Json,
}

#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The boots, such as b12 b13
    #[arg(value_parser = boot_number, required = true, value_name = "BOOT")]
    pub boots: Vec<BootId>,
    /// So many side by side [default: as many as CPUs and free memory allow]
    #[arg(long, value_name = "BOOTS", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,
    /// Keep what one boot leaves behind in this directory: recording, console, counts
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Print results only
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, Args)]
pub struct BootArgs {
    /// The kernel: a name in the cache, debian:6.1, 6.1, or a path to a .deb
    pub kernel: String,
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Words added to the kernel's command line
    #[arg(long, default_value = "")]
    pub cmdline: String,
    /// Give a shell in the guest
    #[arg(long)]
    pub shell: bool,
}

#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The experiment's name or number [default: the latest]; of several, which ran the same on the same
    /// machine, all variants side by side
    #[arg(value_name = "EXPERIMENT")]
    pub experiments: Vec<String>,
    /// The variant in the first column [default: the experiment's first]
    #[arg(long, value_name = "VARIANT")]
    pub baseline: Option<String>,
    /// Differences up to so many percent are none; with 0 any counts that luck or chance do not
    /// explain [default: 1, or what the experiment says]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub margin: Option<Share>,
    /// Count this phase alone in tables of counters, or all; may be repeated [default: all but
    /// those that only prepare what is measured, as the workload says]
    #[arg(long)]
    pub phase: Vec<String>,
    /// Count what precedes a steady state within boots, or leave it out [default: exclude; include of
    /// what another tool measured]
    #[arg(long, value_enum, value_name = "HOW")]
    pub warmup: Option<Warmup>,
    /// Call rows as mmtests does, or did in a month, as of a mail that the tables are to be set beside:
    /// mmtests, or mmtests:2015-03
    #[arg(long, value_name = "NAMES", value_parser = names)]
    pub names: Option<Month>,
    /// As text: all rows, counters and notes [default: the verdicts, and what moved most]
    #[arg(long)]
    pub full: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Write to this file instead of printing
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Warmup {
    /// Count all
    Include,
    /// Leave it out where it is sure
    Exclude,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables to paste into a mail
    Text,
    /// The same for programs
    Json,
    /// A mail that is ready to send
    Mail,
    /// A page with every sample, series over time, and how to reproduce
    Html,
}

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The variant that the other one is compared with
    #[arg(required_unless_present = "counter")]
    pub base: Option<String>,
    /// The other variant
    #[arg(required_unless_present = "counter")]
    pub new: Option<String>,
    /// The experiment's name or number [default: the latest of exact mode that has both]
    pub experiment: Option<String>,
    /// The workload [default: the only one]
    #[arg(long)]
    pub workload: Option<String>,
    /// Look at this phase alone
    #[arg(long)]
    pub phase: Option<String>,
    /// Tell of a counter of the kernel, or of a row of the tables of counters, what it counts,
    /// in which kernels, and how to read it; no store is needed
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with_all = ["base", "new", "experiment", "workload", "phase", "top", "format", "output"]
    )]
    pub counter: Option<String>,
    /// Rows of each ranking in the text [default: 10]
    #[arg(long, value_name = "ROWS")]
    pub top: Option<usize>,
    /// How to print
    #[arg(long, value_enum, default_value_t = ExplainFormat::Text)]
    pub format: ExplainFormat,
    /// Write to this file
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExplainFormat {
    /// A screen of text
    Text,
    /// The same for programs, whole
    Json,
    /// A page with a differential flame graph
    Html,
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// An experiment's name or number for its samples, or a boot as b12 for its profile [default:
    /// the latest experiment]
    pub what: Option<String>,
    /// The form of the samples, or of the profile
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// Of an experiment: the series instead of the samples, one row a value
    #[arg(long)]
    pub series: bool,
    /// This workload alone
    #[arg(long)]
    pub workload: Option<String>,
    /// This phase alone
    #[arg(long)]
    pub phase: Option<String>,
    /// Write to this file
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Of an experiment: Apache Parquet, a row a sample
    Parquet,
    /// Of an experiment: the same as text, with a line of names first
    Csv,
    /// Of an experiment: the same as an array of objects, a line each
    Json,
    /// Of a boot: collapsed stacks, a path and its instructions a line
    Collapsed,
    /// Of a boot: as `perf script` prints samples, with instructions as their periods
    PerfScript,
}

#[derive(Debug, Args)]
pub struct TableArgs {
    /// Mails, mailboxes, patches, commit messages; - is standard input [default: -]
    pub files: Vec<PathBuf>,
    /// Compare with this column: its name, a part that no other name has, or #2 for the second; in
    /// a table of commits, with this row
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,
    /// Direction for rows where it cannot be inferred
    #[arg(long, value_enum, requires = "baseline", conflicts_with = "check")]
    pub better: Option<BetterArg>,
    /// Recompute the printed percentages, and list those that do not follow from the values
    #[arg(long, conflicts_with = "baseline")]
    pub check: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t = TableFormat::Text)]
    pub format: TableFormat,
    /// Write to this file
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BetterArg {
    /// Less
    Lower,
    /// More
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
    /// The same for programs
    Json,
    /// One line a value
    Csv,
    /// One page that needs nothing else
    Html,
}

#[derive(Debug, Subcommand)]
pub enum ImportCommand {
    /// A directory of mmtests' logs: work/log with its runs, or one run
    Mmtests(ImportMmtestsArgs),
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
    /// Names or numbers; a name is the last experiment of it, NAME~2 the one before
    #[arg(required = true, value_name = "EXPERIMENT")]
    pub experiments: Vec<String>,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct ShowArgs {
    /// An experiment's name or number, or a boot as b12 [default: the latest experiment]
    pub what: Option<String>,
}

fn names(text: &str) -> Result<Month, String> {
    match text.split_once(':') {
        None if text == "mmtests" => Ok(Month::LATEST),
        Some(("mmtests", month)) => month.parse(),
        _ => Err("expected mmtests, or mmtests:YYYY-MM, such as mmtests:2015-03".into()),
    }
}

fn boot_number(text: &str) -> Result<BootId, String> {
    text.parse().map_err(|_| "expected a boot's name, such as b12".into())
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}
