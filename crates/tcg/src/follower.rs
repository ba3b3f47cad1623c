//! Follows each CPU's calls through returns, interrupts, system calls and task switches.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;

use flight::profile::{MAX_CALL_SITES, MAX_STACKS, Privilege};

use crate::calls::Calls;
use crate::observer::Interrupted;
use crate::paths::{Limits, Path, Paths};

/// The most tasks whose calls are kept while they do not run. A task that was dropped starts with an empty
/// path when it continues.
const MAX_TASKS: usize = 1 << 14;
/// The largest number of functions outside of the kernel's image. All modules of a distribution have fewer.
const MAX_LEARNED: usize = 1 << 18;
const LIMITS: Limits = Limits { sites: MAX_CALL_SITES, tallies: MAX_STACKS - 1 };

/// The calls of all CPUs, and of all tasks that do not run.
#[derive(Debug)]
pub struct Follower<C> {
    /// The tree of paths, and the instructions executed on them.
    pub paths: Paths,
    cpus: Vec<Cpu<C>>,
    waiting: Waiting<C>,
    /// The functions outside of the kernel's image that were called, by their beginnings.
    learned: HashSet<u64>,
}

#[derive(Clone, Debug, Default)]
struct Cpu<C> {
    calls: C,
    /// The stack pointer of the old task, while a task switch is in progress.
    leaves: Option<u64>,
    /// The running task, if tasks are told by their addresses.
    task: Option<u64>,
}

impl<C: Calls> Follower<C> {
    /// A follower of this number of CPUs.
    pub fn new(cpus: u16) -> Self {
        let cpus = vec![Cpu::default(); cpus.into()];
        let (waiting, learned) = (Waiting::default(), HashSet::new());
        Self { paths: Paths::new(LIMITS), cpus, waiting, learned }
    }

    /// The path of the code that the CPU executes.
    pub fn path(&self, cpu: usize) -> Path {
        self.cpus[cpu].calls.frames().path()
    }

    /// The instruction at `site` made a call, and stored the return address at `slot`.
    pub fn called(&mut self, cpu: usize, site: u64, slot: u64, returns_to: u64) {
        self.cpus[cpu].calls.call(slot, returns_to, |path| self.paths.call(path, site));
    }

    /// Execution reaches the beginning of `function`, by a call or a jump. `stack` returns the stack pointer.
    pub fn reached(&mut self, cpu: usize, function: u64, stack: impl FnOnce() -> Option<u64>) {
        let frames = self.cpus[cpu].calls.frames_mut();
        frames.reach(function, stack, |jump| self.paths.jump(jump, function));
    }

    /// A block outside of the kernel's image begins at `address`: code of a module, or generated code. Functions
    /// there are not known in advance, so only those that were called before are recognized.
    pub fn reached_outside(
        &mut self,
        cpu: usize,
        address: u64,
        stack: impl FnOnce() -> Option<u64>,
    ) {
        let is_new = self.cpus[cpu].calls.frames().is_new();
        if is_new && self.learned.len() < MAX_LEARNED {
            self.learned.insert(address);
        }
        if is_new || self.learned.contains(&address) {
            self.reached(cpu, address, stack);
        }
    }

    /// A return to the address stored at `slot`.
    pub fn returned(&mut self, cpu: usize, slot: u64, returns_to: u64) {
        self.cpus[cpu].calls.ret(slot, returns_to);
    }

    /// A return from an interrupt, whose frame is at `slot`.
    pub fn returned_from_interrupt(&mut self, cpu: usize, slot: u64, returns_to: Option<u64>) {
        self.cpus[cpu].calls.end_interrupt(slot, returns_to);
    }

    /// An interrupt or exception on the CPU.
    pub fn interrupted(&mut self, cpu: usize, what: &Interrupted) {
        let calls = &mut self.cpus[cpu].calls;
        match what {
            Interrupted { privilege: Privilege::User, .. } => calls.clear(),
            Interrupted { external: true, slot, address, .. } => {
                calls.interrupt(*slot, *address, |_| Path::START);
            }
            Interrupted { slot, address, .. } => {
                calls.interrupt(*slot, *address, |path| self.paths.call(path, *address));
            }
        }
    }

    /// A program entered the kernel by a system call, or continues. So no calls are active.
    pub fn crossed(&mut self, cpu: usize) {
        self.cpus[cpu].calls.clear();
    }

    /// The next change of stacks is a task switch. `place` is the stack pointer of the old task.
    pub fn leaves(&mut self, cpu: usize, place: u64) {
        self.cpus[cpu].leaves = Some(place);
    }

