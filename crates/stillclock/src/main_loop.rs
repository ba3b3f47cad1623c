//! Makes QEMU's main loop wait for the thread that runs the CPUs.
//!
//! With `-icount`, one thread runs all CPUs, and the main thread moves guest time on to the next timer when all CPUs are
//! halted (`icount_start_warp_timer` in `accel/tcg/icount-common.c`). The CPUs' thread wakes it then, and waits on a
//! condition. But it also wakes it at each timer, while CPUs run (`icount_notify_aio_contexts`). A main loop that the host
//! runs late can find all CPUs halted a moment before their thread waits. If it moves the time on then, QEMU's timer
//! that ends turns (`rr_kick_vcpu_timer` in `accel/tcg/tcg-accel-ops-rr.c`) runs on instead of starting again, and CPUs
//! change turns at other instructions than in the next boot.
//!
//! With this library the main thread keeps QEMU's big lock only while the CPUs' thread waits, or when QEMU is about to
//! end. QEMU exports the function that says so if it was built with modules, as distributions build it. Without that
//! function the main loop does not wait.

use std::ffi::{CStr, c_int, c_void};
use std::mem::{MaybeUninit, transmute};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use libc::{RTLD_DEFAULT, RTLD_NEXT, pthread_cond_t, pthread_mutex_t};

/// The signals that end QEMU. Its main loop reads them from a descriptor (`signalfd(2)`), so they stay pending until then.
const ENDING: [c_int; 3] = [libc::SIGINT, libc::SIGHUP, libc::SIGTERM];
/// The time between two looks whether QEMU is about to end, while the CPUs run.
const PERIOD: Duration = Duration::from_millis(20);

/// The main thread.
static MAIN: AtomicU64 = AtomicU64::new(0);
/// QEMU's big lock, once the CPUs' thread has waited with it.
static BIG_LOCK: AtomicPtr<pthread_mutex_t> = AtomicPtr::new(null_mut());
/// Whether QEMU was about to end.
static ENDS: AtomicBool = AtomicBool::new(false);
static CPUS: Cpus = Cpus { wait: Mutex::new(false), changed: Condvar::new() };

/// Whether the thread of the CPUs waits.
struct Cpus {
    wait: Mutex<bool>,
    changed: Condvar,
}

impl Cpus {
    fn set(&self, wait: bool) {
        *self.wait.lock().unwrap_or_else(PoisonError::into_inner) = wait;
        self.changed.notify_one();
    }

    fn wait(&self) -> bool {
        *self.wait.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when they wait, or after `time`.
    fn await_them(&self, time: Duration) {
        let wait = self.wait.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_timeout_while(wait, time, |wait| !*wait));
    }
}

/// Notes the main thread, which is the one that loads this library.
#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = {
    extern "C" fn loaded() {
        MAIN.store(this_thread(), Ordering::Relaxed);
    }
    loaded
};

fn this_thread() -> u64 {
    // SAFETY: has no conditions.
    unsafe { libc::pthread_self() }
}

fn is_main() -> bool {
    this_thread() == MAIN.load(Ordering::Relaxed)
}

/// The function of this name, which is kept in `known` once it is found; null if there is none. `place` is where it is
/// looked for (`dlsym(3)`).
fn function(place: *mut c_void, name: &CStr, known: &AtomicPtr<c_void>) -> *mut c_void {
    let mut function = known.load(Ordering::Relaxed);
    if function.is_null() {
        // SAFETY: the name ends with 0.
        function = unsafe { libc::dlsym(place, name.as_ptr()) };
        known.store(function, Ordering::Relaxed);
    }
    function
}

/// The function of this name in the libraries after this one.
fn next(name: &CStr, known: &AtomicPtr<c_void>) -> *mut c_void {
    let function = function(RTLD_NEXT, name, known);
    assert!(!function.is_null(), "the C library has no {name:?}");
    function
}

type OnMutex = unsafe extern "C" fn(*mut pthread_mutex_t) -> c_int;
type Wait = unsafe extern "C" fn(*mut pthread_cond_t, *mut pthread_mutex_t) -> c_int;

/// Replaces `pthread_cond_wait(3)`: also notes that the CPUs' thread waits. Of QEMU's threads only that one and the main
/// thread call it.
///
/// # Safety
/// As `pthread_cond_wait`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_wait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
) -> c_int {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    // SAFETY: the C library's function has this type.
    let real: Wait = unsafe { transmute(next(c"pthread_cond_wait", &REAL)) };
    let is_main = is_main();
    if !is_main {
        BIG_LOCK.store(mutex, Ordering::Release);
        CPUS.set(true);
    }
    // SAFETY: guaranteed by the caller.
    let result = unsafe { real(condition, mutex) };
    if !is_main {
        // The mutex is locked again, so the main thread has no part in what the CPUs do from here.
        CPUS.set(false);
    }
    result
}

/// Replaces `pthread_mutex_lock(3)`: the main thread gets the big lock only while the CPUs wait, or when QEMU ends.
///
/// # Safety
/// As `pthread_mutex_lock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int {
    static LOCK: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    static UNLOCK: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    // SAFETY: the C library's function has this type.
    let lock: OnMutex = unsafe { transmute(next(c"pthread_mutex_lock", &LOCK)) };
    loop {
        // SAFETY: guaranteed by the caller.
        let result = unsafe { lock(mutex) };
        let is_held = is_main() && mutex == BIG_LOCK.load(Ordering::Acquire);
        // The state is read with the lock, so the CPUs have not run when the caller goes on.
        if !is_held || CPUS.wait() || ends() {
            return result;
        }
        // SAFETY: the C library's function has this type, and this thread has just locked the mutex.
        unsafe {
            let unlock: OnMutex = transmute(next(c"pthread_mutex_unlock", &UNLOCK));
            unlock(mutex);
        }
        CPUS.await_them(PERIOD);
    }
}

/// Whether QEMU is about to end, because the guest or a signal asked for it. A guest that has switched its machine off may
/// run on until the main loop stops it.
fn ends() -> bool {
    if !ENDS.load(Ordering::Relaxed) && (is_shut_down() || ENDING.into_iter().any(is_pending)) {
        ENDS.store(true, Ordering::Relaxed);
    }
    ENDS.load(Ordering::Relaxed)
}

/// Whether the guest, or a user of QMP, has asked for the machine's end (`system/runstate.c`); true if QEMU does not tell.
fn is_shut_down() -> bool {
    static ASK: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    let ask = function(RTLD_DEFAULT, c"qemu_shutdown_requested_get", &ASK);
    if ask.is_null() {
        return true;
    }
    // SAFETY: QEMU's function takes nothing and returns an enum, `ShutdownCause`, whose 0 means that nobody asked.
    unsafe { transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(ask)() != 0 }
}

fn is_pending(signal: c_int) -> bool {
    let mut pending = MaybeUninit::uninit();
    // SAFETY: the set is written before it is read.
    unsafe {
        libc::sigpending(pending.as_mut_ptr()) == 0
            && libc::sigismember(pending.as_ptr(), signal) == 1
    }
}

#[cfg(test)]
mod tests;
