//! Identifies the executing CPU. QEMU's interface gives callbacks a wrong number when one thread runs several CPUs
//! ([`super::emulator`]). So the plugin reads QEMU's exported variable `current_cpu` (`include/hw/core/cpu.h`), which
//! points to the CPU. The pointer of each CPU is recorded when the CPU is created. A turn is ended by QEMU's exported
//! function `cpu_exit`, which makes the CPU leave its loop before the next block, as for an interrupt.

#![expect(unsafe_code, reason = "access to a variable of QEMU")]

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

use flight::profile::MAX_CPUS;

/// The reason why the executing CPU is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpuError {
    /// This QEMU does not export the variable.
    #[error("this QEMU does not export `current_cpu`, which identifies the executing CPU")]
    NotExported,
    /// This QEMU does not export the function.
    #[error("this QEMU does not export `cpu_exit`, which ends a turn: use turn = \"qemu\"")]
    NoExit,
    /// Each CPU has its own thread, and therefore its own copy of the variable.
    #[error("each CPU has its own thread: use -accel tcg,thread=single")]
    Threads,
}

/// The variable and its values.
pub struct Cpus {
    /// The variable, as seen by the one thread that runs the CPUs.
    variable: AtomicPtr<*const c_void>,
    /// Its value for each CPU.
    values: [AtomicPtr<c_void>; MAX_CPUS as usize],
    /// Its last value.
    last: AtomicPtr<c_void>,
    /// The number of the CPU with that value.
    number: AtomicUsize,
    /// QEMU's `void cpu_exit(CPUState *)`; null until [`find_exit`](Self::find_exit) has found it.
    exit: AtomicPtr<c_void>,
}

impl Cpus {
    /// The state before a CPU was created.
    pub const fn new() -> Self {
        Self {
            variable: AtomicPtr::new(ptr::null_mut()),
            values: [const { AtomicPtr::new(ptr::null_mut()) }; MAX_CPUS as usize],
            last: AtomicPtr::new(ptr::null_mut()),
            number: AtomicUsize::new(0),
            exit: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Records the variable's value for the CPU `number`, which this thread is running. Fails when QEMU does not have
    /// the variable, or has a thread for each CPU.
    pub fn learn(&self, number: usize) -> Result<(), CpuError> {
        // SAFETY: the name ends with 0. For a thread-local variable, this is the calling thread's.
        let variable = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"current_cpu".as_ptr()) };
        let variable: *mut *const c_void = variable.cast();
        if variable.is_null() {
            return Err(CpuError::NotExported);
        }
        let before = self.variable.swap(variable, Relaxed);
        if !before.is_null() && before != variable {
            return Err(CpuError::Threads);
        }
        // SAFETY: QEMU's variable holds a pointer.
        let cpu = unsafe { variable.read() };
        if let Some(known) = self.values.get(number) {
            known.store(cpu.cast_mut(), Relaxed);
        }
        Ok(())
    }

    /// Finds the function that ends a turn. Fails when QEMU does not have it.
    pub fn find_exit(&self) -> Result<(), CpuError> {
        // SAFETY: the name ends with 0.
        let exit = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"cpu_exit".as_ptr()) };
        self.exit.store(exit, Relaxed);
        if exit.is_null() { Err(CpuError::NoExit) } else { Ok(()) }
    }

    /// Ends the turn of the executing CPU before its next block, if the function was found.
    #[cold]
    pub fn end_turn(&self) {
        let exit = self.exit.load(Relaxed);
        if exit.is_null() {
            return;
        }
        // SAFETY: QEMU's function has this type (`include/hw/core/cpu.h`). It gets the CPU that this thread executes, as
        // [`executing`](Self::executing) says.
        unsafe {
            let exit: unsafe extern "C" fn(*const c_void) = std::mem::transmute(exit);
            exit(self.variable.load(Relaxed).read());
        }
    }

    /// The number of the executing CPU.
    #[inline]
    pub fn executing(&self) -> usize {
        // SAFETY: QEMU calls back for instructions after all CPUs were made, so the variable was
        // found; it lives as long as the thread, which is the one that calls.
        let cpu = unsafe { self.variable.load(Relaxed).read() }.cast_mut();
        if self.last.load(Relaxed) == cpu { self.number.load(Relaxed) } else { self.another(cpu) }
    }

    #[cold]
    #[inline(never)]
    fn another(&self, cpu: *mut c_void) -> usize {
        let number = self.values.iter().position(|known| known.load(Relaxed) == cpu).unwrap_or(0);
        self.last.store(cpu, Relaxed);
        self.number.store(number, Relaxed);
        number
    }
}
