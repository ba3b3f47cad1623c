//! CPUs, memory and NUMA nodes of a machine, and which combinations are valid.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{Bytes, count};

/// Unit of a node's memory: the kernel's memory block on x86-64.
pub const MEMORY_BLOCK: Bytes = Bytes::mib(128);
/// The most CPUs: more would not boot in reasonable time under emulation.
pub const MAX_CPUS: u32 = 255;
/// QEMU's limit on NUMA nodes.
pub const MAX_NODES: usize = 128;
/// The most memory of a node: x86-64 addresses 64 TiB.
pub const MAX_MEMORY: Bytes = Bytes(64 << 40);
/// ACPI's distance of a node to itself.
pub const LOCAL_DISTANCE: u8 = 10;
/// ACPI's default distance between two nodes.
pub const REMOTE_DISTANCE: u8 = 20;

/// A set of CPU numbers, ascending, written as the kernel does: `0-3,8`. Empty for a node with
/// memory only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuSet(pub Vec<u32>);

/// One NUMA node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// CPUs of this node; empty for a node with memory only.
    #[serde(default)]
    pub cpus: CpuSet,
    /// Memory of this node, in multiples of 128 MiB.
    pub memory: Bytes,
    /// ACPI SLIT distances to every node in order, 10 to itself. If empty, the distance to all others is 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distances: Vec<u8>,
}

/// The CPUs and memory of a machine. Each of them belongs to a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// The nodes in order of their numbers; empty only if nothing is known of the machine.
    pub nodes: Vec<Node>,
}

/// The error that a topology is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyError {
    /// The key of the experiment file at fault.
    pub key: TopologyKey,
    /// The mistake in words.
    pub problem: String,
    /// The remedy in words.
    pub hint: String,
}

/// A key of the experiment file that is part of a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopologyKey {
    /// The CPUs of all nodes.
    Cpus,
    /// The total memory of all nodes.
    Memory,
    /// The number of nodes, or the list of them.
    Nodes,
    /// A key of the node of this number.
    Node(usize, &'static str),
}

/// As printed: `cpus`, `nodes[1].memory`.
impl fmt::Display for TopologyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpus => f.write_str("cpus"),
            Self::Memory => f.write_str("memory"),
            Self::Nodes => f.write_str("nodes"),
            Self::Node(number, key) => write!(f, "nodes[{number}].{key}"),
        }
    }
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.key, self.problem, self.hint)
    }
}

impl std::error::Error for TopologyError {}

fn refuse<T>(
    key: TopologyKey,
    problem: String,
    hint: impl Into<String>,
) -> Result<T, TopologyError> {
    Err(TopologyError { key, problem, hint: hint.into() })
}

impl Topology {
    /// Divides `cpus` and `memory` evenly over `nodes`. Remainders of CPUs go to the first nodes. Fails when
    /// there are more nodes than CPUs, or a node's share of memory is not whole blocks.
    pub fn even(cpus: u32, memory: Bytes, nodes: u32) -> Result<Self, TopologyError> {
        if nodes == 0 {
            return refuse(
                TopologyKey::Nodes,
                "a machine needs at least one node".into(),
                "use 1 or more",
            );
        }
        if cpus < nodes {
            let problem = format!(
                "{} cannot be divided over {}",
                count(cpus as usize, "CPU"),
                count(nodes as usize, "node")
            );
            return refuse(
                TopologyKey::Cpus,
                problem,
                "ask for fewer nodes or more CPUs, or list nodes without CPUs in a file",
            );
        }
        if cpus > MAX_CPUS {
            return refuse(
                TopologyKey::Cpus,
                format!("{cpus} CPUs"),
                "a machine has at most 255 CPUs",
            );
        }
        let blocks = u64::from(nodes) * MEMORY_BLOCK.0;
        if memory.0 == 0 || !memory.0.is_multiple_of(blocks) {
            let near = [memory.0 / blocks * blocks, memory.0.div_ceil(blocks).max(1) * blocks];
            let near: Vec<String> =
                near.into_iter().filter(|it| *it > 0).map(|it| Bytes(it).to_string()).collect();
            let problem = format!("{memory} is not a multiple of {} a node", MEMORY_BLOCK);
            return refuse(TopologyKey::Memory, problem, format!("use {}", near.join(" or ")));
        }
        let share = memory.0 / u64::from(nodes);
        let mut first = 0;
        let nodes = (0..nodes)
            .map(|node| {
                let count = cpus / nodes + u32::from(node < cpus % nodes);
                let set = CpuSet((first..first + count).collect());
                first += count;
                Node { cpus: set, memory: Bytes(share), distances: Vec::new() }
            })
            .collect();
        let topology = Self { nodes };
        topology.check()?;
        Ok(topology)
    }

