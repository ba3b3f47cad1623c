//! The results of one boot: samples, series, facts and problems.

use std::fmt;
use std::num::NonZeroU32;

use serde::{Deserialize, Deserializer, Serialize};

use crate::{Note, Patched, Profile, Provenance, Source};

/// The source name of series that a workload reports itself. Their values are kept in millionths.
pub const WORKLOAD_SOURCE: &str = "workload";
/// The source names of series of tools that ran beside a workload: `mpstat`, `iostat`, `top` and `vmstat`.
/// Their values are kept in millionths.
pub const TOOL_SOURCES: [&str; 4] = ["mpstat", "iostat", "top", "vmstat-tool"];

/// How a boot ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "outcome", content = "detail")]
pub enum Outcome {
    /// The job was done and the machine powered off.
    Complete,
    /// Some workloads failed, but not all. The others count. The text names the failed ones; nothing of them is kept.
    Partial(String),
    /// A setting or a module failed and ended the job, or all workloads failed. The text says which.
    Failed(String),
    /// The kernel panicked. The text is the panic's own line.
    Panicked(String),
    /// A time limit expired. The text says which.
    TimedOut(String),
    /// The machine ended without a report: it was killed, or crashed. The text says how.
    Died(String),
    /// The host invalidated the boot: the emulator crashed (assertion, wild pointer) or was killed, or the guest's
    /// clock went wrong because the host was busy. The text says how.
    Invalid(String),
    /// Faultline itself ended during the boot.
    #[default]
    Interrupted,
}

impl Outcome {
    /// Whether nothing failed.
    pub fn is_complete(&self) -> bool {
        matches!(self, Self::Complete)
    }

    /// Whether the boot's samples count in comparisons.
    pub fn counts(&self) -> bool {
        matches!(self, Self::Complete | Self::Partial(_))
    }

    /// The outcome in one word, as in files and the store.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Partial(_) => "partial",
            Self::Failed(_) => "failed",
            Self::Panicked(_) => "panicked",
            Self::TimedOut(_) => "timed-out",
            Self::Died(_) => "died",
            Self::Invalid(_) => "invalid",
            Self::Interrupted => "interrupted",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => f.pad("complete"),
            Self::Partial(detail) => write!(f, "failed in part: {detail}"),
            Self::Failed(detail) => write!(f, "failed: {detail}"),
            Self::Panicked(detail) => write!(f, "kernel panic: {detail}"),
            Self::TimedOut(detail) => write!(f, "timed out: {detail}"),
            Self::Died(detail) => write!(f, "died: {detail}"),
            Self::Invalid(detail) => write!(f, "invalid because of the host: {detail}"),
            Self::Interrupted => f.pad("interrupted"),
        }
    }
}

named! {
    /// The kind of a kernel problem.
    pub enum ProblemKind {
        /// `WARN_ON` and similar.
        Warning = "warning",
        /// `BUG:`, oopses and panics.
        Bug = "bug",
        /// RCU stalls, soft and hard lockups, hung tasks, blocked workqueues.
        Stall = "stall",
        /// The OOM killer ran.
        OomKill = "oom-kill",
        /// The kernel is tainted.
        Taint = "taint",
        /// The recorder ran out of room and dropped series.
        SeriesDropped = "series-dropped",
        /// A workload had no result, and nothing of it is kept. The kernel does not support it, or, in imported
        /// boots, one of its iterations failed.
        LeftOut = "left-out",
    }
}

impl fmt::Display for ProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::OomKill => "OOM kill",
            Self::SeriesDropped => "series dropped",
            Self::LeftOut => "left out",
            other => other.name(),
        })
    }
}

/// A problem that the kernel reported during a boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The kind of problem that it is.
    pub kind: ProblemKind,
    /// The kernel's own line, or what the taint flags mean.
    pub text: String,
}

/// The count of a value that was measured once.
pub const ONCE: NonZeroU32 = NonZeroU32::MIN;

const fn once() -> NonZeroU32 {
    ONCE
}

/// One value of a metric, or several equal ones measured in a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The workload's name.
    pub workload: String,
    /// Number of the iteration in the boot, from 0.
    pub iteration: u32,
    /// The phase it belongs to; empty outside all phases.
    pub phase: String,
    /// The metric's name.
    pub metric: String,
    /// A further distinction, such as `p99`; empty if none.
    pub label: String,
    /// The value, in the metric's unit.
    pub value: f64,
    /// Number of times that the value was measured.
    #[serde(default = "once")]
    pub count: NonZeroU32,
    /// End of the measured operation, in nanoseconds of guest time; `None` if unknown.
    pub ended: Option<u64>,
}

impl Sample {
    /// A value measured once in the first iteration, outside any phase, without a label and a time.
    pub fn new(workload: impl Into<String>, metric: impl Into<String>, value: f64) -> Self {
        Self {
            workload: workload.into(),
            iteration: 0,
            phase: String::new(),
            metric: metric.into(),
            label: String::new(),
            value,
            count: ONCE,
            ended: None,
        }
    }
}

/// CPU time and elapsed time of one iteration of a workload, over all its processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// The workload's name.
    pub workload: String,
    /// Number of the iteration in the boot, from 0.
    pub iteration: u32,
    /// CPU time in user mode, in seconds.
    pub user: f64,
    /// CPU time in the kernel, in seconds.
    pub system: f64,
    /// Elapsed time in seconds.
    pub elapsed: f64,
}

