//! Options of the commands that read an experiment's results.

use std::path::PathBuf;

use benchmarks::names::Month;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use model::{OUTSIDE_PHASES, Share};

use super::boots::percent;
use super::names::names;

#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Names or numbers [default: the latest with a complete boot]. The variants of several experiments are compared side by
    /// side, if all ran the same workloads on the same machine
    #[arg(value_name = "EXPERIMENT")]
    pub experiments: Vec<String>,
    /// The variant in the first column [default: the experiment's first variant]
    #[arg(long, value_name = "VARIANT")]
    pub baseline: Option<String>,
    /// Compare the variants at this point of a sweep only, in full; such as memory=1G [default: all points, in
    /// a table by point]
    #[arg(long, value_name = "POINT")]
    pub point: Option<String>,
    /// Differences up to this many percent count as none; with 0 every difference counts that luck does
    /// not explain [default: the experiment's margin, or 1]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub margin: Option<Share>,
    /// Show counters of this phase only, or of all phases (all); may be repeated [default: the measured
    /// phases]
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub phase: Vec<String>,
    /// Include or exclude warm-up at the beginning of boots [default: exclude; include for imported
    /// results]
    #[arg(long, value_enum, value_name = "HOW")]
    pub warmup: Option<Warmup>,
    /// Name rows as mmtests names them (mmtests), or as it named them in a given month
    /// (mmtests:2015-03)
    #[arg(long, value_name = "NAMES", value_parser = names)]
    pub names: Option<Month>,
    /// Print all rows, counters and notes [default: the verdicts and the largest changes]
    #[arg(long)]
    pub full: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// With --format mail: write what the mail leaves out into this directory, which must be new or empty: tables as
    /// text, JSON, the page, and the experiment's file
    #[arg(long, value_name = "DIR")]
    pub attach: Option<PathBuf>,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Warmup {
    /// Count all samples
    Include,
    /// Leave warm-up out where it is certain
    Exclude,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables to paste into a mail
    Text,
    /// JSON
    Json,
    /// Verdicts as CSV, one a line, with their point of a sweep
    Csv,
    /// A mail that is ready to send
    Mail,
    /// A page with every sample, series over time, and how to reproduce the results
    Html,
}

#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The kernel to compare with: a name in the cache, debian:6.1, 6.1, a place as in `kernel add --help`, or
    /// a path to a vmlinux or bzImage
    pub base: String,
    /// The kernel that changed
    pub new: String,
    /// Print all functions that differ, not only those that differ most
    #[arg(long)]
    pub full: bool,
    /// Print the instructions of this function, side by side
    #[arg(long, value_name = "FUNCTION", conflicts_with = "full")]
    pub disassemble: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = DiffFormat::Text)]
    pub format: DiffFormat,
}

#[derive(Debug, Args)]
pub struct CoverArgs {
    /// The kernel to compare with, as `faultline diff` names it
    pub base: String,
    /// The kernel that changed
    pub new: String,
    /// Print all workloads and functions
    #[arg(long)]
    pub full: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = DiffFormat::Text)]
    pub format: DiffFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiffFormat {
    /// Text
    Text,
    /// JSON, with all functions
    Json,
}

#[derive(Debug, Args)]
#[command(override_usage = "faultline explain [OPTIONS] [EXPERIMENT]\n       \
                            faultline explain [OPTIONS] BASE NEW [EXPERIMENT]")]
