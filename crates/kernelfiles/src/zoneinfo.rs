//! `/proc/zoneinfo`: statistics of nodes and zones, watermarks, and the per-CPU lists of pages
//! (`mm/vmstat.c`).
//!
//! Values are pages, or events for `numa_*` and the like. Statistics of a node are printed with
//! its first populated zone. Protection arrays are left out.

use crate::{Counters, scan};

/// The counters: `node0 nr_inactive_anon` of a node; `node0 Normal nr_free_pages`, the watermarks
/// `node0 Normal min`, `low`, `high`, and `node0 Normal free`, `spanned`, `present`, `managed` of a
/// zone; `node0 Normal cpu0 count` of a CPU's list.
pub fn parse(text: &str) -> Counters {
    let mut counters = Vec::new();
    let mut node = String::new();
    let mut zone = String::new();
    let mut owner = String::new();
    for line in text.lines() {
        if let Some(scan::Zone { node: id, name, .. }) = scan::zone(line) {
            node = format!("node{id}");
            zone = format!("{node} {name}");
            owner.clone_from(&zone);
            continue;
        }
        if zone.is_empty() {
            continue;
        }
        let mut line = line.trim();
        if line == "per-node stats" {
            owner.clone_from(&node);
        } else if let Some(free) = line.strip_prefix("pages ") {
            owner.clone_from(&zone);
            line = free;
        } else if let Some(cpu) = line.strip_prefix("cpu: ") {
            if let Ok(cpu) = cpu.parse::<u32>() {
                owner = format!("{zone} cpu{cpu}");
            }
            continue;
        } else if line.starts_with("node_unreclaimable") {
            owner.clone_from(&zone);
        }
        counters.extend(counter(&owner, line));
    }
    counters
}

/// Parses `nr_free_pages 3840` and `vm stats threshold: 24`.
fn counter(owner: &str, line: &str) -> Option<(String, i64)> {
    let (name, value) = line.rsplit_once(' ')?;
    let name = scan::name(name.trim_end().trim_end_matches(':'))?;
    Some((format!("{owner} {name}"), scan::number(value)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::expected;

    #[test]
    fn nodes_zones_and_cpus() {
        let text = "Node 1, zone   Normal
  per-node stats
      nr_inactive_anon 43341
      nr_mapped    20762
  pages free     3840
        boost    0
        min      46
        managed  3840
        protection: (0, 3019, 5451)
      nr_free_pages 3840
      numa_hit     9
  pagesets
    cpu: 0
              count:    7
              high:     28
  vm stats threshold: 4
    cpu: 1
              count:    8
  vm stats threshold: 4
  node_unreclaimable:  0
  start_pfn:           1
Node 1, zone  Movable
  pages free     0
        min      32
";
        let counters = "node1 nr_inactive_anon 43341, node1 nr_mapped 20762, \
            node1 Normal free 3840, node1 Normal boost 0, node1 Normal min 46, \
            node1 Normal managed 3840, node1 Normal nr_free_pages 3840, node1 Normal numa_hit 9, \
            node1 Normal cpu0 count 7, node1 Normal cpu0 high 28, \
            node1 Normal cpu0 vm stats threshold 4, node1 Normal cpu1 count 8, \
            node1 Normal cpu1 vm stats threshold 4, node1 Normal node_unreclaimable 0, \
            node1 Normal start_pfn 1, node1 Movable free 0, node1 Movable min 32";
        assert_eq!(parse(text), expected(counters));
    }

    #[test]
    fn nothing_before_the_first_zone() {
        assert_eq!(parse("  per-node stats\n      nr_mapped    20762\n"), []);
    }
}
