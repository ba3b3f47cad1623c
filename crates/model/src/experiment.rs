//! An experiment: variants x workloads x boots x iterations on one machine.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{
    Architecture, Disk, Manifest, Millis, Patched, Pinned, Point, Profiling, Swap, TaskLayout,
    Topology, UserspaceLock,
};

named! {
    /// A kernel file of the guest that the sampler reads.
    pub enum Source {
        /// `/proc/vmstat`
        Vmstat = "vmstat",
        /// `/proc/zoneinfo`
        Zoneinfo = "zoneinfo",
        /// `/sys/devices/system/node/node*/vmstat`
        NodeVmstat = "node-vmstat",
        /// `/sys/devices/system/node/node*/numastat`
        NodeNumastat = "node-numastat",
        /// `/sys/devices/system/node/node*/meminfo`
        NodeMeminfo = "node-meminfo",
        /// `/proc/meminfo`
        Meminfo = "meminfo",
        /// `/proc/stat`
        Stat = "stat",
        /// `/proc/schedstat`
        Schedstat = "schedstat",
        /// `/proc/pressure/*`
        Pressure = "pressure",
        /// `/proc/interrupts`
        Interrupts = "interrupts",
        /// `/proc/softirqs`
        Softirqs = "softirqs",
        /// `/proc/diskstats`
        Diskstats = "diskstats",
        /// `/proc/buddyinfo`
        Buddyinfo = "buddyinfo",
        /// `/proc/pagetypeinfo`
        Pagetypeinfo = "pagetypeinfo",
        /// `/proc/slabinfo`
        Slabinfo = "slabinfo",
        /// Events that perf counts, as the agent prints them.
        Events = "events",
    }
}

impl Source {
    /// Whether reading it takes locks that other CPUs wait for. Such files are not read every few
    /// milliseconds (`mm/vmstat.c`: pagetypeinfo holds the zone lock; `mm/slab_common.c`: slabinfo walks
    /// the slab lists).
    pub const fn takes_locks(self) -> bool {
        matches!(self, Self::Pagetypeinfo | Self::Slabinfo)
    }
}

/// The counters that the sampler reads, and how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sampler {
    /// Time between readings, 10 ms or more.
    pub interval: Millis,
    /// The files to sample.
    pub sources: Vec<Source>,
    /// The events that perf counts, by perf's names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
}

impl Default for Sampler {
    fn default() -> Self {
        let is_usual = |source: &Source| !source.takes_locks() && *source != Source::Events;
        let sources = Source::ALL.iter().copied().filter(is_usual).collect();
        Self { interval: Millis(1000), sources, events: Vec::new() }
    }
}

named! {
    /// The clock by which kernels are compared.
    #[derive(Default)]
    pub enum Mode {
        /// Time, which is noisy.
        #[default]
        Measured = "measured",
        /// Instructions, counted in a deterministic VM: equal inputs give equal boots.
        Exact = "exact",
    }
}

impl Mode {
    /// Whether it is measured mode, which is the default and is not written to files.
    pub fn is_measured(&self) -> bool {
        *self == Self::Measured
    }
}

named! {
    /// The means by which a VM's instructions are executed.
    #[derive(Default)]
    pub enum Accel {
        /// KVM if a guest really boots under it, else emulation.
        #[default]
        Auto = "auto",
        /// The host's processor, by hardware virtualisation.
        Kvm = "kvm",
        /// QEMU's emulation, on several threads.
        Tcg = "tcg",
    }
}

named! {
    /// Where variants run.
    #[derive(Default)]
    pub enum MachineKind {
        /// A VM with a topology, which each boot starts anew.
        #[default]
        Vm = "vm",
        /// The host itself, on the kernel that it runs. A boot is a session: settings, then workloads.
        Host = "host",
    }
}

impl MachineKind {
    /// Whether it is a VM, which is the default and is not written to files.
    pub fn is_vm(&self) -> bool {
        *self == Self::Vm
    }
}

/// The name of the kernel that a host runs.
pub const RUNNING_KERNEL: &str = "host";

/// Time limits of a boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// From the start of the machine to the agent's first frame.
    pub boot: Millis,
    /// From the agent's first frame to its last.
    pub run: Millis,
    /// From the agent's last frame to the end of the machine.
    pub shutdown: Millis,
}

impl Default for Limits {
    fn default() -> Self {
        Self { boot: Millis(180_000), run: Millis(3_600_000), shutdown: Millis(60_000) }
    }
}

/// The machine on which variants run: a VM with a topology, or a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Whether it is a VM or a host.
    #[serde(default, skip_serializing_if = "MachineKind::is_vm")]
    pub kind: MachineKind,
    /// The architecture of its CPUs.
    #[serde(default, skip_serializing_if = "Architecture::is_usual")]
    pub arch: Architecture,
    /// CPUs, memory and nodes.
    pub topology: Topology,
    /// Its disks, in the order of their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<Disk>,
    /// Its swap space, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<Swap>,
    /// What executes its instructions.
    pub accel: Accel,
    /// In exact mode the number of instructions after which the next CPU has its turn; `None` if QEMU ends turns at
    /// the guest's next timer, as it did in all experiments before turns were a part of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// The time limits of its boots.
    pub limits: Limits,
}

