//! Tracks the segment that a CPU executes. It is counted when the CPU begins the next one, because only then is it known
//! how far the CPU came: an instruction with a page fault is begun but not executed. So a count is never undone, and
//! totals by function, process and call path agree.
//!
//! It is written at every segment, so there is no lock. Only the thread that runs the CPUs writes.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

use flight::profile::Privilege;

use crate::paths::Tally;
use crate::segments::{Position, Segment, Segments, add};

/// The segment of one CPU.
#[repr(align(64))]
pub struct Running {
    /// The last begun segment; null if there is none to count.
    begun: AtomicPtr<Segment>,
    /// Its tally by path, if it has one.
    tallied: AtomicPtr<AtomicU64>,
    /// The tally of the next segments of the kernel, if paths are followed.
    tally: AtomicPtr<AtomicU64>,
    /// The number of the instruction that began last in the segment, if another CPU runs since. [`THERE`] otherwise.
    parked: AtomicU64,
    /// What an execution counts: 0 while the CPU's work is left out, and 1 otherwise.
    weight: AtomicU64,
    /// The number of instructions executed in this turn, as far as they are counted.
    turn: AtomicU64,
}

/// The number is where blocks store it.
const THERE: u64 = u64::MAX;

impl Running {
    /// The state before the first instruction.
    pub const fn new() -> Self {
        let [tallied, tally] = [const { AtomicPtr::new(ptr::null_mut()) }; 2];
        let begun = AtomicPtr::new(ptr::null_mut());
        let [parked, weight] = [AtomicU64::new(THERE), AtomicU64::new(1)];
        Self { begun, tallied, tally, parked, weight, turn: AtomicU64::new(0) }
    }

    /// Begins the first instruction of a segment. Counts the segment before, which was executed up to the instruction
    /// that began last.
    #[inline]
    pub fn begin(&self, cpu: usize, segment: &'static Segment, position: Position) {
        if let Some((last, number)) = self.last(position) {
            let executed = number + usize::from(!segment.repeats(last, number));
            self.count(cpu, last, executed);
        }
        self.begun.store(ptr::from_ref(segment).cast_mut(), Relaxed);
        let tally = if segment.is_kernel() { self.tally.load(Relaxed) } else { ptr::null_mut() };
        self.tallied.store(tally, Relaxed);
        self.parked.store(THERE, Relaxed);
        position.store(0, Relaxed);
    }

    /// Counts the last begun instruction and those before it in its segment, which were executed.
    pub fn finish(&self, cpu: usize, position: Position) {
        if let Some((last, number)) = self.last(position) {
            self.count(cpu, last, number + 1);
        }
        self.begun.store(ptr::null_mut(), Relaxed);
    }

    /// Counts the instructions before the last begun one. Only the latter is still running.
    pub fn split(&self, cpu: usize, segments: &mut Segments, position: Position) {
        let Some((last, number)) = self.last(position).filter(|(_, number)| *number > 0) else {
            return;
        };
        self.count(cpu, last, number);
        let alone = segments.alone(last, number);
        self.begun.store(ptr::from_ref(alone).cast_mut(), Relaxed);
        self.parked.store(0, Relaxed);
    }

    /// The last begun instruction had a fault at this address, so it was not executed. Those before it in its segment
    /// were.
    pub fn faulted(&self, cpu: usize, (address, privilege): (u64, Privilege), position: Position) {
        let is_at = |(last, number): &(&Segment, usize)| last.is_at(*number, address, privilege);
        if let Some((last, number)) = self.last(position).filter(is_at) {
            self.count(cpu, last, number);
            self.begun.store(ptr::null_mut(), Relaxed);
        }
    }

    /// Another CPU begins to run: it can use the same place for the number of its instruction.
    pub fn park(&self, position: Position) {
        if let Some((_, number)) = self.last(position) {
            self.parked.store(number as u64, Relaxed);
        }
    }

    /// Sets the tally of the next kernel instructions.
    #[inline]
    pub fn set_tally(&self, tally: Tally) {
        self.tally.store(ptr::from_ref(tally).cast_mut(), Relaxed);
    }

    /// What the CPU does from now on is counted, or left out.
    pub fn set_counted(&self, cpu: usize, counted: bool, position: Position) {
        self.finish(cpu, position);
        self.weight.store(counted.into(), Relaxed);
    }

    /// The number of instructions that the CPU executed in its turn, without those of the segment that it executes now.
    #[inline]
    pub fn turn(&self) -> u64 {
        self.turn.load(Relaxed)
    }

    /// A turn of the CPU begins after this many instructions that are not counted yet.
    #[inline]
    pub fn begin_turn(&self, after: u64) {
        self.turn.store(after.wrapping_neg(), Relaxed);
    }

    /// What an execution or an access counts: 0 while the CPU's work is left out, and 1 otherwise.
    #[inline]
    pub fn weight(&self) -> u64 {
        self.weight.load(Relaxed)
    }

    /// The last begun segment that is not counted yet, and the number of its last begun instruction.
    #[inline]
    #[expect(unsafe_code, reason = "an atomic pointer in place of an optional reference")]
    fn last(&self, position: Position) -> Option<(&'static Segment, usize)> {
        // SAFETY: null, or made from a reference that is valid forever.
        let last = unsafe { self.begun.load(Relaxed).as_ref() }?;
        let number = match self.parked.load(Relaxed) {
            THERE => position.load(Relaxed),
            parked => parked,
        };
        Some((last, number as usize))
    }

