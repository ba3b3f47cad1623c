//! The thread of a test is no main thread, and this program is no QEMU.

use std::thread;

use super::*;

#[test]
fn the_main_loop_goes_on_when_the_cpus_wait() {
    static CPUS: Cpus = Cpus { wait: Mutex::new(false), changed: Condvar::new() };
    CPUS.await_them(Duration::ZERO);
    assert!(!CPUS.wait());
    let main_loop = thread::spawn(|| CPUS.await_them(Duration::MAX));
    CPUS.set(true);
    main_loop.join().unwrap();
    assert!(CPUS.wait());
}

#[test]
fn a_thread_that_waits_gives_the_lock_back_and_takes_it_again() {
    struct Shared(pthread_mutex_t, pthread_cond_t);
    let mut shared = Shared(libc::PTHREAD_MUTEX_INITIALIZER, libc::PTHREAD_COND_INITIALIZER);
    let (mutex, condition) = (&raw mut shared.0, &raw mut shared.1);
    // SAFETY: both live as long as this function, in which the other thread ends.
    unsafe {
        assert_eq!(pthread_mutex_lock(mutex), 0);
        let (address, signal) = (mutex as usize, condition as usize);
        let other = thread::spawn(move || {
            let (mutex, condition) = (address as *mut _, signal as *mut _);
            assert_eq!(pthread_mutex_lock(mutex), 0);
            assert!(CPUS.wait());
            assert_eq!(libc::pthread_cond_signal(condition), 0);
            assert_eq!(libc::pthread_mutex_unlock(mutex), 0);
        });
        assert_eq!(pthread_cond_wait(condition, mutex), 0);
        assert!(!CPUS.wait());
        assert_eq!(BIG_LOCK.load(Ordering::Relaxed), mutex);
        assert_eq!(libc::pthread_mutex_unlock(mutex), 0);
        other.join().unwrap();
    }
}

#[test]
fn a_program_that_is_no_qemu_counts_as_ending() {
    assert!(!ENDING.into_iter().any(is_pending));
    assert!(is_shut_down());
    assert!(ends());
}