    /// Number of CPUs of all nodes.
    pub fn cpus(&self) -> u32 {
        self.nodes.iter().map(|node| node.cpus.0.len() as u32).sum()
    }

    /// Memory of all nodes.
    pub fn memory(&self) -> Bytes {
        Bytes(self.nodes.iter().map(|node| node.memory.0).sum())
    }

    /// The node of each CPU.
    pub fn homes(&self) -> Vec<u16> {
        let mut homes = vec![0; self.cpus() as usize];
        for (number, node) in self.nodes.iter().enumerate() {
            for &cpu in &node.cpus.0 {
                homes[cpu as usize] = number as u16;
            }
        }
        homes
    }

    /// The distance from one node to another: the given one, or ACPI's default.
    pub fn distance(&self, from: usize, to: usize) -> u8 {
        let custom = if from == to { LOCAL_DISTANCE } else { REMOTE_DISTANCE };
        self.nodes[from].distances.get(to).copied().unwrap_or(custom)
    }

    /// Checks that the topology is valid. The error is the first mistake.
    pub fn check(&self) -> Result<(), TopologyError> {
        if self.nodes.is_empty() || self.nodes.len() > MAX_NODES {
            let problem = format!("{} nodes", self.nodes.len());
            return refuse(TopologyKey::Nodes, problem, "a machine has 1 to 128 nodes");
        }
        for (number, node) in self.nodes.iter().enumerate() {
            self.check_node(number, node)?;
        }
        self.check_cpus()
    }

    fn check_node(&self, number: usize, node: &Node) -> Result<(), TopologyError> {
        if node.memory.0 == 0 || !node.memory.0.is_multiple_of(MEMORY_BLOCK.0) {
            let problem = match node.memory.0 {
                0 => format!("less than {MEMORY_BLOCK}"),
                _ => format!("{} is not a multiple of {MEMORY_BLOCK}", node.memory),
            };
            let hint = "the kernel manages node memory in blocks of 128M; use whole blocks";
            return refuse(TopologyKey::Node(number, "memory"), problem, hint);
        }
        if node.memory > MAX_MEMORY {
            let key = TopologyKey::Node(number, "memory");
            return refuse(key, node.memory.to_string(), "a node has at most 64T");
        }
        let distances = &node.distances;
        if distances.is_empty() {
            return Ok(());
        }
        let key = TopologyKey::Node(number, "distances");
        if distances.len() != self.nodes.len() {
            let problem = format!("{} distances for {} nodes", distances.len(), self.nodes.len());
            return refuse(key, problem, "give one distance to each node, itself included");
        }
        for (other, &distance) in distances.iter().enumerate() {
            let local = other == number;
            if local != (distance == LOCAL_DISTANCE) || distance < LOCAL_DISTANCE {
                let problem = format!("distance {distance} to node {other}");
                return refuse(key, problem, "a node is 10 from itself and 11 to 255 from others");
            }
        }
        Ok(())
    }

