//! The x86-64 machine of QEMU.

use std::ops::Range;

/// The name of the architecture in messages.
pub const NAME: &str = "x86";
/// The name of QEMU for guests of this architecture.
pub const PROGRAM: &str = "qemu-system-x86_64";
/// The package of QEMU, in Debian, Ubuntu and Fedora.
pub const PACKAGE: &str = "qemu-system-x86";
/// The value of QEMU's option `-machine`.
pub const MACHINE: &str = "q35,dump-guest-core=off";
/// The addition to [`MACHINE`] for exact machines. They have no disk controller, because host threads would complete
/// its requests.
pub const EXACT_MACHINE: &str = "sata=off";

/// The serial port that is the console, as the kernel calls it.
pub const CONSOLE: &str = "ttyS0";
/// Words for the kernel's command line under emulation.
///
/// - `tsc=reliable`: the TSCs of emulated CPUs are one clock, but the CPU threads' timing is too unsteady for
///   the kernel to verify that. Every other clock is a device.
/// - `no_timer_check`: on a busy host the check of the timer interrupt can fail, and then the kernel panics.
///   Under KVM kernels skip it themselves.
pub const EMULATED_WORDS: &str = "tsc=reliable no_timer_check";
/// Words for the kernel's command line in exact mode.
///
/// - `cpu_init_udelay=0`: an emulated CPU is up at once, but the kernel would wait 10 ms for each with `pause`, and
///   at each `pause` QEMU switches CPUs. A boot took 7.2 s of CPU time on 4 CPUs instead of 6.4 s, and 26.6 s on 16
///   instead of 16.4 s.
/// - `initcall_blacklist`: functions of the start that no workload needs. They register random numbers by jitter,
///   signatures and key agreement by elliptic curves, and write the values of enums into the formats of trace events.
///   Kernels ignore names that they lack.
pub const EXACT_WORDS: &str = "cpu_init_udelay=0 \
                               initcall_blacklist=jent_mod_init,trace_eval_init,trace_eval_sync,ecdsa_init,ecdh_init";
/// A word for the kernel's command line in exact mode, where the HPET has timers for all CPUs ([`hpet`]). The kernel
/// would calibrate the timers of the local APICs for 0.1 s of guest time: five million `pause`, at each of which QEMU
/// gives all CPUs a turn. No word skips the calibration alone.
pub const TIMER_WORD: &str = "nolapic_timer";
/// The addition to the CPU for such machines: kernels give CPUs timers of the HPET only if those of the local APIC may
/// stop (`hpet_late_init` in `arch/x86/kernel/hpet.c`).
pub const TIMER_CPU: &str = ",-arat";
/// Timers of the HPET that kernels do not give to CPUs.
const OTHER_TIMERS: u32 = 3;
/// Most timers of QEMU's HPET (`HPET_MAX_TIMERS` in `include/hw/timer/hpet.h`).
const MAX_TIMERS: u32 = 32;

/// The values of QEMU's option `-global` by which each CPU has a timer of its own in the HPET, with interrupts by
/// message. `None` if there are more CPUs than such timers.
pub fn hpet(cpus: u32) -> Option<[String; 2]> {
    let timers = cpus + OTHER_TIMERS;
    (timers <= MAX_TIMERS).then(|| ["hpet.msi=on".to_owned(), format!("hpet.timers={timers}")])
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
pub fn emulated_cpu(major: u32) -> &'static str {
    match major {
        ..9 => "max,-erms,-fsrm",
        _ => "max,-erms,-fsrm,-fzrm,-fsrs,-fsrc",
    }
}

/// The physical addresses of a memory of `bytes` bytes, in order: below the hole for devices, then from 4 GiB on
/// (`pc_q35_init` in `hw/i386/pc_q35.c` of QEMU).
pub fn memory(bytes: u64) -> [Range<u64>; 2] {
    let low = if bytes < LOW_AT_MOST { bytes } else { LOW_IF_SPLIT };
    [0..low, HIGH..HIGH + bytes - low]
}
