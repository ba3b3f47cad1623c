//! Names that the decoder does not know: of system registers, of operations on caches and address translation, and of
//! hints (Arm Architecture Reference Manual, C5.1 to C5.5; kernel: `arch/arm64/tools/sysreg`).

/// The name of a system register, by its number in `mrs` and `msr`. Kernels use these most.
pub(super) fn register(number: u16) -> Option<&'static str> {
    find(&REGISTERS, number)
}

/// The field of the processor's state that `msr` writes a constant to, by `op1` and `op2`.
pub(super) fn field(number: u16) -> Option<&'static str> {
    find(&FIELDS, number)
}

/// An instruction that `hint` stands for.
pub(super) fn hint(number: u16) -> Option<&'static str> {
    find(&HINTS, number)
}

/// An instruction that `sys` stands for, by `op1`, `CRn`, `CRm` and `op2`, of 3, 4, 4 and 3 bits.
pub(super) fn operation(number: u16) -> Option<&'static str> {
    find(&OPERATIONS, number)
}

fn find(names: &[(u16, &'static str)], number: u16) -> Option<&'static str> {
    let place = names.binary_search_by_key(&number, |(number, _)| *number).ok()?;
    Some(names[place].1)
}

/// Ordered by number.
#[rustfmt::skip]
const REGISTERS: [(u16, &str); 103] = [
    (0x0012, "mdscr_el1"), (0x4000, "midr_el1"), (0x4005, "mpidr_el1"), (0x4020, "id_aa64pfr0_el1"),
    (0x4028, "id_aa64dfr0_el1"), (0x4032, "id_aa64isar2_el1"), (0x4038, "id_aa64mmfr0_el1"),
    (0x4039, "id_aa64mmfr1_el1"), (0x4080, "sctlr_el1"), (0x4082, "cpacr_el1"), (0x4085, "rgsr_el1"),
    (0x4086, "gcr_el1"), (0x4090, "zcr_el1"), (0x4100, "ttbr0_el1"), (0x4101, "ttbr1_el1"), (0x4102, "tcr_el1"),
    (0x4108, "apiakeylo_el1"), (0x4109, "apiakeyhi_el1"), (0x410a, "apibkeylo_el1"), (0x410b, "apibkeyhi_el1"),
    (0x4110, "apdakeylo_el1"), (0x4111, "apdakeyhi_el1"), (0x4112, "apdbkeylo_el1"), (0x4113, "apdbkeyhi_el1"),
    (0x4118, "apgakeylo_el1"), (0x4119, "apgakeyhi_el1"), (0x4200, "spsr_el1"), (0x4201, "elr_el1"),
    (0x4208, "sp_el0"), (0x4212, "currentel"), (0x4213, "pan"), (0x4230, "icc_pmr_el1"), (0x4290, "esr_el1"),
    (0x42b1, "tfsre0_el1"), (0x4300, "far_el1"), (0x43a0, "par_el1"), (0x4510, "mair_el1"), (0x4600, "vbar_el1"),
    (0x4609, "disr_el1"), (0x4664, "icc_ctlr_el1"), (0x4665, "icc_sre_el1"), (0x4681, "contextidr_el1"),
    (0x4684, "tpidr_el1"), (0x4708, "cntkctl_el1"), (0x4801, "clidr_el1"), (0x4804, "gmid_el1"),
    (0x5000, "csselr_el1"), (0x5801, "ctr_el0"), (0x5a11, "daif"), (0x5a15, "dit"), (0x5a20, "fpcr"),
    (0x5a21, "fpsr"), (0x5ce0, "pmcr_el0"), (0x5cf0, "pmuserenr_el0"), (0x5e82, "tpidr_el0"), (0x5e83, "tpidrro_el0"),
    (0x5f01, "cntpct_el0"), (0x5f02, "cntvct_el0"), (0x5f11, "cntp_ctl_el0"), (0x5f19, "cntv_ctl_el0"),
    (0x6088, "hcr_el2"), (0x6089, "mdcr_el2"), (0x6090, "zcr_el2"), (0x6108, "vttbr_el2"), (0x610a, "vtcr_el2"),
    (0x6180, "dacr32_el2"), (0x6200, "spsr_el2"), (0x6201, "elr_el2"), (0x6281, "ifsr32_el2"), (0x6290, "esr_el2"),
    (0x6640, "ich_ap0r0_el2"), (0x6641, "ich_ap0r1_el2"), (0x6642, "ich_ap0r2_el2"), (0x6643, "ich_ap0r3_el2"),
    (0x6648, "ich_ap1r0_el2"), (0x6649, "ich_ap1r1_el2"), (0x664a, "ich_ap1r2_el2"), (0x664b, "ich_ap1r3_el2"),
    (0x664d, "icc_sre_el2"), (0x6658, "ich_hcr_el2"), (0x6659, "ich_vtr_el2"), (0x665f, "ich_vmcr_el2"),
    (0x6682, "tpidr_el2"), (0x6880, "sctlr_el12"), (0x6882, "cpacr_el12"), (0x6890, "zcr_el12"),
    (0x6900, "ttbr0_el12"), (0x6901, "ttbr1_el12"), (0x6902, "tcr_el12"), (0x6a00, "spsr_el12"), (0x6a01, "elr_el12"),
    (0x6a88, "afsr0_el12"), (0x6a89, "afsr1_el12"), (0x6a90, "esr_el12"), (0x6b00, "far_el12"), (0x6d10, "mair_el12"),
    (0x6d18, "amair_el12"), (0x6e00, "vbar_el12"), (0x6e81, "contextidr_el12"), (0x6f08, "cntkctl_el12"),
    (0x6f11, "cntp_ctl_el02"), (0x6f12, "cntp_cval_el02"), (0x6f19, "cntv_ctl_el02"),
];

/// Ordered by number.
#[rustfmt::skip]
const FIELDS: [(u16, &str); 8] = [
    (0x0003, "uao"), (0x0004, "pan"), (0x0005, "spsel"), (0x0019, "ssbs"), (0x001a, "dit"), (0x001c, "tco"),
    (0x001e, "daifset"), (0x001f, "daifclr"),
];

/// Ordered by number.
#[rustfmt::skip]
const HINTS: [(u16, &str); 8] = [
    (0x0005, "sevl"), (0x0006, "dgh"), (0x0014, "csdb"), (0x0016, "clearbhb"), (0x0020, "bti"), (0x0022, "bti c"),
    (0x0024, "bti j"), (0x0026, "bti jc"),
];

/// Ordered by number.
#[rustfmt::skip]
const OPERATIONS: [(u16, &str); 81] = [
    (0x0388, "ic ialluis"), (0x03a8, "ic iallu"), (0x03b1, "dc ivac"), (0x03b2, "dc isw"), (0x03b3, "dc igvac"),
    (0x03b4, "dc igsw"), (0x03b5, "dc igdvac"), (0x03b6, "dc igdsw"), (0x03c0, "at s1e1r"), (0x03c1, "at s1e1w"),
    (0x03c2, "at s1e0r"), (0x03c3, "at s1e0w"), (0x03c8, "at s1e1rp"), (0x03c9, "at s1e1wp"), (0x03d2, "dc csw"),
    (0x03d4, "dc cgsw"), (0x03d6, "dc cgdsw"), (0x03f2, "dc cisw"), (0x03f4, "dc cigsw"), (0x03f6, "dc cigdsw"),
    (0x0411, "tlbi rvae1is"), (0x0413, "tlbi rvaae1is"), (0x0415, "tlbi rvale1is"), (0x0417, "tlbi rvaale1is"),
    (0x0418, "tlbi vmalle1is"), (0x0419, "tlbi vae1is"), (0x041a, "tlbi aside1is"), (0x041b, "tlbi vaae1is"),
    (0x041d, "tlbi vale1is"), (0x041f, "tlbi vaale1is"), (0x0431, "tlbi rvae1"), (0x0433, "tlbi rvaae1"),
    (0x0435, "tlbi rvale1"), (0x0437, "tlbi rvaale1"), (0x0438, "tlbi vmalle1"), (0x0439, "tlbi vae1"),
    (0x043a, "tlbi aside1"), (0x043b, "tlbi vaae1"), (0x043d, "tlbi vale1"), (0x043f, "tlbi vaale1"),
    (0x1ba1, "dc zva"), (0x1ba3, "dc gva"), (0x1ba4, "dc gzva"), (0x1ba9, "ic ivau"), (0x1bd1, "dc cvac"),
    (0x1bd3, "dc cgvac"), (0x1bd5, "dc cgdvac"), (0x1bd9, "dc cvau"), (0x1be1, "dc cvap"), (0x1be9, "dc cvadp"),
    (0x1bf1, "dc civac"), (0x1bf3, "dc cigvac"), (0x1bf5, "dc cigdvac"), (0x23c0, "at s1e2r"), (0x23c1, "at s1e2w"),
    (0x23c4, "at s12e1r"), (0x23c5, "at s12e1w"), (0x23c6, "at s12e0r"), (0x23c7, "at s12e0w"),
    (0x2401, "tlbi ipas2e1is"), (0x2402, "tlbi ripas2e1is"), (0x2405, "tlbi ipas2le1is"),
    (0x2406, "tlbi ripas2le1is"), (0x2411, "tlbi rvae2is"), (0x2415, "tlbi rvale2is"), (0x2418, "tlbi alle2is"),
    (0x2419, "tlbi vae2is"), (0x241c, "tlbi alle1is"), (0x241d, "tlbi vale2is"), (0x241e, "tlbi vmalls12e1is"),
    (0x2421, "tlbi ipas2e1"), (0x2422, "tlbi ripas2e1"), (0x2425, "tlbi ipas2le1"), (0x2426, "tlbi ripas2le1"),
    (0x2431, "tlbi rvae2"), (0x2435, "tlbi rvale2"), (0x2438, "tlbi alle2"), (0x2439, "tlbi vae2"),
    (0x243c, "tlbi alle1"), (0x243d, "tlbi vale2"), (0x243e, "tlbi vmalls12e1"),
];
