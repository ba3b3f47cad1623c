//! The registers, and what they tell about the running code.

use flight::profile::Privilege;

use crate::machine::Machine;

/// The registers that are read. The indices of the general purpose registers are their numbers in instructions (Intel
/// SDM, volume 2, table 2-2).
pub const REGISTERS: [&str; 21] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15", "cs", "gs_base", "k_gs_base", "cr3", "cr4",
];
/// The number of the register in which a function returns its value.
pub const RAX: usize = 0;
/// The number of the stack pointer.
pub const STACK_POINTER: usize = 4;
/// The number of the register that holds the time at a [`flight::profile::TICK`].
pub const TICK_TIME: usize = RAX;

const RCX: usize = 1;
const RDX: usize = 2;
const RSI: usize = 6;
const RDI: usize = 7;
const CS: usize = 16;
const GS_BASE: usize = 17;
const KERNEL_GS_BASE: usize = 18;
/// The number of the register with the place of the page tables.
pub const CR3: usize = 19;
/// The number of the register that says how many levels they have.
pub const CR4: usize = 20;
/// The first kernel address.
pub const UPPER_HALF: u64 = 1 << 63;
/// The bits of a code segment that are the privilege level. All are set in user mode.
pub const LEVEL: u64 = 3;

/// The privilege of the code at `address`, which is about to be executed.
pub fn privilege(address: u64, machine: &impl Machine) -> Privilege {
    if address >= UPPER_HALF {
        return Privilege::Kernel;
    }
    match machine.register(CS) {
        Some(segment) if segment & LEVEL == LEVEL => Privilege::User,
        _ => Privilege::Firmware,
    }
}

/// The base address of the executing CPU's per-CPU variables. While a program runs, the other register has it.
pub fn per_cpu_base(machine: &impl Machine) -> Option<u64> {
    let mut bases = [GS_BASE, KERNEL_GS_BASE].into_iter().filter_map(|it| machine.register(it));
    bases.find(|base| *base >= UPPER_HALF)
}

/// The argument of a function with this number, from 1 to 4, at its first instruction (System V ABI for AMD64, 3.2.3).
pub fn argument(number: u8, machine: &impl Machine) -> Option<u64> {
    let place = usize::from(number).checked_sub(1)?;
    machine.register(*[RDI, RSI, RDX, RCX].get(place)?)
}

/// The previous and the next task (`struct task_struct`) at the first instruction of `__switch_to_asm`.
pub fn switched_tasks(machine: &impl Machine) -> Option<(u64, u64)> {
    Some((machine.register(RDI)?, machine.register(RSI)?))
}
