//! The mark that cuts the exact profile: an instruction that does nothing on any machine, but that
//! the plugin in QEMU knows.

#![expect(unsafe_code, reason = "an instruction that no function of the language makes")]

use std::arch::asm;

use flight::profile::MARKER;

/// Ends one phase of the profile and begins the next.
pub fn phase() {
    // SAFETY: the bytes are one NOP with an operand that is not accessed (Intel SDM, volume 2B):
    // no register, flag or memory changes.
    unsafe {
        asm!(
            ".8byte {mark}",
            mark = const u64::from_le_bytes(MARKER),
            options(nostack, preserves_flags),
        );
    }
}
