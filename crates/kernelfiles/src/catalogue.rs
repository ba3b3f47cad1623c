//! The catalogue of counters: every counter that `/proc/vmstat`, zoneinfo and numastat have or had since
//! Linux 2.6.32, with its meaning and history.
//!
//! The counters are data in `catalogue/*.toml`, a table each. A name that ends in `_ZONE` stands for the names that
//! end in a zone (`_dma`, `_dma32`, `_normal`, `_high`, `_movable`). Versions are the first and the last release that
//! prints the counter, given the options it needs. They agree with the lists of 33 releases from 2.6.32 to 6.19, and
//! with the output of packaged kernels (see the tests). Versions that these lists do not determine exactly are named
//! in `unchecked`.

mod version;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::derived::{self, ZONES};

pub use version::Version;

/// The oldest release that was examined.
pub const OLDEST: &str = "2.6.32";

/// A counter of the catalogue.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counter {
    /// The counter's name, as the kernel prints it.
    #[serde(skip)]
    pub name: String,
    /// The unit of its values, such as `pages`.
    pub unit: String,
    /// Whether it is a gauge (a current amount), and not a count since boot.
    #[serde(default)]
    pub gauge: bool,
    /// What it counts, in words.
    pub what: String,
    /// The kernel's function and file that count it, in the last release examined.
    #[serde(rename = "where")]
    pub place: String,
    /// The first release that has it; `None` if [`OLDEST`] already has it.
    pub since: Option<Version>,
    /// The last release that has it; `None` if it still exists.
    pub until: Option<Version>,
    /// Those of these two that were not checked to the exact release.
    #[serde(default)]
    pub unchecked: Vec<End>,
    /// Whether only some patched kernels have it.
    #[serde(default)]
    pub patched: bool,
    /// Counters that counted the same in earlier releases.
    #[serde(default)]
    pub was: Vec<String>,
    /// Counters that count the same in later releases.
    #[serde(default)]
    pub became: Vec<String>,
    /// Counters that included this one in earlier releases.
    #[serde(default)]
    pub split_from: Vec<String>,
    /// What later releases count in it besides.
    pub widened: Option<Widened>,
    /// What a reader must know to interpret it; empty if there is nothing.
    #[serde(default)]
    pub note: String,
}

/// What a counter counts besides since a release.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Widened {
    /// The first release that counts it.
    pub since: Version,
    /// What it counts, in words.
    pub by: String,
    /// The kernel's function that does it. Where it does not run, the counter is that of older releases.
    pub function: String,
}

/// One end of a counter's range of releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// The first release.
    Since,
    /// The last release.
    Until,
}

impl Counter {
    /// Whether a kernel of this version has it, given the options it needs.
    pub fn is_in(&self, version: &Version) -> bool {
        self.since.as_ref().is_none_or(|since| since <= version)
            && self.until.as_ref().is_none_or(|until| version <= until)
    }
}

static COUNTERS: LazyLock<BTreeMap<String, Counter>> = LazyLock::new(|| {
    let files = [
        include_str!("catalogue/files.toml"),
        include_str!("catalogue/gauges.toml"),
        include_str!("catalogue/huge.toml"),
        include_str!("catalogue/memory.toml"),
        include_str!("catalogue/migration.toml"),
        include_str!("catalogue/reclaim.toml"),
    ];
    let mut counters = BTreeMap::new();
    for text in files {
        // The files are part of this program, and tests read them, so this cannot fail.
        let read: BTreeMap<String, Counter> = toml::from_str(text).expect("a sound catalogue");
        counters.extend(
            read.into_iter().map(|(name, counter)| (name.clone(), Counter { name, ..counter })),
        );
    }
    counters
});

/// Every counter, by name.
pub fn counters() -> impl Iterator<Item = &'static Counter> {
    COUNTERS.values()
}

/// The counter of this name. The name may include zones, nodes and CPUs, as the kernel or
/// [`crate::counters`] writes them: `pgalloc_normal`, `node0 Normal nr_free_pages`.
pub fn find(name: &str) -> Option<&'static Counter> {
    let name = without_owner(name);
    COUNTERS.get(name).or_else(|| COUNTERS.get(&of_any_zone(name)?))
}

/// The name in the catalogue of a counter by zone: `pgalloc_ZONE` for `pgalloc_normal`.
fn of_any_zone(name: &str) -> Option<String> {
    let (counter, zone) = name.rsplit_once('_')?;
    ZONES.contains(&zone).then(|| format!("{counter}_ZONE"))
}

