//! Combines the placement of memory and threads that each process reports into shares of all.

use serde::{Deserialize, Serialize};

use super::super::topology::Topology;

/// The report of one process, by node number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// Sampled pages that are present.
    pub pages: Vec<u32>,
    pub threads: Vec<u32>,
}

impl Placement {
    /// A report of no pages and threads.
    pub fn of(topology: &Topology) -> Self {
        let nodes = topology.nodes.last().map_or(0, |last| last.number + 1);
        Self { pages: vec![0; nodes], threads: vec![0; nodes] }
    }
}

/// Counts one item on a node. Items on no node, such as untouched pages, are not counted.
pub fn count(counts: &mut [u32], node: Option<usize>) {
    if let Some(count) = node.and_then(|node| counts.get_mut(node)) {
        *count += 1;
    }
}

/// The shares of all processes together.
pub struct Convergence {
    nodes: Vec<usize>,
    processes: Vec<State>,
}

#[derive(Clone, PartialEq)]
enum State {
    Silent,
    Told(Placement),
    Ended,
}

impl Convergence {
    /// A record to which none of the `processes` has reported yet.
    pub fn of(processes: usize, topology: &Topology) -> Self {
        let nodes = topology.nodes.iter().map(|node| node.number).collect();
        Self { nodes, processes: vec![State::Silent; processes] }
    }

    /// Adds a process's report, or `None` when the process has ended. Once all running processes have reported,
    /// returns the series with their shares, from 0 to 1.
    pub fn update(&mut self, process: usize, placement: Option<Placement>) -> Vec<(String, f64)> {
        self.processes[process] = placement.map_or(State::Ended, State::Told);
        if self.processes.contains(&State::Silent) {
            return Vec::new();
        }
        let mut told = Vec::new();
        for state in &mut self.processes {
            if let State::Told(placement) = state {
                told.push(std::mem::take(placement));
                *state = State::Silent;
            }
        }
        let pages = self.shares("memory", told.iter().map(|placement| &placement.pages));
        let threads = self.shares("threads", told.iter().map(|placement| &placement.threads));
        pages.into_iter().chain(threads).collect()
    }

    /// The share of each node in all counts; empty if there are none.
    fn shares<'a>(
        &self,
        what: &str,
        counts: impl Iterator<Item = &'a Vec<u32>>,
    ) -> Vec<(String, f64)> {
        let mut sums = vec![0; self.nodes.len()];
        for counts in counts {
            for (sum, &node) in sums.iter_mut().zip(&self.nodes) {
                *sum += counts.get(node).copied().unwrap_or(0);
            }
        }
        let total: u32 = sums.iter().sum();
        if total == 0 {
            return Vec::new();
        }
        let named = sums.into_iter().zip(&self.nodes);
        named
            .map(|(sum, node)| (format!("{what}-node{node}"), f64::from(sum) / f64::from(total)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::topology::Node;
    use super::*;

    fn topology() -> Topology {
        let node = |number| Node { number, cpus: vec![], memory: 0 };
        Topology { nodes: vec![node(0), node(2)] }
    }

    fn placement(pages: [u32; 3], threads: [u32; 3]) -> Option<Placement> {
        Some(Placement { pages: pages.into(), threads: threads.into() })
    }

    #[test]
    fn shares_are_of_all_running_processes() {
        let mut convergence = Convergence::of(2, &topology());
        assert!(convergence.update(0, placement([300, 0, 0], [1, 0, 1])).is_empty());
        let shares = convergence.update(1, placement([0, 0, 100], [2, 0, 0]));
        let named = |name: &str, share| (name.to_owned(), share);
        let expected = [
            named("memory-node0", 0.75),
            named("memory-node2", 0.25),
            named("threads-node0", 0.75),
            named("threads-node2", 0.25),
        ];
        assert_eq!(shares, expected);
        assert!(convergence.update(1, None).is_empty());
        let alone = convergence.update(0, placement([0, 0, 5], [0, 0, 0]));
        assert_eq!(alone, [named("memory-node0", 0.0), named("memory-node2", 1.0)]);
        assert!(convergence.update(0, None).is_empty());
    }

    #[test]
    fn items_on_no_node_are_not_counted() {
        let mut counts = Placement::of(&topology()).pages;
        for node in [Some(2), None, Some(9)] {
            count(&mut counts, node);
        }
        assert_eq!(counts, [0, 0, 1]);
    }
}
