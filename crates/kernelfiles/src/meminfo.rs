//! `/proc/meminfo`, and `meminfo` of a node, whose lines start with `Node 0` (`fs/proc/meminfo.c`,
//! `drivers/base/node.c`).
//!
//! Values are kB (1024 bytes), except `HugePages_*`, which are numbers of huge pages.

use crate::{Counters, scan};

/// The gauges by the kernel's own names, without the node.
pub fn parse(text: &str) -> Counters {
    text.lines().filter_map(gauge).collect()
}

fn gauge(line: &str) -> Option<(String, i64)> {
    let (name, value) = line.split_once(':')?;
    let name = match name.strip_prefix("Node ") {
        Some(of_node) => of_node.split_once(' ')?.1,
        None => name,
    };
    let value = value.split_ascii_whitespace().next()?;
    Some((scan::name(name)?.to_owned(), scan::number(value)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::expected;

    #[test]
    fn lines_with_and_without_a_unit() {
        let text =
            "MemTotal:       24684092 kB\nActive(anon):       1576 kB\nHugePages_Free:   3\n";
        let gauges = "MemTotal 24684092, Active(anon) 1576, HugePages_Free 3";
        assert_eq!(parse(text), expected(gauges));
    }

    #[test]
    fn lines_of_a_node() {
        let text = "Node 0 MemFree:         3409284 kB\nNode 0 ShadowCallStack:     12 kB\n";
        let gauges = "MemFree 3409284, ShadowCallStack 12";
        assert_eq!(parse(text), expected(gauges));
    }

    #[test]
    fn torn_lines_are_skipped() {
        assert_eq!(parse("MemTotal\nMemFree:\nNode 0:\nDirty: kB\n: 4 kB\n"), []);
    }
}
