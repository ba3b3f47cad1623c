//! The profile has the counts of the QEMU plugin for each phase. This module also defines the format of its file. The
//! host resolves symbols and names of phases, and computes sums.
//!
//! # Slices
//!
//! The agent executes [`MARK`] twice for each cut: before and after its own work at the cut, which reads
//! every sampled file. This divides the counts into slices. Slice 0 precedes the first cut. For cut number n
//! (from 1), slice 2n - 1 is the cut's own work and the simultaneous work of other CPUs, and slice 2n is the
//! phase that begins there. [`Profile::phase`] returns only the phases.
//!
//! # Ticks
//!
//! At each tick of its sampler the agent executes [`TICK`], with the tick's time in a register. All samples
//! of a tick have the same time in the recording, so ticks are paired with samples by time. (A tick at which no file
//! changed has no sample, but is in the profile.) A tick is never within a cut, so a phase has each of its ticks once
//! and in order, and slices of cuts have none. A tick has all accesses since its phase began. The start and the end
//! of a phase have no ticks: at its start the accesses are 0, and at its end they are those of the complete phase
//! ([`Cpu::accesses`]).
//!
//! # The sampler
//!
//! What a CPU executes while it runs the agent's thread [`SAMPLER`] is in no slice and in no tick. The CPU's work for
//! others in that time, such as interrupts, is not counted either. Counting stops at the first instruction of
//! `__switch_to_asm` when the kernel switches to the thread, and begins at the first one when it switches away. On
//! arm64 it is the instruction of `cpu_switch_to` that sets `sp_el0`. If the plugin does not know which process runs,
//! nothing is left out.
//!
//! # Paths
//!
//! A call path is a node of one tree for the entire profile ([`CallSite`]). The function that runs was called from
//! the path's last call site, whose function was called from the call site before it, and so on. A jump to the
//! beginning of another function (a tail call) is a call that returns together with its caller; its site is the
//! beginning of the function that jumps. Functions that jump to each other in turn do not extend the path. Jumps are
//! followed if the plugin knows the kernel's functions ([`FUNCTIONS_VARIABLE`]), and in modules to functions that
//! were called before. If a jump is not followed, the function that is jumped to replaces the one that jumps. An
//! exception counts as a call from the instruction that raised it, as in unwinders. External interrupts and NMIs
//! start their own path, because the code that they interrupt is random. So do entries from user mode.
//!
//! # The file
//!
//! The file is a sequence of frames ([`crate::frame`]) of kind [`Profile`](crate::frame::Kind::Profile), with time 0,
//! because the plugin does not know the time. Their payloads are [`record::Record`]s in postcard's format: `Start`,
//! then for each slice its ticks, its counts and `Cut`, and `End` if the machine ended normally. New nodes of the tree
//! precede the slice that refers to them, and so do new classes of instructions. A slice is valid if it has its `Cut`,
//! so a killed machine leaves the completed slices. A slice has a record for each CPU, in order.
//!
//! # Limits
//!
//! Any program of the guest, also in user mode, can execute [`MARK`] and [`TICK`]. If the plugin knows which process
//! runs, marks and ticks of other processes than [`AGENT`] have no effect, and [`Profile::intruder`] is the first
//! such process. Otherwise the cuts are not those of the recording, so the host refuses the profile. In any case
//! marks and ticks beyond [`MAX_SLICES`] and [`MAX_TICKS`] do nothing, and a profile ends before it exceeds
//! [`MAX_BYTES`].

mod functions;
pub mod marks;
mod read;
mod record;
mod write;

pub use functions::{FUNCTIONS_VARIABLE, pack_functions, unpack_functions};
pub use marks::{MARK, TICK};
pub use read::{ProfileError, read};
pub use write::Writer;

use std::collections::BTreeMap;

pub use model::{Architecture, Class, Privilege, Target};
use serde::{Deserialize, Serialize};

