//! The catalogue of counters: every counter that `/proc/vmstat`, zoneinfo and numastat had or have,
//! from Linux 2.6.32 on, with what it counts and how it came and went.
//!
//! The counters are data: `catalogue/*.toml`, a table each. A name that ends in `_ZONE` stands for
//! those that end in a zone (`_dma`, `_dma32`, `_normal`, `_high`, `_movable`). Versions are the
//! first and the last release that prints the counter, with the options it needs; they agree with
//! the lists of 33 releases from 2.6.32 to 6.19 and with what packaged kernels print (see the
//! tests). Where no list pins the very release, it is named in `unchecked`.

mod version;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::derived::{self, ZONES};

pub use version::Version;

/// The releases before which nothing was looked at.
pub const OLDEST: &str = "2.6.32";

/// What is known of a counter.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counter {
    /// Its name.
    #[serde(skip)]
    pub name: String,
    /// What it counts in.
    pub unit: String,
    /// Whether it says how much there is, and not how much there was since boot.
    #[serde(default)]
    pub gauge: bool,
    /// What it counts.
    pub what: String,
    /// The kernel's function and file that count it: in the last release that was looked at.
    #[serde(rename = "where")]
    pub place: String,
    /// The first release that has it; none if [`OLDEST`] has it already.
    pub since: Option<Version>,
    /// The last release that has it; none if it is still there.
    pub until: Option<Version>,
    /// Which of both were not checked to the very release.
    #[serde(default)]
    pub unchecked: Vec<End>,
    /// Whether only some patched kernels have it.
    #[serde(default)]
    pub patched: bool,
    /// Counters that counted the same before.
    #[serde(default)]
    pub was: Vec<String>,
    /// Counters that count the same since.
    #[serde(default)]
    pub became: Vec<String>,
    /// Counters in which this was counted before, and no longer is.
    #[serde(default)]
    pub split_from: Vec<String>,
    /// What a reader must know to read it right; empty if nothing.
    #[serde(default)]
    pub note: String,
}

/// An end of a counter's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// The first release.
    Since,
    /// The last one.
    Until,
}

impl Counter {
    /// Whether a kernel of this version has it, if it has the options for it.
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
        // A part of this program, which its tests read.
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

/// The counter of this name. Names of zones, nodes and CPUs may stand where the kernel or
/// [`crate::counters`] puts them: `pgalloc_normal`, `node0 Normal nr_free_pages`.
pub fn find(name: &str) -> Option<&'static Counter> {
    let name = without_owner(name);
    COUNTERS.get(name).or_else(|| COUNTERS.get(&of_any_zone(name)?))
}

/// `pgalloc_ZONE` for `pgalloc_normal`.
fn of_any_zone(name: &str) -> Option<String> {
    let (counter, zone) = name.rsplit_once('_')?;
    ZONES.contains(&zone).then(|| format!("{counter}_ZONE"))
}

/// The name without the words that say whose counter it is.
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

/// How alike two names must be, from 0 to 1, and how many are worth reading.
const ALIKE: f64 = 0.6;
const MAX_NEAR: usize = 6;

/// Names of counters and rows, and of `others`, that somebody may have meant, the most likely first.
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
            let names = row.formula.counters();
            // Not every counter has forms for zones, nor every such form one without.
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
