//! A library that, loaded into QEMU by `LD_PRELOAD` (`ld.so(8)`), makes the host's wall clock stand
//! still.
//!
//! QEMU lets the emulated CPUs' TLBs shrink when they were too large for 100 ms by `gettimeofday`
//! (`tlb_mmu_resize_locked` in `accel/tcg/cputlb.c`). What is in a TLB is not looked up in page
//! tables, and so not marked there as accessed: the guest of a busy host would live in another
//! world than that of an idle one. Here no such time passes, and a TLB's size depends on what the
//! guest did alone. (With a clock that jumps at random in its place, two boots differed after 5
//! seconds of guest time.)
//!
//! Nothing else that a machine of ours uses depends on this clock: QEMU and its GLib have it for
//! `-rtc clock=host`, the dates of QMP's events and of messages, migration, sound, VNC, and IPMI. Waits
//! and timers go by `clock_gettime(CLOCK_MONOTONIC)`, which is left alone, and guest time by
//! instructions.

#![expect(unsafe_code, reason = "a function of C takes the place of another")]

use std::ffi::{c_int, c_void};

use libc::{time_t, timeval};

/// The second that it always is: that of the guest's clock at its start, 2020-01-01 00:00 UTC.
const NOW: time_t = 1_577_836_800;

/// In place of `gettimeofday(2)`: gives the same time at every call, and never fails.
///
/// # Safety
/// `time` must be null or good to be written to. The zone is obsolete and left as it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(time: *mut timeval, _zone: *mut c_void) -> c_int {
    if !time.is_null() {
        // SAFETY: the caller promises it.
        unsafe { time.write(timeval { tv_sec: NOW, tv_usec: 0 }) };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_pass() {
        let mut time = timeval { tv_sec: 0, tv_usec: 1 };
        // SAFETY: the address is good to be written to.
        let answer = unsafe { gettimeofday(&raw mut time, std::ptr::null_mut()) };
        assert_eq!((answer, time.tv_sec, time.tv_usec), (0, NOW, 0));
        // SAFETY: null is allowed.
        assert_eq!(unsafe { gettimeofday(std::ptr::null_mut(), std::ptr::null_mut()) }, 0);
    }
}
