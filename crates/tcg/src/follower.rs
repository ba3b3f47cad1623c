//! Follows each CPU's calls through returns, interrupts, system calls and task switches.

use std::collections::{BTreeMap, HashMap};
use std::mem;

use flight::profile::{MAX_CALL_SITES, MAX_STACKS};

use crate::calls::Calls;
use crate::interrupts::Interrupted;
use crate::paths::{Limits, Path, Paths};

/// The most tasks whose calls are kept while they do not run. A task that was dropped starts with an empty
/// path when it continues.
const MAX_TASKS: usize = 1 << 14;
const LIMITS: Limits = Limits { sites: MAX_CALL_SITES, tallies: MAX_STACKS - 1 };

/// The calls of all CPUs, and of all tasks that do not run.
#[derive(Debug)]
pub struct Follower {
    /// The tree of paths, and the instructions executed on them.
    pub paths: Paths,
    cpus: Vec<Cpu>,
    waiting: Waiting,
}

#[derive(Clone, Debug, Default)]
struct Cpu {
    calls: Calls,
    /// The stack pointer of the task that it is about to switch from.
    leaves: Option<u64>,
}

impl Follower {
    /// Follows so many CPUs.
    pub fn new(cpus: u16) -> Self {
        let cpus = vec![Cpu::default(); cpus.into()];
        Self { paths: Paths::new(LIMITS), cpus, waiting: Waiting::default() }
    }

    /// The path of the code that the CPU executes.
    pub fn path(&self, cpu: usize) -> Path {
        self.cpus[cpu].calls.path()
    }

    /// The instruction at `site` called, and stored the return address at `slot`.
    pub fn called(&mut self, cpu: usize, site: u64, slot: u64, returns_to: u64) {
        self.cpus[cpu].calls.call(slot, returns_to, |path| self.paths.call(path, site));
    }

    /// A return to the address stored at `slot`.
    pub fn returned(&mut self, cpu: usize, slot: u64, returns_to: u64) {
        self.cpus[cpu].calls.ret(slot, returns_to);
    }

    /// A return from an interrupt. The return address is stored at `slot`.
    pub fn returned_from_interrupt(&mut self, cpu: usize, slot: u64) {
        self.cpus[cpu].calls.move_to(slot.wrapping_add(8));
    }

    /// An interrupt or exception on the CPU.
    pub fn interrupted(&mut self, cpu: usize, what: &Interrupted) {
        let calls = &mut self.cpus[cpu].calls;
        match what {
            Interrupted { user: true, .. } => calls.clear(),
            Interrupted { external: true, slot, address, .. } => {
                calls.call(*slot, *address, |_| Path::START);
            }
            Interrupted { slot, address, .. } => {
                calls.call(*slot, *address, |path| self.paths.call(path, *address));
            }
        }
    }

    /// A system call.
    pub fn entered(&mut self, cpu: usize) {
        self.cpus[cpu].calls.clear();
    }

    /// The next change of stacks is a task switch. `place` is the stack pointer of the old task.
    pub fn leaves(&mut self, cpu: usize, place: u64) {
        self.cpus[cpu].leaves = Some(place);
    }

    /// The stack pointer becomes `place`.
    pub fn moved(&mut self, cpu: usize, place: u64) {
        let Cpu { calls, leaves } = &mut self.cpus[cpu];
        if let Some(left) = leaves.take() {
            let next = self.waiting.take(place).unwrap_or_default();
            self.waiting.put(left, mem::replace(calls, next));
        }
        calls.move_to(place);
    }
}

/// The calls of tasks that do not run, by the stack pointer with which they will continue.
#[derive(Debug, Default)]
struct Waiting {
    tasks: HashMap<u64, (u64, Calls)>,
    /// By the order in which they left.
    order: BTreeMap<u64, u64>,
    left: u64,
}