pub struct ExplainArgs {
    /// The variant to compare with; alone, an experiment with two variants [default: the latest experiment]
    pub base: Option<String>,
    /// The variant that changed
    pub new: Option<String>,
    /// The experiment's name or number [default: the latest one of exact mode and the latest one with samples that
    /// have both variants and a complete boot]
    pub experiment: Option<String>,
    /// The workload [default: the experiment's only one]
    #[arg(long)]
    pub workload: Option<String>,
    /// Explain this phase only, or what is outside all phases: "(no phase)" [default: the measured phases together]
    #[arg(long, value_parser = phase)]
    pub phase: Option<String>,
    /// Explain this cost: another that the boots have, such as `entries` or `locked` [default: instructions, and
    /// samples of measured mode]
    #[arg(long, value_name = "NAME")]
    pub cost: Option<String>,
    /// Also print the kernel's cost by system call, exception, interrupt, softirq and kernel thread; needs
    /// `run --profile stacks`
    #[arg(long)]
    pub by_syscall: bool,
    /// Compare one seed of the first variant with one of the second, such as 0,3; the variants can be the same
    #[arg(long, value_name = "SEED,SEED", value_parser = seeds)]
    pub seeds: Option<[u32; 2]>,
    /// Print what this function executed in both kernels, by line of the source or by instruction: needs boots of
    /// `run --lines FUNCTION`; `changed`: the lines that changed of each function whose code differs
    #[arg(long, value_name = "FUNCTION", conflicts_with_all = ["cost", "by_syscall", "seeds"])]
    pub lines: Option<String>,
    /// With --lines: the directory with the source of both kernels, or of each, for the texts of the lines [default: the
    /// source of a kernel that was built here]
    #[arg(long, value_delimiter = ',', value_name = "DIR[,DIR]", requires = "lines")]
    pub source: Vec<PathBuf>,
    /// With --lines: files with debug information of the kernels, such as the vmlinux of Debian's -dbg package [default:
    /// that of the kernel itself; of a kernel that was built here, the objects are compiled again]
    #[arg(long, value_delimiter = ',', value_name = "VMLINUX,...", requires = "lines")]
    pub debug: Vec<PathBuf>,
    /// Explain a kernel counter or a row of the counter tables: what it counts, in which kernels, and how
    /// to read it; needs no store
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with_all = [
            "base", "new", "experiment", "workload", "phase", "cost", "by_syscall", "seeds", "top", "format",
            "output", "lines",
        ]
    )]
    pub counter: Option<String>,
    /// Rows of each ranking in text output [default: 10; with --lines 20, with --lines changed 5]
    #[arg(long, value_name = "ROWS")]
    pub top: Option<usize>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ExplainFormat::Text)]
    pub format: ExplainFormat,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// The seeds of two sides.
fn seeds(text: &str) -> Result<[u32; 2], &'static str> {
    let seeds = text.split_once(',').and_then(|(base, new)| {
        let seed = |text: &str| text.trim().parse().ok();
        Some([seed(base)?, seed(new)?])
    });
    seeds.ok_or("name two seeds by their numbers, such as 0,3")
}

/// The name of a phase; empty for what is outside all phases.
fn phase(text: &str) -> Result<String, &'static str> {
    match text {
        "" => Err("name a phase; (no phase) is what is outside all phases"),
        OUTSIDE_PHASES => Ok(String::new()),
        text => Ok(text.to_owned()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExplainFormat {
    /// Text
    Text,
    /// JSON, with all functions and counters
    Json,
    /// A page with a differential flame graph
    Html,
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// An experiment's name or number, to export samples; or a boot such as b12, to export its profile
    /// [default: the latest experiment with a complete boot]
    pub what: Option<String>,
    /// Output format
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// Export the time series of an experiment instead of its samples
    #[arg(long)]
    pub series: bool,
    /// Export this workload only
    #[arg(long)]
    pub workload: Option<String>,
    /// Export this phase only, or what is outside all phases: "(no phase)"
    #[arg(long, value_parser = phase)]
    pub phase: Option<String>,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Samples as Apache Parquet
    Parquet,
    /// Samples as CSV, with the column names in the first line
    Csv,
    /// Samples as a JSON array, one object per line
    Json,
    /// Profile as collapsed stacks for flame-graph tools: one call path and its instructions or samples per line
    Collapsed,
    /// Profile as `perf script` prints samples; in exact mode the period is the number of instructions
    PerfScript,
}
