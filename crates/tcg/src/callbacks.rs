//! What QEMU calls while the machine runs. Counting takes no lock; all else is handed on to the
//! profiler.

#![expect(unsafe_code, reason = "QEMU's interface is one of C")]

use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use flight::profile::{MAX_CPUS, Privilege};
use qemu_plugin::PluginId;
use qemu_plugin::sys::{qemu_plugin_meminfo_t, qemu_plugin_tb};

use crate::accesses::AccessCounts;
use crate::counters::{Counter, add};
use crate::cpu;
use crate::emulator::{Access, Block, Instruction, Registers};
use crate::profiler::Profiler;

static PROFILER: Mutex<Option<Profiler>> = Mutex::new(None);
static ACCESSES: OnceLock<Arc<AccessCounts>> = OnceLock::new();
/// The counter of the instruction that each CPU began last.
static BEGUN: [AtomicPtr<AtomicU64>; MAX_CPUS as usize] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MAX_CPUS as usize];

/// What happens at an instruction, beside its being counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// The profile is cut.
    Marker,
    /// An interrupt table is loaded.
    TableLoad,
    /// The handler of page faults begins.
    PageFault,
    /// The kernel changes tasks.
    Switch,
}

/// Sets the profiler to work.
pub fn start(profiler: Profiler) {
    if let Some(counts) = profiler.accesses() {
        ACCESSES.get_or_init(|| counts);
    }
    *PROFILER.lock().unwrap_or_else(PoisonError::into_inner) = Some(profiler);
}

/// The machine ended.
pub fn end() {
    with(Profiler::end);
}

/// Counts the executions of an instruction.
pub fn count(instruction: &Instruction<'_>, counter: Counter) {
    // SAFETY: counters live as long as QEMU.
    unsafe { instruction.on_execution(on_execution, Registers::Unread, counter.cells().cast()) }
}

/// Counts the executions of a store, whose counter is its own.
pub fn count_store(instruction: &Instruction<'_>, counter: Counter) {
    // SAFETY: as in `count`.
    unsafe { instruction.on_execution(on_store, Registers::Unread, counter.cells().cast()) }
}

/// Counts the loads and stores of an instruction of `privilege`.
pub fn count_accesses(instruction: &Instruction<'_>, privilege: Privilege) {
    let privilege = ptr::without_provenance(privilege as usize);
    // SAFETY: the data is a number.
    unsafe { instruction.on_access(on_access, privilege) }
}

/// Has the profiler told when an instruction is executed.
pub fn hook(instruction: &Instruction<'_>, hook: Hook) {
    let none = ptr::null();
    // SAFETY: these callbacks take no data.
    unsafe {
        match hook {
            Hook::Marker => instruction.on_execution(on_marker, Registers::Read, none),
            Hook::TableLoad => instruction.on_access(on_table_load, none),
            Hook::PageFault => instruction.on_execution(on_page_fault, Registers::Read, none),
            Hook::Switch => instruction.on_execution(on_switch, Registers::Read, none),
        }
    }
}

fn with(act: impl FnOnce(&mut Profiler)) {
    let mut profiler = PROFILER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(profiler) = profiler.as_mut() {
        act(profiler);
    }
}

/// A CPU was made, and is run by this thread.
pub unsafe extern "C" fn on_cpu_made(_: PluginId, number: c_uint) {
    if let Err(error) = cpu::learn(number as usize) {
        eprintln!("the profile's plugin: {error}");
        std::process::exit(1);
    }
    with(Profiler::cpu_made);
}

/// A block is being translated.
pub unsafe extern "C" fn on_translation(_: PluginId, block: *mut qemu_plugin_tb) {
    // SAFETY: the block is used before this callback returns.
    let block = unsafe { Block::new(block) };
    with(|profiler| profiler.translate(&block));
}

unsafe extern "C" fn on_execution(_: c_uint, cells: *mut c_void) {
    let cells: *mut AtomicU64 = cells.cast();
    let cpu = cpu::executing();
    BEGUN[cpu].store(cells, Relaxed);
    // SAFETY: these are the cells of a counter, which has one for each CPU.
    add(unsafe { &*cells.add(cpu) }, 1);
}

/// A store may change the block that it is in. QEMU gives such a block up when it comes to the
/// store, translates the store anew in a block of its own, and executes it there: it begins twice
/// in a row, which no other instruction does but jumps and repeated ones.
unsafe extern "C" fn on_store(_: c_uint, cells: *mut c_void) {
    let cells: *mut AtomicU64 = cells.cast();
    let cpu = cpu::executing();
    if BEGUN[cpu].swap(cells, Relaxed) != cells {
        // SAFETY: as in `on_execution`.
        add(unsafe { &*cells.add(cpu) }, 1);
    }
}

unsafe extern "C" fn on_access(
    _: c_uint,
    info: qemu_plugin_meminfo_t,
    address: u64,
    privilege: *mut c_void,
) {
    // SAFETY: the access is used before this callback returns.
    let access = unsafe { Access::new(info, address) };
    if let (Some(counts), Some(privilege)) = (ACCESSES.get(), Privilege::ALL.get(privilege.addr()))
    {
        counts.count(cpu::executing(), *privilege, access.physical(), access.is_store());
    }
}

unsafe extern "C" fn on_marker(_: c_uint, _: *mut c_void) {
    with(Profiler::cut);
}

unsafe extern "C" fn on_page_fault(_: c_uint, _: *mut c_void) {
    with(|profiler| profiler.page_fault(cpu::executing()));
}

unsafe extern "C" fn on_switch(_: c_uint, _: *mut c_void) {
    with(|profiler| profiler.switch(cpu::executing()));
}

/// What makes up a table is loaded in two parts: its limit, of 2 bytes, and its address.
unsafe extern "C" fn on_table_load(
    _: c_uint,
    info: qemu_plugin_meminfo_t,
    address: u64,
    _: *mut c_void,
) {
    // SAFETY: the access is used before this callback returns.
    if let Some(table) = unsafe { Access::new(info, address) }.word() {
        with(|profiler| profiler.table_loaded(table));
    }
}
