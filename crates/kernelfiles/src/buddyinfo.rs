//! `/proc/buddyinfo`: free blocks of each order in each zone (`mm/vmstat.c`). A block of order n
//! is 2^n pages.

use crate::{Counters, scan};

/// The gauges, such as `node0 Normal order3`, in blocks.
pub fn parse(text: &str) -> Counters {
    text.lines().filter_map(scan::zone).flat_map(orders).collect()
}

fn orders(zone: scan::Zone<'_>) -> impl Iterator<Item = (String, i64)> {
    let scan::Zone { node, name, rest } = zone;
    let blocks = rest.split_ascii_whitespace().enumerate();
    blocks.filter_map(move |(order, word)| {
        Some((format!("node{node} {name} order{order}"), scan::number(word)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::expected;

    #[test]
    fn zones_and_orders() {
        let text = "Node 0, zone      DMA      0      1 \nNode 1, zone   Normal   5352 \nNode\n";
        let gauges = "node0 DMA order0 0, node0 DMA order1 1, node1 Normal order0 5352";
        assert_eq!(parse(text), expected(gauges));
    }
}
