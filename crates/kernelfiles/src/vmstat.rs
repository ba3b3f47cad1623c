//! `/proc/vmstat`, and two files of a node in the same form: `vmstat` and `numastat` below
//! `/sys/devices/system/node/node*` (`mm/vmstat.c`, `drivers/base/node.c`).
//!
//! One counter for each line, `name value`. Most `nr_*` are gauges in pages, the rest are events since
//! boot.

use crate::{Counters, scan};

/// The counters by the kernel's own names.
pub fn parse(text: &str) -> Counters {
    let counter = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((scan::name(name)?.to_owned(), scan::number(value.trim())?))
    };
    text.lines().filter_map(counter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::expected;

    #[test]
    fn every_line_is_a_counter() {
        let text = "nr_free_pages 853345\nnuma_pte_updates 0\nnr_unstable 0\n";
        let counters = "nr_free_pages 853345, numa_pte_updates 0, nr_unstable 0";
        assert_eq!(parse(text), expected(counters));
    }

    #[test]
    fn torn_lines_are_skipped() {
        let text = "nr_free_pages\npgfault 1 2\n 3\npgmajfault 4\npgfree 12x";
        assert_eq!(parse(text), expected("pgmajfault 4"));
    }
}
