//! The job: everything the agent is to do, put into the initramfs before the boot. Nothing is sent
//! to a guest while it runs.

use model::{Bytes, Millis, Sampler, Setting};
use serde::{Deserialize, Serialize};

/// Where the agent finds the job, as JSON.
pub const JOB_PATH: &str = "/faultline/job.json";
/// Where the agent lies in the initramfs; the kernel starts it as PID 1.
pub const AGENT_PATH: &str = "/init";
/// Where the built-in workloads lie.
pub const WORKLOADS_PATH: &str = "/faultline/workloads";
/// Where programs of the user's own lie.
pub const PROGRAMS_PATH: &str = "/faultline/programs";
/// Where the user space made of packages is, for workloads that want it: their root.
pub const USERSPACE_PATH: &str = "/userspace";
/// Where the image of that user space is mounted, which nobody can write to.
pub const USERSPACE_IMAGE_PATH: &str = "/userspace-image";
/// Where the decompressed modules lie.
pub const MODULES_PATH: &str = "/faultline/modules";
/// Where the contents of RAM disks lie: a directory for each, named after the disk's number, of files
/// named after the offset at which they belong, in hexadecimal.
pub const IMAGES_PATH: &str = "/faultline/disks";
/// Where a shell lies, when one was asked for: a busybox.
pub const SHELL_PATH: &str = "/bin/busybox";
/// PCI vendor and device of the memory shared with the host (QEMU `docs/specs/ivshmem-spec.rst`).
pub const RECORDER_PCI: (u16, u16) = (0x1af4, 0x1110);

/// What the agent is to do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Modules to load, in this order.
    pub modules: Vec<Module>,
    /// Disks to mount, in this order, before the settings are applied.
    pub disks: Vec<Disk>,
    /// The disk with the user space made of packages, if a workload wants one.
    #[serde(default)]
    pub userspace: Option<Disk>,
    /// Swap space to make and switch on after that, if there is to be one.
    #[serde(default)]
    pub swap: Option<Swap>,
    /// Settings to apply, in this order.
    pub settings: Vec<Setting>,
    /// Workloads to run, in this order.
    pub workloads: Vec<Workload>,
    /// What to sample, and how often.
    pub sampler: Sampler,
    /// In exact mode, what everything that may differ without mattering is drawn from.
    #[serde(default)]
    pub seed: Option<u32>,
    /// Record the kernel's symbols when the workloads are done.
    #[serde(default)]
    pub symbols: bool,
    /// Give a shell on the console when the workloads are done.
    pub shell: bool,
}

/// One kernel module of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Its file in the initramfs.
    pub path: String,
    /// Its parameters, as on a kernel's command line; mostly none.
    pub parameters: String,
    /// Whether the guest does without it if the kernel refuses it, as one for other CPUs.
    pub optional: bool,
}

/// One disk of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// How it is found.
    pub identity: Identity,
    /// The modules that drive it, which a kernel may have built in.
    #[serde(default)]
    pub drivers: Vec<String>,
    /// Its size.
    pub size: Bytes,
    /// The name that it gets, a link to what the kernel calls it.
    pub device: String,
    /// The directory of what is written to it first, if it comes empty.
    pub contents: Option<String>,
    /// The file system on it; none for a raw device.
    pub mount: Option<Mount>,
}

/// How a disk is told from others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Identity {
    /// The kernel's name for it, such as `ram0`.
    Name(String),
    /// The handle that the firmware gives the memory module that persistent memory is on (ACPI's
    /// NFIT).
    Handle(u32),
    /// The serial number that it gives.
    Serial(String),
}

/// A file system to mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Its type.
    pub filesystem: String,
    /// The directory, which is made.
    pub place: String,
    /// Options as in fstab(5), parted by commas.
    pub options: String,
}

/// The swap space of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Swap {
    /// A file, which is made.
    File {
        /// Its path, on a mounted disk.
        path: String,
        /// Its size.
        size: Bytes,
    },
    /// A raw disk.
    Disk {
        /// Its device.
        device: String,
    },
    /// The first device of zram.
    Zram {
        /// How much fits into it before compression.
        size: Bytes,
        /// The kernel's name of the compression; empty for its default.
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
    /// Repetitions.
    pub iterations: u32,
    /// How long one may take.
    pub timeout: Millis,
    /// Whether it has metrics: then an iteration that reports no sample has failed.
    #[serde(default)]
    pub metrics: bool,
    /// Whether its root is the user space made of packages.
    #[serde(default)]
    pub userspace: bool,
}