impl Machine {
    /// A machine of this topology without disks and swap, with [`Accel::Auto`] and the default limits.
    pub fn new(topology: Topology) -> Self {
        Self { topology, ..Self::default() }
    }
}

/// A setting of the running kernel that a variant changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Setting {
    /// A sysctl by its dotted name.
    Sysctl {
        /// A name such as `kernel.numa_balancing`.
        name: String,
        /// The value to write.
        value: String,
    },
    /// A file below `/sys` (debugfs included).
    Sysfs {
        /// A path such as `/sys/kernel/mm/transparent_hugepage/enabled`.
        path: String,
        /// The value to write.
        value: String,
    },
}

impl Setting {
    /// The file that the value is written to. Dots in the name of a sysctl separate directories; in a name with
    /// slashes they are part of names (sysctl(8)).
    pub fn file(&self) -> String {
        match self {
            Self::Sysctl { name, .. } if name.contains('/') => format!("/proc/sys/{name}"),
            Self::Sysctl { name, .. } => format!("/proc/sys/{}", name.replace('.', "/")),
            Self::Sysfs { path, .. } => path.clone(),
        }
    }
}

/// One thing under comparison: a kernel and its settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// Its name, which heads a column.
    pub name: String,
    /// The kernel: a name in the cache, or one that can be fetched (`debian:6.1`).
    pub kernel: Pinned,
    /// Words added to the kernel's command line.
    pub cmdline: String,
    /// Settings applied before any workload runs, in order.
    pub settings: Vec<Setting>,
    /// Kernel modules to load.
    pub modules: Vec<String>,
    /// The point of a sweep at which it runs; `None` without a sweep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<Point>,
}

impl Variant {
    /// The name that it has at all points of a sweep; without a sweep, its name.
    pub fn short_name(&self) -> &str {
        self.point.as_ref().map_or(&self.name, |point| &point.variant)
    }
}

/// A workload as an experiment uses it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkloadUse {
    /// Its manifest, with the parameters as this experiment sets them.
    pub manifest: Manifest,
    /// A program of the user's to put into the guest.
    pub program: Option<Pinned>,
    /// Several programs instead of one, for a workload that runs them one after the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub binaries: Vec<Pinned>,
    /// A cpio archive of the user's, which the kernel unpacks into the guest's root directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<Pinned>,
    /// Repetitions inside a boot that count.
    pub iterations: u32,
    /// Warm-up repetitions, the first of each boot, which do not count.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub warmup: u32,
    /// The time limit of one iteration.
    pub timeout: Millis,
}

impl WorkloadUse {
    /// A workload with `iterations` iterations per boot, without the user's programs and without warm-up.
    pub fn new(manifest: Manifest, iterations: u32, timeout: Millis) -> Self {
        Self {
            manifest,
            program: None,
            binaries: Vec::new(),
            archive: None,
            iterations,
            warmup: 0,
            timeout,
        }
    }

    /// All of the user's programs.
    pub fn programs(&self) -> impl Iterator<Item = &Pinned> {
        self.program.iter().chain(&self.binaries)
    }

    /// All of the user's files: programs and the archive.
    pub fn files(&self) -> impl Iterator<Item = &Pinned> {
        self.programs().chain(&self.archive)
    }

    /// All of the user's files, mutable.
    pub fn files_mut(&mut self) -> impl Iterator<Item = &mut Pinned> {
        self.program.iter_mut().chain(&mut self.binaries).chain(&mut self.archive)
    }

    /// Number of iterations in a boot, including warm-up.
    pub fn repetitions(&self) -> u32 {
        self.iterations.saturating_add(self.warmup)
    }

