//! The machine's nodes: which CPUs and how much memory each has.

use std::fs;
use std::io;
use std::path::Path;

use model::CpuSet;

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub number: usize,
    /// The CPUs; empty for a node with only memory.
    pub cpus: Vec<u32>,
    /// The memory in bytes.
    pub memory: u64,
}

/// All nodes, by number.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// There is at least one.
    pub nodes: Vec<Node>,
}

impl Topology {
    /// The nodes of the machine on which this runs.
    pub fn of_this_machine() -> io::Result<Self> {
        Self::read(Path::new("/sys/devices/system/node"))
    }

    fn read(directory: &Path) -> io::Result<Self> {
        let text = |path: String| fs::read_to_string(directory.join(path));
        let list = |text: String| {
            let set = text.trim().parse::<CpuSet>();
            set.map(|set| set.0).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
        };
        let node = |number: u32| -> io::Result<Node> {
            let cpus = list(text(format!("node{number}/cpulist"))?)?;
            let memory = memory(&text(format!("node{number}/meminfo"))?);
            Ok(Node { number: number as usize, cpus, memory })
        };
        let numbers = list(text("online".into())?)?;
        let nodes = numbers.into_iter().map(node).collect::<io::Result<Vec<_>>>()?;
        Ok(Self { nodes })
    }

    /// The memory of a node in bytes.
    pub fn memory(&self, number: usize) -> Option<u64> {
        Some(self.nodes.iter().find(|node| node.number == number)?.memory)
    }

    /// The node of a CPU.
    pub fn node_of(&self, cpu: usize) -> Option<usize> {
        let has = |node: &&Node| node.cpus.iter().any(|own| *own as usize == cpu);
        Some(self.nodes.iter().find(has)?.number)
    }
}

/// `MemTotal` in a node's meminfo, in bytes: `Node 0 MemTotal:  1001234 kB`. 0 if the text has none.
fn memory(meminfo: &str) -> u64 {
    let total = meminfo.lines().find(|line| line.contains("MemTotal:"));
    let number = total.and_then(|line| line.split_whitespace().nth(3)?.parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_read_with_gaps_and_without_cpus() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("online"), "0,2\n").unwrap();
        for (node, cpus) in [(0, "0-1,4\n"), (2, "\n")] {
            let directory = root.path().join(format!("node{node}"));
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("cpulist"), cpus).unwrap();
            let meminfo =
                format!("Node {node} MemTotal:       1024 kB\nNode {node} MemFree: 1 kB\n");
            fs::write(directory.join("meminfo"), meminfo).unwrap();
        }
        let topology = Topology::read(root.path()).unwrap();
        assert_eq!((topology.node_of(4), topology.node_of(2)), (Some(0), None));
        assert_eq!((topology.memory(2), topology.memory(1)), (Some(1 << 20), None));
        assert_eq!(topology.nodes.len(), 2);
    }
}