/// The process number of the agent.
pub const AGENT: u32 = 1;
/// The name of the agent's thread that samples at every tick. The plugin leaves out what it executes.
pub const SAMPLER: &str = "sampler";

/// The environment variable with the path of the file. QEMU's bindings pass only UTF-8 as an argument.
pub const PATH_VARIABLE: &str = "FAULTLINE_PROFILE";

/// The largest number of CPUs of a machine (the limit of QEMU's q35 without an IOMMU).
pub const MAX_CPUS: u16 = 288;
/// The largest number of nodes of a machine (QEMU's `MAX_NODES`).
pub const MAX_NODES: u16 = 128;
/// The largest profile in bytes. The host reads it into memory.
pub const MAX_BYTES: usize = 1 << 30;
/// The largest number of slices, two for each cut. No job needs 32,768 phases, and a program that only
/// executes marks would reach any number quickly.
pub const MAX_SLICES: usize = 1 << 16;
/// The largest number of ticks of a profile.
pub const MAX_TICKS: usize = 1_000_000;
/// The largest number of call sites of a profile.
pub const MAX_CALL_SITES: usize = 1 << 20;
/// The largest number of kernel instructions whose class is recorded. A kernel has some tens of thousands.
pub const MAX_CLASSES: usize = 1 << 20;
/// The largest number of slab caches of a profile. A kernel has some hundreds.
pub const MAX_CACHES: usize = 1 << 16;
/// The largest number of counts of transfers of a slice.
pub const MAX_TRANSFERS: usize = 1 << 20;
/// The largest number of instructions of a slice that miss in the model of caches. A kernel has some hundred thousand that
/// access memory.
pub const MAX_MISSES: usize = 1 << 20;
/// The largest number of counts by path of a slice.
pub const MAX_STACKS: usize = 1 << 22;
/// The largest number of call sites of a path. Deeper calls count for the function that the last one called.
pub const MAX_DEPTH: usize = 128;
/// The address that stands for all paths without room. No kernel instruction has it.
pub const BEYOND: u64 = 0;

/// The address that stands for all instructions of programs and firmware.
pub const PROGRAM: u64 = 1;

/// The counts of the plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The machine, and the kinds of counts.
    pub scope: Scope,
    /// The tree of paths; parents come before their children.
    pub nodes: Vec<CallSite>,
    /// The counts by slice, in order of time.
    pub slices: Vec<Phase>,
    /// The classes of kernel instructions by address, as they were translated last. The kernel patches itself when it boots
    /// and when it loads a module, so this is exact for all later phases.
    pub classes: BTreeMap<u64, Class>,
    /// The slab caches: a name, a space, and the bytes from one object to the next.
    pub caches: Vec<String>,
    /// Whether the machine ended normally. If so, the last slice is the one after the last mark; otherwise that slice
    /// is missing. Counts of that slice, and no others, differ between equal boots, because a guest that powers off
    /// continues to run until QEMU's main loop notices.
    pub whole: bool,
    /// The first process other than the agent that executed a mark or a tick, which had no effect.
    pub intruder: Option<Process>,
}

/// A node of the tree of paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// The call path of the calling function; `None` if that function started the path.
    pub parent: Option<u32>,
    /// The address of the call instruction, of the instruction that raised an exception, or of the beginning
    /// of a function that jumps to another.
    pub address: u64,
}

/// The machine, and the kinds of counts of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// The architecture, to which the classes of instructions belong.
    pub arch: Architecture,
    /// The number of CPUs.
    pub cpus: u16,
    /// The number of NUMA nodes for accesses; 0 if accesses were not counted.
    pub nodes: u16,
    /// Whether kernel instructions were counted by path.
    pub stacks: bool,
    /// Whether transfers of lines were counted.
    pub transfers: bool,
    /// Whether misses in a model of caches and TLBs were counted.
    pub misses: bool,
}