/// The name without the words for node, CPU and zone.
fn without_owner(name: &str) -> &str {
    let Some((first, rest)) = name.split_once(' ') else {
        return name;
    };
    let numbered = |word: &str, prefix: &str| {
        let number = word.strip_prefix(prefix);
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let is_zone = |word: &str| {
        ZONES.iter().any(|zone| word.eq_ignore_ascii_case(zone))
            || word.eq_ignore_ascii_case("highmem")
    };
    match numbered(first, "node") || numbered(first, "cpu") || is_zone(first) {
        true => without_owner(rest),
        false => name,
    }
}

/// The least similarity of suggested names, from 0 to 1, and their largest number.
const ALIKE: f64 = 0.6;
const MAX_NEAR: usize = 6;

/// Names of counters, of rows and in `others` that are similar to a mistyped name, the most similar first.
pub fn near(name: &str, others: &[&'static str]) -> Vec<&'static str> {
    let wanted = name.to_ascii_lowercase();
    let labels = derived::rows().map(|row| row.label);
    let names =
        counters().map(|counter| &*counter.name).chain(labels).chain(others.iter().copied());
    let likeness = |name: &'static str| {
        let candidate = name.to_ascii_lowercase();
        let alike = strsim::normalized_damerau_levenshtein(&wanted, &candidate);
        let part = wanted.len() > 2 && candidate.contains(&wanted);
        (if part { alike.max(ALIKE) } else { alike }, name)
    };
    let mut near: Vec<_> = names.map(likeness).filter(|(alike, _)| *alike >= ALIKE).collect();
    near.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(other.1)));
    near.into_iter().map(|(_, name)| name).take(MAX_NEAR).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn zones_nodes_and_cpus_are_no_part_of_a_name() {
        let name = |name| find(name).map(|counter| &*counter.name);
        assert_eq!(name("pgalloc_normal"), Some("pgalloc_ZONE"));
        assert_eq!(name("allocstall_high"), Some("allocstall_ZONE"));
        assert_eq!(name("allocstall"), Some("allocstall"));
        assert_eq!(name("allocstall_device"), Some("allocstall_device"));
        assert_eq!(name("node1 Normal nr_free_pages"), Some("nr_free_pages"));
        assert_eq!(name("node0 DMA32 cpu3 vm stats threshold"), Some("vm stats threshold"));
        assert_eq!(name("node0 interleave_hit"), Some("interleave_hit"));
        assert_eq!(name("pgfault_normal"), None);
        assert_eq!(name("other nr_free_pages"), None);
    }

    #[test]
    fn every_name_that_is_mentioned_is_there() {
        for counter in counters() {
            let others = counter.was.iter().chain(&counter.became).chain(&counter.split_from);
            for other in others {
                assert!(COUNTERS.contains_key(other), "{}: {other}", counter.name);
            }
        }
        for row in derived::rows() {
            let names = row.formula.expr.counters();
            // Not every counter has per-zone forms, and some have only these.
            let stem = |name: &str| name.rsplit_once('_').map_or("", |(stem, _)| stem).to_owned();
            let known = |name: &String| {
                let forms = [name.clone(), stem(name), format!("{name}_normal")];
                forms.iter().any(|form| find(form).is_some())
            };
            assert!(names.iter().all(known), "{}", row.label);
            assert!(names.iter().any(|name| find(name).is_some()), "{}", row.label);
        }
    }

    #[test]
    fn entries_are_whole() {
        for counter in counters() {
            let Counter { name, unit, what, place, since, until, .. } = counter;
            assert!(!unit.is_empty() && !place.is_empty(), "{name}");
            assert!(what.ends_with('.') && what.is_ascii(), "{name}");
            assert!(counter.note.is_empty() || counter.note.ends_with('.'), "{name}");
            assert!(since.as_ref().zip(until.as_ref()).is_none_or(|(s, u)| s <= u), "{name}");
            let unchecked = &counter.unchecked;
            assert!(!unchecked.contains(&End::Since) || since.is_some(), "{name}");
            assert!(!unchecked.contains(&End::Until) || until.is_some(), "{name}");
            let leans =
                ["The same", "Those", "Such", "It "].iter().any(|word| what.starts_with(word));
            assert!(!leans, "{name}: {what}");
        }
    }

    #[test]
    fn names_that_were_meant() {
        assert_eq!(near("pgscan_kswpad", &[])[0], "pgscan_kswapd");
        assert_eq!(near("kswapd eficiency", &[])[0], "Kswapd efficiency");
        assert!(near("allocstal", &[]).contains(&"allocstall"));
        assert!(near("workingset", &[]).iter().all(|name| name.starts_with("workingset")));
        assert!(near("xyzzy plugh", &[]).is_empty());
        assert_eq!(near("Sektor Reads", &["Sector Reads"]), ["Sector Reads"]);
    }

    proptest! {
        #[test]
        fn any_name_is_survived(name in "\\PC{0,80}|(node0 |Normal |cpu1 |x_dma){0,20}") {
            let _ = find(&name);
            prop_assert!(near(&name, &[]).len() <= MAX_NEAR);
        }
    }
}
