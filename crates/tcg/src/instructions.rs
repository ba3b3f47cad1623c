//! Counts instructions: those of the kernel by address, those of programs by process.

use std::sync::{Mutex, MutexGuard, PoisonError};

use flight::profile::{Executed, Privilege, Process, Totals};

use crate::counters::{Counter, Counters};
use crate::observer::{At, Begun, Interrupted, Observer, Slice};
use crate::processes::Processes;
use crate::running::Running;

/// The largest number of kernel instructions with their own counters. A kernel executes about half a million.
/// One that generates code endlessly must not fill the host's memory.
const MAX_ADDRESSES: usize = 1 << 21;

/// The counts of all CPUs.
pub struct InstructionCounts(Mutex<Counts>);

struct Counts {
    counters: Counters,
    /// Processes by CPU.
    processes: Vec<Processes>,
    /// The counts of each CPU when it began to be left out.
    kept: Vec<Vec<u64>>,
}

impl InstructionCounts {
    /// Counts of 0, for a machine with this number of CPUs.
    pub fn new(cpus: u16) -> Self {
        let counters = Counters::new(cpus.into(), MAX_ADDRESSES);
        let processes = (0..cpus).map(|_| Processes::default()).collect();
        let kept = vec![Vec::new(); cpus.into()];
        Self(Mutex::new(Counts { counters, processes, kept }))
    }

    /// The counter of the instruction at `address`, and whether it is not shared with others.
    pub fn counter(&self, privilege: Privilege, address: u64) -> (Counter, bool) {
        let mut counts = self.lock();
        let counter = counts.counter(privilege, address);
        (counter, counts.counters.is_one_instructions(counter))
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn counter(&mut self, privilege: Privilege, address: u64) -> Counter {
        match privilege {
            Privilege::Kernel => self.counters.kernel(address),
            Privilege::User => self.counters.user,
            Privilege::Firmware => self.counters.firmware,
        }
    }
}

impl Observer for InstructionCounts {
    #[inline]
    fn begins(&self, at: At<'_>, begun: Begun) {
        let begin = if begun.again { Running::begin_again } else { Running::begin };
        begin(at.running, begun.cell, begun.kernel);
    }

    /// Drops the count of an instruction with a fault, because it was not executed.
    fn interrupted(&self, at: At<'_>, what: &Interrupted) {
        if what.faulted {
            let counter = self.lock().counter(what.privilege, what.address);
            at.running.forget(counter.cell(at.cpu));
        }
    }

    fn ran(&self, at: At<'_>, process: Option<Process>) {
        let mut counts = self.lock();
        let total = counts.counters.user.get(at.cpu);
        counts.processes[at.cpu].count(process, total);
    }

    fn leaves_out(&self, at: At<'_>) {
        let mut counts = self.lock();
        counts.kept[at.cpu] = counts.counters.counts(at.cpu);
    }

    fn counts_again(&self, at: At<'_>) {
        let counts = self.lock();
        counts.counters.set_counts(at.cpu, &counts.kept[at.cpu]);
    }

    fn cut(&self, slice: &mut Slice) {
        let Counts { counters, processes, .. } = &mut *self.lock();
        let cpus = slice.counts.cpus.iter_mut().zip(processes).enumerate();
        for (number, (cpu, processes)) in cpus {
            let kernel = counters.kernel_counters();
            let kernel =
                kernel.map(|(address, counter)| Executed { address, count: counter.take(number) });
            cpu.kernel = kernel.filter(|executed| executed.count > 0).collect();
            cpu.totals = Totals {
                user: counters.user.take(number),
                kernel_other: counters.kernel_other.take(number),
                firmware: counters.firmware.take(number),
            };
            cpu.processes = processes.cut();
        }
    }
}

#[cfg(test)]
mod tests {
    use flight::profile::{Cpu, Phase};

    use super::*;

    const KERNEL: u64 = 0xffff_ffff_8100_0000;

    /// CPUs and their counts.
    struct Trace {
        counts: InstructionCounts,
        running: [Running; 2],
    }

    impl Trace {
        fn new() -> Self {
            Self { counts: InstructionCounts::new(2), running: [const { Running::new() }; 2] }
        }

        fn at(&self, cpu: usize) -> At<'_> {
            At { cpu, running: &self.running[cpu] }
        }

