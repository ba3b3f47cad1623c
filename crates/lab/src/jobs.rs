//! Decides how many boots run in parallel.

use std::thread::available_parallelism;

use model::{Bytes, Experiment, Mode};

use crate::RunOptions;

/// The memory that a machine needs besides the guest's: for QEMU, its translated code, and the
/// recording.
const BESIDE_GUEST: Bytes = Bytes::mib(512);

impl RunOptions {
    /// Returns how many boots of an experiment run in parallel. In measured mode it is one. In
    /// exact mode it is the requested number, otherwise as many as the host has CPUs and free
    /// memory for.
    pub fn side_by_side(self, experiment: &Experiment) -> usize {
        match (experiment.mode, self.jobs) {
            (Mode::Measured, _) => 1,
            (Mode::Exact, Some(jobs)) => jobs.max(1) as usize,
            (Mode::Exact, None) => {
                let cpus = available_parallelism().map_or(1, usize::from);
                let machines = experiment.variants.iter().map(|it| experiment.seen_by(it).machine);
                let largest = machines.map(|it| it.topology.memory().0).max().unwrap_or(0);
                let each = largest.saturating_add(BESIDE_GUEST.0);
                fitting(cpus, machine::host::unused_memory().map(|unused| unused.0 / each))
            }
        }
    }
}

/// Returns the smaller of the number of CPUs and the number that fits into memory, but at least
/// one. `room` is `None` if the free memory is not known.
fn fitting(cpus: usize, room: Option<u64>) -> usize {
    let room = room.and_then(|room| usize::try_from(room).ok()).unwrap_or(usize::MAX);
    cpus.min(room).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_and_memory_limit_parallel_boots() {
        assert_eq!(fitting(4, Some(3)), 3);
        assert_eq!(fitting(4, Some(0)), 1);
        assert_eq!(fitting(4, Some(9)), 4);
        assert_eq!(fitting(4, None), 4);
    }
}
