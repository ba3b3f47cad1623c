//! Compares the catalogue with the output of releases and of packaged kernels.
//!
//! `versions.txt` was made from the lists of names in `mm/vmstat.c` of the releases in its first line. Each
//! further line has a counter, and the first and the last of these releases that have it.

use std::collections::{BTreeMap, BTreeSet};

use kernelfiles::catalogue::{self, End, Version};
use model::Source;

use crate::fixture::fixtures;

const LISTS: &str = include_str!("versions.txt");

/// The releases examined, and the first and last that have each counter.
fn lists() -> (Vec<Version>, BTreeMap<&'static str, [Version; 2]>) {
    let mut lines = LISTS.lines();
    let releases = lines.next().unwrap().split(' ').skip(1).map(version).collect();
    let spans = lines.map(|line| {
        let (name, span) = line.split_once(' ').unwrap();
        let (first, last) = span.split_once('-').unwrap();
        (name, [first, last].map(version))
    });
    (releases, spans.collect())
}

fn version(text: &str) -> Version {
    text.parse().unwrap()
}

#[test]
fn every_release_has_what_the_catalogue_says() {
    let (releases, spans) = lists();
    assert!(releases.len() > 30 && spans.len() > 200);
    for (name, [first, last]) in &spans {
        let counter = catalogue::find(name).unwrap_or_else(|| panic!("{name} is not there"));
        for release in &releases {
            let printed = first <= release && release <= last;
            // Later releases print it as 0, by a line of its own.
            let kept = *name == "nr_unstable" && release > last;
            assert_eq!(counter.is_in(release), printed || kept, "{name} in {release}");
        }
    }
}

/// A release that is not marked as unchecked follows one that was examined.
#[test]
fn what_counts_as_checked_is_pinned() {
    let (releases, spans) = lists();
    let next: BTreeSet<[Version; 2]> =
        releases.windows(2).map(|pair| [pair[0], pair[1]]).filter(|pair| follows(*pair)).collect();
    for name in spans.keys() {
        let counter = catalogue::find(name).unwrap();
        if let Some(since) = counter.since.filter(|_| !counter.unchecked.contains(&End::Since)) {
            assert!(next.iter().any(|pair| pair[1] == since), "{name} since {since}");
        }
        if let Some(until) = counter.until.filter(|_| !counter.unchecked.contains(&End::Until)) {
            assert!(next.iter().any(|pair| pair[0] == until), "{name} until {until}");
        }
    }
}

/// Whether the second release directly follows the first.
fn follows([one, other]: [Version; 2]) -> bool {
    let minor = |version: Version| {
        let text = version.to_string();
        let (major, minor) = text.split_once('.').unwrap();
        (major.to_owned(), minor.parse::<u32>().unwrap_or(0))
    };
    let (one, other) = (minor(one), minor(other));
    let last_of_major = [("3", 19), ("4", 20), ("5", 19), ("6", 19)];
    let ends = last_of_major.contains(&(&*one.0, one.1));
    if ends { other.1 == 0 } else { one.0 == other.0 && one.1 + 1 == other.1 }
}

#[test]
fn whatever_packaged_kernels_print_is_in_the_catalogue() {
    let mut kernels = BTreeSet::new();
    for fixture in fixtures() {
        let files = [Source::Vmstat, Source::NodeVmstat, Source::NodeNumastat, Source::Zoneinfo];
        if !files.contains(&fixture.source) {
            continue;
        }
        let directory = fixture.path.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let release = version(directory);
        kernels.insert(release);
        for (name, _) in kernelfiles::counters(fixture.source, &fixture.part, &fixture.text) {
            let counter = catalogue::find(&name);
            let counter = counter.unwrap_or_else(|| panic!("{name} of {directory}"));
            assert!(counter.is_in(&release), "{name} in {directory}");
        }
    }
    for kernel in ["5.10", "6.1", "6.12", "7.3"].map(version) {
        assert!(kernels.contains(&kernel), "no fixture of {kernel}");
    }
}
