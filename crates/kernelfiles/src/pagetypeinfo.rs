//! `/proc/pagetypeinfo`: free blocks of each order and migrate type, and the number of page blocks of each type
//! (`mm/vmstat.c`).
//!
//! The kernel stops counting at 100000 free blocks of one kind, to limit the time for which it holds the zone's lock.
//! It then prints `>100000`, which is not a value and is left out.

use crate::{Counters, scan};

/// The gauges: free blocks `node0 Normal Movable order3`, page blocks `node0 Normal Movable
/// blocks`, and where page owners are tracked `node0 Normal Movable mixed_blocks`.
pub fn parse(text: &str) -> Counters {
    let mut gauges = Vec::new();
    let mut table = Blocks::default();
    for line in text.lines() {
        if let Some(header) = Blocks::header(line) {
            table = header;
        } else if let Some(zone) = scan::zone(line) {
            match zone.rest.strip_prefix(", type") {
                Some(row) => add_free(&mut gauges, &zone, row),
                None => table.add(&mut gauges, &zone),
            }
        }
    }
    gauges
}

fn add_free(gauges: &mut Counters, zone: &scan::Zone<'_>, row: &str) {
    let mut words = row.split_ascii_whitespace();
    let Some(kind) = words.next().and_then(scan::name) else {
        return;
    };
    let scan::Zone { node, name, .. } = zone;
    gauges.extend(words.enumerate().filter_map(|(order, word)| {
        let gauge = format!("node{node} {name} {kind} order{order}");
        Some((gauge, scan::number(word)?))
    }));
}

/// A table of page blocks: what it counts, and the migrate types of its columns.
#[derive(Default)]
struct Blocks<'a> {
    counted: &'static str,
    types: Vec<&'a str>,
}

impl<'a> Blocks<'a> {
    fn header(line: &'a str) -> Option<Self> {
        let (counted, types) = if let Some(types) = line.strip_prefix("Number of blocks type") {
            ("blocks", types)
        } else {
            ("mixed_blocks", line.strip_prefix("Number of mixed blocks")?)
        };
        let types = types.split_ascii_whitespace().map_while(scan::name);
        Some(Self { counted, types: types.collect() })
    }

    fn add(&self, gauges: &mut Counters, zone: &scan::Zone<'_>) {
        let scan::Zone { node, name, rest } = zone;
        let cells = self.types.iter().zip(rest.split_ascii_whitespace());
        gauges.extend(cells.filter_map(|(kind, word)| {
            let gauge = format!("node{node} {name} {kind} {}", self.counted);
            Some((gauge, scan::number(word)?))
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::expected;

    #[test]
    fn free_blocks_and_page_blocks() {
        let text = "Page block order: 9\nPages per block:  512\n\n\
            Free pages count per migrate type at order       0      1 \n\
            Node    0, zone   Normal, type    Unmovable      1    196 \n\
            Node    0, zone   Normal, type      Movable >100000      7 \n\n\
            Number of blocks type     Unmovable      Movable \n\
            Node 0, zone   Normal          119         1015 \n\n\
            Number of mixed blocks    Unmovable      Movable \n\
            Node 0, zone   Normal            2            3 \n";
        let gauges = "node0 Normal Unmovable order0 1, node0 Normal Unmovable order1 196, \
            node0 Normal Movable order1 7, node0 Normal Unmovable blocks 119, \
            node0 Normal Movable blocks 1015, node0 Normal Unmovable mixed_blocks 2, \
            node0 Normal Movable mixed_blocks 3";
        assert_eq!(parse(text), expected(gauges));
    }
}
