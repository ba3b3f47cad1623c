//! The x86-64 machine of QEMU.

use std::ops::Range;

use super::{Platform, Timers, has_parameter, left_out};

pub const PLATFORM: Platform = Platform {
    name: "x86",
    program: "qemu-system-x86_64",
    packages: ["qemu-system-x86", "qemu-system-x86"],
    install: "",
    machine: "q35,dump-guest-core=off",
    // Exact machines have no disk controller, because host threads would complete its requests.
    exact_machine: "sata=off",
    console: "ttyS0",
    emulated_words: EMULATED_WORDS,
    exact_words,
    cpu: emulated_cpu,
    timers,
    places_cpus: false,
    memory,
};

/// Words for the kernel's command line under emulation.
///
/// - `tsc=reliable`: the TSCs of emulated CPUs are one clock, but the CPU threads' timing is too unsteady for
///   the kernel to verify that. Every other clock is a device.
/// - `no_timer_check`: on a busy host the check of the timer interrupt can fail, and then the kernel panics.
///   Under KVM kernels skip it themselves.
const EMULATED_WORDS: &str = "tsc=reliable no_timer_check";
/// A word for the kernel's command line in exact mode. An emulated CPU is up at once, but the kernel would wait 10 ms for
/// each with `pause`, and at each `pause` QEMU switches CPUs. A boot took 7.2 s of CPU time on 4 CPUs instead of 6.4 s,
/// and 26.6 s on 16 instead of 16.4 s.
const NO_DELAY: &str = "cpu_init_udelay=0";
/// A word for the kernel's command line in exact mode, where the HPET has timers for all CPUs ([`timers`]). The kernel
/// would calibrate the timers of the local APICs for 0.1 s of guest time: five million `pause`, at each of which QEMU
/// gives all CPUs a turn. No word skips the calibration alone.
const TIMER_WORD: &str = "nolapic_timer";
/// The kernel's parameter about the local APIC. A variant with it has the timers of local APICs.
const LOCAL_TIMERS: &str = "lapic";
/// The addition to the CPU for such machines: kernels give CPUs timers of the HPET only if those of the local APIC may
/// stop (`hpet_late_init` in `arch/x86/kernel/hpet.c`).
const TIMER_CPU: &str = ",-arat";
/// Timers of the HPET that kernels do not give to CPUs.
const OTHER_TIMERS: u32 = 3;
/// Most timers of QEMU's HPET (`HPET_MAX_TIMERS` in `include/hw/timer/hpet.h`).
const MAX_TIMERS: u32 = 32;

/// Words for the kernel's command line in exact mode, on a machine with `cpus` CPUs, for a variant with the command line
/// `own`.
fn exact_words(cpus: u32, own: &str) -> String {
    let timers = timers(cpus, own).map(|_| TIMER_WORD.to_owned());
    [Some(NO_DELAY.to_owned()), left_out(own), timers]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
}

/// The values of QEMU's option `-global` by which each CPU has a timer of its own in the HPET, with interrupts by
/// message, and the addition to the CPU. `None` if there are more CPUs than such timers, or the `own` command line of
/// the variant asks for the timers of local APICs ([`LOCAL_TIMERS`]).
fn timers(cpus: u32, own: &str) -> Option<Timers> {
    let timers = cpus + OTHER_TIMERS;
    let options = || vec!["hpet.msi=on".to_owned(), format!("hpet.timers={timers}")];
    (timers <= MAX_TIMERS && !has_parameter(own, LOCAL_TIMERS)).then(|| (TIMER_CPU, options()))
}

/// The largest size of the memory below 4 GiB, if all memory fits there.
const LOW_AT_MOST: u64 = 0xb000_0000;
/// The size of the memory below 4 GiB, if there is more memory above.
const LOW_IF_SPLIT: u64 = 0x8000_0000;
/// The address of the memory above 4 GiB. Machines of nearly 1 TiB have another one, but they are not
/// emulated.
const HIGH: u64 = 1 << 32;

/// The emulated CPU: everything that QEMU of this version supports, except the flags for fast string
/// instructions. QEMU emulates each iteration of these, and kernels that see the flags copy and clear pages
/// byte by byte.
fn emulated_cpu(major: u32) -> &'static str {
    match major {
        ..9 => "max,-erms,-fsrm",
        _ => "max,-erms,-fsrm,-fzrm,-fsrs,-fsrc",
    }
}

/// The physical addresses of a memory of `bytes` bytes, in order: below the hole for devices, then from 4 GiB on
/// (`pc_q35_init` in `hw/i386/pc_q35.c` of QEMU).
fn memory(bytes: u64) -> Vec<Range<u64>> {
    let low = if bytes < LOW_AT_MOST { bytes } else { LOW_IF_SPLIT };
    vec![0..low, HIGH..HIGH + bytes - low]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::{LEFT_OUT, NEEDLESS};

    #[test]
    fn a_variant_gets_back_what_exact_boots_leave_out() {
        let usual = exact_words(1, "lapicx initcall_blacklists=x");
        assert_eq!(usual, format!("{NO_DELAY} {LEFT_OUT}={NEEDLESS} {TIMER_WORD}"));
        assert_eq!(exact_words(1, "quiet lapic"), format!("{NO_DELAY} {LEFT_OUT}={NEEDLESS}"));
        assert_eq!(timers(1, "lapic=notscdeadline"), None);
        assert_eq!(exact_words(30, "initcall-blacklist="), NO_DELAY);
        for own in ["\"lapic\"", "a \"b c\" lapic=x", "x=\"a\" lapic"] {
            assert_eq!(timers(1, own), None, "{own}");
        }
        for own in ["x=\"a lapic b\"", "-- lapic", "foo=lapic"] {
            assert!(timers(1, own).is_some(), "{own}");
        }
    }
}