impl Waiting {
    fn put(&mut self, place: u64, calls: Calls) {
        self.left += 1;
        if let Some((before, _)) = self.tasks.insert(place, (self.left, calls)) {
            self.order.remove(&before);
        }
        self.order.insert(self.left, place);
        if self.tasks.len() > MAX_TASKS
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.tasks.remove(&oldest);
        }
    }

    fn take(&mut self, place: u64) -> Option<Calls> {
        let (left, calls) = self.tasks.remove(&place)?;
        self.order.remove(&left);
        Some(calls)
    }
}

#[cfg(test)]
mod tests {
    use flight::profile::CallSite;

    use super::*;

    const FIRST: u64 = 0xffff_c900_0010_4000;
    const SECOND: u64 = 0xffff_c900_0020_4000;

    /// The addresses of a CPU's path, outermost first.
    fn path(follower: &mut Follower, known: &mut Vec<CallSite>, cpu: usize) -> Vec<u64> {
        known.extend(follower.paths.take_sites());
        let mut addresses = Vec::new();
        let mut node = follower.path(cpu).0.checked_sub(1);
        while let Some(number) = node {
            let site = known[number as usize];
            addresses.insert(0, site.address);
            node = site.parent;
        }
        addresses
    }

    fn interrupt(address: u64, slot: u64, external: bool) -> Interrupted {
        Interrupted { address, user: false, slot, faulted: false, external }
    }

    #[test]
    fn tasks_take_their_calls_along_from_cpu_to_cpu() {
        let (mut follower, mut known) = (Follower::new(2), Vec::new());
        follower.called(0, 10, FIRST - 8, 0);
        follower.called(0, 11, FIRST - 64, 0);
        follower.leaves(0, FIRST - 112);
        follower.moved(0, SECOND - 112); // a new task
        assert_eq!(path(&mut follower, &mut known, 0), []);
        follower.called(0, 20, SECOND - 8, 0);
        follower.leaves(1, 0x7000);
        follower.moved(1, FIRST - 112);
        assert_eq!(path(&mut follower, &mut known, 1), [10, 11]);
        follower.returned(1, FIRST - 64, 1);
        assert_eq!(path(&mut follower, &mut known, 1), [10]);
        assert_eq!(path(&mut follower, &mut known, 0), [20]);
    }

    #[test]
    fn an_exception_is_a_call_and_an_interrupt_is_not() {
        for (external, during) in [(false, vec![10, 15, 30]), (true, vec![30])] {
            let (mut follower, mut known) = (Follower::new(1), Vec::new());
            follower.called(0, 10, FIRST - 8, 0);
            follower.interrupted(0, &interrupt(15, FIRST - 64, external));
            follower.called(0, 30, FIRST - 128, 0);
            assert_eq!(path(&mut follower, &mut known, 0), during);
            follower.returned(0, FIRST - 128, 1);
            follower.returned_from_interrupt(0, FIRST - 64);
            assert_eq!(path(&mut follower, &mut known, 0), [10]);
        }
    }

    #[test]
    fn user_mode_enters_with_no_calls() {
        let (mut follower, mut known) = (Follower::new(1), Vec::new());
        follower.called(0, 10, FIRST - 8, 0);
        follower.entered(0);
        assert_eq!(path(&mut follower, &mut known, 0), []);
        follower.called(0, 10, FIRST - 8, 0);
        let user = Interrupted { user: true, ..interrupt(15, SECOND - 40, false) };
        follower.interrupted(0, &user);
        assert_eq!(path(&mut follower, &mut known, 0), []);
    }

    #[test]
    fn the_tasks_that_left_first_are_forgotten() {
        let mut waiting = Waiting::default();
        for place in 0..MAX_TASKS as u64 + 2 {
            waiting.put(place, Calls::default());
        }
        assert_eq!((waiting.take(0), waiting.take(1)), (None, None));
        assert!(waiting.take(2).is_some());
        assert_eq!(waiting.take(2), None);
        waiting.put(5, Calls::default());
        waiting.put(MAX_TASKS as u64 + 2, Calls::default());
        waiting.put(MAX_TASKS as u64 + 3, Calls::default());
        assert_eq!(waiting.take(3), None);
        assert!(waiting.take(5).is_some());
        assert_eq!(waiting.tasks.len(), waiting.order.len());
    }
}
