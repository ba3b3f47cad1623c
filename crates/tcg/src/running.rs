//! What a CPU executes now. An instruction counts when the CPU begins the next one: one that meets
//! a page fault is begun, but not executed, and is forgotten. So nothing that was counted is ever
//! taken back, and what is counted in two ways adds up whenever it is looked at.
//!
//! All of it is written at every single instruction, so here is no lock: the thread that runs the
//! CPU writes alone.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

use crate::counters::add;
use crate::paths::Tally;

/// One CPU.
#[repr(align(64))]
pub struct Running {
    /// The counter of the instruction that began last; null if none is to be counted.
    begun: AtomicPtr<AtomicU64>,
    /// Its tally by path, if it has one.
    tallied: AtomicPtr<AtomicU64>,
    /// The tally of kernel instructions that begin now, if paths are followed.
    tally: AtomicPtr<AtomicU64>,
}

impl Running {
    /// Nothing began yet.
    pub const fn new() -> Self {
        let [begun, tallied, tally] = [const { AtomicPtr::new(ptr::null_mut()) }; 3];
        Self { begun, tallied, tally }
    }

    /// An instruction begins, which is to be counted in this cell, and by path if it is the
    /// kernel's. The one before was executed.
    #[inline]
    pub fn begin(&self, counter: &'static AtomicU64, kernel: bool) {
        count(&self.begun);
        count(&self.tallied);
        self.begun.store(ptr::from_ref(counter).cast_mut(), Relaxed);
        let tally = if kernel { self.tally.load(Relaxed) } else { ptr::null_mut() };
        self.tallied.store(tally, Relaxed);
    }

    /// An instruction begins that has this counter for itself alone, and never follows itself: if
    /// it began last, it begins once more and was not executed.
    #[inline]
    pub fn begin_again(&self, counter: &'static AtomicU64, kernel: bool) {
        if !ptr::eq(self.begun.load(Relaxed), counter) {
            self.begin(counter, kernel);
        }
    }

    /// The instruction that began last was executed.
    pub fn finish(&self) {
        count(&self.begun);
        count(&self.tallied);
        self.forget_any();
    }

    /// The instruction that began last was not executed, if this is its counter.
    pub fn forget(&self, counter: &'static AtomicU64) {
        if ptr::eq(self.begun.load(Relaxed), counter) {
            self.forget_any();
        }
    }

    fn forget_any(&self) {
        self.begun.store(ptr::null_mut(), Relaxed);
        self.tallied.store(ptr::null_mut(), Relaxed);
    }

    /// Kernel instructions that begin from now on are tallied here.
    #[inline]
    pub fn set_tally(&self, tally: Tally) {
        self.tally.store(ptr::from_ref(tally).cast_mut(), Relaxed);
    }
}

#[inline]
#[expect(unsafe_code, reason = "a pointer in place of a reference, since there may be none")]
fn count(cell: &AtomicPtr<AtomicU64>) {
    // SAFETY: null, or made of a reference that is good for ever.
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
    fn its_tally_is_that_of_when_it_began() {
        let (running, cells) = (Running::new(), cells(3));
        running.set_tally(&cells[1]);
        running.begin(&cells[0], true);
        running.set_tally(&cells[2]);
        running.begin(&cells[0], true);
        assert_eq!((cells[1].load(Relaxed), cells[2].load(Relaxed)), (1, 0));
    }

    #[test]
    fn what_met_a_fault_is_forgotten() {
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
    fn what_begins_again_counts_once() {
        let (running, cells) = (Running::new(), cells(2));
        running.begin_again(&cells[0], false);
        running.begin_again(&cells[0], false);
        running.begin_again(&cells[1], false);
        running.begin_again(&cells[0], false);
        running.finish();
        assert_eq!([0, 1].map(|cell| cells[cell].load(Relaxed)), [2, 1]);
    }
}
