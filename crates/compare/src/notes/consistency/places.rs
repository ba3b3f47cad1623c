//! Laws between counters of the system and those of its nodes and zones.

use kernelfiles::derived::Expr::Zones;
use kernelfiles::derived::ZONES;

use super::rules::Slack;
use super::{Broken, Counted, Severity};
use crate::figures::growth::Growth;

/// Counters of allocations: each with its name in `/proc/vmstat` and zoneinfo, and its name in a node's numastat.
const PLACES: [[&str; 2]; 6] = [
    ["numa_hit", "numa_hit"],
    ["numa_miss", "numa_miss"],
    ["numa_foreign", "numa_foreign"],
    ["numa_interleave", "interleave_hit"],
    ["numa_local", "local_node"],
    ["numa_other", "other_node"],
];

/// Finds counters of nodes or zones that do not add up to the counter of the system.
pub fn sums(counted: &Counted<'_>) -> impl Iterator<Item = Broken> {
    let files: [(&str, &Growth<'_>, usize); 2] = [
        ("nodes add up to the system", &counted.numastat, 1),
        ("zones add up to the system", &counted.zoneinfo, 0),
    ];
    files.into_iter().filter_map(|(rule, growth, place)| {
        let differ = |names: &[&str; 2]| {
            let all = counted.vmstat.get(names[0])? as f64;
            let parts = sum_of_parts(growth, names[place])?;
            let missed = (all - parts).abs() > Slack::TwoFiles.of(counted, all);
            missed.then(|| format!("{} = {all}, of its parts {parts}", names[0]))
        };
        Some(Broken {
            rule,
            severity: Severity::Contradiction,
            found: PLACES.iter().find_map(differ)?,
            why: "The kernel adds up what its zones and nodes count.",
            answer: "One of the files was read at another time, or a node came or went.",
        })
    })
}

/// The total growth of the counters `node0 NAME`, `node0 Normal NAME` and so on; `None` if there are none.
fn sum_of_parts(growth: &Growth<'_>, name: &str) -> Option<f64> {
    let is_part = |full: &str| full.rsplit_once(' ').is_some_and(|(_, last)| last == name);
    let parts = growth.iter().filter(|(full, _)| is_part(full));
    parts.filter_map(|(_, grown)| grown).map(|grown| grown as f64).reduce(|sum, more| sum + more)
}

/// A zone with at least this share of all allocations should see reclaim.
const NOTABLE: f64 = 0.1;

/// Finds zones with many allocations that were not scanned, if the kernel counts scans by zone.
pub fn untouched_zones(counted: &Counted<'_>) -> Option<Broken> {
    let all = counted.value(&Zones("pgalloc".into()))?;
    let grown = |name: String| counted.vmstat.get(&name).map(|grown| grown as f64);
    let scans = |zone: &str| {
        let [kswapd, direct] =
            ["kswapd", "direct"].map(|who| grown(format!("pgscan_{who}_{zone}")));
        Some(kswapd? + direct?)
    };
    let scanned: f64 = ZONES.iter().filter_map(|zone| scans(zone)).sum();
    let untouched = ZONES.iter().filter_map(|zone| {
        let given = grown(format!("pgalloc_{zone}"))?;
        let none = scans(zone)? == 0.0 && given > NOTABLE * all;
        none.then(|| format!("zone {zone} gave {given} of {all} pages"))
    });
    let untouched: Vec<String> = untouched.collect();
    let notable = scanned > Slack::Events.of(counted, 0.0) && !untouched.is_empty();
    notable.then(|| Broken {
        rule: "zones that give memory are scanned",
        severity: Severity::Remark,
        found: format!("{} and none of it was scanned, of {scanned} scanned", untouched.join(", ")),
        why: "Reclaim goes where memory is short, which is where it was taken from.",
        answer: "The zone had free memory left, or its pages were freed without reclaim.",
    })
}

#[cfg(test)]
mod tests {
    use model::Source;

    use super::*;
    use crate::notes::consistency::tests::{OLD, found, reclaiming, set};

    #[test]
    fn nodes_and_zones_add_up() {
        let mut boot = reclaiming(OLD, "5.10");
        set(&mut boot, Source::NodeNumastat, "node0 local_node", 0);
        let found = found(&[boot]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].rule, "nodes add up to the system");
        assert!(found[0].found.starts_with("numa_local = 377236, of its parts "), "{found:?}");
    }

    #[test]
    fn allocations_from_a_zone_without_scans_give_a_remark() {
        let mut boot = reclaiming(OLD, "4.6");
        for (zone, given, scanned) in [("dma32", 46_041_453, 34_661_000), ("normal", 78_053_072, 0)]
        {
            set(&mut boot, Source::Vmstat, &format!("pgalloc_{zone}"), given);
            set(&mut boot, Source::Vmstat, &format!("pgscan_kswapd_{zone}"), scanned);
            set(&mut boot, Source::Vmstat, &format!("pgscan_direct_{zone}"), 0);
        }
        set(&mut boot, Source::Vmstat, "pgscan_anon", 100_000_000);
        let found = found(&[boot]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].severity, Severity::Remark);
        assert!(found[0].found.starts_with("zone normal gave 78053072 of "), "{found:?}");
    }
}
