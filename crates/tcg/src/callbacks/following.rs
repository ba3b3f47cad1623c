//! Callbacks from QEMU at which the call path changes, or counting continues on another path.

use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use flight::profile::MAX_CPUS;
use qemu_plugin::sys::qemu_plugin_meminfo_t as AccessInfo;

use super::{RUNNING, with};
use crate::cpu;
use crate::emulator::{Access, Instruction, Registers};
use crate::follower::Follower;
use crate::paths::{Path, Paths};
use crate::recent::Recent;

static FOLLOWER: Mutex<Option<Follower>> = Mutex::new(None);
static RECENT: Recent = Recent::new();
/// The current path of each CPU, readable without a lock.
static PATHS: [AtomicU32; MAX_CPUS as usize] =
    [const { AtomicU32::new(Path::START.0) }; MAX_CPUS as usize];

/// An event that changes the path or depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// A block of kernel instructions begins at this address.
    Block(u64),
    /// A function of the kernel's image begins at this address.
    Function(u64),
    /// A block of kernel instructions outside of its image begins at this address.
    Outside(u64),
    /// A call at this address.
    Call(u64),
    Return,
    /// A return from an interrupt.
    InterruptReturn,
    SystemCall,
    /// The stack pointer is loaded from memory.
    LoadStack,
    /// The stack pointer is loaded for another task.
    LeaveStack,
    /// The stack pointer is set from the register with this number.
    MoveStack(u8),
}

/// Starts to follow so many CPUs.
pub fn start(cpus: u16) {
    *lock() = Some(Follower::new(cpus));
}

/// Calls `look` with the paths, if they are followed.
pub fn with_paths(look: impl FnOnce(Option<&mut Paths>)) {
    look(lock().as_mut().map(|follower| &mut follower.paths));
}

/// Updates the calls of the executing CPU.
pub fn follow(act: impl FnOnce(usize, &mut Follower)) {
    let cpu = cpu::executing();
    if let Some(follower) = lock().as_mut() {
        act(cpu, follower);
        PATHS[cpu].store(follower.path(cpu).0, Relaxed);
    }
}

/// Follows calls at an instruction.
pub fn hook(instruction: &Instruction<'_>, hook: Hook) {
    use Registers::{Read, Unread};
    let none = ptr::null();
    let number = |number: u64| ptr::without_provenance(number as usize);
    // SAFETY: these callbacks take numbers for data, or none.
    unsafe {
        match hook {
            Hook::Block(address) => instruction.on_execution(on_block, Unread, number(address)),
            Hook::Function(address) => instruction.on_execution(on_function, Read, number(address)),
            Hook::Outside(address) => instruction.on_execution(on_outside, Read, number(address)),
            Hook::Call(site) => instruction.on_access(on_call, number(site)),
            Hook::Return => instruction.on_access(on_return, none),
            Hook::InterruptReturn => instruction.on_execution(on_interrupt_return, Read, none),
            Hook::SystemCall => instruction.on_execution(on_system_call, Unread, none),
            Hook::LoadStack => instruction.on_access(on_load_stack, none),
            Hook::LeaveStack => instruction.on_execution(on_leave_stack, Read, none),
            Hook::MoveStack(register) => {
                instruction.on_execution(on_move_stack, Read, number(register.into()));
            }
        }
    }
}

fn lock() -> MutexGuard<'static, Option<Follower>> {
    FOLLOWER.lock().unwrap_or_else(PoisonError::into_inner)
}

unsafe extern "C" fn on_block(_: c_uint, address: *mut c_void) {
    let (cpu, address) = (cpu::executing(), address.addr() as u64);
    let path = Path(PATHS[cpu].load(Relaxed));
    let look_up = || lock().as_mut().map(|follower| follower.paths.tally(path, address));
    if let Some(tally) = RECENT.tally(path, address, look_up) {
        RUNNING[cpu].set_tally(tally);
    }
}

unsafe extern "C" fn on_function(_: c_uint, function: *mut c_void) {
    let stack = || with(|profiler| profiler.stack_pointer());
    follow(|cpu, follower| follower.reached(cpu, function.addr() as u64, stack));
}

unsafe extern "C" fn on_outside(_: c_uint, address: *mut c_void) {
    let stack = || with(|profiler| profiler.stack_pointer());
    follow(|cpu, follower| follower.reached_outside(cpu, address.addr() as u64, stack));
}

/// A call pushes its return address.
unsafe extern "C" fn on_call(_: c_uint, info: AccessInfo, address: u64, site: *mut c_void) {
    // SAFETY: the access is used before this callback returns.
    let access = unsafe { Access::new(info, address) };
    if let Some(returns_to) = access.word().filter(|_| access.is_store()) {
        follow(|cpu, follower| follower.called(cpu, site.addr() as u64, address, returns_to));
    }
}

unsafe extern "C" fn on_return(_: c_uint, info: AccessInfo, address: u64, _: *mut c_void) {
    // SAFETY: the access is used before this callback returns.
    if let Some(returns_to) = unsafe { Access::new(info, address) }.word() {
        follow(|cpu, follower| follower.returned(cpu, address, returns_to));
    }
}

unsafe extern "C" fn on_interrupt_return(_: c_uint, _: *mut c_void) {
    if let Some(stack) = with(|profiler| profiler.stack_pointer()) {
        follow(|cpu, follower| follower.returned_from_interrupt(cpu, stack));
    }
}

unsafe extern "C" fn on_system_call(_: c_uint, _: *mut c_void) {
    follow(|cpu, follower| follower.entered(cpu));
}

unsafe extern "C" fn on_load_stack(_: c_uint, info: AccessInfo, address: u64, _: *mut c_void) {
    // SAFETY: the access is used before this callback returns.
    if let Some(stack) = unsafe { Access::new(info, address) }.word() {
        follow(|cpu, follower| follower.moved(cpu, stack));
    }
}

unsafe extern "C" fn on_leave_stack(_: c_uint, _: *mut c_void) {
    if let Some(stack) = with(|profiler| profiler.stack_pointer()) {
        follow(|cpu, follower| follower.leaves(cpu, stack));
    }
}

unsafe extern "C" fn on_move_stack(_: c_uint, register: *mut c_void) {
    if let Some(stack) = with(|profiler| profiler.general(register.addr())) {
        follow(|cpu, follower| follower.moved(cpu, stack));
    }
}
