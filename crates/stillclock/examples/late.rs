//! A library for `LD_PRELOAD` behind `stillclock`, for a test. It makes happen what a busy host does rarely: QEMU's main
//! loop is late, and takes the big lock when all CPUs have halted, a moment before their thread waits. Each time it adds a
//! byte to the file that `LATE` names.

#![expect(unsafe_code, reason = "C functions that replace others, and functions of QEMU")]

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::fs::File;
use std::io::Write;
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use libc::{RTLD_DEFAULT, RTLD_NEXT, pthread_cond_t, pthread_mutex_t};

thread_local! {
    /// Whether this is the thread of the CPUs.
    static RUNS_CPUS: Cell<bool> = const { Cell::new(false) };
}

static BIG_LOCK: AtomicPtr<pthread_mutex_t> = AtomicPtr::new(null_mut());
/// Whether the main loop shall wake, and whether it has taken the big lock since.
static WAKE: AtomicBool = AtomicBool::new(false);
static LOCKED: AtomicBool = AtomicBool::new(false);

const NAP: Duration = Duration::from_micros(20);
/// The number of naps after which a main loop does not come.
const MOST: u32 = 2000;

fn function(from: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: the name ends with 0.
    let function = unsafe { libc::dlsym(from, name.as_ptr()) };
    assert!(!function.is_null(), "there is no {name:?}");
    function
}

/// Whether all CPUs are halted (`all_cpu_threads_idle` in `system/cpus.c`).
fn all_halted() -> bool {
    let ask = function(RTLD_DEFAULT, c"all_cpu_threads_idle");
    // SAFETY: QEMU's function takes nothing, returns a `bool`, and reads only.
    unsafe { transmute::<*mut c_void, unsafe extern "C" fn() -> bool>(ask)() }
}

/// Wakes the main loop when asked. Another thread than that of the CPUs does it, because QEMU ends the turn of a CPU from
/// whose thread its main loop is woken.
fn waker(mut record: File) {
    let wake = function(RTLD_DEFAULT, c"qemu_notify_event");
    loop {
        if WAKE.swap(false, SeqCst) {
            // SAFETY: QEMU's function takes and returns nothing, and any thread may call it.
            unsafe { transmute::<*mut c_void, unsafe extern "C" fn()>(wake)() };
            record.write_all(b".").expect("the record can be written");
        }
        thread::sleep(NAP);
    }
}

/// Replaces `pthread_cond_wait(3)`: notes which thread runs the CPUs.
///
/// # Safety
/// As `pthread_cond_wait`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_wait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
) -> c_int {
    type Wait = unsafe extern "C" fn(*mut pthread_cond_t, *mut pthread_mutex_t) -> c_int;
    // SAFETY: has no conditions.
    let is_main = unsafe { libc::gettid() == libc::getpid() };
    if !is_main && !RUNS_CPUS.replace(true) {
        BIG_LOCK.store(mutex, SeqCst);
        let path = std::env::var_os("LATE").expect("LATE names a file");
        let record = File::options().append(true).create(true).open(path);
        let record = record.expect("the record can be opened");
        thread::spawn(move || waker(record));
    }
    // SAFETY: the C library's function has this type, and the caller guarantees the rest.
    unsafe {
        transmute::<*mut c_void, Wait>(function(RTLD_NEXT, c"pthread_cond_wait"))(condition, mutex)
    }
}

/// Replaces `pthread_mutex_lock(3)`: lets the main loop go first when all CPUs are halted.
///
/// # Safety
/// As `pthread_mutex_lock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int {
    type Lock = unsafe extern "C" fn(*mut pthread_mutex_t) -> c_int;
    let is_big = mutex == BIG_LOCK.load(SeqCst);
    if is_big && RUNS_CPUS.get() && all_halted() {
        LOCKED.store(false, SeqCst);
        WAKE.store(true, SeqCst);
        (0..MOST).take_while(|_| !LOCKED.load(SeqCst)).for_each(|_| thread::sleep(NAP));
    }
    // SAFETY: the C library's function has this type, and the caller guarantees the rest.
    let result = unsafe {
        transmute::<*mut c_void, Lock>(function(RTLD_NEXT, c"pthread_mutex_lock"))(mutex)
    };
    // SAFETY: has no conditions.
    if is_big && unsafe { libc::gettid() == libc::getpid() } {
        LOCKED.store(true, SeqCst);
    }
    result
}