    #[inline]
    #[expect(unsafe_code, reason = "an atomic pointer in place of an optional reference")]
    fn count(&self, cpu: usize, last: &Segment, executed: usize) {
        if executed == 0 {
            return;
        }
        add(&self.turn, executed as u64);
        let weight = self.weight();
        last.add(cpu, executed, weight);
        // SAFETY: null, or made from a reference that is valid forever.
        if let Some(tally) = unsafe { self.tallied.load(Relaxed).as_ref() } {
            add(tally, executed as u64 * weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segments::cells;

    const KERNEL: u64 = 0xffff_ffff_8100_0000;

    /// A CPU, and segments of the kernel.
    struct Trace {
        segments: Segments,
        running: Running,
        position: Position,
        tallies: &'static [AtomicU64],
    }

    impl Trace {
        fn new() -> Self {
            let (segments, running) = (Segments::new(1, 100), Running::new());
            Self { segments, running, position: &cells(1)[0], tallies: cells(2) }
        }

        /// Begins this many instructions of a segment of four at this offset.
        fn begins(&mut self, offset: u64, number: u64, again: bool) {
            let addresses = [0, 1, 2, 3].map(|it| KERNEL + offset + it);
            self.running.begin(0, self.segments.kernel(&addresses, again), self.position);
            self.position.store(number - 1, Relaxed);
        }

        /// The counts by offset since the last call, and both tallies.
        fn taken(&self) -> (Vec<(u64, u64)>, [u64; 2]) {
            let executed = self.segments.take(0);
            let executed = executed.iter().map(|it| (it.address - KERNEL, it.count)).collect();
            (executed, [0, 1].map(|it| self.tallies[it].load(Relaxed)))
        }
    }

    #[test]
    fn a_segment_counts_when_the_next_one_begins() {
        let mut trace = Trace::new();
        trace.running.set_tally(&trace.tallies[0]);
        trace.begins(0, 4, false);
        assert_eq!(trace.taken(), (vec![], [0, 0]));
        trace.running.set_tally(&trace.tallies[1]);
        trace.begins(10, 2, false);
        let first = vec![(0, 1), (1, 1), (2, 1), (3, 1)];
        assert_eq!(trace.taken(), (first, [4, 0]));
        // It was left after two instructions.
        trace.begins(0, 4, false);
        assert_eq!(trace.taken(), (vec![(10, 1), (11, 1)], [4, 2]));
        trace.running.finish(0, trace.position);
        trace.running.finish(0, trace.position);
        assert_eq!(trace.taken().1, [4, 6]);
    }

    #[test]
    fn an_instruction_with_a_fault_does_not_count() {
        for (number, expected) in [(1, vec![]), (3, vec![(0, 1), (1, 1)])] {
            let mut trace = Trace::new();
            trace.begins(0, number, false);
            let fault = |at, privilege| trace.running.faulted(0, (at, privilege), trace.position);
            fault(KERNEL + 3, Privilege::Kernel);
            fault(KERNEL + number - 1, Privilege::User);
            fault(KERNEL + number - 1, Privilege::Kernel);
            trace.running.finish(0, trace.position);
            assert_eq!(trace.taken().0, expected);
        }
    }

    #[test]
    fn an_instruction_that_begins_again_counts_once() {
        let mut trace = Trace::new();
        trace.begins(0, 3, false);
        trace.begins(2, 1, true);
        trace.begins(2, 1, true);
        trace.begins(2, 1, false);
        trace.running.finish(0, trace.position);
        assert_eq!(trace.taken().0, [(0, 1), (1, 1), (2, 2)]);
    }

    #[test]
    fn another_cpu_uses_the_same_position() {
        let mut trace = Trace::new();
        trace.begins(0, 2, false);
        trace.running.park(trace.position);
        trace.position.store(3, Relaxed);
        trace.begins(10, 1, false);
        assert_eq!(trace.taken().0, [(0, 1), (1, 1)]);
        trace.running.finish(0, trace.position);
        assert_eq!(trace.taken().0, [(10, 1)]);
    }

    #[test]
    fn a_cut_leaves_only_the_last_instruction_running() {
        let mut trace = Trace::new();
        trace.running.set_tally(&trace.tallies[0]);
        trace.begins(0, 3, false);
        trace.running.split(0, &mut trace.segments, trace.position);
        trace.position.store(3, Relaxed);
        assert_eq!(trace.taken(), (vec![(0, 1), (1, 1)], [2, 0]));
        trace.running.split(0, &mut trace.segments, trace.position);
        trace.running.finish(0, trace.position);
        assert_eq!(trace.taken(), (vec![(2, 1)], [3, 0]));
    }

    #[test]
    fn what_is_left_out_counts_nothing() {
        let mut trace = Trace::new();
        trace.running.set_tally(&trace.tallies[0]);
        trace.begins(0, 4, false);
        trace.running.set_counted(0, false, trace.position);
        trace.begins(10, 4, false);
        trace.running.set_counted(0, true, trace.position);
        trace.begins(20, 1, false);
        trace.running.finish(0, trace.position);
        assert_eq!(trace.taken(), (vec![(0, 1), (1, 1), (2, 1), (3, 1), (20, 1)], [5, 0]));
    }
}