/// One counter over the times of its chunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// The counter's name within its source, such as `numa_pte_updates` or
    /// `node0 Normal nr_free_pages`.
    pub name: String,
    /// One value for each time; `None` where the kernel did not print it.
    pub values: Vec<Option<i64>>,
}

impl Column {
    /// A counter with these values.
    pub fn new(name: impl Into<String>, values: Vec<Option<i64>>) -> Self {
        Self { name: name.into(), values }
    }
}

/// The series of one source during one phase. The first and the last reading are at the phase's start and
/// end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// The workload's name; empty outside workloads.
    pub workload: String,
    /// Number of the iteration in the boot, from 0.
    pub iteration: u32,
    /// The phase; empty outside phases.
    pub phase: String,
    /// The name of the source of the counters; `workload` for the workload's own series.
    pub source: String,
    /// Guest time of each reading, in nanoseconds since the guest's boot.
    pub times: Vec<u64>,
    /// The counters, each with a value for each time.
    pub columns: Vec<Column>,
}

impl Chunk {
    /// The last value of a counter minus the first; `None` unless both exist.
    pub fn difference(&self, counter: &str) -> Option<i64> {
        let column = self.columns.iter().find(|column| column.name == counter)?;
        Some((*column.values.last()?)?.wrapping_sub((*column.values.first()?)?))
    }

    /// Whether this chunk is of `source`.
    pub fn is_of(&self, source: Source) -> bool {
        self.source == source.name()
    }
}

/// Facts that a boot reports about itself: everything except the code in which two columns may differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootFacts {
    /// `uname -r`
    pub release: String,
    /// `uname -v`, which names the preemption model.
    pub version: String,
    /// `/proc/version`, which names the compiler.
    pub banner: String,
    /// `/proc/cmdline`
    pub cmdline: String,
    /// The preemption mode in force, if the kernel exposes it (`/sys/kernel/debug/sched/preempt`).
    pub preemption: String,
    /// Number of CPUs online.
    pub cpus: u32,
    /// Number of NUMA nodes online.
    pub nodes: u32,
    /// Total memory, in bytes.
    pub memory: u64,
    /// Page size in bytes.
    pub page_size: u64,
    /// The host and the programs that made the boot.
    #[serde(flatten)]
    pub provenance: Provenance,
    /// The kernel's origin, as in [`Kernel::origin`](crate::Kernel::origin).
    pub kernel_origin: String,
    /// The patches with which the kernel was built from source; `None` without, and in boots of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patched: Option<Patched>,
    /// SHA-256 of the kernel image.
    pub kernel_digest: String,
    /// The kernel's full configuration; empty if unknown.
    pub config: String,
    /// SHA-256 of the initramfs, in hexadecimal; empty if it was not kept. The initramfs has the agent, the
    /// workloads, the modules and the job.
    #[serde(default)]
    pub initramfs_digest: String,
    /// SHA-256 of the recording from the first frame to the last, in hexadecimal; empty if it was not kept. In exact
    /// mode equal inputs give an equal recording.
    #[serde(default)]
    pub recording_digest: String,
    /// SHA-256 of the image of user space, in hexadecimal; empty if no workload had packages.
    #[serde(default)]
    pub userspace_digest: String,
    /// The packages in that image as `name=version`.
    #[serde(default)]
    pub userspace: Vec<String>,
}

/// The load of the host during a boot. Unknown values are NaN, which JSON has as null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostLoad {
    /// One-minute load average of the host when the boot began.
    #[serde(deserialize_with = "number")]
    pub load_before: f64,
    /// One-minute load average of the host when the boot ended.
    #[serde(deserialize_with = "number")]
    pub load_after: f64,
    /// Share of the host's CPU time stolen by its own hypervisor during the boot, 0 to 1.
    #[serde(deserialize_with = "number")]
    pub steal: f64,
    /// Wall-clock time from start to end, in seconds.
    #[serde(deserialize_with = "number")]
    pub wall: f64,
}

/// Deserializes a number; null becomes NaN.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

/// All results of one boot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Boot {
    /// The variant's name.
    pub variant: String,
    /// Number of the boot among those of its variant, from 0. In exact mode it is the seed.
    #[serde(rename = "replicate")]
    pub boot_index: u32,
    /// Number of its block in the schedule, from 0.
    pub block: u32,
    /// The time when it began, in seconds since 1970.
    pub started: u64,
    /// The way in which it ended.
    pub outcome: Outcome,
    /// Facts that it reports about itself.
    pub facts: BootFacts,
    /// The host's load during the boot.
    pub host: HostLoad,
    /// Problems that the kernel reported.
    pub problems: Vec<Problem>,
    /// Notes on what the boot lacks, and remarks of workloads.
    pub notes: Vec<Note>,
    /// Every value of every metric.
    pub samples: Vec<Sample>,
    /// CPU and elapsed times of every iteration.
    pub usage: Vec<Usage>,
    /// Every series, cut by phase.
    pub chunks: Vec<Chunk>,
    /// Profiles, one per phase; empty if none were recorded.
    pub profiles: Vec<Profile>,
    /// The kernel's log, followed by the console's text.
    pub console: String,
}
