//! The classes of instructions. Encodings as in the Arm ARM, C4.1 "A64 instruction set encoding".

use flight::profile::Class;

/// The class of an instruction, if it has one.
pub fn class(word: u32) -> Option<Class> {
    let is = |mask: u32, value: u32| word & mask == value;
    match word {
        _ if is(0xfff8_e000, 0xd508_8000) => Some(invalidation(word)), // tlbi, also with nXS
        _ if is(0xffff_f0ff, 0xd503_309f) => Some(Class::Dsb),
        _ if is(0xffff_f3ff, 0xd503_323f) => Some(Class::Dsb), // with nXS
        _ if is(0xffff_f0ff, 0xd503_30bf) => Some(Class::Dmb),
        _ if is(0xffff_f0ff, 0xd503_30df) => Some(Class::Isb),
        _ if is(0xffff_ffc0, 0xd518_2000) => Some(Class::TtbrWrite), // msr ttbr0_el1, ttbr1_el1
        _ if is(0x3f20_8c00, 0x3820_0000) => Some(Class::Atomic),    // ldadd, stclr and their like
        _ if is(0x3f20_fc00, 0x3820_8000) => Some(Class::Atomic),    // swp
        _ if is(0x3fa0_7c00, 0x08a0_7c00) => Some(Class::Atomic),    // cas
        _ if is(0xbfa0_7c00, 0x0820_7c00) => Some(Class::Atomic),    // casp
        _ if is(0x3fe0_0000, 0x0840_0000) => Some(Class::ExclusiveLoad), // ldxr, ldaxr
        _ if is(0xbfe0_0000, 0x8860_0000) => Some(Class::ExclusiveLoad), // ldxp, ldaxp
        _ if is(0x3fe0_0000, 0x0800_0000) => Some(Class::ExclusiveStore), // stxr, stlxr
        _ if is(0xbfe0_0000, 0x8820_0000) => Some(Class::ExclusiveStore), // stxp, stlxp
        _ => None,
    }
}

/// The kind of a `tlbi`. The field CRm tells for which CPUs it is, and with op2 what leaves the TLBs (C5.5).
fn invalidation(word: u32) -> Class {
    let [op1, crm, op2] = [word >> 16 & 7, word >> 8 & 0xf, word >> 5 & 7];
    match (crm, op2) {
        (6 | 7, _) => Class::TlbiLocal,
        (2 | 5, _) => Class::TlbiRange,
        (1 | 3, 1 | 3 | 5 | 7) => Class::TlbiPage,
        (1 | 3, 2) if op1 == 0 => Class::TlbiAsid,
        _ => Class::TlbiAll,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_have_classes() {
        for (word, expected) in [
            (0xd508_831f, Class::TlbiAll),        // tlbi vmalle1is
            (0xd508_811f, Class::TlbiAll),        // tlbi vmalle1os
            (0xd508_8320, Class::TlbiPage),       // tlbi vae1is, x0
            (0xd508_83a3, Class::TlbiPage),       // tlbi vale1is, x3
            (0xd508_93a3, Class::TlbiPage),       // tlbi vale1isnxs, x3
            (0xd508_83e0, Class::TlbiPage),       // tlbi vaale1is, x0
            (0xd508_8340, Class::TlbiAsid),       // tlbi aside1is, x0
            (0xd508_82a0, Class::TlbiRange),      // tlbi rvale1is, x0
            (0xd508_8520, Class::TlbiRange),      // tlbi rvae1os, x0
            (0xd508_871f, Class::TlbiLocal),      // tlbi vmalle1
            (0xd508_87a0, Class::TlbiLocal),      // tlbi vale1, x0
            (0xd508_8620, Class::TlbiLocal),      // tlbi rvae1, x0
            (0xd503_3b9f, Class::Dsb),            // dsb ish
            (0xd503_369f, Class::Dsb),            // dsb nshst
            (0xd503_3a3f, Class::Dsb),            // dsb ishnxs
            (0xd503_3bbf, Class::Dmb),            // dmb ish
            (0xd503_39bf, Class::Dmb),            // dmb ishld
            (0xd503_3fdf, Class::Isb),            // isb
            (0xf821_0000, Class::Atomic),         // ldadd x1, x0, [x0]
            (0xb821_101f, Class::Atomic),         // stclr w1, [x0]
            (0xb8e1_8040, Class::Atomic),         // swpal w1, w0, [x2]
            (0xc8a0_7c41, Class::Atomic),         // cas x0, x1, [x2]
            (0x4860_fc82, Class::Atomic),         // caspal x0, x1, x2, x3, [x4]
            (0xc85f_7c20, Class::ExclusiveLoad),  // ldxr x0, [x1]
            (0x085f_fc20, Class::ExclusiveLoad),  // ldaxrb w0, [x1]
            (0xc87f_0440, Class::ExclusiveLoad),  // ldxp x0, x1, [x2]
            (0xc802_fc20, Class::ExclusiveStore), // stlxr w2, x0, [x1]
            (0xc823_0440, Class::ExclusiveStore), // stxp w3, x0, x1, [x2]
            (0xd518_2000, Class::TtbrWrite),      // msr ttbr0_el1, x0
            (0xd518_203e, Class::TtbrWrite),      // msr ttbr1_el1, x30
        ] {
            assert_eq!(class(word), Some(expected), "{word:x}");
        }
    }

    #[test]
    fn their_neighbours_have_none() {
        for word in [
            0xc8df_fc20, // ldar x0, [x1]
            0xc89f_fc20, // stlr x0, [x1]
            0xf8bf_c020, // ldapr x0, [x1]
            0xd518_2040, // msr tcr_el1, x0
            0xd518_4100, // msr sp_el0, x0
            0xd538_2000, // mrs x0, ttbr0_el1
            0xd50b_7420, // dc zva, x0
            0xd508_711f, // ic ialluis
            0xd508_7800, // at s1e1r, x0
            0xd503_201f, // nop
            0xf862_6820, // ldr x0, [x1, x2]
            0xf822_6820, // str x0, [x1, x2]
            0xf940_0020, // ldr x0, [x1]
        ] {
            assert_eq!(class(word), None, "{word:x}");
        }
    }
}
