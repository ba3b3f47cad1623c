//! Events that the agent records.

use serde::{Deserialize, Serialize};

use crate::profile::MAX_SLICES;

/// The longest text of one event, in bytes. The agent truncates longer ones.
pub const MAX_TEXT: usize = 64 << 10;
/// The largest number of cuts of a boot. A profile has room for their marks, two each. The agent ends a
/// workload that exceeds this or the next two limits, and the host rejects the recording.
pub const MAX_CUTS: usize = MAX_SLICES / 2 - 1;
/// The largest number of samples of a boot.
pub const MAX_SAMPLES: usize = 1_000_000;
/// The largest size of a boot's notes, in bytes.
pub const MAX_NOTES: usize = 1 << 20;
/// The largest number of different call paths in the samples of a boot.
pub const MAX_PATHS: usize = 1 << 16;
/// The largest number of functions in all these paths together, and in those of user mode together.
pub const MAX_FRAMES: usize = 1 << 20;
/// The largest number of names of processes in the samples of a boot.
pub const MAX_PROCESSES: usize = 1 << 12;
/// The largest number of call paths in user mode in the samples of a boot, and of names of functions in them.
pub const MAX_USER_PATHS: usize = 1 << 15;

/// An event in the guest, at the time of its frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// The agent has started. This is always the first frame.
    Hello(Hello),
    /// The list of files that series frames refer to by index.
    Files(Vec<File>),
    /// An iteration of a workload begins. The sampler read all files just before this frame.
    Begin {
        /// Index into the job's workloads.
        workload: u16,
        /// The iteration, from 0.
        iteration: u32,
    },
    /// A phase begins and the previous one ends. Files were sampled just before this frame.
    Phase(String),
    /// A value of a metric.
    Sample {
        /// The metric's name.
        metric: String,
        /// A further distinction; empty if there is none.
        label: String,
        /// The value in the metric's unit.
        value: f64,
        /// The end of the measured operation, in nanoseconds of guest time, if the workload reported it.
        ended: Option<u64>,
    },
    /// One point of a series that the workload reports.
    Point {
        /// The series' name.
        series: String,
        /// Its current value.
        value: f64,
    },
    /// A note of the workload.
    Note(String),
    /// The iteration ended. Files were sampled just before this frame.
    End(Usage),
    /// Lines of the kernel's log from `/dev/kmsg`, as `[seconds] text`.
    Log(String),
    /// The recorder is nearly full. No further series are recorded.
    SeriesDropped,
    /// The job ended early, for this reason.
    Failed(String),
    /// The agent has finished and powers the machine off. This is always the last frame.
    Bye {
        /// `/proc/sys/kernel/tainted`
        tainted: u64,
    },
    /// Complete lines of `/proc/kallsyms`, code symbols only.
    Symbols(String),
    /// The workload of the last begun iteration failed for this reason, and the job continues with the next
    /// one. Files were sampled just before this frame.
    WorkloadFailed(String),
    /// Samples of the profile are taken from now on.
    Sampling {
        /// The event that triggers them, by perf's name.
        event: String,
        /// Samples per second and CPU.
        frequency: u32,
    },
    /// Samples of the profile since the last such frame or the last cut.
    Samples(Samples),
    /// The states of the kernel as a workload finds them before its first iteration.
    Found {
        /// Index into the job's workloads.
        workload: u16,
        /// Each state's name, one of [`model::STATES`], and its value.
        states: Vec<(String, String)>,
    },
    /// State that a workload left and the agent could not undo.
    Left(String),
}

/// Samples of the profile. Call paths and functions are numbered over the whole boot, in the order in which they are
/// listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Samples {
    /// New call paths. Each has the addresses at which its functions begin, the outermost first, as signed numbers,
    /// which take fewer bytes. 0 stands for an unknown function.
    pub paths: Vec<Vec<i64>>,
    /// New names of functions in programs.
    pub functions: Vec<String>,
    /// New call paths in user mode.
    pub processes: Vec<UserPath>,
    /// Samples in the kernel: the number of a path, and the number of samples.
    pub kernel: Vec<(u32, u32)>,
    /// Samples in user mode: the number of a path in user mode, and the number of samples.
    pub user: Vec<(u32, u32)>,
    /// Samples that the kernel had no room for.
    pub lost: u64,
    /// Samples that the agent had no room for.
    pub dropped: u64,
}

/// A process's call path in user mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserPath {
    /// The id of the first thread group that had it.
    pub id: u32,
    /// The process's name.
    pub name: String,
    /// Numbers of the functions, the outermost first; empty if they are not known.
    pub functions: Vec<u32>,
}

/// A kernel file that the sampler reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// The name of its source, such as `node-vmstat`.
    pub source: String,
    /// The file of the source, such as `node0`; empty if the source is one file.
    pub part: String,
}

/// Facts that the guest reports about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// `uname -r`
    pub release: String,
    /// `uname -v`
    pub version: String,
    /// `/proc/version`
    pub banner: String,
    /// `/proc/cmdline`
    pub cmdline: String,
    /// `/sys/kernel/debug/sched/preempt`; empty if the kernel does not have it.
    pub preemption: String,
    /// Number of CPUs online.
    pub cpus: u32,
    /// Number of NUMA nodes online.
    pub nodes: u32,
    /// Total memory, in bytes.
    pub memory: u64,
    /// Page size in bytes.
    pub page_size: u64,
}

/// CPU and elapsed time of an iteration, over all its processes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time in user mode, in seconds.
    pub user: f64,
    /// CPU time in the kernel, in seconds.
    pub system: f64,
    /// Elapsed time in seconds.
    pub elapsed: f64,
}

/// The bytes of an event are damaged, or from another version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the recorder cannot be read: {0}")]
pub struct EventError(#[from] postcard::Error);

impl Event {
    /// Encodes this event as the payload of a frame. A well-formed event causes no error.
    pub fn encode(&self) -> Result<Vec<u8>, EventError> {
        Ok(postcard::to_stdvec(self)?)
    }

    /// Decodes the payload of an event's frame. Fails when the bytes are not an event.
    pub fn decode(payload: &[u8]) -> Result<Self, EventError> {
        Ok(postcard::from_bytes(payload)?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_event_is_read_as_it_was_written() {
        let (metric, label) = ("Elapsed".into(), String::new());
        let event = Event::Sample { metric, label, value: 12.5, ended: Some(81) };
        assert_eq!(Event::decode(&event.encode().unwrap()), Ok(event));
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
            let _ = Event::decode(&bytes);
        }
    }
}
