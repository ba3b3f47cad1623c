//! The job, which says everything that the agent does. It is in the initramfs; nothing is sent to a running guest.

use model::{Bytes, Millis, Sampler, Setting};
use serde::{Deserialize, Serialize};

/// The path of the job, which is JSON.
pub const JOB_PATH: &str = "/faultline/job.json";
/// The job's name in the directory of a session on a host.
pub const JOB_FILE: &str = "job.json";
/// The recording's name in that directory.
pub const RECORDER_FILE: &str = "flight.bin";
/// The working directory of workloads in that directory.
pub const WORK_DIRECTORY: &str = "work";
/// The agent's first argument on a host; the second is the directory of the session.
pub const ON_HOST: &str = "on-host";
/// The agent's path in the initramfs; the kernel starts it as PID 1.
pub const AGENT_PATH: &str = "/init";
/// The directory of the built-in workloads.
pub const WORKLOADS_PATH: &str = "/faultline/workloads";
/// The directory of the user's programs.
pub const PROGRAMS_PATH: &str = "/faultline/programs";
/// The root of the user space made of packages, for workloads that need it.
pub const USERSPACE_PATH: &str = "/userspace";
/// The read-only mount point of the image of that user space.
pub const USERSPACE_IMAGE_PATH: &str = "/userspace-image";
/// The directory of the decompressed modules.
pub const MODULES_PATH: &str = "/faultline/modules";
/// The directory with the contents of RAM disks. Each disk has a directory with its number as name, whose files have
/// their offset in hexadecimal as name.
pub const IMAGES_PATH: &str = "/faultline/disks";
/// The shell, if one was requested: a busybox.
pub const SHELL_PATH: &str = "/bin/busybox";
/// PCI vendor and device of the memory shared with the host (QEMU `docs/specs/ivshmem-spec.rst`).
pub const RECORDER_PCI: (u16, u16) = (0x1af4, 0x1110);

/// Everything that the agent does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Modules to load, in this order.
    pub modules: Vec<Module>,
    /// Disks to mount, in this order, before the settings are applied.
    pub disks: Vec<Disk>,
    /// The disk with the user space made of packages, if a workload needs one.
    #[serde(default)]
    pub userspace: Option<Disk>,
    /// Swap space to create and enable after that, if any.
    #[serde(default)]
    pub swap: Option<Swap>,
    /// Settings to apply, in this order.
    pub settings: Vec<Setting>,
    /// Workloads to run, in this order.
    pub workloads: Vec<Workload>,
    /// The files to sample, and how often.
    pub sampler: Sampler,
    /// In exact mode, the seed. The agent draws from it what may differ between two boots of one kernel: free lists,
    /// PIDs, timer phases.
    #[serde(default)]
    pub seed: Option<u32>,
    /// Whether to record the kernel's symbols after the workloads.
    #[serde(default)]
    pub symbols: bool,
    /// Samples of the profile per second and CPU; `None` for no profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency: Option<u32>,
    /// Whether to start a shell on the console after the workloads.
    pub shell: bool,
    /// Whether it runs on a host and not in a guest. The agent then changes nothing of the machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_host: bool,
}

/// One kernel module of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Its file in the initramfs.
    pub path: String,
    /// Its parameters, as on a kernel's command line; usually empty.
    pub parameters: String,
    /// Whether the guest continues if the kernel rejects it, such as a module for other CPUs.
    pub optional: bool,
}

/// One disk of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// The property by which the guest finds it.
    pub identity: Identity,
    /// The modules with its drivers, which may be built into the kernel.
    #[serde(default)]
    pub drivers: Vec<String>,
    /// The disk's size.
    pub size: Bytes,
    /// The path of its device, a link to the kernel's name.
    pub device: String,
    /// The directory with the contents to write to it first, for a disk that is empty at boot.
    pub contents: Option<String>,
    /// The file system on it; `None` for a raw device.
    pub mount: Option<Mount>,
}

/// The property by which the guest finds a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Identity {
    /// The kernel's name for it, such as `ram0`.
    Name(String),
    /// The firmware's handle of the memory module that holds the persistent memory (ACPI's NFIT).
    Handle(u32),
    /// Its serial number.
    Serial(String),
}

/// A file system to mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// The type of the file system, as for mount(8).
    pub filesystem: String,
    /// The mount point, which is created.
    pub place: String,
    /// Options as in fstab(5), separated by commas.
    pub options: String,
}

/// The swap space of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Swap {
    /// A file, which is created.
    File {
        /// Its path, on a mounted disk.
        path: String,
        /// Its size.
        size: Bytes,
    },
    /// A raw disk.
    Disk {
        /// The path of its device.
        device: String,
    },
    /// The first zram device.
    Zram {
        /// Its capacity before compression.
        size: Bytes,
        /// The kernel's name of the compression algorithm; empty for its default.
        algorithm: String,
    },
}

/// One workload of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// Its name, for messages.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The number of iterations.
    pub iterations: u32,
    /// The time limit of one iteration.
    pub timeout: Millis,
    /// Whether it has metrics. If so, an iteration without a sample has failed.
    #[serde(default)]
    pub metrics: bool,
    /// Whether its root is the user space made of packages.
    #[serde(default)]
    pub userspace: bool,
    /// Whether the agent measures it, and takes figures from its output.
    #[serde(default)]
    pub plain: bool,
    /// Its working directory; empty for the root.
    #[serde(default)]
    pub directory: String,
}
