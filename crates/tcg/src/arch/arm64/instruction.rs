//! Recognises the few instructions that are special to the plugin.

use flight::profile::marks::aarch64::{MARK, TICK};

use super::classes::class;
use super::registers::LINK;
use crate::arch::architecture::{Examined, Special};

/// The length of an instruction in bytes.
pub const LENGTH: u64 = 4;

/// Examines an instruction's bytes as 64-bit code. Other code runs only in programs.
pub fn examine(bytes: &[u8]) -> Examined {
    let word = bytes.try_into().ok().map(u32::from_le_bytes);
    Examined {
        special: word.and_then(special),
        completes: word.is_some_and(completes),
        branches: word.is_some_and(branches),
        flushes: None,
        class: word.and_then(class),
    }
}

/// Encodings as in the Arm ARM, C4.1 "A64 instruction set encoding".
fn special(word: u32) -> Option<Special> {
    let register = |lowest: u32| (word >> lowest & 0x1f) as usize;
    let is = |mask: u32, value: u32| word & mask == value;
    let special = match word {
        MARK => Special::Mark,
        TICK => Special::Tick,
        _ if is(0xfc00_0000, 0x9400_0000) => Special::Link, // bl
        _ if is(0xffff_fc1f, 0xd63f_0000) => Special::Link, // blr
        _ if is(0xfeff_f800, 0xd63f_0800) => Special::Link, // blraa, blraaz, blrab, blrabz
        _ if is(0xffff_fc1f, 0xd65f_0000) => Special::ReturnTo(register(5)), // ret
        0xd65f_0bff | 0xd65f_0fff => Special::ReturnTo(LINK), // retaa, retab
        0xd69f_03e0 | 0xd69f_0bff | 0xd69f_0fff => Special::InterruptReturn, // eret, eretaa, eretab
        // The register number 31 stands for 0 there.
        _ if register(0) > LINK => return None,
        _ if is(0xffff_ffe0, 0xd518_4100) => Special::SetTask(register(0)), // msr sp_el0
        _ if is(0xffff_ffe0, 0xd518_c000) => Special::SetInterruptTable(register(0)), // msr vbar_el1
        _ => return None,
    };
    Some(special)
}

/// Whether the instruction is a branch.
fn branches(word: u32) -> bool {
    let is = |mask: u32, value: u32| word & mask == value;
    is(0x7c00_0000, 0x1400_0000) // b, bl
        || is(0x7c00_0000, 0x3400_0000) // cbz, cbnz, tbz, tbnz
        || is(0xff00_0000, 0x5400_0000) // b.cond, bc.cond
        || is(0xfe00_0000, 0xd600_0000) // br, blr, ret, eret
}

