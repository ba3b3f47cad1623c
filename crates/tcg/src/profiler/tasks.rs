//! The task and the process that each CPU runs. Reads take no lock.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flight::profile::Process;

/// The tasks of all CPUs.
pub struct Tasks(Vec<Task>);

/// What one CPU runs.
struct Task {
    /// The address of `struct task_struct`; 0 before the CPU's first switch.
    address: AtomicU64,
    /// The process's number plus 1; 0 if it is not known.
    process: AtomicU64,
    /// Both halves of its name.
    name: [AtomicU64; 2],
}

impl Tasks {
    /// Nothing is known of this number of CPUs.
    pub fn new(cpus: u16) -> Self {
        Self((0..cpus).map(|_| Task::new()).collect())
    }

    /// The number of CPUs.
    pub fn cpus(&self) -> usize {
        self.0.len()
    }

    /// The task that runs on a CPU.
    pub fn task(&self, cpu: usize) -> Option<u64> {
        Some(self.0[cpu].address.load(Relaxed)).filter(|address| *address != 0)
    }

    /// The process of that task, as it was noted last.
    pub fn process(&self, cpu: usize) -> Option<Process> {
        let task = &self.0[cpu];
        let id = task.process.load(Relaxed).checked_sub(1)? as u32;
        let mut name = [0; 16];
        for (half, word) in name.as_chunks_mut().0.iter_mut().zip(&task.name) {
            *half = word.load(Relaxed).to_le_bytes();
        }
        Some(Process { id, name })
    }

    /// A CPU runs another task.
    pub fn set(&self, cpu: usize, address: u64, process: Option<&Process>) {
        self.0[cpu].address.store(address, Relaxed);
        self.note(cpu, process);
    }

    /// Notes the process that a CPU runs. Its name can have changed.
    pub fn note(&self, cpu: usize, process: Option<&Process>) {
        let task = &self.0[cpu];
        task.process.store(process.map_or(0, |process| u64::from(process.id) + 1), Relaxed);
        let Some(Process { name, .. }) = process else { return };
        for (half, word) in name.as_chunks().0.iter().zip(&task.name) {
            word.store(u64::from_le_bytes(*half), Relaxed);
        }
    }
}

impl Task {
    const fn new() -> Self {
        let [address, process] = [const { AtomicU64::new(0) }; 2];
        Self { address, process, name: [const { AtomicU64::new(0) }; 2] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_has_its_task_and_process() {
        let tasks = Tasks::new(2);
        assert_eq!((tasks.cpus(), tasks.task(1), tasks.process(1)), (2, None, None));
        let process = Process { id: 0, name: *b"0123456789abcde\0" };
        tasks.set(1, 0x1000, Some(&process));
        assert_eq!((tasks.task(1), tasks.process(1)), (Some(0x1000), Some(process.clone())));
        let renamed = Process { name: [b'r'; 16], ..process };
        tasks.note(1, Some(&renamed));
        assert_eq!(tasks.process(1), Some(renamed));
        tasks.set(1, 0x2000, None);
        assert_eq!((tasks.task(1), tasks.process(1)), (Some(0x2000), None));
        assert_eq!(tasks.task(0), None);
    }
}
