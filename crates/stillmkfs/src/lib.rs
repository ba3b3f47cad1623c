//! A library for `LD_PRELOAD` (`ld.so(8)`) that makes mkfs programs deterministic. It hides everything that
//! differs between runs: the time, random numbers, the process's and its parent's IDs, the user, and the
//! owners and times of files that are copied. The same program with the same arguments then makes the same
//! bytes, including identifiers, dates, hash seeds, and checksums.
//!
//! mkfs.ext4 has options and variables for all of this, mkfs.xfs only in newer versions, and mkfs.btrfs has
//! none. They make identifiers with `libuuid`, which mixes all of it into them (`gen_uuid.c` and
//! `randutils.c` of util-linux).
//!
//! `STILLMKFS_SEED`, a number, selects other bytes, because two disks of a machine must not have the same
//! identifier. Only one thread may draw random numbers; these programs have only one.

#![expect(unsafe_code, reason = "C functions that replace others")]

mod files;

use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use libc::{clockid_t, pid_t, size_t, ssize_t, time_t, timespec, timeval, uid_t};

/// The constant time: 2020-01-01 00:00 UTC.
const NOW: time_t = 1_577_836_800;
/// The constant process ID, also of the parent.
const PROCESS: pid_t = 1000;

/// The state of the random numbers; 0 before the first one.
static STATE: AtomicU64 = AtomicU64::new(0);

/// Replaces `time(2)`.
///
/// # Safety
/// `time` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn time(time: *mut time_t) -> time_t {
    if !time.is_null() {
        // SAFETY: guaranteed by the caller.
        unsafe { time.write(NOW) };
    }
    NOW
}

/// Replaces `gettimeofday(2)`. The zone is obsolete and not written.
///
/// # Safety
/// `time` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(time: *mut timeval, _zone: *mut c_void) -> c_int {
    if !time.is_null() {
        // SAFETY: guaranteed by the caller.
        unsafe { time.write(timeval { tv_sec: NOW, tv_usec: 0 }) };
    }
    0
}

/// Replaces `clock_gettime(2)`. Clocks for waiting are unchanged.
///
/// # Safety
/// `time` must be writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    if matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE) {
        // SAFETY: guaranteed by the caller.
        unsafe { time.write(timespec { tv_sec: NOW, tv_nsec: 0 }) };
        return 0;
    }
    // SAFETY: the same call with the same arguments.
    unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) as c_int }
}

/// Replaces `getpid(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn getpid() -> pid_t {
    PROCESS
}

/// Replaces `getppid(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn getppid() -> pid_t {
    PROCESS
}

/// Replaces `getuid(2)`: root, who owns a new file system.
#[unsafe(no_mangle)]
pub extern "C" fn getuid() -> uid_t {
    0
}

/// Replaces `getrandom(2)`.
///
/// # Safety
/// `buffer` must be writable for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(buffer: *mut c_void, length: size_t, _flags: c_uint) -> ssize_t {
    for place in 0..length {
        // SAFETY: guaranteed by the caller.
        unsafe { buffer.cast::<u8>().add(place).write(random_byte()) };
    }
    length.cast_signed()
}

/// Replaces `getentropy(3)`.
///
/// # Safety
/// `buffer` must be writable for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getentropy(buffer: *mut c_void, length: size_t) -> c_int {
    // SAFETY: the caller guarantees the same.
    unsafe { getrandom(buffer, length, 0) };
    0
}

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014), one byte of each
/// number.
fn random_byte() -> u8 {
    let state = match STATE.load(Ordering::Relaxed) {
        0 => seed(),
        state => state,
    };
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    STATE.store(state, Ordering::Relaxed);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed >> 56) as u8
}

fn seed() -> u64 {
    let seed = std::env::var("STILLMKFS_SEED").ok();
    seed.and_then(|seed| seed.parse().ok()).unwrap_or(0)
}
