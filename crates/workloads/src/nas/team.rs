//! Threads that do the same work on parts of shared arrays, like OpenMP with static schedules. They sleep while they
//! wait for each other, because exact mode would count spinning.

use std::cell::Cell;
use std::ops::Range;
use std::process;
use std::sync::atomic::AtomicU64;
use std::sync::{Barrier, Condvar, Mutex, PoisonError};
use std::thread;

use super::memory::Element;
use crate::tasks::share;

/// The largest number of values that are summed at once.
const WIDEST: usize = 16;

/// What the threads share.
pub struct Team {
    barrier: Barrier,
    /// What each member contributes to a sum, in two banks. While some members still read one bank, others already
    /// write the other.
    parts: Vec<[[AtomicU64; WIDEST]; 2]>,
    progress: Vec<Progress>,
}

/// How many steps a member has done.
#[derive(Default)]
struct Progress {
    steps: Mutex<usize>,
    more: Condvar,
}

/// One thread of a team.
pub struct Member<'a> {
    /// Its number, from 0.
    pub number: usize,
    team: &'a Team,
    bank: Cell<usize>,
}

impl Team {
    /// A team of `threads` threads.
    pub fn new(threads: usize) -> Self {
        let zeros = || [const { AtomicU64::new(0) }; WIDEST];
        Self {
            barrier: Barrier::new(threads),
            parts: (0..threads).map(|_| [zeros(), zeros()]).collect(),
            progress: (0..threads).map(|_| Progress::default()).collect(),
        }
    }

    /// How many threads it has.
    pub fn threads(&self) -> usize {
        self.progress.len()
    }

    /// Starts the threads, and returns when all have done the work.
    pub fn run(&self, work: impl Fn(&Member<'_>) + Sync) {
        thread::scope(|scope| {
            for number in 0..self.threads() {
                let work = &work;
                scope.spawn(move || {
                    let _end = EndTogether;
                    work(&Member { number, team: self, bank: Cell::new(0) });
                });
            }
        });
    }
}

/// Ends the process if its thread panics. Otherwise the other threads would wait forever.
struct EndTogether;

impl Drop for EndTogether {
    fn drop(&mut self) {
        if thread::panicking() {
            process::abort();
        }
    }
}

impl Member<'_> {
    /// How many threads the team has.
    pub fn threads(&self) -> usize {
        self.team.threads()
    }

    /// Waits until all members have arrived.
    pub fn wait(&self) {
        self.team.barrier.wait();
    }

    /// This member's share of `count` items: shares are consecutive, and differ by at most 1.
    pub fn share(&self, count: usize) -> Range<usize> {
        share(count, self.number, self.threads())
    }

    /// This member's share of the items in `range`.
    pub fn share_of(&self, range: Range<usize>) -> Range<usize> {
        let share = self.share(range.len());
        range.start + share.start..range.start + share.end
    }

    /// Runs `work` in the first member while all others wait.
    pub fn alone(&self, work: impl FnOnce()) {
        self.wait();
        if self.number == 0 {
            work();
        }
        self.wait();
    }

    /// Sums the contributions of all members, always in the same order. This is also a barrier.
    pub fn sum<const N: usize>(&self, own: [f64; N]) -> [f64; N] {
        const { assert!(N <= WIDEST) };
        let bank = self.bank.replace(1 - self.bank.get());
        for (part, own) in self.team.parts[self.number][bank].iter().zip(own) {
            part.set(own);
        }
        self.wait();
        let mut sum = [0.0; N];
        for parts in &self.team.parts {
            for (sum, part) in sum.iter_mut().zip(&parts[bank]) {
                *sum += part.get();
            }
        }
        sum
    }

    /// Records that this member has done one more step.
    pub fn step(&self) {
        let own = &self.team.progress[self.number];
        *own.steps.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        own.more.notify_all();
    }

    /// Waits until the member `number` has done `steps` steps.
    pub fn await_steps(&self, number: usize, steps: usize) {
        let other = &self.team.progress[number];
        let done = other.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let done = other.more.wait_while(done, |done| *done < steps);
        drop(done.unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::SeqCst;

    use super::*;

    #[test]
    fn sums_are_of_all_members_each_time() {
        Team::new(3).run(|member| {
            for round in 0..100 {
                let own = (member.number + round) as f64;
                assert_eq!(member.sum([own, 1.0]), [(3 + 3 * round) as f64, 3.0]);
            }
        });
    }

    #[test]
    fn one_member_works_alone_and_steps_are_awaited() {
        let (turns, order) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        Team::new(3).run(|member| {
            member.alone(|| assert_eq!(turns.fetch_add(1, SeqCst), 0));
            assert_eq!(turns.load(SeqCst), 1);
            for step in 1..=5 {
                if member.number > 0 {
                    member.await_steps(member.number - 1, step);
                }
                order.lock().unwrap().push((step, member.number));
                member.step();
            }
        });
        let order = order.into_inner().unwrap();
        let place = |wanted| order.iter().position(|it| *it == wanted).unwrap();
        for step in 1..=5 {
            assert!(place((step, 0)) < place((step, 1)) && place((step, 1)) < place((step, 2)));
        }
    }
}