    fn check_cpus(&self) -> Result<(), TopologyError> {
        let mut seen = vec![None; self.cpus() as usize];
        for (number, node) in self.nodes.iter().enumerate() {
            for &cpu in &node.cpus.0 {
                let key = TopologyKey::Node(number, "cpus");
                match seen.get_mut(cpu as usize) {
                    None => {
                        let problem = format!("CPU {cpu}, but only {} CPUs in all", self.cpus());
                        return refuse(key, problem, "number the CPUs 0, 1, 2 ... without gaps");
                    }
                    Some(Some(owner)) => {
                        let problem = format!("CPU {cpu} is in node {owner} already");
                        return refuse(key, problem, "a CPU belongs to one node");
                    }
                    Some(free) => *free = Some(number),
                }
            }
        }
        match self.cpus() {
            0 => refuse(
                TopologyKey::Nodes,
                "no node has CPUs".into(),
                "give at least one node a CPU",
            ),
            cpus if cpus > MAX_CPUS => {
                refuse(TopologyKey::Nodes, format!("{cpus} CPUs"), "a machine has at most 255 CPUs")
            }
            _ => Ok(()),
        }
    }
}

impl FromStr for CpuSet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("`{text}` is not a CPU list such as `0-3,8`");
        let mut cpus = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: u32 = first.parse().map_err(|_| wrong())?;
            let last: u32 = last.parse().map_err(|_| wrong())?;
            if first > last || last > MAX_CPUS {
                return Err(wrong());
            }
            cpus.extend(first..=last);
        }
        cpus.sort_unstable();
        if cpus.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(format!("`{text}` names a CPU twice"));
        }
        Ok(Self(cpus))
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges = self.0.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
            [only] => only.to_string(),
            run => format!("{}-{}", run[0], run[run.len() - 1]),
        });
        f.pad(&ranges.collect::<Vec<_>>().join(","))
    }
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(cpus: &str, mib: u64, distances: &[u8]) -> Node {
        Node { cpus: cpus.parse().unwrap(), memory: Bytes::mib(mib), distances: distances.into() }
    }

    #[test]
    fn an_even_topology_uses_every_cpu_once() {
        let topology = Topology::even(5, Bytes::mib(1024), 2).unwrap();
        let lists: Vec<_> = topology.nodes.iter().map(|node| node.cpus.to_string()).collect();
        assert_eq!(lists, ["0-2", "3-4"]);
        assert_eq!(topology.memory(), Bytes::mib(1024));
        assert_eq!((topology.distance(0, 0), topology.distance(0, 1)), (10, 20));
    }

    #[test]
    fn too_many_cpus_are_refused_before_they_are_counted() {
        assert_eq!(
            Topology::even(u32::MAX, Bytes::mib(1024), 2).unwrap_err().key,
            TopologyKey::Cpus
        );
    }

    #[test]
    fn nodes_without_cpus_are_allowed() {
        let nodes = vec![node("0-1", 256, &[10, 17]), node("", 128, &[17, 10])];
        assert_eq!(Topology { nodes }.check(), Ok(()));
    }

    #[test]
    fn an_invalid_topology_is_reported_with_its_key() {
        let cases: [(Vec<Node>, &str); 8] = [
            (vec![node("0", 1 << 43, &[])], "nodes[0].memory"),
            (vec![], "nodes"),
            (vec![node("", 128, &[])], "nodes"),
            (vec![node("0", 100, &[])], "nodes[0].memory"),
            (vec![node("0", 128, &[]), node("0", 128, &[])], "nodes[1].cpus"),
            (vec![node("0,2", 128, &[])], "nodes[0].cpus"),
            (vec![node("0", 128, &[10, 20])], "nodes[0].distances"),
            (vec![node("0", 128, &[10, 20]), node("1", 128, &[10, 10])], "nodes[1].distances"),
        ];
        for (nodes, key) in cases {
            assert_eq!(Topology { nodes }.check().unwrap_err().key.to_string(), key);
        }
    }

    #[test]
    fn cpu_lists_read_as_they_are_written() {
        for text in ["0-3,8", "", "0", "0-1"] {
            assert_eq!(text.parse::<CpuSet>().unwrap().to_string(), text);
        }
        for text in ["3-1", "a", "0,0", "1-", "0-4294967295"] {
            assert!(text.parse::<CpuSet>().is_err(), "{text}");
        }
    }
}
