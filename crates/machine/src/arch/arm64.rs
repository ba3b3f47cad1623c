//! The arm64 machine of QEMU, `virt`, which kernels know by its device tree. It is always emulated.

use std::iter;

use super::{Platform, left_out};

/// The address of the memory, which is in one piece (`hw/arm/virt.c` of QEMU).
const MEMORY: u64 = 1 << 30;

/// A word for the kernel's command line in exact mode. QEMU's processor has instructions that copy and set memory, and each
/// would count as one instruction, however much it copies. Few real processors have them.
const NO_COPIES: &str = "arm64.nomops";

/// Words for the kernel's command line in exact mode, for a variant with the command line `own`.
fn exact_words(_: u32, own: &str) -> String {
    [Some(NO_COPIES.to_owned()), left_out(own)].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

pub const PLATFORM: Platform = Platform {
    name: "arm64",
    program: "qemu-system-aarch64",
    packages: ["qemu-system-arm", "qemu-system-aarch64"],
    install: "`make arm64`, or ",
    // The seed of the kernel's random numbers in the device tree comes from QEMU's option `-seed`. Without it the
    // generator is not ready for long, and each system call draws its stack offset at a hundred times the cost.
    machine: "virt,gic-version=3,dtb-randomness=on,dump-guest-core=off",
    exact_machine: "",
    console: "ttyAMA0",
    emulated_words: "",
    exact_words,
    // QEMU's own algorithm for pointer authentication takes less of the host's time than the architecture's. Models of
    // real CPUs bring their errata, which kernels work around.
    cpu: |_| "max,pauth-impdef=on",
    timers: |_, _| None,
    places_cpus: true,
    memory: |bytes| iter::once(MEMORY..MEMORY + bytes).collect(),
};
