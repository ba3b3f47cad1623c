//! x86-64. The marks of the profile are instructions without effect on any machine, which the QEMU plugin
//! recognises.

#![expect(unsafe_code, reason = "these instructions need inline assembly")]

use std::arch::asm;

use flight::profile::{MARK, TICK};

/// The size of a base page.
pub const PAGE: usize = 4096;
/// The size of a huge page.
pub const HUGE: usize = 2 << 20;
/// The usual console.
pub const CONSOLE: &str = "ttyS0";

/// Ends one slice of the profile and begins the next.
pub fn cut() {
    // SAFETY: the bytes are one NOP with an operand that is not accessed (Intel SDM, volume 2B):
    // no register, flag or memory changes.
    unsafe {
        asm!(
            ".8byte {mark}",
            mark = const u64::from_le_bytes(MARK),
            options(nostack, preserves_flags),
        );
    }
}

/// Records in the profile the accesses up to the tick of `time`.
pub fn tick(time: u64) {
    // SAFETY: as in `cut`.
    unsafe {
        asm!(
            ".8byte {mark}",
            mark = const u64::from_le_bytes(TICK),
            in("rax") time,
            options(nostack, preserves_flags),
        );
    }
}
