//! Locates the memory of each node in the guest's physical address space.

use std::ops::Range;

use model::Topology;

/// The largest size of the memory below 4 GiB, if all memory fits there.
const LOW_AT_MOST: u64 = 0xb000_0000;
/// The size of the memory below 4 GiB, if there is more memory above.
const LOW_IF_SPLIT: u64 = 0x8000_0000;
/// The address of the memory above 4 GiB. Machines of nearly 1 TiB have another one, but they are not
/// emulated.
const HIGH: u64 = 1 << 32;

/// Ranges of physical memory and the node of each, by address. Memory fills the space below the hole for
/// devices, then the space from 4 GiB on, node by node (`pc_q35_init` in `hw/i386/pc_q35.c` of QEMU).
pub fn ranges(topology: &Topology) -> Vec<(usize, Range<u64>)> {
    let low = if topology.memory().0 < LOW_AT_MOST { LOW_AT_MOST } else { LOW_IF_SPLIT };
    let mut end = 0;
    let mut ranges = Vec::new();
    for (number, node) in topology.nodes.iter().enumerate() {
        let start = end;
        end += node.memory.0;
        let below = start.min(low)..end.min(low);
        let above = start.max(low)..end.max(low);
        let above = above.start - low + HIGH..above.end - low + HIGH;
        let there = [below, above].into_iter().filter(|range| !range.is_empty());
        ranges.extend(there.map(|range| (number, range)));
    }
    ranges
}

#[cfg(test)]
mod tests {
    use model::{Bytes, CpuSet, Node};

    use super::*;

    /// The ranges in MiB of nodes with these sizes in MiB.
    fn mebibytes(nodes: &[u64]) -> Vec<(usize, Range<u64>)> {
        let node = |mib: &u64| Node {
            cpus: CpuSet::default(),
            memory: Bytes::mib(*mib),
            distances: Vec::new(),
        };
        let topology = Topology { nodes: nodes.iter().map(node).collect() };
        let scaled =
            |(node, range): (usize, Range<u64>)| (node, range.start >> 20..range.end >> 20);
        ranges(&topology).into_iter().map(scaled).collect()
    }

    #[test]
    fn a_small_memory_is_in_one_piece() {
        assert_eq!(mebibytes(&[512, 256]), [(0, 0..512), (1, 512..768)]);
        assert_eq!(mebibytes(&[2688]), [(0, 0..2688)]);
    }

    #[test]
    fn a_large_memory_is_below_and_above_the_hole() {
        assert_eq!(mebibytes(&[2816]), [(0, 0..2048), (0, 4096..4864)]);
        assert_eq!(mebibytes(&[3072, 3072]), [(0, 0..2048), (0, 4096..5120), (1, 5120..8192)]);
        assert_eq!(mebibytes(&[2048, 2048]), [(0, 0..2048), (1, 4096..6144)]);
        assert_eq!(mebibytes(&[1024, 2048]), [(0, 0..1024), (1, 1024..2048), (1, 4096..5120)]);
    }
}
