//! The registers, and what they tell about the running code.

use flight::profile::Privilege;

use crate::machine::Machine;

/// The registers that are read. The indices of the general purpose registers are their numbers in instructions.
pub const REGISTERS: [&str; 36] = [
    "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14",
    "x15", "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27",
    "x28", "x29", "x30", "sp", "cpsr", "ELR_EL1", "SPSR_EL1", "ESR_EL1",
];
/// The number of the register that calls set to their return address.
pub const LINK: usize = 30;
/// The number of the stack pointer of the current exception level.
pub const STACK_POINTER: usize = 31;
/// The number of the register that holds the time at a [`flight::profile::TICK`].
pub const TICK_TIME: usize = 0;
/// The state to which an exception returns: its address, and its processor state.
pub const RETURN_ADDRESS: usize = 33;
pub const RETURN_STATE: usize = 34;
/// The reason of a synchronous exception.
pub const SYNDROME: usize = 35;

const STATE: usize = 32;
/// The number of the first argument of a function.
const FIRST_ARGUMENT: usize = 0;
/// The first kernel address.
pub const UPPER_HALF: u64 = 1 << 63;
/// The bits of a processor state that are 0 at exception level 0, in 64-bit and in 32-bit state (Arm ARM, C5.2.19
/// "SPSR_EL1").
const LEVEL: u64 = 0xf;
/// The bit of a virtual address that tells the halves of the address space apart if the bits above it are a signature.
const HALF: u64 = 1 << 55;
/// Bits where a signature of a return address can be.
const SIGNATURE: u64 = 0xffff << 48;

/// The privilege of the code at `address`, which is about to be executed.
pub fn privilege(address: u64, machine: &impl Machine) -> Privilege {
    if address >= UPPER_HALF {
        return Privilege::Kernel;
    }
    match machine.register(STATE) {
        Some(state) if is_user(state) => Privilege::User,
        _ => Privilege::Firmware,
    }
}

/// Whether a processor state is one of a program.
pub fn is_user(state: u64) -> bool {
    state & LEVEL == 0
}

/// A return address without its signature. Most have none.
pub fn unsigned(address: u64) -> u64 {
    if address & HALF != 0 { address | SIGNATURE } else { address & !SIGNATURE }
}

/// The task that runs from now on, if setting `sp_el0` to `value` switches tasks. `running` is the task that ran, if
/// it is known.
///
/// In the kernel, `sp_el0` is the running task (`get_current` in `arch/arm64/include/asm/current.h`). It is set to the
/// same task when a program enters the kernel, and to the program's stack pointer when it leaves. Programs can choose
/// any stack pointer, so another task counts only in `cpu_switch_to`, which has the previous task as its first
/// argument, and at a CPU's start.
pub fn next_task(value: u64, running: Option<u64>, machine: &impl Machine) -> Option<u64> {
    let switches = value >= UPPER_HALF
        && running.is_none_or(|running| {
            value != running && machine.register(FIRST_ARGUMENT) == Some(running)
        });
    switches.then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fake::Fake;

    const TASK: u64 = 0xffff_0000_0100_0000;
    const OTHER: u64 = 0xffff_0000_0200_0000;

    #[test]
    fn privilege_is_that_of_the_address_and_the_level() {
        let mut machine = Fake::new(&REGISTERS);
        machine.set("cpsr", 0x6000_0000);
        assert_eq!(privilege(0x40_0000, &machine), Privilege::User);
        assert_eq!(privilege(0xffff_8000_8001_0000, &machine), Privilege::Kernel);
        machine.set("cpsr", 0x10); // a 32-bit program
        assert_eq!(privilege(0x40_0000, &machine), Privilege::User);
        machine.set("cpsr", 0x3c5);
        assert_eq!(privilege(0x4021_0000, &machine), Privilege::Firmware);
    }

    #[test]
    fn signatures_are_ignored() {
        let address = 0xffff_8000_8001_0040;
        assert_eq!(unsigned(address), address);
        assert_eq!(unsigned(0x12a3_8000_8001_0040), address);
        assert_eq!(unsigned(0x1223_0000_0040_0000), 0x40_0000);
    }

    #[test]
    fn only_the_kernels_switch_changes_the_task() {
        let mut machine = Fake::new(&REGISTERS);
        let mut next = |first, value, running| {
            machine.set("x0", first);
            next_task(value, running, &machine)
        };
        assert_eq!(next(TASK, OTHER, Some(TASK)), Some(OTHER));
        assert_eq!(next(5, TASK, None), Some(TASK)); // a CPU starts
        assert_eq!(next(TASK, TASK, Some(TASK)), None); // a program enters
        assert_eq!(next(TASK, 0xffff_ffff_f000, Some(TASK)), None); // it leaves
        assert_eq!(next(5, OTHER, Some(TASK)), None); // its stack pointer is odd
    }
}
