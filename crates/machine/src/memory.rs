//! Locates the memory of each node in the guest's physical address space.

use std::ops::Range;

use model::Topology;

use crate::arch::Platform;

/// The ranges of physical memory with their nodes, by address. Nodes fill the addresses of the machine in order.
pub fn ranges(topology: &Topology, platform: &Platform) -> Vec<(usize, Range<u64>)> {
    let mut free = (platform.memory)(topology.memory().0).into_iter();
    let mut room = 0..0;
    let mut ranges = Vec::new();
    for (number, node) in topology.nodes.iter().enumerate() {
        let mut left = node.memory.0;
        while left > 0 {
            while room.is_empty() {
                let Some(next) = free.next() else { return ranges };
                room = next;
            }
            let end = room.end.min(room.start + left);
            left -= end - room.start;
            ranges.push((number, room.start..end));
            room.start = end;
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use model::{Architecture, Bytes, CpuSet, Node};

    use super::*;
    use crate::arch::platform;

    /// The ranges in MiB of nodes with these sizes in MiB.
    fn mebibytes(arch: Architecture, nodes: &[u64]) -> Vec<(usize, Range<u64>)> {
        let node = |mib: &u64| Node {
            cpus: CpuSet::default(),
            memory: Bytes::mib(*mib),
            distances: Vec::new(),
        };
        let topology = Topology { nodes: nodes.iter().map(node).collect() };
        let scaled =
            |(node, range): (usize, Range<u64>)| (node, range.start >> 20..range.end >> 20);
        ranges(&topology, platform(arch)).into_iter().map(scaled).collect()
    }

    #[test]
    fn a_small_memory_is_in_one_piece() {
        assert_eq!(mebibytes(Architecture::X86_64, &[512, 256]), [(0, 0..512), (1, 512..768)]);
        assert_eq!(mebibytes(Architecture::X86_64, &[2688]), [(0, 0..2688)]);
    }

    #[test]
    fn the_memory_of_arm64_is_in_one_piece() {
        let nodes = mebibytes(Architecture::Arm64, &[3072, 3072]);
        assert_eq!(nodes, [(0, 1024..4096), (1, 4096..7168)]);
    }

    #[test]
    fn a_large_memory_is_below_and_above_the_hole() {
        assert_eq!(mebibytes(Architecture::X86_64, &[2816]), [(0, 0..2048), (0, 4096..4864)]);
        assert_eq!(
            mebibytes(Architecture::X86_64, &[3072, 3072]),
            [(0, 0..2048), (0, 4096..5120), (1, 5120..8192)]
        );
        assert_eq!(mebibytes(Architecture::X86_64, &[2048, 2048]), [(0, 0..2048), (1, 4096..6144)]);
        assert_eq!(
            mebibytes(Architecture::X86_64, &[1024, 2048]),
            [(0, 0..1024), (1, 1024..2048), (1, 4096..5120)]
        );
    }
}