    /// The stack pointer becomes `place`.
    pub fn moved(&mut self, cpu: usize, place: u64) {
        let Cpu { calls, leaves, task: _ } = &mut self.cpus[cpu];
        if let Some(left) = leaves.take() {
            let next = self.waiting.take(place).unwrap_or_default();
            self.waiting.put(left, mem::replace(calls, next));
        }
        calls.move_to(place);
    }

    /// `task` runs from now on. Its stack pointer is `place`, at which its last call was made if it ran before. A new
    /// task can have the address of one that ended.
    pub fn runs(&mut self, cpu: usize, task: u64, place: u64) {
        let mut next = self.waiting.take(task).unwrap_or_default();
        if next.frames().all().last().is_some_and(|frame| frame.slot != place) {
            next.clear();
        }
        let cpu = &mut self.cpus[cpu];
        let left = mem::replace(&mut cpu.calls, next);
        if let Some(before) = cpu.task.replace(task) {
            self.waiting.put(before, left);
        }
    }
}

/// The calls of tasks that do not run, by the stack pointer with which they will continue, or by the task.
#[derive(Debug, Default)]
struct Waiting<C> {
    tasks: HashMap<u64, (u64, C)>,
    /// These keys, in the order in which the tasks left.
    order: BTreeMap<u64, u64>,
    left: u64,
}

impl<C> Waiting<C> {
    fn put(&mut self, place: u64, calls: C) {
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

    fn take(&mut self, place: u64) -> Option<C> {
        let (left, calls) = self.tasks.remove(&place)?;
        self.order.remove(&left);
        Some(calls)
    }
}

#[cfg(test)]
mod tests {
    use flight::profile::CallSite;

    use super::*;
    use crate::arch::{Architecture, X86_64};

