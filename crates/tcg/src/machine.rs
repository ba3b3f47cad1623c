//! The interface of QEMU that the rest of the plugin needs. `qemu` implements it, and so do tests.

#[cfg(test)]
pub mod fake;

use flight::profile::Privilege;

use crate::segments::Segment;

/// The machine at the moment when QEMU calls the plugin.
pub trait Machine {
    /// The number of the executing CPU.
    fn cpu(&self) -> usize;

    /// The value of the executing CPU's register with this number in
    /// [`REGISTERS`](crate::arch::Architecture::REGISTERS); `None` if it cannot be read.
    fn register(&self, number: usize) -> Option<u64>;

    /// Reads memory at a virtual address, as seen by the executing CPU. `None` unless all of it is mapped.
    fn read<const LENGTH: usize>(&self, address: u64) -> Option<[u8; LENGTH]>;

    /// Ends the turn of the executing CPU when its next block begins. Then the next CPU that is not halted has its turn.
    fn end_turn(&self);
}

/// An instruction of a block that QEMU translates.
pub trait Instruction {
    /// Its virtual address.
    fn address(&self) -> u64;

    fn bytes(&self) -> Vec<u8>;

    /// It begins this segment at each execution. Probes that were set before are reached first.
    fn begin(&self, segment: &'static Segment);

    /// Stores the number that it has in its segment, before each execution, at the profiler's position.
    fn tell_number(&self, number: u64);

    /// Sets a probe that is reached before each execution. Probes are reached in the order in which they were
    /// set.
    fn before(&self, probe: Probe);

    /// Sets a probe that is reached after each load and store.
    fn after_access(&self, probe: AccessProbe);
}

/// A load or store of the executing CPU, after it was made.
pub trait Access {
    /// Its virtual address.
    fn address(&self) -> u64;

    /// Its physical address; `None` if it is not memory. An access that crosses pages has the address in the first
    /// page.
    fn physical(&self) -> Option<u64>;

    /// The number of its bytes.
    fn size(&self) -> u64;

    /// Whether it is a store, not a load.
    fn is_store(&self) -> bool;

    /// The value, if it has 8 bytes.
    fn word(&self) -> Option<u64>;
}

/// The reason why the plugin is called before an instruction. Addresses are those of the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The agent cuts the profile.
    Mark,
    /// The agent's sampler ticks.
    Tick,
    /// The handler of the interrupt with this number begins.
    Interrupt(u8),
    /// The kernel's function that switches tasks begins.
    Switch,
    /// The running task may be set from the register with this number.
    Task(usize),
    /// The CPU gets the interrupt table whose address is in the register with this number.
    InterruptTable(usize),
    /// A call at this address stores its return address in a register.
    Link(u64),
    /// A return to the address in the register with this number.
    ReturnTo(usize),
    /// A block of kernel instructions begins at this address.
    Block(u64),
    /// The CPU's virtual addresses may have other physical ones from now on: it forgets pages.
    Flush(Flush),
    /// A branch begins, which has this number in its segment.
    Branch(u64),
    /// A function of the kernel that allocates memory begins.
    Allocation(Allocator),
    /// A function of the kernel returns.
    Return,
    /// A function of the kernel's image begins at this address.
    Function(u64),
    /// A block of kernel instructions outside of its image begins at this address.
    Outside(u64),
    /// A return from an interrupt.
    InterruptReturn,
    /// A program calls the kernel.
    SystemCall,
    /// The stack pointer is about to be loaded for another task.
    LeaveStack,
    /// The stack pointer is set from the register with this number.
    MoveStack(usize),
}

/// A function of the kernel that allocates memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocator {
    pub per_cpu: bool,
    /// Which argument is the number of bytes, from 1; 0 if none is.
    pub size: u8,
}

impl Allocator {
    /// The allocator as a number, for a callback.
    pub fn number(self) -> u64 {
        u64::from(self.size) << 1 | u64::from(self.per_cpu)
    }

    /// The allocator of a number.
    pub fn of(number: u64) -> Self {
        Self { per_cpu: number & 1 != 0, size: (number >> 1) as u8 }
    }
}

/// What a CPU forgets of the pages that it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// All.
    All,
    /// All that are not global.
    Process,
    /// The page of the address in the register with this number.
    Page(usize),
}

/// The reason why the plugin is called after an access of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessProbe {
    /// Accesses are counted. The instruction has this privilege.
    Count(Privilege),
    /// The lines that it takes from other CPUs are counted. The instruction has this address.
    Line(u64),
    /// The same for an instruction that reads and writes memory as one access.
    LockedLine(u64),
    /// What it misses in the model of caches is counted. The instruction has this address.
    Cached(u64),
    /// It loads the address of an interrupt table.
    InterruptTable,
    /// A call at this address stores its return address.
    Call(u64),
    /// A return loads its return address.
    Return,
    /// The stack pointer is loaded from memory.
    LoadStack,
}
