//! Counts instructions: those of the kernel by address, those of programs by process.

use std::sync::{Mutex, MutexGuard, PoisonError};

use flight::profile::{Process, Totals};

use crate::observer::{At, Observer, Slice};
use crate::processes::Processes;
use crate::running::Running;
use crate::segments::{Position, Segments};

/// The largest number of kernel instructions in segments with their own counts. A kernel executes about half a million
/// instructions. One that generates code endlessly must not fill the host's memory.
const MAX_INSTRUCTIONS: usize = 1 << 21;

/// The counts of all CPUs.
pub struct InstructionCounts(Mutex<Counts>);

struct Counts {
    segments: Segments,
    /// Processes by CPU.
    processes: Vec<Processes>,
}

impl InstructionCounts {
    /// Counts of 0, for a machine with this number of CPUs.
    pub fn new(cpus: u16) -> Self {
        let segments = Segments::new(cpus.into(), MAX_INSTRUCTIONS);
        let processes = (0..cpus).map(|_| Processes::default()).collect();
        Self(Mutex::new(Counts { segments, processes }))
    }

    /// Calls `act` with the segments.
    pub fn with_segments<T>(&self, act: impl FnOnce(&mut Segments) -> T) -> T {
        act(&mut self.lock().segments)
    }

    /// Counts what other CPUs than `cpu` have executed so far.
    pub fn split_others(&self, cpu: usize, running: &[Running], position: Position) {
        let segments = &mut self.lock().segments;
        let others = running.iter().enumerate().filter(|(number, _)| *number != cpu);
        others.for_each(|(number, running)| running.split(number, segments, position));
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for InstructionCounts {
    fn ran(&self, at: At<'_>, process: Option<Process>) {
        let mut counts = self.lock();
        let total = counts.segments.user.get(at.cpu);
        counts.processes[at.cpu].count(process, total);
    }

    fn cut(&self, slice: &mut Slice) {
        let Counts { segments, processes } = &mut *self.lock();
        let cpus = slice.counts.cpus.iter_mut().zip(processes).enumerate();
        for (number, (cpu, processes)) in cpus {
            cpu.kernel = segments.take(number);
            cpu.totals = Totals {
                user: segments.user.take(number),
                kernel_other: segments.kernel_other.take(number),
                firmware: segments.firmware.take(number),
            };
            cpu.processes = processes.cut();
        }
    }
}

#[cfg(test)]
mod tests {
    use flight::profile::{Cpu, Executed, Phase, Privilege};

    use super::*;
    use crate::segments::cells;

    const KERNEL: u64 = 0xffff_ffff_8100_0000;

    /// CPUs and their counts. Each instruction is a segment.
    struct Trace {
        counts: InstructionCounts,
        running: [Running; 2],
        position: Position,
    }

    impl Trace {
        fn new() -> Self {
            let running = [const { Running::new() }; 2];
            Self { counts: InstructionCounts::new(2), running, position: &cells(1)[0] }
        }

        fn at(&self, cpu: usize) -> At<'_> {
            At { cpu, running: &self.running[cpu] }
        }

        fn begins(&self, cpu: usize, privilege: Privilege, address: u64) {
            let segment = self.counts.with_segments(|it| match privilege {
                Privilege::Kernel => it.kernel(&[address], false),
                _ => it.shared(privilege),
            });
            self.running[cpu].begin(cpu, segment, self.position);
        }

        fn cut(&self) -> Vec<Cpu> {
            let running = self.running.iter().enumerate();
            running.for_each(|(cpu, running)| running.finish(cpu, self.position));
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
            trace.begins(cpu, privilege, address);
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
    fn user_instructions_are_those_of_the_process_that_ran() {
        let trace = Trace::new();
        let user = |count| (0..count).for_each(|at| trace.begins(0, Privilege::User, at));
        // The last begun instruction counts when the kernel's next one begins.
        let switch = |process| {
            trace.begins(0, Privilege::Kernel, KERNEL);
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