/// Whether the instruction only calculates with general registers. Instructions for tags, signatures and their like,
/// which may be undefined or fail, are not among these.
fn completes(word: u32) -> bool {
    // The bits that tell groups of instructions apart.
    match word >> 23 & 0x3f {
        0b10_0000 | 0b10_0001 => return true, // adr, adrp
        0b10_0010 => return true,             // add, sub of an immediate
        0b10_0100..=0b10_0111 => return true, // logic, moves of immediates, bit fields
        _ => {}
    }
    match word >> 21 & 0xff {
        0b0101_0000..=0b0101_0111 => true,     // logic of registers
        0b0101_1000..=0b0101_1111 => true,     // add, sub of registers
        0b1101_0000 => word >> 10 & 0x3f == 0, // adc, sbc
        0b1101_0010 | 0b1101_0100 => true,     // conditional compare, conditional select
        0b1101_0110 => match word >> 30 & 1 {
            0 => matches!(word >> 10 & 0x3f, 0b00_0010 | 0b00_0011 | 0b00_1000..=0b00_1011), // div, shifts
            _ => word >> 16 & 0x1f == 0, // rbit, rev, clz
        },
        0b1101_1000..=0b1101_1111 => true, // multiplications
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn special(word: u32) -> Option<Special> {
        examine(&word.to_le_bytes()).special
    }

    #[test]
    fn branches_are_told_from_others() {
        let is_branch = |word: u32| examine(&word.to_le_bytes()).branches;
        // b, bl, cbz, cbnz, tbz, tbnz, b.ne, br, blr, ret, retaa, eret
        for word in [
            0x1400_0001, 0x97ff_fff0, 0xb400_0040, 0x3500_0041, 0x3600_0042, 0xb70f_ffe3,
            0x5400_0081, 0xd61f_0020, 0xd63f_0040, 0xd65f_03c0, 0xd65f_0bff, 0xd69f_03e0,
        ] {
            assert!(is_branch(word), "{word:#x}");
        }
        // nop, add, ldr, str, movk, csel, msr
        for word in [
            0xd503_201f, 0x9100_0421, 0xf940_0020, 0xf900_0020, 0xf280_0020, 0x9a81_0020,
            0xd518_4100,
        ] {
            assert!(!is_branch(word), "{word:#x}");
        }
    }

    #[test]
    fn few_instructions_are_special() {
        assert_eq!(special(MARK), Some(Special::Mark));
        assert_eq!(special(TICK), Some(Special::Tick));
        assert_eq!(special(0xd280_001f), None); // mov xzr, #0
        assert_eq!(special(0xd518_411c), Some(Special::SetTask(28))); // msr sp_el0, x28
        assert_eq!(special(0xd518_411f), None); // msr sp_el0, xzr
        assert_eq!(special(0xd538_411c), None); // mrs x28, sp_el0
        assert_eq!(special(0xd518_c008), Some(Special::SetInterruptTable(8))); // msr vbar_el1, x8
        assert_eq!(special(0xd518_c028), None); // another register
        assert_eq!(special(0xd503_201f), None); // nop
        assert_eq!(special(0xd400_0001), None); // svc #0
        assert_eq!(examine(&[0xc0, 0x03]), examine(&[]));
    }

    #[test]
    fn calls_and_returns_are_special() {
        let call = Some(Special::Link);
        assert_eq!(special(0x9400_0010), call); // bl +0x40
        assert_eq!(special(0x97ff_fff0), call); // bl -0x40
        assert_eq!(special(0xd63f_0200), call); // blr x16
        assert_eq!(special(0xd73f_0a11), call); // blraa x16, x17
        assert_eq!(special(0xd63f_081f), call); // blraaz x0
        assert_eq!(special(0xd63f_0c1f), call); // blrabz x0
        assert_eq!(special(0x1400_0010), None); // b +0x40
        assert_eq!(special(0xd61f_0200), None); // br x16
        assert_eq!(special(0xd65f_03c0), Some(Special::ReturnTo(30))); // ret
        assert_eq!(special(0xd65f_0200), Some(Special::ReturnTo(16))); // ret x16
        assert_eq!(special(0xd65f_0bff), Some(Special::ReturnTo(30))); // retaa
        assert_eq!(special(0xd65f_0fff), Some(Special::ReturnTo(30))); // retab
        assert_eq!(special(0xd69f_03e0), Some(Special::InterruptReturn)); // eret
        assert_eq!(special(0xd503_233f), None); // paciasp
        assert_eq!(special(0xd503_245f), None); // bti c
    }

    #[test]
    fn what_may_leave_a_block_does_not_always_complete() {
        let completes = |word: &u32| examine(&word.to_le_bytes()).completes;
        let calculate = [
            0x9100_43ff, // add sp, sp, #16
            0xd101_43ff, // sub sp, sp, #80
            0xeb01_001f, // cmp x0, x1
            0x8b20_63e1, // add x1, sp, x0
            0xaa01_03e0, // mov x0, x1
            0x5280_0020, // mov w0, #1
            0x9000_0000, // adrp x0, .
            0x1000_0000, // adr x0, .
            0xf240_0c1f, // tst x0, #15
            0xd344_fc00, // lsr x0, x0, #4
            0x93c1_0820, // extr x0, x1, x1, #2
            0x9a81_1000, // csel x0, x0, x1, ne
            0xfa41_0800, // ccmp x0, x1, #0, eq
            0x9a01_0000, // adc x0, x0, x1
            0x9ac1_2000, // lsl x0, x0, x1
            0x9ac1_0800, // udiv x0, x0, x1
            0xdac0_1000, // clz x0, x0
            0x9b01_7c00, // mul x0, x0, x1
        ];
        assert!(calculate.iter().all(completes));
        let leave = [
            0xf940_0000, // ldr x0, [x0]
            0xf900_0000, // str x0, [x0]
            0xa9bf_7bfd, // stp x29, x30, [sp, #-16]!
            0xf821_0000, // ldadd x1, x0, [x0]
            0xc85f_7c00, // ldxr x0, [x0]
            0x5800_0000, // ldr x0, .
            0xd53b_e040, // mrs x0, cntvct_el0
            0xd508_831f, // tlbi vmalle1is
            0xd503_3b9f, // dsb ish
            0xd420_0000, // brk #0
            0x1e20_2820, // fadd s0, s1, s0
            0x4e20_1c00, // and v0.16b, v0.16b, v0.16b
            0xdac1_13e0, // autia x0, sp and its like
            0x9ac1_3000, // pacga x0, x0, x1
            0x9181_0400, // addg x0, x0, #16, #1
            0x9ac0_1000, // irg x0, x0, x0
            0x5400_0000, // b.eq .
            0xb400_0000, // cbz x0, .
            0x0000_0000, // udf #0
        ];
        let wrong: Vec<_> =
            leave.into_iter().filter(completes).map(|it| format!("{it:x}")).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}
