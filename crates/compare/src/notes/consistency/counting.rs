//! Counters that columns count differently, because they were renamed, split, moved or widened between kernels.

use std::collections::BTreeSet;

use code::Symbol;
use kernelfiles::catalogue::{self, Counter, Version};
use kernelfiles::derived::{self, Derived, Differences};
use model::{Boot, ENTRIES, Place, Profile, Source};
use serde::Serialize;

use crate::VariantBoots;
use crate::figures::growth::Growth;

/// Rows that two columns derive from different counters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counting {
    /// The column's name; the other one is the baseline.
    pub variant: String,
    /// Labels of the rows that the relation affects.
    pub rows: Vec<&'static str>,
    /// How the counters of the two kernels are related.
    pub relation: Relation,
    /// Counters of the baseline's kernel.
    pub baseline: Vec<&'static str>,
    /// Counters of this column's kernel.
    pub counters: Vec<&'static str>,
}

/// How counters of two kernels are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// Both kernels count the same under different names. The rows can be compared.
    Renamed,
    /// One kernel counts separately what the other includes in one figure.
    Apart,
    /// One kernel lacks a counter that the row needs.
    Untold,
    /// One kernel counts more in the same counter ([`Counter::widened`]); the other one's list of counters is empty.
    Widened,
}

/// The rows that columns count differently from the first column, limited to counters that changed during a workload.
pub fn counting(columns: &[VariantBoots<'_>]) -> Vec<Counting> {
    let mut columns = columns.iter().map(|column| (column.name(), Kernel::of(column)));
    let Some((_, Some(baseline))) = columns.next() else {
        return Vec::new();
    };
    let known = columns.filter_map(|(name, kernel)| Some((name, kernel?)));
    known.flat_map(|(name, kernel)| differences(name, &baseline, &kernel)).collect()
}

/// The counters that a column's kernel has, and those that changed.
#[derive(Default)]
struct Kernel<'a> {
    version: Option<Version>,
    printed: BTreeSet<&'a str>,
    /// Names in the catalogue, zones merged.
    has: BTreeSet<&'static str>,
    moved: BTreeSet<&'static str>,
    /// The kernel's functions that boots executed; `None` where not all boots counted them.
    executed: Option<BTreeSet<&'a str>>,
}

impl<'a> Kernel<'a> {
    /// `None` without a boot with counters.
    fn of(column: &VariantBoots<'a>) -> Option<Self> {
        let mut kernel = Self { executed: Some(BTreeSet::new()), ..Self::default() };
        for boot in column.complete() {
            kernel.executed = kernel.executed.zip(executed(boot)).map(|(all, own)| &all | &own);
            kernel.version = boot.facts.release.parse().ok();
            let chunks = boot.chunks.iter();
            let in_workloads =
                chunks.filter(|it| !it.workload.is_empty() && it.is_of(Source::Vmstat));
            let growth = Growth::of(in_workloads);
            for (name, grown) in growth.iter() {
                let Some(counter) = catalogue::find(name) else { continue };
                kernel.printed.insert(name);
                kernel.has.insert(&counter.name);
                if grown.is_some_and(|grown| grown != 0) {
                    kernel.moved.insert(&counter.name);
                }
            }
        }
        (!kernel.has.is_empty()).then_some(kernel)
    }

    /// Whether the kernel may have done what later releases count besides. Only exact counts show that it did not.
    fn may_count_more(&self, counter: &Counter) -> bool {
        let function = counter.widened.as_ref().map_or("", |it| &*it.function);
        self.executed.as_ref().is_none_or(|it| it.contains(function))
    }

    /// Whether the kernel counts what later releases count besides; `None` if its version is not known.
    fn counts_more(&self, counter: &Counter) -> Option<bool> {
        Some(self.version? >= counter.widened.as_ref()?.since)
    }

    /// Whether the kernel has the counters that a row needs.
    fn can_compute(&self, row: &Derived) -> bool {
        let any = |name: &str| self.printed.contains(name).then_some(1.0);
        row.value(&Differences { of: &any, seconds: Some(1.0) }).is_some()
    }
}

/// The kernel's functions that a boot executed during workloads; `None` if not all of them were counted.
fn executed(boot: &Boot) -> Option<BTreeSet<&str>> {
    let is_exact = |profile: &Profile| profile.costs.number(ENTRIES).is_some();
    let all_counted = !boot.profiles.is_empty() && boot.profiles.iter().all(is_exact);
    let rows = boot.profiles.iter().flat_map(|it| it.costs.rows());
    let functions = rows.filter_map(|row| match row.place {
        Place::Function { name, .. } => Some(Symbol::of(name).name),
        _ => None,
    });
    all_counted.then(|| functions.collect())
}

