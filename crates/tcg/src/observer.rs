//! The events in the machine, as the counting modules get them.

use flight::profile::{CallSite, Phase, Privilege, Process};

use crate::machine::Access;
use crate::running::Running;

/// Counts some of the events, and ignores the rest. Only the thread that runs the CPUs calls it. Accesses are
/// so frequent that they are counted without a lock.
pub trait Observer {
    /// A CPU makes an access by an instruction of this privilege.
    fn accesses(&self, _: At<'_>, _: Privilege, _: &dyn Access) {}

    /// A CPU enters a block of kernel instructions at this address.
    fn enters(&self, _: At<'_>, _: u64) {}

    /// The kernel's control or stack changes on a CPU.
    fn flows(&self, _: At<'_>, _: Flow<'_>) {}

    /// An interrupt or exception on a CPU.
    fn interrupted(&self, _: At<'_>, _: &Interrupted) {}

    /// The CPU's user instructions since the last call of this function belong to this process, which is `None` if it
    /// is not known.
    fn ran(&self, _: At<'_>, _: Option<Process>) {}

    /// A slice ends: moves the counts into it.
    fn cut(&self, _: &mut Slice) {}
}

/// The CPU on which something happens.
#[derive(Clone, Copy)]
pub struct At<'a> {
    /// The CPU's number.
    pub cpu: usize,
    /// What it executes.
    pub running: &'a Running,
}

/// A change of control or stack.
#[derive(Clone, Copy)]
pub enum Flow<'a> {
    /// The instruction at `site` makes a call. The return address is stored at `slot`, or the stack pointer is `slot`.
    Call { site: u64, slot: u64, returns_to: u64 },
    /// A return to the address stored at `slot`, or with the stack pointer `slot`.
    Return { slot: u64, returns_to: u64 },
    /// A return from an interrupt, whose frame is at `slot`. The return address is `None` if it is not known.
    InterruptReturn { slot: u64, returns_to: Option<u64> },
    /// A program calls the kernel, or the kernel returns to a program.
    Boundary,
    /// The beginning of a function of the kernel's image is reached.
    Function { address: u64, stack: StackPointer<'a> },
    /// A block begins outside of the kernel's image.
    Outside { address: u64, stack: StackPointer<'a> },
    /// The next change of stacks is a task switch. The old task's stack pointer is `place`.
    LeaveStack { place: u64 },
    /// The stack pointer becomes `place`.
    MoveStack { place: u64 },
    /// Another task runs from now on. Its stack pointer is `place`.
    Task { task: u64, place: u64 },
}

/// Reads the stack pointer, which takes time.
pub type StackPointer<'a> = &'a dyn Fn() -> Option<u64>;

/// The code that an interrupt or exception interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// The address at which execution resumes; for a fault, that of the faulting instruction.
    pub address: u64,
    /// The privilege of the code at that address.
    pub privilege: Privilege,
    /// The address on the stack where that address is stored, or the stack pointer if it is in a register.
    pub slot: u64,
    /// Whether the instruction had begun but was not executed.
    pub faulted: bool,
    /// Whether the interrupt is unrelated to the interrupted code, so that its instructions do not belong to
    /// that code.
    pub external: bool,
}

/// A slice of the profile, from one cut to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// The counts of the slice.
    pub counts: Phase,
    /// The call sites that it refers to, without those that earlier slices have.
    pub sites: Vec<CallSite>,
    /// The slab caches that it refers to, as in a profile, without those that earlier slices have.
    pub caches: Vec<String>,
}