        fn begins(&self, cpu: usize, privilege: Privilege, address: u64, again: bool) {
            let (counter, own) = self.counts.counter(privilege, address);
            let kernel = privilege == Privilege::Kernel;
            assert_eq!(own, kernel);
            let cell = counter.cell(cpu);
            self.counts.begins(self.at(cpu), Begun { cell, kernel, again });
        }

        fn faults(&self, cpu: usize, privilege: Privilege, address: u64) {
            let what = Interrupted { address, privilege, slot: 0, faulted: true, external: false };
            self.counts.interrupted(self.at(cpu), &what);
        }

        fn cut(&self) -> Vec<Cpu> {
            self.running.iter().for_each(Running::finish);
            let cpus = vec![Cpu::default(); 2];
            let mut slice =
                Slice { counts: Phase { cpus, ..Phase::default() }, ..Slice::default() };
            self.counts.cut(&mut slice);
            slice.counts.cpus
        }
    }

    fn process(id: u32) -> Process {
        Process { id, name: [b'p'; 16] }
    }

    #[test]
    fn kernel_instructions_are_counted_by_cpu_and_address() {
        use Privilege::{Firmware, Kernel, User};
        let trace = Trace::new();
        for (cpu, privilege, address) in [
            (0, Firmware, 0xfff0),
            (0, Kernel, KERNEL),
            (1, Kernel, KERNEL),
            (0, Kernel, KERNEL + 4),
            (1, User, 0x40_0000),
            (0, Kernel, KERNEL),
            (1, User, 0x40_0004),
        ] {
            trace.begins(cpu, privilege, address, false);
        }
        let executed = |address, count| Executed { address, count };
        let [first, second] = trace.cut().try_into().unwrap();
        assert_eq!(first.kernel, [executed(KERNEL, 2), executed(KERNEL + 4, 1)]);
        assert_eq!(first.totals, Totals { user: 0, kernel_other: 0, firmware: 1 });
        assert_eq!(second.kernel, [executed(KERNEL, 1)]);
        assert_eq!(second.totals, Totals { user: 2, kernel_other: 0, firmware: 0 });
        assert_eq!(trace.cut(), [Cpu::default(), Cpu::default()]);
    }

    #[test]
    fn an_instruction_with_a_fault_counts_when_it_was_executed() {
        let trace = Trace::new();
        for (privilege, address) in [(Privilege::Kernel, KERNEL), (Privilege::User, 0x40_0000)] {
            trace.begins(0, privilege, address, false);
            trace.faults(0, privilege, address);
            trace.begins(0, Privilege::Kernel, KERNEL + 64, false);
            trace.begins(0, privilege, address, false);
        }
        // A fault of another CPU at the same address does not change this CPU's counts.
        trace.begins(0, Privilege::Kernel, KERNEL, false);
        trace.faults(1, Privilege::Kernel, KERNEL);
        let executed = |address, count| Executed { address, count };
        let cpu = &trace.cut()[0];
        assert_eq!(cpu.kernel, [executed(KERNEL, 2), executed(KERNEL + 64, 2)]);
        assert_eq!(cpu.totals.user, 1);
    }

    #[test]
    fn a_repeated_store_counts_once() {
        let trace = Trace::new();
        for again in [true, true, false, false] {
            trace.begins(0, Privilege::Kernel, KERNEL, again);
        }
        assert_eq!(trace.cut()[0].kernel, [Executed { address: KERNEL, count: 3 }]);
    }

    #[test]
    fn user_instructions_are_those_of_the_process_that_ran() {
        let trace = Trace::new();
        let user = |count| (0..count).for_each(|at| trace.begins(0, Privilege::User, at, false));
        // The last begun instruction counts when the kernel's next one begins.
        let switch = |process| {
            trace.begins(0, Privilege::Kernel, KERNEL, false);
            trace.counts.ran(trace.at(0), process);
        };
        user(3);
        switch(Some(process(7)));
        user(2);
        switch(None);
        user(4);
        switch(Some(process(7)));
        trace.counts.ran(trace.at(0), Some(process(8)));
        let cpu = &trace.cut()[0];
        assert_eq!((cpu.totals.user, &*cpu.processes), (9, &[(process(7), 7)][..]));
        user(1);
        switch(Some(process(8)));
        assert_eq!(trace.cut()[0].processes, [(process(8), 1)]);
    }
}
