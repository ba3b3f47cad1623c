//! Identifies the executing CPU. QEMU's interface gives callbacks a wrong one when one thread runs several
//! CPUs ([`crate::emulator`]). Therefore the plugin reads QEMU's own exported variable `current_cpu`
//! (`include/hw/core/cpu.h`), which points to the CPU. The pointer of each CPU is recorded when the CPUs are
//! created.

#![expect(unsafe_code, reason = "access to a variable of QEMU")]

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

use flight::profile::MAX_CPUS;

/// Why the executing CPU is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpuError {
    /// This QEMU was built differently.
    #[error("this QEMU does not export `current_cpu`, which identifies the executing CPU")]
    NotExported,
    /// Each CPU has its own thread, and therefore its own copy of the variable.
    #[error("each CPU has its own thread: use -accel tcg,thread=single")]
    Threads,
}

/// The variable, as seen by the one thread that runs the CPUs.
static VARIABLE: AtomicPtr<*const c_void> = AtomicPtr::new(ptr::null_mut());
/// The variable's value for each CPU.
static CPUS: [AtomicPtr<c_void>; MAX_CPUS as usize] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MAX_CPUS as usize];
/// Its last value, and the number of that CPU.
static LAST: (AtomicPtr<c_void>, AtomicUsize) =
    (AtomicPtr::new(ptr::null_mut()), AtomicUsize::new(0));

/// Records the variable's value for the CPU `number`, which this thread runs now. Fails when QEMU does not
/// have the variable, or has a thread for each CPU.
pub fn learn(number: usize) -> Result<(), CpuError> {
    // SAFETY: the name ends with 0. For a thread-local variable, this is the calling thread's.
    let variable = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"current_cpu".as_ptr()) };
    let variable: *mut *const c_void = variable.cast();
    if variable.is_null() {
        return Err(CpuError::NotExported);
    }
    let before = VARIABLE.swap(variable, Relaxed);
    if !before.is_null() && before != variable {
        return Err(CpuError::Threads);
    }
    // SAFETY: QEMU's variable holds a pointer.
    let cpu = unsafe { variable.read() };
    if let Some(known) = CPUS.get(number) {
        known.store(cpu.cast_mut(), Relaxed);
    }
    Ok(())
}

/// The number of the executing CPU.
#[inline]
pub fn executing() -> usize {
    // SAFETY: QEMU calls back for instructions after all CPUs were made, so the variable was
    // found; it lives as long as the thread, which is the one that calls.
    let cpu = unsafe { VARIABLE.load(Relaxed).read() }.cast_mut();
    if LAST.0.load(Relaxed) == cpu { LAST.1.load(Relaxed) } else { another(cpu) }
}

#[cold]
#[inline(never)]
fn another(cpu: *mut c_void) -> usize {
    let number = CPUS.iter().position(|known| known.load(Relaxed) == cpu).unwrap_or(0);
    LAST.0.store(cpu, Relaxed);
    LAST.1.store(number, Relaxed);
    number
}
