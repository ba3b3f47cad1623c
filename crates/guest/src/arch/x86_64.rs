//! x86-64. The marks of the profile are instructions without effect on any machine, which the QEMU plugin
//! recognises.

#![expect(unsafe_code, reason = "these instructions need inline assembly")]

use std::arch::asm;

/// The largest size of a base page in bytes.
pub const LARGEST_PAGE: usize = page();
/// The usual console.
pub const CONSOLE: &str = "ttyS0";

/// The size of a base page in bytes.
pub const fn page() -> usize {
    4096
}

/// The size of a huge page in bytes.
pub const fn huge() -> usize {
    2 << 20
}

/// Executes the NOP of these bytes, in the order of memory.
#[inline]
pub fn mark<const BYTES: u64>() {
    // SAFETY: the bytes are one NOP with an operand that is not accessed (Intel SDM, volume 2B):
    // no register, flag or memory changes.
    unsafe { asm!(".8byte {mark}", mark = const BYTES, options(nostack, preserves_flags)) }
}

/// Executes the NOP of these bytes, with a value that the plugin reads.
#[inline]
pub fn mark_with<const BYTES: u64>(value: u64) {
    // SAFETY: as in `mark`.
    unsafe {
        asm!(".8byte {mark}", mark = const BYTES, in("rax") value, options(nostack, preserves_flags));
    }
}
