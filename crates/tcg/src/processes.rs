//! Counts user instructions by process, from the kernel's task switches. At a switch, the instructions that the CPU
//! executed in user mode since the last switch belong to the old task.

use std::collections::BTreeMap;

use flight::profile::Process;

/// The most processes for each CPU that are distinguished in one phase.
const MAX_PROCESSES: usize = 1 << 14;

/// One CPU's user instructions by process, in the current phase.
#[derive(Debug, Default)]
pub struct Processes {
    /// The part of the CPU's total that is already attributed.
    counted: u64,
    counts: BTreeMap<Process, u64>,
}

impl Processes {
    /// Attributes the CPU's user instructions up to `total` that are not yet attributed to `process`.
    pub fn count(&mut self, process: Option<Process>, total: u64) {
        let more = total.wrapping_sub(self.counted).cast_signed();
        if more <= 0 {
            return;
        }
        self.counted = total;
        let Some(process) = process else { return };
        if self.counts.len() < MAX_PROCESSES || self.counts.contains_key(&process) {
            *self.counts.entry(process).or_default() += more.unsigned_abs();
        }
    }

    /// Returns the counts of the phase, and starts the next one. The CPU's total must restart at 0.
    pub fn cut(&mut self) -> Vec<(Process, u64)> {
        self.counted = 0;
        std::mem::take(&mut self.counts).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(id: u32) -> Process {
        Process { id, name: *b"postgres\0\0\0\0\0\0\0\0" }
    }

    #[test]
    fn instructions_belong_to_the_task_that_is_left() {
        let mut processes = Processes::default();
        processes.count(None, 5); // before the first switch
        processes.count(Some(process(7)), 15);
        processes.count(Some(process(8)), 15);
        processes.count(Some(process(7)), 16);
        assert_eq!(processes.cut(), [(process(7), 11)]);
        processes.count(Some(process(8)), 3);
        assert_eq!(processes.cut(), [(process(8), 3)]);
    }

    #[test]
    fn processes_are_limited() {
        let mut processes = Processes::default();
        for id in 0..MAX_PROCESSES as u32 + 10 {
            processes.count(Some(process(id)), u64::from(id) + 1);
        }
        assert_eq!(processes.cut().len(), MAX_PROCESSES);
    }
}