/// The counts between two marks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phase {
    /// The counts of each CPU, [`Scope::cpus`] of them.
    pub cpus: Vec<Cpu>,
    /// Accesses over time, in order of time; empty if accesses were not counted.
    pub ticks: Vec<Tick>,
    /// Kernel instructions of all CPUs by path, sorted. The sum is the number of kernel instructions of all CPUs.
    /// Paths without room are counted at no node and the address [`BEYOND`]. Empty if paths were not followed.
    pub stacks: Vec<PathCount>,
}

/// The number of instructions executed in a block on a call path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathCount {
    /// The node of the last call site; `None` at the start of a path.
    pub node: Option<u32>,
    /// The address of the block's first instruction. A block ends at the next jump. It covers more than one function
    /// only if assembly code continues from one symbol into the next.
    pub address: u64,
    /// The number of instructions, at least 1.
    pub count: u64,
}

/// Accesses from the start of a phase to one time in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick {
    /// Guest time in nanoseconds: the time of the tick's samples in the recording.
    pub time: u64,
    /// Accesses of each CPU, as in [`Cpu::accesses`].
    pub accesses: Vec<Vec<Accesses>>,
}

/// The counts of one CPU in one slice.
///
/// An instruction counts when it was executed, in the slice in which its CPU began the next one. An
/// instruction with a page fault counts when it was executed after the fault. Each iteration of a string
/// instruction counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Kernel instructions (those in the upper half of the address space), by address. The count of a
    /// function's first instruction is its number of entries.
    pub kernel: Vec<Executed>,
    /// Instructions without counts by address.
    pub totals: Totals,
    /// [`Totals::user`] by process. Processes that the plugin could not identify are missing.
    pub processes: Vec<(Process, u64)>,
    /// Loads and stores; empty if they were not counted.
    pub accesses: Vec<Accesses>,
    /// Lines of memory that the CPU took from others, sorted by instruction and object; empty if they were not counted.
    pub transfers: Vec<TransferCount>,
    /// What missed in the model of caches and TLBs, sorted by instruction; empty if it was not counted.
    pub misses: Vec<MissCount>,
}

/// What an instruction missed in the model of caches and TLBs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissCount {
    /// The address of the instruction, as in [`TransferCount::address`].
    pub address: u64,
    /// The numbers. At least one of them is not 0.
    pub misses: Misses,
}

/// Misses in a model of caches and TLBs, with those of the loads by which page tables are walked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misses {
    /// [`Class::L1dMiss`].
    pub l1d: u64,
    /// [`Class::L2Miss`].
    pub l2: u64,
    /// [`Class::LlcMiss`].
    pub llc: u64,
    /// [`Class::DtlbMiss`].
    pub dtlb: u64,
    /// [`Class::StlbMiss`].
    pub stlb: u64,
}

impl Misses {
    /// The sums.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            l1d: self.l1d.saturating_add(other.l1d),
            l2: self.l2.saturating_add(other.l2),
            llc: self.llc.saturating_add(other.llc),
            dtlb: self.dtlb.saturating_add(other.dtlb),
            stlb: self.stlb.saturating_add(other.stlb),
        }
    }
}

/// The lines that an instruction took from other CPUs, in one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferCount {
    /// The address of the instruction; [`PROGRAM`] for all instructions of programs and firmware, and [`BEYOND`] for what
    /// there was no room for.
    pub address: u64,
    /// What lies at the accessed address.
    pub object: Object,
    /// The numbers. At least one of them is not 0.
    pub transfers: Transfers,
}

