//! The true local-access share: the share of loads and stores to node memory that go to the node of the accessing
//! CPU. Exact mode counts every access. The kernel itself estimates the share from NUMA hinting faults (`NUMA hint
//! local percent`).

use std::ops::Add;

use model::{Boot, Privilege, Profile, Target, Topology};

/// Numbers of loads and stores to memory of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Accesses to the CPU's own node.
    pub local: u64,
    /// Accesses to other nodes.
    pub remote: u64,
}

impl Split {
    /// The local share in percent; `None` without accesses.
    pub fn percent(self) -> Option<f64> {
        let all = self.local as f64 + self.remote as f64;
        (all > 0.0).then(|| 100.0 * self.local as f64 / all)
    }
}

impl Add for Split {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            local: self.local.saturating_add(other.local),
            remote: self.remote.saturating_add(other.remote),
        }
    }
}

/// The accesses of one phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accesses<'a> {
    pub iteration: u32,
    pub phase: &'a str,
    /// Accesses by programs in user mode.
    pub user: Split,
    /// Accesses by the kernel. Those by firmware are left out.
    pub kernel: Split,
}

/// The accesses of `workload` in `boot`, one entry per phase; empty if they were not counted.
pub fn accesses<'a>(boot: &'a Boot, workload: &str, topology: &Topology) -> Vec<Accesses<'a>> {
    let profiles = boot.profiles.iter();
    profiles
        .filter(|profile| profile.workload == workload && profile.memory().next().is_some())
        .map(|profile| Accesses {
            iteration: profile.iteration,
            phase: &profile.phase,
            user: split(profile, Privilege::User, topology),
            kernel: split(profile, Privilege::Kernel, topology),
        })
        .collect()
}

/// Sums local and remote accesses of one privilege. Accesses to devices, accesses to memory of no node, and accesses
/// by CPUs of no node are neither.
fn split(profile: &Profile, privilege: Privilege, topology: &Topology) -> Split {
    let made = profile.memory().filter(|row| row.privilege == privilege);
    let cells = made.flat_map(|row| row.cells.iter().map(move |cell| (row.target, cell)));
    let splits = cells.filter_map(|(target, cell)| {
        let Target::Node(target) = target else { return None };
        let home = home(cell.cpu.into(), topology)?;
        Some(match home == usize::from(target) {
            true => Split { local: cell.value, remote: 0 },
            false => Split { local: 0, remote: cell.value },
        })
    });
    splits.fold(Split::default(), Add::add)
}

/// The node that a CPU is on; `None` if it is on none.
fn home(cpu: u32, topology: &Topology) -> Option<usize> {
    topology.nodes.iter().position(|node| node.cpus.0.contains(&cpu))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{accessed, boot, topology};

    #[test]
    fn an_access_is_local_on_the_cpus_own_node() {
        // CPUs 0 and 1 are on node 0, 2 and 3 on node 1.
        let counts = [
            (0, Privilege::User, Target::Node(0), 10),
            (1, Privilege::User, Target::Node(1), 20),
            (2, Privilege::User, Target::Node(1), 40),
            (3, Privilege::Kernel, Target::Node(1), 5),
            (3, Privilege::Kernel, Target::Node(0), 7),
        ];
        let mut boot = boot(0);
        boot.profiles = vec![accessed(0, "run", &counts)];
        let [found] = accesses(&boot, "autonuma", &topology()).try_into().unwrap();
        assert_eq!((found.iteration, found.phase), (0, "run"));
        assert_eq!(found.user, Split { local: 50, remote: 20 });
        assert_eq!(found.kernel, Split { local: 5, remote: 7 });
        assert_eq!((found.user + found.kernel).percent(), Some(100.0 * 55.0 / 82.0));
    }

    #[test]
    fn accesses_outside_all_nodes_do_not_count() {
        let counts = [
            (0, Privilege::User, Target::Device, 1),
            (0, Privilege::User, Target::Elsewhere, 1),
            (0, Privilege::Firmware, Target::Node(0), 1),
            (99, Privilege::User, Target::Node(0), 1),
        ];
        let mut boot = boot(0);
        boot.profiles = vec![accessed(0, "", &counts)];
        let [found] = accesses(&boot, "autonuma", &topology()).try_into().unwrap();
        assert_eq!((found.user, found.kernel), (Split::default(), Split::default()));
        assert_eq!(found.user.percent(), None);
    }

    #[test]
    fn without_counting_there_are_no_accesses() {
        let mut boot = boot(0);
        boot.profiles = vec![accessed(0, "run", &[])];
        assert_eq!(accesses(&boot, "autonuma", &topology()), []);
        assert_eq!(accesses(&boot, "other", &topology()), []);
    }
}
