//! The exact profile: what the plugin in QEMU counted, phase by phase, and the file it writes it
//! to. Symbols, names of phases and sums are left to the host.
//!
//! # Slices
//!
//! The agent executes [`MARK`] twice for each cut: before its own work at the cut, which reads every
//! sampled file, and after it. So what was counted lies in slices: slice 0 is what came before the
//! first cut; after the n-th cut (n from 1) slice 2n - 1 is the cut's own work, together with what
//! other CPUs did meanwhile, and slice 2n the phase that begins there. [`Profile::phase`] gives the
//! phases alone.
//!
//! # Ticks
//!
//! At each tick of its sampler the agent executes [`TICK`], with the tick's time in the register
//! `rax`. All samples that the tick leaves in the recording bear the same time (a tick at which no
//! file changed leaves none there, and one here), so ticks are paired with samples by time. A tick
//! never falls into a cut, so a phase has each of its ticks once, in order, and slices of cuts have
//! none. A tick holds all accesses since its phase began. No ticks are written for the ends of a
//! phase: where it begins nothing is accessed yet, and where it ends all that the phase holds
//! ([`Cpu::accesses`]) is.
//!
//! # Paths
//!
//! A path of calls is a node of one tree for the whole profile ([`CallSite`]): what was called from
//! the path's last call site, which was called from the one before. Paths are what returns will go
//! back through: a function that another one jumped to stands in that one's place. An exception is
//! a call from the instruction that it met, as unwinders show it. An external interrupt, and an
//! NMI, begins a path of its own: what it interrupts is chance. So does what user mode enters.
//!
//! # The file
//!
//! The file is a row of frames ([`crate::frame`]) of kind [`Kind::Profile`], whose time is 0: the
//! plugin knows none. Their payloads are [`Record`]s in postcard's form: `Start`, then for each
//! slice its ticks, its counts and `Cut`, and `End` when the machine ended in order. New nodes of
//! the tree come before the slice that counts in them. A slice counts when its `Cut` is there, so a
//! machine that is killed leaves the slices that ended before. A slice has a record of each CPU, in
//! order.
//!
//! # Limits
//!
//! Any program of the guest, one in user mode too, can execute [`MARK`] and [`TICK`]. It spoils its
//! own boot's profile by that, and must do no more: marks and ticks beyond [`MAX_SLICES`] and
//! [`MAX_TICKS`] do nothing, and a profile ends before it is longer than [`MAX_BYTES`].

mod read;
mod record;
mod write;

pub use read::{ProfileError, read};
pub use write::Writer;

pub use model::{Privilege, Target};
use serde::{Deserialize, Serialize};

/// The instruction at which the plugin cuts the profile: `nop dword [rax+rax+disp32]`, whose
/// displacement no compiler chooses.
pub const MARK: [u8; 8] = [0x0f, 0x1f, 0x84, 0x00, b'F', b'L', b'c', b't'];
/// The instruction at which it notes accesses so far: the same, with another displacement.
pub const TICK: [u8; 8] = [0x0f, 0x1f, 0x84, 0x00, b'F', b'L', b't', b'k'];

/// A machine has no more CPUs (the limit of QEMU's q35 without an IOMMU).
pub const MAX_CPUS: u16 = 288;
/// A machine has no more nodes (QEMU's `MAX_NODES`).
pub const MAX_NODES: u16 = 128;
/// A profile has no more bytes: it is read into the host's memory as a whole.
pub const MAX_BYTES: usize = 1 << 30;
/// A profile has no more slices, two for each cut. No job is meant to have 32,768 phases, and a
/// program that does nothing but mark would make as many slices in moments.
pub const MAX_SLICES: usize = 1 << 16;
/// A profile has no more ticks.
pub const MAX_TICKS: usize = 1_000_000;
/// A profile has no more call sites.
pub const MAX_CALL_SITES: usize = 1 << 20;
/// A slice has no more counts by path.
pub const MAX_STACKS: usize = 1 << 22;
/// A path has no more call sites. What is called from the last one counts as its own.
pub const MAX_DEPTH: usize = 128;
/// The address, which no kernel instruction has, that stands for all paths beyond those that there
/// is room for.
pub const BEYOND: u64 = 0;

