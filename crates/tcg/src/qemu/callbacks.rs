//! Callbacks from QEMU. They pass events to the profiler.

#![expect(unsafe_code, reason = "QEMU's interface is one of C")]

use std::ffi::{c_uint, c_void};
use std::marker::PhantomData;
use std::ptr;

use flight::profile::Privilege;
use qemu_plugin::PluginId;
use qemu_plugin::sys::{qemu_plugin_meminfo_t as AccessInfo, qemu_plugin_tb};

use super::emulator::{Access, Block, Instruction, OnAccess, OnExecution, Reads, Registers};
use super::{Guest, PLUGIN, Qemu};
use crate::machine::{self, AccessProbe, Allocator, Flush, Probe};
use crate::profiler::Profiler;
use crate::segments::Segment;

/// A CPU was created. This thread runs it.
pub unsafe extern "C" fn on_cpu_made<A: Guest>(_: PluginId, number: c_uint) {
    if let Err(error) = PLUGIN.cpus.learn(number as usize) {
        eprintln!("faultline's plugin: {error}");
        std::process::exit(1);
    }
    if PLUGIN.registers.get().is_none()
        && let Some(registers) = Registers::find(A::REGISTERS)
    {
        PLUGIN.registers.get_or_init(|| registers);
    }
}

/// A block is being translated.
pub unsafe extern "C" fn on_translation<A: Guest>(_: PluginId, block: *mut qemu_plugin_tb) {
    // SAFETY: the block is used before this callback returns.
    let block = unsafe { Block::new(block) };
    let instructions = block.instructions().map(|it| Probed::<A>(it, PhantomData));
    profiler::<A>().translate(&Qemu, instructions);
    if !PLUGIN.numbers.is_sound() {
        eprintln!("faultline's plugin: this QEMU stores numbers elsewhere: use --count each");
        std::process::exit(1);
    }
}

/// The machine ended.
pub fn end<A: Guest>() {
    profiler::<A>().end();
}

/// The profiler. Its existence is not checked, because that would cost time at each segment.
#[inline]
fn profiler<A: Guest>() -> &'static Profiler<A> {
    // SAFETY: the plugin gets callbacks only after `install` has set the profiler.
    unsafe { A::profiler().get().unwrap_unchecked() }
}

/// A function that QEMU can call before an instruction. It makes the probe from its data, a number.
macro_rules! before {
    ($probe:expr) => {{
        unsafe extern "C" fn on_execution<A: Guest>(_: c_uint, number: *mut c_void) {
            let probe: fn(u64) -> Probe = $probe;
            profiler::<A>().reached(&Qemu, probe(number.addr() as u64));
        }
        on_execution::<A>
    }};
}

/// A function that QEMU can call after an access. It makes the probe from its data, a number.
macro_rules! after {
    ($probe:expr) => {{
        unsafe extern "C" fn on_access<A: Guest>(
            _: c_uint,
            info: AccessInfo,
            address: u64,
            number: *mut c_void,
        ) {
            let probe: fn(u64) -> AccessProbe = $probe;
            // SAFETY: the access is used before this callback returns.
            let access = unsafe { Access::new(info, address) };
            profiler::<A>().accessed(&Qemu, probe(number.addr() as u64), &access);
        }
        on_access::<A>
    }};
}

/// An instruction whose probes call the profiler of an architecture.
struct Probed<'a, A>(Instruction<'a>, PhantomData<A>);

