//! The job: everything the agent is to do, put into the initramfs before the boot. Nothing is sent
//! to a guest while it runs.

use model::{Millis, Sampler, Setting};
use serde::{Deserialize, Serialize};

/// Where the agent finds the job, as JSON.
pub const JOB_PATH: &str = "/faultline/job.json";
/// Where the agent lies in the initramfs; the kernel starts it as PID 1.
pub const AGENT_PATH: &str = "/init";
/// Where the built-in workloads lie.
pub const WORKLOADS_PATH: &str = "/faultline/workloads";
/// Where programs of the user's own lie.
pub const PROGRAMS_PATH: &str = "/faultline/programs";
/// Where the decompressed modules lie.
pub const MODULES_PATH: &str = "/faultline/modules";
/// Where a shell lies, when one was asked for: a busybox.
pub const SHELL_PATH: &str = "/bin/busybox";
/// PCI vendor and device of the memory shared with the host (QEMU `docs/specs/ivshmem-spec.rst`).
pub const RECORDER_PCI: (u16, u16) = (0x1af4, 0x1110);

/// What the agent is to do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Modules to load, in this order: paths in the initramfs.
    pub modules: Vec<String>,
    /// Settings to apply, in this order.
    pub settings: Vec<Setting>,
    /// Workloads to run, in this order.
    pub workloads: Vec<Workload>,
    /// What to sample, and how often.
    pub sampler: Sampler,
    /// Record the kernel's symbols when the workloads are done.
    #[serde(default)]
    pub symbols: bool,
    /// Give a shell on the console when the workloads are done.
    pub shell: bool,
}

/// One workload of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// Its name, for messages.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Repetitions.
    pub iterations: u32,
    /// How long one may take.
    pub timeout: Millis,
}
