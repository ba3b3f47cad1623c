//! Callbacks from QEMU while the machine runs. Counting takes no lock; everything else is passed to the
//! profiler. Callbacks that follow the kernel's calls are in `following`.

#![expect(unsafe_code, reason = "QEMU's interface is one of C")]

pub mod following;

use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use flight::profile::{MAX_CPUS, Privilege};
use qemu_plugin::PluginId;
use qemu_plugin::sys::{qemu_plugin_meminfo_t as AccessInfo, qemu_plugin_tb};

use crate::accesses::AccessCounts;
use crate::counters::Counter;
use crate::cpu;
use crate::emulator::{Access, Block, Instruction, Registers};
use crate::profiler::Profiler;
use crate::running::Running;

static PROFILER: Mutex<Option<Profiler>> = Mutex::new(None);
/// The instruction that each CPU executes.
static RUNNING: [Running; MAX_CPUS as usize] = [const { Running::new() }; MAX_CPUS as usize];
static ACCESSES: OnceLock<Arc<AccessCounts>> = OnceLock::new();

/// Actions at an instruction besides counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// Cut the profile.
    Mark,
    /// Record a tick of the sampler.
    Tick,
    /// Record the address of an interrupt table.
    TableLoad,
    /// Handle the begin of this interrupt's handler.
    Interrupt(u8),
    /// Handle the kernel's task switch.
    Switch,
}

pub fn start(profiler: Profiler) {
    if let Some(counts) = profiler.accesses() {
        ACCESSES.get_or_init(|| counts);
    }
    if let Some(cpus) = profiler.followed() {
        following::start(cpus);
    }
    *PROFILER.lock().unwrap_or_else(PoisonError::into_inner) = Some(profiler);
}

/// The machine ended.
pub fn end() {
    RUNNING.iter().for_each(Running::finish);
    following::with_paths(|paths| with(|profiler| profiler.end(paths)));
}

/// Counts the executions of an instruction of `privilege`.
pub fn count(instruction: &Instruction<'_>, privilege: Privilege, counter: Counter) {
    let kernel = privilege == Privilege::Kernel;
    let callback = if kernel { on_execution::<true> } else { on_execution::<false> };
    // SAFETY: counters live as long as QEMU.
    unsafe { instruction.on_execution(callback, Registers::Unread, counter.cells().cast()) }
}

/// Counts the executions of a store of `privilege`. The counter must not be shared with other instructions.
pub fn count_store(instruction: &Instruction<'_>, privilege: Privilege, counter: Counter) {
    let kernel = privilege == Privilege::Kernel;
    let callback = if kernel { on_store::<true> } else { on_store::<false> };
    // SAFETY: as in `count`.
    unsafe { instruction.on_execution(callback, Registers::Unread, counter.cells().cast()) }
}

/// Counts the loads and stores of an instruction of `privilege`.
pub fn count_accesses(instruction: &Instruction<'_>, privilege: Privilege) {
    let privilege = ptr::without_provenance(privilege as usize);
    // SAFETY: the data is a number.
    unsafe { instruction.on_access(on_access, privilege) }
}

/// Notifies the profiler when an instruction is executed.
pub fn hook(instruction: &Instruction<'_>, hook: Hook) {
    use Registers::{Read, Unread};
    let none = ptr::null();
    // SAFETY: these callbacks take no data, or a number.
    unsafe {
        match hook {
            Hook::Mark => instruction.on_execution(on_mark, Unread, none),
            Hook::Tick => instruction.on_execution(on_tick, Read, none),
            Hook::TableLoad => instruction.on_access(on_table_load, none),
            Hook::Interrupt(vector) => {
                let vector = ptr::without_provenance(vector.into());
                instruction.on_execution(on_interrupt, Read, vector);
            }
            Hook::Switch => instruction.on_execution(on_switch, Read, none),
        }
    }
}

fn with<T: Default>(act: impl FnOnce(&mut Profiler) -> T) -> T {
    let mut profiler = PROFILER.lock().unwrap_or_else(PoisonError::into_inner);
    profiler.as_mut().map(act).unwrap_or_default()
}

/// A CPU was created. This thread runs it.
pub unsafe extern "C" fn on_cpu_made(_: PluginId, number: c_uint) {
    if let Err(error) = cpu::learn(number as usize) {
        eprintln!("faultline's plugin: {error}");
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

/// The cell of the executing CPU.
///
/// # Safety
/// They must be the cells of a counter, which has one for each CPU and lives as long as QEMU.
unsafe fn cell(cells: *mut c_void, cpu: usize) -> &'static AtomicU64 {
    let cells: *mut AtomicU64 = cells.cast();
    // SAFETY: as above.
    unsafe { &*cells.add(cpu) }
}

unsafe extern "C" fn on_execution<const KERNEL: bool>(_: c_uint, cells: *mut c_void) {
    let cpu = cpu::executing();
    // SAFETY: `count` gives cells.
    RUNNING[cpu].begin(unsafe { cell(cells, cpu) }, KERNEL);
}

/// A store may modify its own block. QEMU then abandons the block at the store, translates the store again
/// into its own block, and executes it there. It therefore begins twice in a row, which otherwise only jumps
/// and repeated instructions do.
unsafe extern "C" fn on_store<const KERNEL: bool>(_: c_uint, cells: *mut c_void) {
    let cpu = cpu::executing();
    // SAFETY: `count_store` gives cells.
    RUNNING[cpu].begin_again(unsafe { cell(cells, cpu) }, KERNEL);
}

unsafe extern "C" fn on_access(_: c_uint, info: AccessInfo, address: u64, privilege: *mut c_void) {
    // SAFETY: the access is used before this callback returns.
    let access = unsafe { Access::new(info, address) };
    if let (Some(counts), Some(privilege)) = (ACCESSES.get(), Privilege::ALL.get(privilege.addr()))
    {
        counts.count(cpu::executing(), *privilege, access.physical(), access.is_store());
    }
}

unsafe extern "C" fn on_mark(_: c_uint, _: *mut c_void) {
    let cpu = cpu::executing();
    RUNNING[cpu].finish();
    following::with_paths(|paths| with(|profiler| profiler.mark(cpu, paths)));
}

unsafe extern "C" fn on_tick(_: c_uint, _: *mut c_void) {
    with(|profiler| profiler.tick(cpu::executing()));
}

unsafe extern "C" fn on_interrupt(_: c_uint, vector: *mut c_void) {
    let cpu = cpu::executing();
    let what = with(|profiler| profiler.interrupted(cpu, vector.addr() as u8, &RUNNING[cpu]));
    let Some(what) = what else { return };
    following::follow(|cpu, follower| follower.interrupted(cpu, &what));
}

unsafe extern "C" fn on_switch(_: c_uint, _: *mut c_void) {
    with(|profiler| profiler.switch(cpu::executing()));
}

/// The operand consists of the table's limit, 2 bytes, and its address.
unsafe extern "C" fn on_table_load(_: c_uint, info: AccessInfo, address: u64, _: *mut c_void) {
    // SAFETY: the access is used before this callback returns.
    if let Some(table) = unsafe { Access::new(info, address) }.word() {
        with(|profiler| profiler.table_loaded(table));
    }
}
