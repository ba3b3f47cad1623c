//! Instructions, registers and interrupts of x86-64.

mod instruction;
mod interrupts;
mod registers;

use flight::profile::Architecture;

pub use instruction::{Examined, Special, examine, leaves_task};
pub use interrupts::{InterruptTables, interrupted, is_fault};
pub use registers::{REGISTERS, STACK_POINTER, TICK_TIME, privilege, switched_tasks};

/// The architecture.
pub const ARCHITECTURE: Architecture = Architecture::X86_64;
/// QEMU's name of it.
#[cfg_attr(test, expect(dead_code, reason = "tests have no QEMU"))]
pub const TARGET: &str = "x86_64";
/// The stack size of a Linux task (`THREAD_SIZE`). No address on a stack is farther from its top.
pub const THREAD_SIZE: u64 = 16 << 10;
