//! The marks of each architecture: instructions without effect on any machine, which no compiler writes.

/// x86-64: `nop dword [rax+rax+disp32]`, with displacements that no compiler uses. The first byte in memory is the
/// lowest one.
pub mod x86_64 {
    /// The instruction at which the plugin cuts the profile.
    pub const MARK: u64 = u64::from_le_bytes([0x0f, 0x1f, 0x84, 0x00, b'F', b'L', b'c', b't']);
    /// The instruction at which the plugin records the accesses so far, with the time in `rax`.
    pub const TICK: u64 = u64::from_le_bytes([0x0f, 0x1f, 0x84, 0x00, b'F', b'L', b't', b'k']);
}

/// arm64: `movz xzr, #imm16`, a move to the register that is always zero (Arm ARM, C6.2 "MOVZ").
pub mod aarch64 {
    /// The instruction at which the plugin cuts the profile.
    pub const MARK: u32 = discarded(0x4663);
    /// The instruction at which the plugin records the accesses so far, with the time in `x0`.
    pub const TICK: u32 = discarded(0x4674);

    const fn discarded(immediate: u16) -> u32 {
        0xd280_001f | (immediate as u32) << 5
    }
}

#[cfg(target_arch = "aarch64")]
pub use aarch64::{MARK, TICK};
#[cfg(target_arch = "x86_64")]
pub use x86_64::{MARK, TICK};