/// Every way in which two kernels count a row differently; rows with the same cause are merged.
fn differences(variant: &str, baseline: &Kernel<'_>, kernel: &Kernel<'_>) -> Vec<Counting> {
    let mut all: Vec<Counting> = Vec::new();
    for row in derived::rows() {
        for (relation, old, new) in changes(row, baseline, kernel) {
            let same = |it: &&mut Counting| {
                (it.relation, &it.baseline, &it.counters) == (relation, &old, &new)
            };
            match all.iter_mut().find(same) {
                // The other kernel gives the same difference.
                Some(counting) if counting.rows.contains(&row.label) => {}
                Some(counting) => counting.rows.push(row.label),
                None => all.push(Counting {
                    variant: variant.to_owned(),
                    rows: vec![row.label],
                    relation,
                    baseline: old,
                    counters: new,
                }),
            }
        }
    }
    all.sort_by_key(|counting| counting.relation);
    all
}

type Change = (Relation, Vec<&'static str>, Vec<&'static str>);

/// The ways in which the kernels count a row differently, each with the counters of both kernels.
fn changes(row: &Derived, baseline: &Kernel<'_>, kernel: &Kernel<'_>) -> Vec<Change> {
    let sources = sources(row);
    let mut changes = Vec::new();
    for (from, to, flipped) in [(baseline, kernel, false), (kernel, baseline, true)] {
        let gone =
            sources.iter().filter(|it| from.has.contains(&*it.name) && !to.has.contains(&*it.name));
        for counter in gone {
            let successors = successors(counter, to);
            if successors.is_empty()
                || !(from.moved.contains(&*counter.name) || moved(&successors, to))
            {
                continue;
            }
            let is_renamed = successors
                .iter()
                .all(|successor| sources.iter().any(|source| source.name == *successor));
            let relation = match is_renamed {
                true => Relation::Renamed,
                // Not every row can be computed from the counters of all zones.
                false if from.can_compute(row) && !to.can_compute(row) => Relation::Untold,
                false => continue,
            };
            changes.push(ordered(relation, vec![&*counter.name], successors, flipped));
        }
        // Finds what the other kernel counts separately as part of a counter that both have.
        for counter in &sources {
            let has_both = from.has.contains(&*counter.name) && to.has.contains(&*counter.name);
            let parts = catalogue::counters()
                .filter(|part| has_both && part.split_from.contains(&counter.name))
                .filter(|part| to.moved.contains(&*part.name) && !from.has.contains(&*part.name));
            let parts: Vec<&str> = parts.map(|part| &*part.name).collect();
            if !parts.is_empty() {
                changes.push(ordered(Relation::Apart, vec![&*counter.name], parts, flipped));
            }
            let more = [from, to].map(|it| it.counts_more(counter));
            let is_moved = to.moved.contains(&*counter.name) && to.may_count_more(counter);
            if more == [Some(false), Some(true)] && is_moved {
                changes.push(ordered(Relation::Widened, vec![], vec![&*counter.name], flipped));
            }
        }
    }
    changes
}

fn ordered(
    relation: Relation,
    from: Vec<&'static str>,
    to: Vec<&'static str>,
    flipped: bool,
) -> Change {
    if flipped { (relation, to, from) } else { (relation, from, to) }
}

/// The counters of a row, zones merged.
fn sources(row: &Derived) -> Vec<&'static Counter> {
    let mut sources: Vec<&Counter> = Vec::new();
    for counter in row.formula.expr.counters().iter().filter_map(|name| catalogue::find(name)) {
        if !sources.iter().any(|source| source.name == counter.name) {
            sources.push(counter);
        }
    }
    sources
}

