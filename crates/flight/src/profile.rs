//! The exact profile: what the plugin in QEMU counted, phase by phase, and the file it writes it
//! to. Symbols, names of phases and sums are left to the host.
//!
//! The file is a row of frames ([`crate::frame`]) of kind [`Kind::Profile`], whose time is 0: the
//! plugin knows none. Their payloads are [`Record`]s in postcard's form: `Start`, then for each
//! phase its counts and `Cut`, and `End` when the machine ended in order. A phase counts when its
//! `Cut` is there, so a machine that is killed leaves the phases that ended before.

mod read;
mod record;
mod write;

pub use read::{ProfileError, read};
pub use write::Writer;

pub use model::{Privilege, Target};
use serde::{Deserialize, Serialize};

/// The instruction at which the plugin cuts the profile: `nop dword [rax+rax+disp32]`, whose
/// displacement no compiler chooses. The agent executes it once for each cut, so the first phase
/// is what came before the first cut, and phase n what followed cut n.
pub const MARKER: [u8; 8] = [0x0f, 0x1f, 0x84, 0x00, b'F', b'L', b'c', b't'];

/// A machine has no more CPUs (the limit of QEMU's q35 without an IOMMU).
pub const MAX_CPUS: u16 = 288;
/// A machine has no more nodes (QEMU's `MAX_NODES`).
pub const MAX_NODES: u16 = 128;

/// What the plugin counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The machine, and what was counted of it.
    pub scope: Scope,
    /// Counts by phase, in order of time.
    pub phases: Vec<Phase>,
    /// The machine ended in order, so the last phase is the one that followed the last cut. Else
    /// that one is missing. It is the one phase whose counts differ between equal boots: a guest
    /// that powers off runs on until QEMU's main loop has noticed.
    pub whole: bool,
}

/// What a profile covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// CPUs of the machine.
    pub cpus: u16,
    /// NUMA nodes that accesses were told apart by; 0 if accesses were not counted.
    pub nodes: u16,
}

/// What was counted between two cuts: by CPU, as many as [`Scope::cpus`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phase {
    /// Counts of each CPU.
    pub cpus: Vec<Cpu>,
}

/// What one CPU did in one phase.
///
/// An instruction counts when it was executed; one that met a page fault counts when it was
/// executed after the fault. Each iteration of a string instruction counts.
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