impl<A: Guest> machine::Instruction for Probed<'_, A> {
    fn address(&self) -> u64 {
        self.0.address()
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.bytes()
    }

    fn begin(&self, segment: &'static Segment) {
        let segment = ptr::from_ref(segment).cast();
        // SAFETY: segments live as long as QEMU.
        unsafe { self.0.on_execution(on_begin::<A>, Reads::Nothing, segment) }
    }

    fn tell_number(&self, number: u64) {
        // SAFETY: QEMU translates for the CPU that executes.
        unsafe { self.0.stores(&PLUGIN.numbers, PLUGIN.cpus.executing(), number) }
    }

    fn before(&self, probe: Probe) {
        use Reads::{Nothing, Registers};
        let (callback, reads, number): (OnExecution, _, u64) = match probe {
            Probe::Mark => (before!(|_| Probe::Mark), Nothing, 0),
            Probe::Tick => (before!(|_| Probe::Tick), Registers, 0),
            Probe::Interrupt(vector) => {
                (before!(|vector| Probe::Interrupt(vector as u8)), Registers, vector.into())
            }
            Probe::Switch => (before!(|_| Probe::Switch), Registers, 0),
            Probe::Block(address) => (before!(Probe::Block), Nothing, address),
            Probe::Flush(Flush::All) => (before!(|_| Probe::Flush(Flush::All)), Nothing, 0),
            Probe::Flush(Flush::Process) => (before!(|_| Probe::Flush(Flush::Process)), Nothing, 0),
            Probe::Flush(Flush::Page(register)) => {
                let callback = before!(|number| Probe::Flush(Flush::Page(number as usize)));
                (callback, Registers, register as u64)
            }
            Probe::Branch(number) => (before!(Probe::Branch), Nothing, number),
            Probe::Allocation(allocator) => {
                let callback = before!(|number| Probe::Allocation(Allocator::of(number)));
                (callback, Registers, allocator.number())
            }
            Probe::Return => (before!(|_| Probe::Return), Registers, 0),
            Probe::Function(address) => (before!(Probe::Function), Registers, address),
            Probe::Outside(address) => (before!(Probe::Outside), Registers, address),
            Probe::InterruptReturn => (before!(|_| Probe::InterruptReturn), Registers, 0),
            Probe::SystemCall => (before!(|_| Probe::SystemCall), Nothing, 0),
            Probe::LeaveStack => (before!(|_| Probe::LeaveStack), Registers, 0),
            Probe::Task(register) => {
                (before!(|number| Probe::Task(number as usize)), Registers, register as u64)
            }
            Probe::InterruptTable(register) => {
                let callback = before!(|number| Probe::InterruptTable(number as usize));
                (callback, Registers, register as u64)
            }
            Probe::Link(site) => (before!(Probe::Link), Registers, site),
            Probe::ReturnTo(register) => {
                (before!(|number| Probe::ReturnTo(number as usize)), Registers, register as u64)
            }
            Probe::MoveStack(register) => {
                (before!(|number| Probe::MoveStack(number as usize)), Registers, register as u64)
            }
        };
        // SAFETY: these callbacks take a number.
        unsafe { self.0.on_execution(callback, reads, ptr::without_provenance(number as usize)) }
    }

    fn after_access(&self, probe: AccessProbe) {
        let (callback, number): (OnAccess, u64) = match probe {
            AccessProbe::Count(Privilege::Kernel) => {
                (after!(|_| AccessProbe::Count(Privilege::Kernel)), 0)
            }
            AccessProbe::Count(Privilege::User) => {
                (after!(|_| AccessProbe::Count(Privilege::User)), 0)
            }
            AccessProbe::Count(Privilege::Firmware) => {
                (after!(|_| AccessProbe::Count(Privilege::Firmware)), 0)
            }
            AccessProbe::Cached(by) => (after!(AccessProbe::Cached), by),
            AccessProbe::Line(by) => (after!(AccessProbe::Line), by),
            AccessProbe::LockedLine(by) => (after!(AccessProbe::LockedLine), by),
            AccessProbe::InterruptTable => (after!(|_| AccessProbe::InterruptTable), 0),
            AccessProbe::Call(site) => (after!(AccessProbe::Call), site),
            AccessProbe::Return => (after!(|_| AccessProbe::Return), 0),
            AccessProbe::LoadStack => (after!(|_| AccessProbe::LoadStack), 0),
        };
        // SAFETY: these callbacks take a number.
        unsafe { self.0.on_access(callback, ptr::without_provenance(number as usize)) }
    }
}

/// The first instruction of a segment begins.
unsafe extern "C" fn on_begin<A: Guest>(_: c_uint, segment: *mut c_void) {
    let segment: *const Segment = segment.cast();
    // SAFETY: a segment lives as long as QEMU.
    let segment = unsafe { &*segment };
    profiler::<A>().begins(PLUGIN.cpus.executing(), segment);
}
