//! Counts the kernel's instructions by call path.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::calls::Calls;
use crate::follower::Follower;
use crate::observer::{At, Flow, Interrupted, Observer, Slice};
use crate::paths::Path;
use crate::recent::Recent;

/// The counts of all CPUs.
pub struct PathCounts<C> {
    follower: Mutex<Follower<C>>,
    /// The current path of each CPU, readable without a lock.
    paths: Vec<AtomicU32>,
    recent: Recent,
}

impl<C: Calls> PathCounts<C> {
    /// Counts of 0, for a machine with this number of CPUs.
    pub fn new(cpus: u16) -> Self {
        let paths = (0..cpus).map(|_| AtomicU32::new(Path::START.0)).collect();
        Self { follower: Mutex::new(Follower::new(cpus)), paths, recent: Recent::new() }
    }

    /// Updates the calls of a CPU.
    #[inline(always)]
    fn follow(&self, cpu: usize, act: impl FnOnce(&mut Follower<C>)) {
        let mut follower = self.lock();
        act(&mut follower);
        self.paths[cpu].store(follower.path(cpu).0, Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Follower<C>> {
        self.follower.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: Calls> Observer for PathCounts<C> {
    #[inline]
    fn enters(&self, at: At<'_>, address: u64) {
        let path = Path(self.paths[at.cpu].load(Relaxed));
        let look_up = || self.lock().paths.tally(path, address);
        at.running.set_tally(self.recent.tally(path, address, look_up));
    }

    #[inline(always)]
    fn flows(&self, At { cpu, .. }: At<'_>, flow: Flow<'_>) {
        self.follow(cpu, |follower| match flow {
            Flow::Call { site, slot, returns_to } => follower.called(cpu, site, slot, returns_to),
            Flow::Return { slot, returns_to } => follower.returned(cpu, slot, returns_to),
            Flow::InterruptReturn { slot, returns_to } => {
                follower.returned_from_interrupt(cpu, slot, returns_to);
            }
            Flow::Boundary => follower.crossed(cpu),
            Flow::Function { address, stack } => follower.reached(cpu, address, stack),
            Flow::Outside { address, stack } => follower.reached_outside(cpu, address, stack),
            Flow::LeaveStack { place } => follower.leaves(cpu, place),
            Flow::MoveStack { place } => follower.moved(cpu, place),
            Flow::Task { task, place } => follower.runs(cpu, task, place),
        });
    }

    fn interrupted(&self, at: At<'_>, what: &Interrupted) {
        self.follow(at.cpu, |follower| follower.interrupted(at.cpu, what));
    }

    fn cut(&self, slice: &mut Slice) {
        let mut follower = self.lock();
        slice.counts.stacks = follower.paths.take_tallies();
        slice.sites = follower.paths.take_sites().to_vec();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use flight::profile::{CallSite, Privilege};

    use super::*;
    use crate::arch::{Architecture, X86_64};
    use crate::observer::StackPointer;
    use crate::running::Running;
    use crate::segments::{Position, Segments, cells};

    /// Beginnings of functions.
    const F: u64 = 0x1000;
    const G: u64 = 0x2000;
    const H: u64 = 0x3000;
    const INTERRUPT: u64 = 0x4000;
    /// The stack pointer of a task when it enters F.
    const TASK: u64 = 0xffff_c900_0010_4000;
    const OTHER: u64 = 0xffff_c900_0020_4000;

    /// CPUs whose instructions are counted by path.
    struct Trace {
        counts: PathCounts<<X86_64 as Architecture>::Calls>,
        running: [Running; 2],
        position: Position,
        /// The CPU that executed the last block.
        last: AtomicUsize,
        sites: Vec<CallSite>,
    }

    impl Trace {
        fn new() -> Self {
            let running = [const { Running::new() }; 2];
            let (position, last) = (&cells(1)[0], AtomicUsize::new(0));
            Self { counts: PathCounts::new(2), running, position, last, sites: Vec::new() }
        }

        fn at(&self, cpu: usize) -> At<'_> {
            At { cpu, running: &self.running[cpu] }
        }

        fn flows(&self, cpu: usize, flow: Flow<'_>) {
            self.counts.flows(self.at(cpu), flow);
        }

        fn calls(&self, cpu: usize, site: u64, slot: u64) {
            self.flows(cpu, Flow::Call { site, slot, returns_to: site + 5 });
        }

        fn returns(&self, cpu: usize, slot: u64, returns_to: u64) {
            self.flows(cpu, Flow::Return { slot, returns_to });
        }

        fn reaches(&self, cpu: usize, address: u64, slot: u64) {
            let stack: StackPointer<'_> = &|| Some(slot);
            self.flows(cpu, Flow::Function { address, stack });
        }

        /// Executes a block of this many instructions.
        fn block(&self, cpu: usize, address: u64, instructions: usize) {
            self.counts.enters(self.at(cpu), address);
            let addresses: Vec<u64> = (address..).take(instructions).collect();
            let segment = Segments::new(2, instructions).kernel(&addresses, false);
            let last = self.last.swap(cpu, Relaxed);
            self.running[last].park(self.position);
            self.running[cpu].begin(cpu, segment, self.position);
            self.position.store(instructions as u64 - 1, Relaxed);
        }

        /// An interrupt of `address`.
        fn interrupts(&self, cpu: usize, address: u64, slot: u64, external: bool) {
            let privilege = Privilege::Kernel;
            let what = Interrupted { address, privilege, slot, faulted: false, external };
            self.counts.interrupted(self.at(cpu), &what);
        }

        /// The slice's instructions by path, outermost call site first, and block; sorted.
        fn cut(&mut self) -> Vec<(Vec<u64>, u64, u64)> {
            let running = self.running.iter().enumerate();
            running.for_each(|(cpu, running)| running.finish(cpu, self.position));
            let mut slice = Slice::default();
            self.counts.cut(&mut slice);
            self.sites.append(&mut slice.sites);
            let path = |mut node: Option<u32>| {
                let mut path = Vec::new();
                while let Some(site) = node.map(|node| self.sites[node as usize]) {
                    path.insert(0, site.address);
                    node = site.parent;
                }
                path
            };
            let stacks = slice.counts.stacks.iter();
            let mut counted: Vec<_> =
                stacks.map(|it| (path(it.node), it.address, it.count)).collect();
            counted.sort();
            counted
        }
    }

    #[test]
    fn instructions_belong_to_the_call_that_is_active() {
        let mut trace = Trace::new();
        trace.block(0, F, 3);
        trace.calls(0, F + 8, TASK - 8);
        trace.reaches(0, G, TASK - 8);
        trace.block(0, G, 5);
        trace.returns(0, TASK - 8, F + 13);
        trace.block(0, F + 13, 2);
        assert_eq!(trace.cut(), [(vec![], F, 3), (vec![], F + 13, 2), (vec![F + 8], G, 5)]);
        assert_eq!(trace.cut(), []);
    }

    #[test]
    fn a_tail_call_is_a_call_that_returns_together_with_its_caller() {
        let mut trace = Trace::new();
        trace.calls(0, F + 8, TASK - 8);
        trace.reaches(0, G, TASK - 8);
        trace.block(0, G, 1);
        trace.reaches(0, H, TASK - 8);
        trace.block(0, H, 4);
        trace.returns(0, TASK - 8, F + 13);
        trace.block(0, F + 13, 2);
        let expected = [(vec![], F + 13, 2), (vec![F + 8], G, 1), (vec![F + 8, G], H, 4)];
        assert_eq!(trace.cut(), expected);
    }

    #[test]
    fn an_interrupt_is_apart_and_an_exception_is_a_call() {
        for (external, inside) in [(true, vec![]), (false, vec![F + 8, G + 4])] {
            let mut trace = Trace::new();
            trace.calls(0, F + 8, TASK - 8);
            trace.reaches(0, G, TASK - 8);
            trace.block(0, G, 1);
            trace.interrupts(0, G + 4, TASK - 48, external);
            trace.block(0, INTERRUPT, 7);
            trace.flows(0, Flow::InterruptReturn { slot: TASK - 48, returns_to: None });
            trace.block(0, G + 4, 2);
            let mut expected =
                vec![(inside, INTERRUPT, 7), (vec![F + 8], G, 1), (vec![F + 8], G + 4, 2)];
            expected.sort();
            assert_eq!(trace.cut(), expected);
        }
    }

    #[test]
    fn a_task_continues_on_another_cpu_where_it_left() {
        let mut trace = Trace::new();
        trace.calls(0, F + 8, TASK - 8);
        trace.flows(0, Flow::LeaveStack { place: TASK - 64 });
        trace.flows(0, Flow::MoveStack { place: OTHER });
        trace.block(0, G, 1);
        trace.flows(1, Flow::LeaveStack { place: OTHER + 0x8_0000 });
        trace.flows(1, Flow::MoveStack { place: TASK - 64 });
        trace.block(1, H, 2);
        trace.returns(1, TASK - 8, F + 13);
        trace.block(1, F + 13, 3);
        assert_eq!(trace.cut(), [(vec![], F + 13, 3), (vec![], G, 1), (vec![F + 8], H, 2)]);
    }

    #[test]
    fn the_kernel_is_entered_with_no_calls() {
        let mut trace = Trace::new();
        trace.calls(0, F + 8, TASK - 8);
        trace.flows(0, Flow::Boundary);
        trace.block(0, G, 1);
        trace.calls(0, G + 8, TASK - 8);
        let user = Interrupted {
            address: 0x40_0000,
            privilege: Privilege::User,
            slot: TASK - 40,
            faulted: true,
            external: false,
        };
        trace.counts.interrupted(trace.at(0), &user);
        trace.block(0, H, 1);
        assert_eq!(trace.cut(), [(vec![], G, 1), (vec![], H, 1)]);
    }

    #[test]
    fn functions_outside_of_the_image_are_learned_from_calls() {
        let mut trace = Trace::new();
        let outside = |trace: &Trace, address| {
            let stack: StackPointer<'_> = &|| Some(TASK - 8);
            trace.flows(0, Flow::Outside { address, stack });
            trace.block(0, address, 1);
        };
        trace.calls(0, F + 8, TASK - 8);
        outside(&trace, G);
        outside(&trace, G + 16);
        outside(&trace, H); // not known yet
        trace.returns(0, TASK - 8, F + 13);
        let called = |block| (vec![F + 8], block, 1);
        assert_eq!(trace.cut(), [called(G), called(G + 16), called(H)]);
        trace.calls(0, F + 8, TASK - 8);
        outside(&trace, H);
        outside(&trace, G);
        assert_eq!(trace.cut(), [called(H), (vec![F + 8, H], G, 1)]);
    }
}