/// What lies at an address of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Object {
    /// Nothing that is known.
    Unknown,
    /// Memory that was accessed at an address of the lower half.
    User,
    /// The area of memory that is mapped page by page: stacks, modules, large buffers.
    Mapped,
    /// The descriptor of a page (`struct page`), at this offset.
    Page(u32),
    /// A page in the kernel's map of all memory, which is no slab.
    Other,
    /// The kernel's image, at this address.
    Image(u64),
    /// A CPU's copy of a per-CPU variable, at this place among all of them. Behind them are those of modules, and what was
    /// allocated.
    PerCpu(u64),
    /// An object of the slab cache with this number in [`Profile::caches`], at this offset.
    Slab(u32, u32),
    /// An object of a slab cache of `kmalloc`.
    Allocated {
        /// Where the call that allocated it returns to.
        site: u64,
        /// The bytes that were asked for; 0 if that is not known.
        size: u32,
        /// The offset in it.
        offset: u32,
    },
    /// The same of per-CPU memory that was allocated.
    AllocatedPerCpu(u64, u32),
}

/// Lines that a CPU took from others, and how many of them were special.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfers {
    /// All: [`Class::Transfer`].
    pub all: u64,
    /// [`Class::Upgrade`].
    pub upgrades: u64,
    /// [`Class::FalseSharing`].
    pub disjoint: u64,
    /// [`Class::RemoteTransfer`].
    pub remote: u64,
    /// [`Class::PairTransfer`], which are not among all lines.
    pub pairs: u64,
}

/// The number of executions of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// Its virtual address.
    pub address: u64,
    /// The number of executions, at least 1.
    pub count: u64,
}

/// Numbers of instructions that are not counted by address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Instructions in user mode.
    pub user: u64,
    /// Kernel instructions at addresses for which the plugin had no room.
    pub kernel_other: u64,
    /// Privileged instructions in the lower half of the address space: firmware, and the kernel's first
    /// instructions on each CPU. QEMU translates code once for all addresses at which it runs. So on arm64, functions
    /// that the kernel already used there, such as `memcmp`, count here until it patches itself.
    pub firmware: u64,
}

/// A process: all threads of one thread group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Process {
    /// The thread group's id.
    pub id: u32,
    /// The name of the thread that ran (`comm`), not necessarily UTF-8.
    pub name: [u8; 16],
}

/// Memory accesses by instructions, without page walks and instruction fetches. A read-modify-write counts
/// as a load and a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accesses {
    /// The privilege of the instructions.
    pub privilege: Privilege,
    /// The target of the accesses.
    pub target: Target,
    /// The number of loads.
    pub loads: u64,
    /// The number of stores.
    pub stores: u64,
}

impl Profile {
    /// A profile without slices of a machine that did not end.
    pub fn new(scope: Scope) -> Self {
        Self {
            scope,
            nodes: Vec::new(),
            slices: Vec::new(),
            classes: BTreeMap::new(),
            caches: Vec::new(),
            whole: false,
            intruder: None,
        }
    }

    /// The counts of the phase after `cuts` cuts. With 0 it is the time before the first cut. `None` if the phase did
    /// not end with a cut, because its counts are then not exact.
    pub fn phase(&self, cuts: usize) -> Option<&Phase> {
        self.marked().get(cuts.checked_mul(2)?)
    }

    /// The number of cuts, including an incomplete one.
    pub fn cuts(&self) -> usize {
        self.marked().len().div_ceil(2)
    }

    /// The slices that ended with a mark, whose counts are exact.
    pub fn marked(&self) -> &[Phase] {
        &self.slices[..self.slices.len() - usize::from(self.whole)]
    }
}

impl Cpu {
    /// All instructions executed with `privilege`.
    pub fn instructions(&self, privilege: Privilege) -> u64 {
        let add = |sum: u64, executed: &Executed| sum.saturating_add(executed.count);
        match privilege {
            Privilege::Kernel => self.kernel.iter().fold(self.totals.kernel_other, add),
            Privilege::User => self.totals.user,
            Privilege::Firmware => self.totals.firmware,
        }
    }
}

impl Phase {
    /// All instructions that all CPUs executed with `privilege`.
    pub fn instructions(&self, privilege: Privilege) -> u64 {
        let counts = self.cpus.iter().map(|cpu| cpu.instructions(privilege));
        counts.fold(0, u64::saturating_add)
    }
}
