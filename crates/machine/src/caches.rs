//! A model of caches and TLBs, as the counting plugin gets it.

use model::{CacheSize, MemoryModel, PageSize, TlbSize, Topology};

/// The value of the plugin's argument `caches` for a machine with this topology.
pub fn shape(model: &MemoryModel, topology: &Topology) -> String {
    let MemoryModel { l1d, l2, inclusive, llc, llc_cpus, dtlb, stlb, .. } = model;
    let cache = |it: &CacheSize| format!("{}.{}", it.sets(), it.ways);
    let homes: Vec<String> =
        last_levels(topology, *llc_cpus).iter().map(usize::to_string).collect();
    format!(
        "{}:{}:{}.{}:{}:{}/{}",
        homes.join("."),
        cache(l1d),
        cache(l2),
        u8::from(*inclusive),
        cache(llc),
        tlbs(dtlb),
        tlbs(stlb)
    )
}

fn tlbs(level: &[TlbSize]) -> String {
    let tlb = |it: &TlbSize| {
        let sizes = it.pages.iter().fold(0, |sizes, size| {
            sizes
                | match size {
                    PageSize::Small => 1,
                    PageSize::Large => 2,
                    PageSize::Huge => 4,
                }
        });
        format!("{sizes}.{}.{}", it.entries / it.ways, it.ways)
    };
    level.iter().map(tlb).collect::<Vec<_>>().join(":")
}

/// The number of each CPU's last-level cache. Those of a node share one, or `most` of them do.
fn last_levels(topology: &Topology, most: Option<u32>) -> Vec<usize> {
    let homes = topology.homes();
    let mut known = Vec::new();
    let of = |(cpu, home): (usize, &u16)| {
        let before = homes[..cpu].iter().filter(|it| *it == home).count();
        let group = (*home, most.map_or(0, |most| before / most.max(1) as usize));
        known.iter().position(|it| *it == group).unwrap_or_else(|| {
            known.push(group);
            known.len() - 1
        })
    };
    homes.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_the_last_level_caches_of_its_machine() {
        let topology = |cpus| Topology::even(cpus, model::Bytes::mib(2048), 2).unwrap();
        let shape = |name: &str, cpus| shape(&MemoryModel::named(name).unwrap(), &topology(cpus));
        assert_eq!(
            shape("skylake-2s", 4),
            "0.0.1.1:64.8:1024.16.0:2048.11:1.16.4:2.8.4:4.1.4/3.128.12:4.4.4"
        );
        assert_eq!(
            shape("milan-2s", 20),
            "0.0.0.0.0.0.0.0.1.1.2.2.2.2.2.2.2.2.3.3:64.8:1024.8.1:4096.16:7.1.64/3.256.8:4.1.64"
        );
    }
}
