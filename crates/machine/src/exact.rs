//! Exact machines: a boot is a pure function of its inputs. Guest time is the number of instructions
//! executed, all CPUs take turns on one thread, and nothing asks the host for time or randomness.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use model::MemoryModel;

use crate::caches;
use crate::memory::ranges;
use crate::option::append_path;
use crate::{Error, Vm};

/// The version of QEMU that exact mode needs. Older ones cannot start a second CPU while they count instructions, or have
/// no sufficient plugin interface. QEMU 11 refuses plugins that were built for the interface of QEMU 10.
const MAJOR: u32 = 10;
/// An instruction takes 2 to the power of this number of nanoseconds of guest time (`qemu(1)`, `-icount`). With a
/// larger value, waits cost fewer instructions, but ticks and NUMA scans occur after fewer instructions and disturb
/// more. Until the workload starts, 4 CPUs take 10.2 s of CPU time with 0, 6.4 s with 1, 4.8 s with 2, 3.9 s with 4.
pub const SHIFT: u32 = 1;

/// The inputs of exact machines only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exact {
    /// The seed, which becomes words on the kernel's command line. The kernel mixes them into its random numbers. The
    /// seed changes only start-up timing and placement.
    pub seed: u32,
    /// The library that hides the host's wall clock from QEMU: `libstillclock.so`.
    pub clock: PathBuf,
    /// The counting plugin; `None` if nothing is counted. The guest cannot detect it.
    pub plugin: Option<Plugin>,
}

/// The plugin with its settings. It writes to [`crate::PROFILE_FILE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugin {
    /// The plugin itself: `libtcg.so`.
    pub path: PathBuf,
    /// Whether loads and stores are counted by CPU and node.
    pub accesses: bool,
    /// Whether instructions are counted by call path.
    pub stacks: bool,
    /// Whether the plugin is called at each instruction instead of once for several. The counts are the same, but it
    /// takes longer.
    pub each: bool,
    /// The number of instructions of a CPU's turn; `None` if QEMU ends turns at the guest's next timer.
    pub turn: Option<u32>,
    /// The task switch, if instructions are counted by process.
    pub switch: Option<Switch>,
    /// The caches and TLBs in which misses are counted; `None` if they are not counted.
    pub memory_model: Option<MemoryModel>,
    /// What is needed to count transfers of lines between CPUs; `None` if they are not counted.
    pub transfers: Option<Transfers>,
    /// The addresses at which the kernel's functions begin, in order. A jump to one of them counts as a call.
    pub functions: Vec<u64>,
}

/// The kernel's task switch, and the fields that identify tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Address of `__switch_to_asm`; 0 on arm64, where a register has the running task.
    pub address: u64,
    /// Offset of `tgid` in `struct task_struct`.
    pub tgid: u64,
    /// Offset of `comm` in `struct task_struct`.
    pub comm: u64,
}

/// What is needed to count transfers of lines between CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transfers {
    /// The node of each CPU.
    pub homes: Vec<u16>,
    /// The kernel's descriptors of memory, as the plugin's argument `layout` has them; `None` if they are not known.
    pub layout: Option<[u64; 7]>,
    /// The place of `this_cpu_off` among the per-CPU variables, and their size in bytes; `None` if they are not known.
    pub per_cpu: Option<(u64, u64)>,
    /// The addresses at which the kernel's functions begin that return memory of `kmalloc`, each followed by the number of
    /// the argument that is its size; 0 if none is.
    pub allocators: Vec<u64>,
    /// Those of functions that return per-CPU memory.
    pub per_cpu_allocators: Vec<u64>,
}

impl Transfers {
    fn option(&self) -> String {
        let listed = |numbers: &[u64], separator: &str| -> String {
            let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
            numbers.join(separator)
        };
        let homes: Vec<u64> = self.homes.iter().map(|home| u64::from(*home)).collect();
        let known = [
            ("layout", self.layout.map(Vec::from)),
            ("per-cpu", self.per_cpu.map(|(base, size)| vec![base, size])),
            ("allocators", Some(self.allocators.clone())),
            ("per-cpu-allocators", Some(self.per_cpu_allocators.clone())),
        ];
        let known = known.iter().filter_map(|(key, numbers)| Some((key, numbers.as_ref()?)));
        let known = known.filter(|(_, numbers)| !numbers.is_empty());
        let known = known.map(|(key, numbers)| format!(",{key}={}", listed(numbers, ":")));
        format!(",transfers={}{}", listed(&homes, "."), known.collect::<String>())
    }
}

impl Exact {
    /// Checks that this host can run `vm` exactly. Fails when QEMU has another version, the host's threads serve a disk, or
    /// one of our libraries is missing.
    pub(crate) fn check(&self, vm: &Vm<'_>) -> Result<(), Error> {
        let modest = vm.topology.cpus() == 1 && self.plugin.is_none();
        if vm.emulator.major() != MAJOR && !modest {
            let version = vm.emulator.version().to_owned();
            let path = vm.emulator.path().to_owned();
            let [package, _] = vm.emulator.platform().packages;
            return Err(Error::UnfitForExact { path, version, package });
        }
        let kinds = vm.disks.iter().map(|disk| disk.kind);
        if let Some((number, kind)) = kinds.enumerate().find(|(_, kind)| kind.is_asynchronous()) {
            return Err(Error::HostDisk { number, kind });
        }
        let plugin = self.plugin.as_ref().map(|plugin| &plugin.path);
        for library in [Some(&self.clock), plugin].into_iter().flatten() {
            if !library.is_file() {
                return Err(Error::NoLibrary(library.clone()));
            }
        }
        // `ld.so(8)`, `LD_PRELOAD`. The dynamic linker ignores a library that it cannot find.
        let splits = |byte: &u8| *byte == b':' || byte.is_ascii_whitespace();
        if self.clock.as_os_str().as_bytes().iter().any(splits) {
            return Err(Error::SplitPath(self.clock.clone()));
        }
        Ok(())
    }
}

impl Plugin {
    /// The value of QEMU's `-plugin`.
    pub(crate) fn option(&self, vm: &Vm<'_>) -> OsString {
        let mut option = OsString::from("file=");
        append_path(&mut option, &self.path);
        if self.accesses {
            for (node, range) in ranges(vm.topology, vm.emulator.platform()) {
                option.push(format!(",node={node}:{:#x}-{:#x}", range.start, range.end));
            }
        }
        if self.stacks {
            option.push(",stacks=on");
        }
        if self.each {
            option.push(",each=on");
        }
        // One CPU has all turns.
        if let Some(turn) = self.turn.filter(|_| vm.topology.cpus() > 1) {
            option.push(format!(",turn={turn}"));
        }
        if let Some(model) = &self.memory_model {
            option.push(format!(",caches={}", caches::shape(model, vm.topology)));
        }
        if let Some(transfers) = &self.transfers {
            option.push(transfers.option());
        }
        if let Some(Switch { address, tgid, comm }) = self.switch {
            option.push(format!(",switch={address:#x}:{tgid}:{comm}"));
        }
        option
    }
}
