//! Tracks the instruction that a CPU executes. The instruction is counted when the CPU begins the next one, because
//! an instruction with a page fault is begun but not executed, and is dropped. So a count is never undone, and totals
//! by function, process and call path agree.
//!
//! It is written at every instruction, so there is no lock. Only the thread that runs the CPU writes.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

use crate::counters::add;
use crate::paths::Tally;

/// The instruction of one CPU.
#[repr(align(64))]
pub struct Running {
    /// The counter of the last begun instruction; null if there is none to count.
    begun: AtomicPtr<AtomicU64>,
    /// Its tally by path, if it has one.
    tallied: AtomicPtr<AtomicU64>,
    /// The tally of the next kernel instructions, if paths are followed.
    tally: AtomicPtr<AtomicU64>,
}

impl Running {
    /// The state before the first instruction.
    pub const fn new() -> Self {
        let [begun, tallied, tally] = [const { AtomicPtr::new(ptr::null_mut()) }; 3];
        Self { begun, tallied, tally }
    }

    /// Begins an instruction that is counted in this cell, and by path if it belongs to the kernel. Counts the
    /// previous one, which was executed.
    #[inline]
    pub fn begin(&self, counter: &'static AtomicU64, kernel: bool) {
        count(&self.begun);
        count(&self.tallied);
        self.begun.store(ptr::from_ref(counter).cast_mut(), Relaxed);
        let tally = if kernel { self.tally.load(Relaxed) } else { ptr::null_mut() };
        self.tallied.store(tally, Relaxed);
    }

    /// Begins an instruction that never follows itself and whose counter is not shared. If it was also the last one
    /// to begin, that begin was not an execution.
    #[inline]
    pub fn begin_again(&self, counter: &'static AtomicU64, kernel: bool) {
        if !ptr::eq(self.begun.load(Relaxed), counter) {
            self.begin(counter, kernel);
        }
    }

    /// Counts the last begun instruction, which was executed.
    pub fn finish(&self) {
        count(&self.begun);
        count(&self.tallied);
        self.forget_any();
    }

    /// Drops the last begun instruction, which was not executed, if this is its counter.
    pub fn forget(&self, counter: &'static AtomicU64) {
        if ptr::eq(self.begun.load(Relaxed), counter) {
            self.forget_any();
        }
    }

    fn forget_any(&self) {
        self.begun.store(ptr::null_mut(), Relaxed);
        self.tallied.store(ptr::null_mut(), Relaxed);
    }

    /// Sets the tally of the next kernel instructions.
    #[inline]
    pub fn set_tally(&self, tally: Tally) {
        self.tally.store(ptr::from_ref(tally).cast_mut(), Relaxed);
    }
}

#[inline]
#[expect(unsafe_code, reason = "an atomic pointer in place of an optional reference")]
fn count(cell: &AtomicPtr<AtomicU64>) {
    // SAFETY: null, or made from a reference that is valid forever.
    if let Some(cell) = unsafe { cell.load(Relaxed).as_ref() } {
        add(cell, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::cells;

    #[test]
    fn an_instruction_counts_when_the_next_one_begins() {
        let (running, cells) = (Running::new(), cells(3));
        let counts = || [0, 1, 2].map(|cell| cells[cell].load(Relaxed));
        running.set_tally(&cells[2]);
        running.begin(&cells[0], true);
        assert_eq!(counts(), [0, 0, 0]);
        running.begin(&cells[1], false);
        assert_eq!(counts(), [1, 0, 1]);
        running.begin(&cells[0], true);
        assert_eq!(counts(), [1, 1, 1]);
        running.finish();
        running.finish();
        assert_eq!(counts(), [2, 1, 2]);
    }

    #[test]
    fn the_tally_is_the_one_at_the_begin() {
        let (running, cells) = (Running::new(), cells(3));
        running.set_tally(&cells[1]);
        running.begin(&cells[0], true);
        running.set_tally(&cells[2]);
        running.begin(&cells[0], true);
        assert_eq!((cells[1].load(Relaxed), cells[2].load(Relaxed)), (1, 0));
    }

    #[test]
    fn an_instruction_with_a_fault_does_not_count() {
        let (running, cells) = (Running::new(), cells(3));
        running.set_tally(&cells[2]);
        running.begin(&cells[0], true);
        running.forget(&cells[1]);
        running.finish();
        running.begin(&cells[0], true);
        running.forget(&cells[0]);
        running.finish();
        assert_eq!([0, 1, 2].map(|cell| cells[cell].load(Relaxed)), [1, 0, 1]);
    }

    #[test]
    fn an_instruction_that_begins_again_counts_once() {
        let (running, cells) = (Running::new(), cells(2));
        running.begin_again(&cells[0], false);
        running.begin_again(&cells[0], false);
        running.begin_again(&cells[1], false);
        running.begin_again(&cells[0], false);
        running.finish();
        assert_eq!([0, 1].map(|cell| cells[cell].load(Relaxed)), [2, 1]);
    }
}