/// The counters of `kernel` that count what `counter` counted in another kernel.
fn successors(counter: &Counter, kernel: &Kernel<'_>) -> Vec<&'static str> {
    let related = catalogue::counters().filter(|other| {
        counter.became.contains(&other.name)
            || counter.was.contains(&other.name)
            || other.became.contains(&counter.name)
            || other.was.contains(&counter.name)
    });
    related.map(|other| &*other.name).filter(|name| kernel.has.contains(name)).collect()
}

fn moved(names: &[&str], kernel: &Kernel<'_>) -> bool {
    names.iter().any(|name| kernel.moved.contains(name))
}

#[cfg(test)]
mod tests {
    use model::BootFacts;

    use super::*;
    use crate::testing::{boot, chunk, columns, executing, variant};

    fn counting_of(old: &[(&str, i64)], new: &[(&str, i64)]) -> Vec<Counting> {
        let boots = [old, new].map(|grown| [Boot { chunks: vec![chunk(0, "", grown)], ..boot(0) }]);
        let variants = ["old", "new"].map(variant);
        counting(&columns(&variants, &[&boots[0], &boots[1]]))
    }

    const BY_ZONE: [(&str, i64); 5] = [
        ("allocstall", 24),
        ("pgscan_kswapd_dma32", 900),
        ("pgscan_kswapd_normal", 800),
        ("pgscan_direct_dma32", 10),
        ("pgscan_direct_normal", 5),
    ];
    const BY_NODE: [(&str, i64); 4] = [
        ("allocstall_normal", 20),
        ("allocstall_movable", 7),
        ("pgscan_kswapd", 1700),
        ("pgscan_direct", 15),
    ];

    /// Both questions of the node-lru thread: no stalls, and no velocity of zone dma32.
    #[test]
    fn stalls_and_scans_by_zone_and_by_node() {
        for flipped in [false, true] {
            let found = match flipped {
                false => counting_of(&BY_ZONE, &BY_NODE),
                true => counting_of(&BY_NODE, &BY_ZONE),
            };
            let row = |label: &str, relation| {
                let it =
                    found.iter().find(|it| it.relation == relation && it.rows.contains(&label));
                it.map(|it| {
                    if flipped {
                        [&it.counters, &it.baseline]
                    } else {
                        [&it.baseline, &it.counters]
                    }
                })
                .map(|names| names.map(|names| names.join(" ")))
            };
            let names = |old: &str, new: &str| Some([old.to_owned(), new.to_owned()]);
            assert_eq!(
                row("Allocation stalls", Relation::Renamed),
                names("allocstall", "allocstall_ZONE")
            );
            assert_eq!(
                row("Kswapd velocity", Relation::Renamed),
                names("pgscan_kswapd_ZONE", "pgscan_kswapd")
            );
            assert_eq!(
                row("Zone dma32 velocity", Relation::Untold),
                names("pgscan_kswapd_ZONE", "pgscan_kswapd")
            );
            assert_eq!(row("Zone dma32 velocity", Relation::Renamed), None);
            assert_eq!(row("Zone highmem velocity", Relation::Untold), None);
        }
    }

    #[test]
    fn a_split_counter_is_reported_if_it_changed() {
        let apart = |grown| {
            let found =
                counting_of(&BY_NODE, &[BY_NODE[2], BY_NODE[3], ("pgscan_khugepaged", grown)]);
            found.into_iter().find(|it| it.relation == Relation::Apart)
        };
        let found = apart(9).unwrap();
        assert_eq!(
            (&*found.baseline, &*found.counters),
            (&["pgscan_direct"][..], &["pgscan_khugepaged"][..])
        );
        assert!(found.rows.contains(&"Percentage direct scans"));
        assert_eq!(apart(0), None);
    }

    #[test]
    fn a_widened_counter_is_reported_if_it_changed() {
        let found = |releases: [&str; 2], grown, executed: Option<&str>| {
            let profiles = executed.map(|name| executing(0, "", &[(name, "", 1, 10)]));
            let boots = releases.map(|release| {
                let chunks = vec![chunk(0, "", &[("pgscan_direct", grown)])];
                let facts = BootFacts { release: release.into(), ..BootFacts::default() };
                let profiles = profiles.iter().cloned().collect();
                [Boot { chunks, facts, profiles, ..boot(0) }]
            });
            let variants = ["old", "new"].map(variant);
            counting(&columns(&variants, &[&boots[0], &boots[1]]))
        };
        let [older, newer] = ["7.0.13+deb13-amd64", "7.1.2"];
        assert_eq!(found([older, newer], 9, Some("kswapd")), []);
        assert_eq!(found([older, newer], 9, Some("try_to_free_mem_cgroup_pages")).len(), 1);
        let found = |releases, grown| found(releases, grown, None);
        let [only] = &found([older, newer], 9)[..] else { panic!("one difference") };
        assert_eq!(
            (only.relation, &only.counters[..]),
            (Relation::Widened, &["pgscan_direct"][..])
        );
        assert!(only.baseline.is_empty() && only.rows.contains(&"Direct pages scanned"));
        assert_eq!(found([newer, older], 9)[0].baseline, ["pgscan_direct"]);
        for (releases, grown) in
            [([older, older], 9), ([newer, newer], 9), ([older, newer], 0), (["", newer], 9)]
        {
            assert_eq!(found(releases, grown), []);
        }
    }

    #[test]
    fn unchanged_counters_are_not_reported() {
        let still = |counters: &[(&'static str, i64)]| {
            counters.iter().map(|(name, _)| (*name, 0)).collect::<Vec<_>>()
        };
        assert_eq!(counting_of(&still(&BY_ZONE), &still(&BY_NODE)), []);
        assert_eq!(counting_of(&BY_NODE, &BY_NODE), []);
        assert_eq!(counting_of(&[], &BY_NODE), []);
    }
}
