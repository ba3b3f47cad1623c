//! Counts loads and stores by CPU, privilege and target. It runs at every access, so there is no lock: only the
//! thread that runs a CPU writes its cells.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flight::profile::{Accesses, Privilege, Target};

use crate::machine::Access;
use crate::observer::{At, Observer, Slice};
use crate::segments::add;

/// The counts of all CPUs.
#[derive(Debug)]
pub struct AccessCounts {
    ranges: Vec<(u16, Range<u64>)>,
    targets: Vec<Target>,
    cells: Vec<AtomicU64>,
}

impl AccessCounts {
    /// Counts of 0, for a machine with these CPUs and nodes.
    pub fn new(cpus: u16, ranges: &[(u16, Range<u64>)]) -> Self {
        let nodes = (0..node_count(ranges)).map(Target::Node);
        let targets: Vec<Target> = nodes.chain([Target::Device, Target::Elsewhere]).collect();
        let cells = usize::from(cpus) * Privilege::ALL.len() * targets.len() * 2;
        let cells = (0..cells).map(|_| AtomicU64::new(0)).collect();
        Self { ranges: ranges.to_vec(), targets, cells }
    }

    /// Counts one access to a physical address, which is `None` for a device.
    fn count(&self, at: At<'_>, privilege: Privilege, address: Option<u64>, store: bool) {
        let devices = self.targets.len() - 2;
        let target = match address {
            Some(address) => self.node(address).map_or(devices + 1, usize::from),
            None => devices,
        };
        if let Some(cell) = self.cells.get(self.row(at.cpu, privilege, target) + usize::from(store))
        {
            add(cell, at.running.weight());
        }
    }

    /// Returns the counts of a CPU in the slice, and resets them to 0.
    fn take(&self, cpu: usize) -> Vec<Accesses> {
        let counts = self.so_far(cpu);
        self.cells_of(cpu).iter().for_each(|cell| cell.store(0, Relaxed));
        counts
    }

    /// The counts of a CPU since the slice began.
    pub fn so_far(&self, cpu: usize) -> Vec<Accesses> {
        let rows = Privilege::ALL
            .iter()
            .flat_map(|&privilege| (0..self.targets.len()).map(move |t| (privilege, t)));
        let rows = rows.map(|(privilege, target)| {
            let row = self.row(cpu, privilege, target);
            let [loads, stores] = [row, row + 1].map(|cell| self.cells[cell].load(Relaxed));
            Accesses { privilege, target: self.targets[target], loads, stores }
        });
        rows.filter(|row| row.loads > 0 || row.stores > 0).collect()
    }

    fn node(&self, address: u64) -> Option<u16> {
        let range = self.ranges.iter().find(|(_, range)| range.contains(&address));
        range.map(|(node, _)| *node)
    }

    fn cells_of(&self, cpu: usize) -> &[AtomicU64] {
        let [first, next] = [cpu, cpu + 1].map(|cpu| self.row(cpu, Privilege::ALL[0], 0));
        &self.cells[first..next]
    }

    fn row(&self, cpu: usize, privilege: Privilege, target: usize) -> usize {
        ((cpu * Privilege::ALL.len() + privilege as usize) * self.targets.len() + target) * 2
    }
}

impl Observer for AccessCounts {
    #[inline]
    fn accesses(&self, at: At<'_>, privilege: Privilege, access: &dyn Access) {
        self.count(at, privilege, access.physical(), access.is_store());
    }

    fn cut(&self, slice: &mut Slice) {
        for (number, cpu) in slice.counts.cpus.iter_mut().enumerate() {
            cpu.accesses = self.take(number);
        }
    }
}

/// The number of nodes of a machine with these ranges of memory.
pub fn node_count(ranges: &[(u16, Range<u64>)]) -> u16 {
    ranges.iter().map(|(node, _)| node + 1).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use flight::profile::{Cpu, Phase};

    use super::*;
    use crate::machine::fake::FakeAccess;
    use crate::running::Running;

    #[test]
    fn a_node_may_be_below_and_above_the_hole() {
        let ranges = [(0, 0..0xc000), (1, 0x1_4000..0x2_0000), (0, 0x1_0000..0x1_4000)];
        let counts = AccessCounts::new(2, &ranges);
        let running = Running::new();
        let at = At { cpu: 1, running: &running };
        for address in [0, 0xbfff, 0xc000, 0x1_0000, 0x1_4000] {
            counts.count(at, Privilege::User, Some(address), false);
        }
        counts.count(at, Privilege::Kernel, None, true);
        let row = |privilege, target, loads, stores| Accesses { privilege, target, loads, stores };
        let rows = [
            row(Privilege::Kernel, Target::Device, 0, 1),
            row(Privilege::User, Target::Node(0), 3, 0),
            row(Privilege::User, Target::Node(1), 1, 0),
            row(Privilege::User, Target::Elsewhere, 1, 0),
        ];
        assert_eq!(counts.so_far(1), rows);
        assert_eq!(counts.take(1), rows);
        assert_eq!(counts.take(1), []);
        assert_eq!(counts.take(0), []);
    }

    #[test]
    fn accesses_are_counted_by_physical_address_and_kind() {
        let counts = AccessCounts::new(1, &[(0, 0..0x1000), (1, 0x1000..0x2000)]);
        let running = Running::new();
        let at = At { cpu: 0, running: &running };
        let (load, store) = (FakeAccess::load(0x800, 1), FakeAccess::store(0x1800, 2));
        let moved = FakeAccess { physical: Some(0x1000), ..load };
        let device = FakeAccess { physical: None, ..store };
        for access in [&load, &store, &store, &moved, &device] {
            counts.accesses(at, Privilege::Kernel, access);
        }
        let cpus = vec![Cpu::default()];
        let mut slice = Slice { counts: Phase { cpus, ..Phase::default() }, ..Slice::default() };
        counts.cut(&mut slice);
        let row = |target, loads, stores| Accesses {
            privilege: Privilege::Kernel,
            target,
            loads,
            stores,
        };
        let rows =
            [row(Target::Node(0), 1, 0), row(Target::Node(1), 1, 2), row(Target::Device, 0, 1)];
        assert_eq!(slice.counts.cpus[0].accesses, rows);
        assert_eq!(counts.so_far(0), []);
    }

    #[test]
    fn a_cpu_that_does_not_exist_counts_nothing() {
        let counts = AccessCounts::new(1, &[(0, 0..1)]);
        let at = At { cpu: 1, running: &Running::new() };
        counts.count(at, Privilege::Kernel, Some(0), false);
        assert_eq!(counts.take(0), []);
    }
}