    /// Whether this iteration of a boot counts.
    pub fn counts(&self, iteration: u32) -> bool {
        iteration >= self.warmup
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What runs: variants x workloads x boots x iterations on one machine. A [`Reading`](crate::Reading) says how its
/// figures are read. Its identity is everything but the number of boots, the condition for an early end, and the lock
/// of the user space.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Its name.
    pub name: String,
    /// The clock by which kernels are compared.
    #[serde(default, skip_serializing_if = "Mode::is_measured")]
    pub mode: Mode,
    /// What profiles have besides the costs that are always counted.
    #[serde(default, skip_serializing_if = "Profiling::is_default")]
    pub profile: Profiling,
    /// SHA-256 of our own programs in the guest, in hexadecimal. In exact mode another build of them makes another
    /// experiment. Empty in measured mode.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub guest_digest: String,
    /// The programs that count instructions in exact mode. Other versions of them make another experiment. Empty in
    /// measured mode.
    #[serde(default, skip_serializing_if = "CountedBy::is_unknown")]
    pub counted_by: CountedBy,
    /// SHA-256 of the image of user space for workloads with packages, in hexadecimal. Another image makes another
    /// experiment. Empty without such workloads.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub userspace_digest: String,
    /// The packages of that image, if the experiment pins them. Another lock of the same packages does not
    /// make another experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub userspace: Option<UserspaceLock>,
    /// The variants that are compared; the first is the baseline.
    pub variants: Vec<Variant>,
    /// The machine on which all variants run, unless a point of a sweep changes it.
    pub machine: Machine,
    /// The workloads, in their order within each boot.
    pub workloads: Vec<WorkloadUse>,
    /// The counters that the sampler reads.
    pub sampler: Sampler,
    /// Boots of each variant. In exact mode the seed of a boot is its number,
    /// [`Boot::boot_index`](crate::Boot::boot_index).
    pub boots: u32,
    /// If set, the run may end early: the finished boots are judged at each look, and `boots` is the maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequential: Option<Sequential>,
    /// The files that the results were imported from, if they were. They are part of the identity, because imported
    /// results have no other definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
}

impl Experiment {
    /// The experiment with names as the user gave them, without digests.
    pub fn unpinned(mut self) -> Self {
        let kernels = self.variants.iter_mut().map(|variant| &mut variant.kernel);
        let programs = self.workloads.iter_mut().flat_map(WorkloadUse::files_mut);
        kernels.chain(programs).for_each(|it| it.digest = None);
        self
    }

    /// The packages that its workloads need, without duplicates, sorted by name.
    pub fn packages(&self) -> Vec<&str> {
        let packages = self.workloads.iter().flat_map(|used| &used.manifest.packages);
        let mut packages: Vec<&str> = packages.map(String::as_str).collect();
        packages.sort_unstable();
        packages.dedup();
        packages
    }
}

/// What counts instructions in exact mode: programs on the host, and the machine. An empty text is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CountedBy {
    /// QEMU's version as it prints it.
    pub emulator: String,
    /// SHA-256 of the plugin, in hexadecimal.
    pub plugin: String,
    /// SHA-256 of the library that hides the host's clock from QEMU, in hexadecimal.
    pub clock: String,
    /// SHA-256 of what all exact machines have, whatever their size (`machine::exact_machine`), in hexadecimal.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub machine: String,
}

impl CountedBy {
    fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// The condition under which an experiment may end before all its boots are done.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sequential {
    /// Differences up to this share of the baseline's figure count as none: 0.01 is 1 %.
    pub margin: f64,
    /// No further block of boots starts after a run has taken this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Millis>,
}

/// Results of another tool, imported from its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// The tool, such as `mmtests`.
    pub tool: String,
    /// The directory it was read from.
    pub directory: PathBuf,
    /// SHA-256 over the files in it, in hexadecimal. Changed files make another experiment.
    pub digest: String,
}

/// What a kernel was built from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelSource {
    /// The tree of the source after patches, in the cache's git repository.
    pub tree: String,
    /// The user's repository, whose objects that one borrows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<PathBuf>,
    /// The compiler, such as `gcc-14`.
    pub compiler: String,
}

/// A kernel in the cache: a bootable image with its modules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// Its name in the cache, unique.
    pub name: String,
    /// The release that `uname -r` will print; empty if it is not known.
    pub release: String,
    /// The architecture that it is for.
    #[serde(default, skip_serializing_if = "Architecture::is_usual")]
    pub arch: Architecture,
    /// The origin: package and version, or file.
    pub origin: String,
    /// SHA-256 of the image, in hexadecimal.
    pub digest: String,
    /// The image as packaged (`bzImage`, `Image`, or `vmlinux` if that was given).
    pub image: PathBuf,
    /// The uncompressed image that machines boot, if there is one: a `vmlinux` with a PVH entry, or arm64's `Image`.
    pub vmlinux: Option<PathBuf>,
    /// The directory that holds `modules.dep`, if the kernel came with modules.
    pub modules: Option<PathBuf>,
    /// The configuration it was built with, if known.
    pub config: Option<PathBuf>,
    /// Headers to build modules with, for a kernel of the user's, if given.
    #[serde(default)]
    pub headers: Option<PathBuf>,
    /// Its `System.map`, if it was given.
    #[serde(default)]
    pub map: Option<PathBuf>,
    /// The offsets of the fields of a task, if it was built from source. Otherwise they are in its BTF.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TaskLayout>,
    /// Whether it was built here from source.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub built: bool,
    /// What it was built from here. Unknown for kernels that older versions built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<KernelSource>,
    /// SHA-256 of what the user gave beside the image, in hexadecimal: `config` and `map`, `headers` and `modules` (of
    /// all files in the directory).
    #[serde(default)]
    pub digests: BTreeMap<String, String>,
    /// The patches with which it was built, as the latest request for it had them; never kept in the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patched: Option<Patched>,
}
