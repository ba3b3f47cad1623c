//! What an architecture of guests gives.

use std::fmt::Debug;

use flight::profile::{self, Class, Privilege};

use crate::calls::Calls;
use crate::machine::{Flush, Machine};
use crate::observer::{Flow, Interrupted};

/// An architecture of guests. It is chosen once, so its functions cost no decision.
pub trait Architecture: Debug + Send + Sync + 'static {
    /// QEMU's name of the architecture.
    const TARGET: &str;
    /// What the profile calls it.
    const KIND: profile::Architecture;
    /// The registers that are read, by QEMU's names. Their numbers are the indices.
    const REGISTERS: &[&str];
    /// The number of the stack pointer.
    const STACK_POINTER: usize;
    /// The number of the register that holds the time at a [`flight::profile::TICK`].
    const TICK_TIME: usize;
    /// Whether QEMU does not read the kernel's memory for the plugin while a program runs.
    const HIDES_KERNEL: bool;

    /// How calls are told from returns.
    type Calls: Calls;

    /// Examines an instruction's bytes.
    fn examine(bytes: &[u8]) -> Examined;

    /// The part of the address space in which a virtual address lies, in a kernel that is not relocated.
    fn region(_address: u64) -> Region {
        Region::Unknown
    }

    /// The base address by which the executing CPU finds its per-CPU variables; `None` if it is not known.
    fn per_cpu_base(_: &impl Machine) -> Option<u64> {
        None
    }

    /// The argument of a function with this number, from 1, at its first instruction; `None` if it is not known.
    fn argument(_number: u8, _: &impl Machine) -> Option<u64> {
        None
    }

    /// The value that a function returns, at its last instruction; `None` if it is not known.
    fn returned(_: &impl Machine) -> Option<u64> {
        None
    }

    /// How the executing CPU finds the page of a virtual address; `None` if it is not known.
    fn walk(_address: u64, _: &impl Machine) -> Option<Walk> {
        None
    }

    /// The privilege of the code at `address`, which is about to be executed.
    fn privilege(address: u64, machine: &impl Machine) -> Privilege;

    /// The vector whose handler begins at `address` according to the interrupt table at `table`.
    fn vector(table: u64, address: u64, machine: &impl Machine) -> Option<u8>;

    /// Whether the interrupted instruction of an interrupt with this vector may have begun without being executed.
    fn is_fault(vector: u8) -> bool;

    /// What an interrupt with this vector interrupted, at its handler's first instruction.
    fn interrupted(vector: u8, machine: &impl Machine) -> Option<Interrupted>;

    /// What a return from an interrupt does, which is about to be executed.
    fn returns(machine: &impl Machine) -> Option<Flow<'static>>;

    /// The call at `site`, which is about to store its return address in a register ([`Special::Link`]).
    fn links(_site: u64, _: &impl Machine) -> Option<Flow<'static>> {
        None
    }

    /// The return to the address in a register, which is about to be executed ([`Special::ReturnTo`]).
    fn returns_to(_register: usize, _: &impl Machine) -> Option<Flow<'static>> {
        None
    }

    /// Whether the instruction at `address`, which loads the stack pointer, switches from one task's stack to
    /// another's.
    fn leaves_task(_address: u64, _load: &[u8], _: &impl Machine) -> bool {
        false
    }

    /// The previous and the next task (`struct task_struct`) at the first instruction of the function that switches
    /// tasks, if it is known by its address.
    fn switched_tasks(_: &impl Machine) -> Option<(u64, u64)> {
        None
    }

    /// The task that runs from now on, if it is another one, when a CPU sets its register of the running task to
    /// `value` ([`Special::SetTask`]). `running` is the one so far, if it is known.
    fn next_task(_value: u64, _running: Option<u64>, _: &impl Machine) -> Option<u64> {
        None
    }
}

/// A part of the address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// Nothing that is known.
    Unknown,
    /// Programs.
    User,
    /// The kernel's map of all memory. The descriptors of its pages begin at `pages`.
    Memory { pages: u64 },
    /// Descriptors of pages, which begin at this address.
    Pages(u64),
    /// What the kernel maps page by page: stacks, large buffers.
    Mapped,
    /// The kernel's image and its modules.
    Image,
}

/// A page of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its size, by the level of the page tables that has it, from 0: 4 KiB, 2 MiB, 1 GiB.
    pub size: u32,
    /// Whether it is the same in all processes.
    pub global: bool,
}

/// How a CPU finds a page that its TLBs do not have: a walk of the page tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// The physical addresses that it loads from, in order.
    pub loads: Vec<u64>,
    pub page: Page,
}

impl Walk {
    /// What is assumed where page tables cannot be read: of firmware, and while a kernel starts.
    pub const UNKNOWN: Self = Self { loads: Vec::new(), page: Page { size: 0, global: false } };
}

/// The kind of a special instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// The agent cuts the profile.
    Mark,
    /// The agent's sampler ticks.
    Tick,
    /// `lidt`: the CPU gets another interrupt table.
    LoadInterruptTable,
    /// The CPU gets another interrupt table, whose address is in the register with this number.
    SetInterruptTable(usize),
    /// It can begin again without having been executed: a plain store to memory, which may modify its own block, and a
    /// repeated string instruction, which begins once for each repetition.
    Again,
    /// A near call of a function, which stores the return address in memory.
    Call,
    /// A call of a function, which stores the return address in a register.
    Link,
    /// A near return from a function, to an address in memory.
    Return,
    /// A return from a function, to the address in the register with this number.
    ReturnTo(usize),
    /// A return from an interrupt.
    InterruptReturn,
    /// `syscall` or `sysenter`.
    SystemCall,
    /// The stack pointer is loaded from memory.
    LoadStack,
    /// The stack pointer is set from the register with this number.
    MoveStack(usize),
    /// The running task may be set from the register with this number.
    SetTask(usize),
}

/// What the plugin must know of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Examined {
    pub special: Option<Special>,
    /// Whether a CPU that begins the instruction always completes it and goes on within its block. False for some that do
    /// too.
    pub completes: bool,
    /// Whether it is a branch, which always ends a block. False for some that are.
    pub branches: bool,
    /// What it makes the CPU forget: virtual addresses may have other physical ones after it.
    pub flushes: Option<Flush>,
    /// The class as which it is counted, if it is one of the kernel.
    pub class: Option<Class>,
}
