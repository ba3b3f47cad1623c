//! A library for `LD_PRELOAD` (`ld.so(8)`) that hides the host's time from QEMU, where QEMU lets a guest depend on it.
//!
//! [`gettimeofday`]: QEMU shrinks the emulated CPUs' TLBs if they were too large for 100 ms of the wall clock
//! (`tlb_mmu_resize_locked` in `accel/tcg/cputlb.c`). An entry in a TLB saves a page walk, which would set the accessed bit
//! in the page tables, so the host's load would influence the guest. With this library that time never passes, and a
//! TLB's size depends only on the guest. (With a clock that jumped at random, two boots differed after 5 seconds of guest
//! time.) Nothing else in our machines depends on this clock. QEMU and its GLib use it for `-rtc clock=host`, the dates of
//! QMP's events and of messages, migration, sound, VNC, and IPMI. Waits and timers use `clock_gettime(CLOCK_MONOTONIC)`,
//! which is unchanged. Guest time counts instructions.
//!
//! [`main_loop`]: QEMU's main loop moves guest time on only while the thread of the CPUs waits.

#![expect(unsafe_code, reason = "C functions that replace others")]

mod main_loop;

use std::ffi::{c_int, c_void};

use libc::{time_t, timeval};

/// The constant time: the guest's clock at its start, 2020-01-01 00:00 UTC.
const NOW: time_t = 1_577_836_800;

/// Replaces `gettimeofday(2)`: returns the same time at every call, and never fails.
///
/// # Safety
/// `time` must be null or writable. The zone is obsolete and not written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(time: *mut timeval, _zone: *mut c_void) -> c_int {
    if !time.is_null() {
        // SAFETY: guaranteed by the caller.
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
        // SAFETY: the address is writable.
        let answer = unsafe { gettimeofday(&raw mut time, std::ptr::null_mut()) };
        assert_eq!((answer, time.tv_sec, time.tv_usec), (0, NOW, 0));
        // SAFETY: null is allowed.
        assert_eq!(unsafe { gettimeofday(std::ptr::null_mut(), std::ptr::null_mut()) }, 0);
    }
}
