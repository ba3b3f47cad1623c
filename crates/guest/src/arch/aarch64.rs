//! arm64. The marks of the profile are instructions without effect on any machine, which the QEMU plugin recognises.

#![expect(unsafe_code, reason = "these instructions need inline assembly")]

use std::arch::asm;

/// The largest size of a base page in bytes.
pub const LARGEST_PAGE: usize = 64 << 10;
/// The usual console.
pub const CONSOLE: &str = "ttyAMA0";

/// The size of a base page in bytes, which a kernel is built with.
pub fn page() -> usize {
    rustix::param::page_size()
}

/// The size of a huge page in bytes: what a page of page table entries maps.
pub fn huge() -> usize {
    page() / size_of::<u64>() * page()
}

/// Executes this instruction, which has no effect.
#[inline]
pub fn mark<const WORD: u32>() {
    // SAFETY: the instruction writes only to the register that is always zero: no register, flag or memory changes.
    unsafe { asm!(".inst {mark}", mark = const WORD, options(nostack, preserves_flags)) }
}

/// Executes this instruction, which has no effect, with a value that the plugin reads.
#[inline]
pub fn mark_with<const WORD: u32>(value: u64) {
    // SAFETY: as in `mark`.
    unsafe {
        asm!(".inst {mark}", mark = const WORD, in("x0") value, options(nostack, preserves_flags))
    }
}
