//! The fields of instructions (Arm Architecture Reference Manual, C4.1).

/// The registers that a called function need not keep, and the one that has its return address (Procedure Call Standard
/// for the Arm 64-bit Architecture).
const OF_CALLS: u32 = 0x4007_ffff;

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(pub u32);

/// An address that an instruction names by its distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// A branch goes there.
    Target(u64),
    /// It is put into a register, as a page of 4 KiB.
    Page(u64),
    /// It is put into a register.
    Address(u64),
    /// Data at it are loaded, of this many bytes.
    Literal(u64, usize),
}

/// A distance from a register's value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offset {
    pub base: usize,
    pub distance: i64,
    /// The bits of the instruction that have the distance.
    pub bits: u32,
}

impl Word {
    pub const NOP: Self = Self(0xd503_201f);
    /// What fills the space between sections.
    pub const ZERO: Self = Self(0);

    pub fn is(self, mask: u32, value: u32) -> bool {
        self.0 & mask == value
    }

    /// The field of `length` bits from bit `at` on.
    pub fn field(self, at: u32, length: u32) -> u32 {
        self.0 >> at & ((1 << length) - 1)
    }

    fn signed(self, at: u32, length: u32) -> i64 {
        i64::from((self.0 << (32 - at - length)).cast_signed() >> (32 - length))
    }

    /// The address that the instruction at `address` names, and the bits that have the distance.
    pub fn named(self, address: u64) -> Option<(Named, u32)> {
        let to = |distance: i64| address.wrapping_add_signed(distance);
        let far = || to(self.signed(5, 19) << 2);
        Some(if self.is(0x7c00_0000, 0x1400_0000) {
            (Named::Target(to(self.signed(0, 26) << 2)), 0x03ff_ffff)
        } else if self.is(0xff00_0000, 0x5400_0000) || self.is(0x7e00_0000, 0x3400_0000) {
            (Named::Target(far()), 0x00ff_ffe0)
        } else if self.is(0x7e00_0000, 0x3600_0000) {
            (Named::Target(to(self.signed(5, 14) << 2)), 0x0007_ffe0)
        } else if self.is(0x1f00_0000, 0x1000_0000) {
            let distance = self.signed(5, 19) << 2 | i64::from(self.field(29, 2));
            let named = match self.field(31, 1) {
                0 => Named::Address(to(distance)),
                _ => Named::Page((address & !0xfff).wrapping_add_signed(distance << 12)),
            };
            (named, 0x60ff_ffe0)
        } else if self.is(0x3b00_0000, 0x1800_0000) {
            let size = match (self.field(30, 2), self.field(26, 1)) {
                (3, _) => 0, // a prefetch
                (0, _) | (2, 0) => 4,
                (1, _) => 8,
                _ => 16,
            };
            (Named::Literal(far(), size), 0x00ff_ffe0)
        } else {
            return None;
        })
    }

    /// The distance that the instruction adds to a register, in it or in the address of an access.
    pub fn offset(self) -> Option<Offset> {
        let is_simd = self.field(26, 1) == 1;
        let (distance, bits) = if self.is(0xff80_0000, 0x9100_0000) {
            (i64::from(self.field(10, 12)) << (12 * self.field(22, 1)), 0x003f_fc00)
        } else if self.is(0x3b00_0000, 0x3900_0000) {
            let is_whole = is_simd && self.field(23, 1) == 1;
            let scale = if is_whole { 4 } else { self.field(30, 2) };
            (i64::from(self.field(10, 12)) << scale, 0x003f_fc00)
        } else if self.is(0x3b20_0c00, 0x3800_0000) {
            (self.signed(12, 9), 0x001f_f000)
        } else if self.is(0x3a80_0000, 0x2800_0000) {
            let scale = 2 + if is_simd { self.field(30, 2) } else { self.field(31, 1) };
            (self.signed(15, 7) << scale, 0x003f_8000)
        } else {
            return None;
        };
        Some(Offset { base: self.field(5, 5) as usize, distance, bits })
    }

    /// Whether it adds a constant to a register of 64 bits.
    pub fn adds(self) -> bool {
        self.is(0xff80_0000, 0x9100_0000)
    }

    /// The register that it copies into another one.
    pub fn copied(self) -> Option<usize> {
        self.is(0xffe0_ffe0, 0xaa00_03e0).then(|| self.field(16, 5) as usize)
    }

    /// Whether it calls a function.
    pub fn calls(self) -> bool {
        self.is(0xfc00_0000, 0x9400_0000) || self.is(0xfe60_0000, 0xd620_0000)
    }

    /// Whether it jumps to a place that it names, without a condition.
    pub fn jumps(self) -> bool {
        self.is(0xfc00_0000, 0x1400_0000)
    }

    /// Whether the next instruction is not executed after it.
    pub fn ends(self) -> bool {
        self.jumps() || self.is(0xfe00_0000, 0xd600_0000) && !self.calls()
    }

    /// Whether it jumps to an address in a register.
    pub fn jumps_anywhere(self) -> bool {
        self.is(0xfe60_0000, 0xd600_0000)
    }

    /// The general registers that it may write, a bit for each.
    pub fn written(self) -> u32 {
        let register = |at: u32| 1 << self.field(at, 5);
        let all = register(0) | register(5) | register(10) | register(16);
        match self.field(25, 4) {
            _ if self.calls() || self.is(0xff00_0000, 0xd400_0000) => OF_CALLS,
            0b1000 | 0b1001 | 0b0101 | 0b1101 | 0b0111 | 0b1111 => register(0),
            0b1010 | 0b1011 => match self.is(0xffe0_0000, 0xd520_0000) {
                true => register(0), // a read of a system register
                false => 0,
            },
            _ if self.is(0x3b00_0000, 0x1800_0000) => register(0),
            // An access of one register. Some forms write the base.
            _ if self.is(0x3a00_0000, 0x3800_0000) => {
                let is_plain = self.field(24, 1) == 1
                    || self.is(0x0020_0c00, 0)
                    || self.is(0x0020_0c00, 0x0020_0800);
                let loads = self.field(26, 1) == 0 && self.field(22, 2) != 0;
                let loaded = if loads || !is_plain { register(0) } else { 0 };
                loaded | if is_plain { 0 } else { register(5) | register(16) }
            }
            _ if self.is(0x3a00_0000, 0x2800_0000) => {
                let loads = self.field(26, 1) == 0 && self.field(22, 1) == 1;
                let loaded = if loads { register(0) | register(10) } else { 0 };
                loaded | if self.field(23, 1) == 1 { register(5) } else { 0 }
            }
            _ => all,
        }
    }
}
