//! QEMU: its plugin interface, the start, and the callbacks.
//!
//! QEMU calls plain functions, so their state is global: [`PLUGIN`], and the profiler of each architecture.

mod callbacks;
mod cpus;
mod emulator;
mod install;

use std::sync::OnceLock;

use cpus::Cpus;
use emulator::{Numbers, Registers};

use crate::arch::{Architecture, Arm64, X86_64};
use crate::machine::Machine;
use crate::profiler::Profiler;

static PLUGIN: Plugin =
    Plugin { cpus: Cpus::new(), numbers: Numbers::new(), registers: OnceLock::new() };

struct Plugin {
    cpus: Cpus,
    numbers: Numbers,
    /// The registers are the same for all CPUs.
    registers: OnceLock<Registers>,
}

/// An architecture of QEMU's guests.
trait Guest: Architecture {
    /// The profiler, which exists if the machine has this architecture.
    fn profiler() -> &'static OnceLock<Profiler<Self>>
    where
        Self: Sized;
}

impl Guest for X86_64 {
    #[inline]
    fn profiler() -> &'static OnceLock<Profiler<Self>> {
        static PROFILER: OnceLock<Profiler<X86_64>> = OnceLock::new();
        &PROFILER
    }
}

impl Guest for Arm64 {
    #[inline]
    fn profiler() -> &'static OnceLock<Profiler<Self>> {
        static PROFILER: OnceLock<Profiler<Arm64>> = OnceLock::new();
        &PROFILER
    }
}

/// The machine that QEMU emulates. Only callbacks use it.
struct Qemu;

impl Machine for Qemu {
    #[inline]
    fn cpu(&self) -> usize {
        PLUGIN.cpus.executing()
    }

    fn register(&self, number: usize) -> Option<u64> {
        PLUGIN.registers.get()?.value(number)
    }

    fn read<const LENGTH: usize>(&self, address: u64) -> Option<[u8; LENGTH]> {
        emulator::read_memory(address)
    }

    fn end_turn(&self) {
        PLUGIN.cpus.end_turn();
    }
}
