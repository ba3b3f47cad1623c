//! `/proc/slabinfo`, version 2.1: the slab caches (`mm/slab_common.c`, slabinfo(5)).
//!
//! `objsize` is bytes. The tunables are 0 under SLUB and are left out. SLUB counts all objects on per-CPU
//! slabs as active, so `active_objs` is an upper bound.

use crate::{Counters, scan};

const OBJECTS: [&str; 5] = ["active_objs", "num_objs", "objsize", "objperslab", "pagesperslab"];
const SLABS: [&str; 2] = ["active_slabs", "num_slabs"];

/// The gauges, such as `kmalloc-64 active_objs`.
pub fn parse(text: &str) -> Counters {
    let mut gauges = Vec::new();
    for line in text.lines() {
        let Some((cache, slabs)) = line.split_once(" : slabdata") else {
            continue;
        };
        let objects = cache.split_once(" : tunables").map_or(cache, |parts| parts.0);
        // Names may contain spaces, so the numbers are counted from the end.
        let words: Vec<_> = objects.split_ascii_whitespace().collect();
        let Some((name, objects)) = words.split_last_chunk::<{ OBJECTS.len() }>() else {
            continue;
        };
        if let Some(cache) = scan::name(&name.join(" ")) {
            scan::add_fields(&mut gauges, cache, &OBJECTS, objects.iter().copied());
            scan::add_fields(&mut gauges, cache, &SLABS, slabs.split_ascii_whitespace());
        }
    }
    gauges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::expected;

    const HEADER: &str = "slabinfo - version: 2.1\n# name            <active_objs> <num_objs> \
        <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : \
        slabdata <active_slabs> <num_slabs> <sharedavail>\n";

    #[test]
    fn objects_and_slabs() {
        let line = "kmalloc-64   12  13   64   14    1 : tunables    0    0    0 : slabdata     \
            15     16      0\n";
        let gauges = "kmalloc-64 active_objs 12, kmalloc-64 num_objs 13, kmalloc-64 objsize 64, \
            kmalloc-64 objperslab 14, kmalloc-64 pagesperslab 1, kmalloc-64 active_slabs 15, \
            kmalloc-64 num_slabs 16";
        assert_eq!(parse(&format!("{HEADER}{line}")), expected(gauges));
    }

    #[test]
    fn a_name_with_spaces_and_a_torn_line() {
        let text = "a b 1 2 3 4 5 : slabdata 6\nshort 1 2 : slabdata 3 4\nx 1 2 3 4 5\n";
        let gauges = parse(text);
        assert_eq!(gauges[0].0, "a b active_objs");
        assert_eq!(gauges.len(), 6);
    }
}
