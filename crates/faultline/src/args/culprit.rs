//! Options of the search for a commit.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use model::{MemoryModel, Millis, Share};

use super::boots::percent;
use super::build::ConfigArgs;
use super::{MachineArgs, ModeArg, TurnArgs, name_and_value};

/// The heading of the options that choose the figure.
const FIGURE: &str = "Figure [default: what tells the ends apart best]";

#[derive(Debug, Args)]
pub struct CulpritArgs {
    /// An experiment file: its tree, machine, workload, mode and [culprit]
    #[arg(conflicts_with_all = [
        "tree", "workload", "parameters", "iterations", "arch", "cpus", "memory", "nodes", "accel", "disk", "mode",
        "boots", "reference", "metric", "counter", "phase", "function", "cost", "all", "first_parent", "with_patch",
        "kconfig", "fragments", "memory_model", "build_modules", "compiler", "good_config", "bad_config", "confidence", "budget",
    ])]
    pub experiment: Option<PathBuf>,
    /// Without a file: git repository of kernels. Faultline only reads it
    #[arg(long, value_name = "DIR", required_unless_present = "experiment")]
    pub tree: Option<PathBuf>,
    /// Commit before the change
    #[arg(long, value_name = "COMMIT", required_unless_present = "experiment")]
    pub good: Option<String>,
    /// Commit after the change: a descendant of the good commit, or that commit itself if the configurations differ
    #[arg(long, value_name = "COMMIT", required_unless_present = "experiment")]
    pub bad: Option<String>,
    /// An older commit to measure too: it shows whether the bad end only returns to its level
    #[arg(long, value_name = "COMMIT")]
    pub reference: Option<String>,
    /// The workload
    #[arg(long, default_value = "autonuma")]
    pub workload: String,
    /// Set a parameter of the workload; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub parameters: Vec<(String, String)>,
    /// Iterations in each boot
    #[arg(long, default_value_t = 1)]
    pub iterations: u32,
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Compare by time or by instructions
    #[arg(long, value_enum, default_value_t = ModeArg::Exact)]
    pub mode: ModeArg,
    /// Boots of each end before the search; in exact mode each has a seed of its own [default: 4, or 5 in
    /// measured mode]
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub boots: Option<u32>,
    #[command(flatten)]
    pub figure: FigureArgs,
    /// Exact mode: the model of caches and TLBs for --cost l1d-misses and the like: a name or a file, as for `run`
    #[arg(long, value_name = "NAME|FILE", value_parser = plan::memory_model::find)]
    pub memory_model: Option<MemoryModel>,
    /// Find every step beyond luck, not only those of at least 10 % of the change
    #[arg(long)]
    pub all: bool,
    /// Follow first parents only: the answer can be a merge with its branch
    #[arg(long)]
    pub first_parent: bool,
    /// Patch that commits need to build or boot; left out where it does not apply; - is standard input; may be repeated
    #[arg(long, value_name = "FILE")]
    pub with_patch: Vec<PathBuf>,
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Configuration of the good end, if it is another than that of the bad end: a file, or a kernel such as
    /// debian:6.1 or debian:6.1+vm [default: that of --kconfig]
    #[arg(long, value_name = "FILE|KERNEL")]
    pub good_config: Option<String>,
    /// Configuration of the bad end, likewise
    #[arg(long, value_name = "FILE|KERNEL")]
    pub bad_config: Option<String>,
    /// Measured mode: how sure the answer is to be, in percent [default: 95]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub confidence: Option<Share>,
    /// Try no further commit when new kernels and boots have taken this long, such as 2h [default: no limit]
    #[arg(long, value_name = "TIME")]
    pub budget: Option<Millis>,
    /// Do not measure the culprit again, and do not revert it
    #[arg(long)]
    pub no_proof: bool,
    /// Print the range and about how many kernels and boots it takes, and build nothing
    #[arg(long, conflicts_with_all = ["format", "attach", "output", "bisect_log"])]
    pub dry_run: bool,
    /// Write a log that `git bisect replay` reads
    #[arg(long, value_name = "FILE")]
    pub bisect_log: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = CulpritFormat::Text)]
    pub format: CulpritFormat,
    /// With --format mail: also write the answer as text, JSON and page into this directory, which must be new or empty
    #[arg(long, value_name = "DIR")]
    pub attach: Option<PathBuf>,
    /// Write to this file
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub turn: TurnArgs,
    /// Print only results, no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// The figure by which commits are told apart.
#[derive(Debug, Args)]
pub struct FigureArgs {
    /// A row of means in the tables of `compare`
    #[arg(long, help_heading = FIGURE, value_name = "ROW", conflicts_with_all = ["counter", "phase", "function", "cost"])]
    pub metric: Option<String>,
    /// A row of the tables of counters, such as "Minor Faults"
    #[arg(long, help_heading = FIGURE, value_name = "COUNTER", conflicts_with_all = ["phase", "function", "cost"])]
    pub counter: Option<String>,
    /// Exact mode: the kernel's instructions in this phase
    #[arg(long, help_heading = FIGURE)]
    pub phase: Option<String>,
    /// Exact mode: a function's own instructions per entry
    #[arg(long, help_heading = FIGURE)]
    pub function: Option<String>,
    /// Exact mode: another cost than instructions, such as `entries` or `transfers`
    #[arg(long, help_heading = FIGURE, value_name = "NAME")]
    pub cost: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CulpritFormat {
    /// Plain text
    Text,
    /// A mail
    Mail,
    /// JSON
    Json,
    /// An HTML page with the figure along the commits
    Html,
}