    type Follower = super::Follower<<X86_64 as Architecture>::Calls>;

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
        Interrupted { address, privilege: Privilege::Kernel, slot, faulted: false, external }
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
            follower.returned_from_interrupt(0, FIRST - 64, None);
            assert_eq!(path(&mut follower, &mut known, 0), [10]);
        }
    }

    /// Functions F, G, H, J, in the order in which a made-up program has them.
    const F: u64 = 0x1000;
    const G: u64 = 0x2000;
    const H: u64 = 0x3000;
    const J: u64 = 0x4000;
    const SLOT: u64 = FIRST - 64;

    /// A CPU that called F, which is at its first instruction.
    fn in_f() -> (Follower, Vec<CallSite>) {
        let mut follower = Follower::new(1);
        follower.called(0, 10, FIRST - 8, 0);
        follower.called(0, 11, SLOT, 12);
        follower.reached(0, F, || Some(SLOT));
        (follower, Vec::new())
    }

    #[test]
    fn a_jump_to_another_function_is_a_call_without_a_return() {
        let (mut follower, mut known) = in_f();
        assert_eq!(path(&mut follower, &mut known, 0), [10, 11]);
        follower.reached(0, G, || Some(SLOT));
        assert_eq!(path(&mut follower, &mut known, 0), [10, 11, F]);
        follower.called(0, 20, SLOT - 8, 21);
        follower.reached(0, H, || Some(SLOT - 8));
        assert_eq!(path(&mut follower, &mut known, 0), [10, 11, F, 20]);
        follower.reached(0, J, || Some(SLOT - 8));
        assert_eq!(path(&mut follower, &mut known, 0), [10, 11, F, 20, H]);
        follower.returned(0, SLOT - 8, 21);
        assert_eq!(path(&mut follower, &mut known, 0), [10, 11, F]);
        follower.returned(0, SLOT, 12);
        assert_eq!(path(&mut follower, &mut known, 0), [10]);
    }

    #[test]
    fn a_loop_and_a_recursion_are_no_jumps_to_another_function() {
        let (mut follower, mut known) = in_f();
        follower.reached(0, F, || Some(SLOT));
        assert_eq!(path(&mut follower, &mut known, 0), [10, 11]);
        follower.called(0, 12, SLOT - 8, 13);
        follower.reached(0, F, || Some(SLOT - 8));
        assert_eq!(path(&mut follower, &mut known, 0), [10, 11, 12]);
    }

    #[test]
    fn functions_that_jump_to_each_other_do_not_extend_the_path() {
        let (mut follower, mut known) = in_f();
        for _ in 0..1000 {
            for (function, steps) in [(G, vec![F]), (H, vec![F, G]), (J, vec![F, G, H])] {
                follower.reached(0, function, || Some(SLOT));
                let expected = [vec![10, 11], steps].concat();
                assert_eq!(path(&mut follower, &mut known, 0), expected);
            }
        }
        follower.reached(0, F, || Some(SLOT));
        assert_eq!(path(&mut follower, &mut known, 0), [10, 11]);
        assert_eq!(known.len(), 5);
    }

    #[test]
    fn code_with_more_on_the_stack_does_not_call_by_jumps() {
        let (mut follower, mut known) = in_f();
        for stack in [Some(SLOT - 8), Some(SLOT + 8), None] {
            follower.reached(0, G, || stack);
            assert_eq!(path(&mut follower, &mut known, 0), [10, 11]);
        }
        // Code that was not called, such as the entries from user mode, is no jump either.
        follower.crossed(0);
        follower.reached(0, F, || Some(SLOT));
        follower.reached(0, G, || Some(SLOT));
        assert_eq!(path(&mut follower, &mut known, 0), []);
    }

    #[test]
    fn a_thunk_is_passed_through() {
        // F calls H through a thunk, which pushes the address of H and returns to it. The thunk is not in the
        // list of functions.
        let (mut follower, mut known) = in_f();
        follower.called(0, 20, SLOT - 8, 21);
        follower.returned(0, SLOT - 16, H);
        follower.reached(0, H, || Some(SLOT - 8));
        assert_eq!(path(&mut follower, &mut known, 0), [10, 11, 20]);
        follower.returned(0, SLOT - 8, 21);
        // F jumps to the thunk.
        follower.returned(0, SLOT - 8, H);
        follower.reached(0, H, || Some(SLOT));
        assert_eq!(path(&mut follower, &mut known, 0), [10, 11, F]);
    }

    #[test]
    fn an_interrupt_between_a_jump_and_its_target_changes_nothing() {
        for external in [false, true] {
            let (mut follower, mut known) = in_f();
            follower.interrupted(0, &interrupt(G, SLOT - 40, external));
            follower.called(0, 30, SLOT - 80, 31);
            follower.reached(0, J, || Some(SLOT - 80));
            follower.returned(0, SLOT - 80, 31);
            follower.returned_from_interrupt(0, SLOT - 40, None);
            follower.reached(0, G, || Some(SLOT));
            assert_eq!(path(&mut follower, &mut known, 0), [10, 11, F]);
        }
    }

    #[test]
    fn jumps_are_followed_after_a_task_switch() {
        let (mut follower, mut known) = in_f();
        follower.leaves(0, SLOT - 48);
        follower.moved(0, SECOND - 112);
        follower.called(0, 20, SECOND - 120, 0);
        follower.leaves(0, SECOND - 160);
        follower.moved(0, SLOT - 48);
        follower.reached(0, G, || Some(SLOT));
        assert_eq!(path(&mut follower, &mut known, 0), [10, 11, F]);
    }

    #[test]
    fn functions_outside_of_the_image_are_learned_from_calls() {
        let mut follower = Follower::new(1);
        let mut known = Vec::new();
        let reach = |follower: &mut Follower, function| {
            follower.reached_outside(0, function, || Some(SLOT));
        };
        follower.called(0, 10, SLOT, 11);
        reach(&mut follower, F);
        reach(&mut follower, F + 16); // a block within F
        reach(&mut follower, G); // not known yet
        assert_eq!(path(&mut follower, &mut known, 0), [10]);
        follower.returned(0, SLOT, 11);
        follower.called(0, 20, SLOT, 21);
        reach(&mut follower, G);
        reach(&mut follower, F);
        assert_eq!(path(&mut follower, &mut known, 0), [20, G]);
        // From a module to the image.
        follower.reached(0, H, || Some(SLOT));
        assert_eq!(path(&mut follower, &mut known, 0), [20, G, F]);
    }

    #[test]
    fn user_mode_enters_with_no_calls() {
        let (mut follower, mut known) = (Follower::new(1), Vec::new());
        follower.called(0, 10, FIRST - 8, 0);
        follower.crossed(0);
        assert_eq!(path(&mut follower, &mut known, 0), []);
        follower.called(0, 10, FIRST - 8, 0);
        let user = Interrupted { privilege: Privilege::User, ..interrupt(15, SECOND - 40, false) };
        follower.interrupted(0, &user);
        assert_eq!(path(&mut follower, &mut known, 0), []);
    }

    #[test]
    fn the_tasks_that_left_first_are_forgotten() {
        let mut waiting = Waiting::default();
        for place in 0..MAX_TASKS as u64 + 2 {
            waiting.put(place, ());
        }
        assert_eq!((waiting.take(0), waiting.take(1)), (None, None));
        assert!(waiting.take(2).is_some());
        assert_eq!(waiting.take(2), None);
        waiting.put(5, ());
        waiting.put(MAX_TASKS as u64 + 2, ());
        waiting.put(MAX_TASKS as u64 + 3, ());
        assert_eq!(waiting.take(3), None);
        assert!(waiting.take(5).is_some());
        assert_eq!(waiting.tasks.len(), waiting.order.len());
    }
}