/// What the plugin counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The machine, and what was counted of it.
    pub scope: Scope,
    /// The tree of paths; parents come before their children.
    pub nodes: Vec<CallSite>,
    /// Counts by slice, in order of time.
    pub slices: Vec<Phase>,
    /// The machine ended in order, so the last slice is the one that followed the last mark. Else
    /// that one is missing. It is the one slice whose counts differ between equal boots: a guest
    /// that powers off runs on until QEMU's main loop has noticed.
    pub whole: bool,
}

/// A node of the tree of paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// The path of calls to the function that it is in; none if that began the path.
    pub parent: Option<u32>,
    /// The address of the call instruction, or of the instruction that met an exception.
    pub address: u64,
}

/// What a profile covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// CPUs of the machine.
    pub cpus: u16,
    /// NUMA nodes that accesses were told apart by; 0 if accesses were not counted.
    pub nodes: u16,
    /// Kernel instructions were counted by path.
    pub stacks: bool,
}

/// What was counted between two marks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phase {
    /// Counts of each CPU, as many as [`Scope::cpus`].
    pub cpus: Vec<Cpu>,
    /// Accesses over time, in order of time; none if accesses were not counted.
    pub ticks: Vec<Tick>,
    /// Kernel instructions of all CPUs by path, in order: the node of the call sites (none where a
    /// path begins), the address of the block of instructions executed there, and their count, at
    /// least 1. A block runs on to the next jump and is named by its first instruction; only where
    /// assembly code runs from one symbol into the next does it lie in more functions than one. The
    /// counts add up to the kernel instructions of all CPUs. `(None, BEYOND, count)` is what there
    /// was no room for. None if paths were not followed.
    pub stacks: Vec<(Option<u32>, u64, u64)>,
}

/// Accesses from the beginning of a phase to one moment in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick {
    /// Guest time in nanoseconds: that of the samples which the tick left in the recording.
    pub time: u64,
    /// Accesses of each CPU, as in [`Cpu::accesses`].
    pub accesses: Vec<Vec<Accesses>>,
}

/// What one CPU did in one slice.
///
/// An instruction counts when it was executed, in the slice in which its CPU went on to the next;
/// one that met a page fault counts when it was executed after the fault. Each iteration of a
/// string instruction counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Kernel instructions (those in the upper half of the address space), in order of address.
    /// The count of a function's first instruction is that of its entries.
    pub kernel: Vec<Executed>,
    /// What is not counted by address.
    pub totals: Totals,
    /// How much of [`Totals::user`] was which process. What is missing was executed by processes
    /// that the plugin could not tell.
    pub processes: Vec<(Process, u64)>,
    /// Loads and stores; none if they were not counted.
    pub accesses: Vec<Accesses>,
}

/// How often an instruction was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// Its virtual address.
    pub address: u64,
    /// Executions, at least 1.
    pub count: u64,
}

/// Instructions without their addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// In user mode.
    pub user: u64,
    /// Of the kernel, at addresses beyond those that the plugin has room for.
    pub kernel_other: u64,
    /// Privileged, in the lower half of the address space: firmware, and the kernel's first
    /// instructions on each CPU.
    pub firmware: u64,
}

/// A process: all threads of one thread group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Process {
    /// The thread group's id.
    pub id: u32,
    /// The name of the thread that ran (`comm`), which need not be UTF-8.
    pub name: [u8; 16],
}

/// Accesses to memory as instructions make them: not those of page walks, and not the fetching of
/// instructions. One that reads, changes and writes is a load and a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accesses {
    /// Who made them.
    pub privilege: Privilege,
    /// To what.
    pub target: Target,
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
}

impl Profile {
    /// What was counted in the phase that `cuts` cuts came before; 0 gives what came before the
    /// first. None if the phase did not end with a cut, for then its counts are not exact.
    pub fn phase(&self, cuts: usize) -> Option<&Phase> {
        self.marked().get(cuts.checked_mul(2)?)
    }

    /// Number of cuts, one that did not come to its end included.
    pub fn cuts(&self) -> usize {
        self.marked().len().div_ceil(2)
    }

    /// The slices that ended with a mark: all that is exact.
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
