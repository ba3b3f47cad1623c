//! The names that mmtests gives to the rows of our tables. Users can choose rows for verdicts and look up counters by
//! them. They can head the rows of printed tables, which then compare with tables in mails.
//!
//! The names are those of mmtests' own history up to commit 638401e0 of June 2026: each commit in [`NAMES`]
//! changed the name, and its month is when it was committed. A row that is not listed has the same name in
//! mmtests, or does not exist there.

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use model::Manifest;
use serde::{Serialize, Serializer};

/// A month by which mails and logs are dated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Month {
    year: u16,
    month: u8,
}

impl Month {
    /// A month after all changes of names.
    pub const LATEST: Self = month(u16::MAX, 12);
}

const fn month(year: u16, month: u8) -> Month {
    Month { year, month }
}

impl FromStr for Month {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts =
            text.split_once('-').filter(|(year, month)| (year.len(), month.len()) == (4, 2));
        let month = parts.and_then(|(year, month)| {
            let digits = |text: &str| text.bytes().all(|it| it.is_ascii_digit());
            let known = digits(year) && digits(month);
            known.then_some(Self { year: year.parse().ok()?, month: month.parse().ok()? })
        });
        month
            .filter(|it| (1..=12).contains(&it.month))
            .ok_or_else(|| format!("`{text}` is no month: 2015-03 is March 2015"))
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.year, self.month)
    }
}

/// In the form of `--names`: `mmtests`, or `mmtests:2015-03`.
impl Serialize for Month {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::LATEST => serializer.serialize_str("mmtests"),
            month => serializer.collect_str(&format_args!("mmtests:{month}")),
        }
    }
}

/// A row of ours and its name in mmtests. In both, `*` stands for the same label and `#` for the same number.
struct Name {
    /// The workloads that have the row: ours, and mmtests' benchmarks. Empty for counters, which all have.
    workloads: &'static [&'static str],
    ours: &'static str,
    theirs: &'static str,
    /// The first month in which mmtests used this name.
    since: Month,
    /// The first month of the next name; `None` while this one is in use.
    until: Option<Month>,
}

impl Name {
    fn is_at(&self, at: Month) -> bool {
        self.since <= at && self.until.is_none_or(|until| at < until)
    }
}

const fn name(
    workloads: &'static [&'static str],
    ours: &'static str,
    theirs: &'static str,
    since: Month,
    until: Option<Month>,
) -> Name {
    Name { workloads, ours, theirs, since, until }
}

const AUTONUMA: &[&str] = &["autonuma", "autonumabench"];
const XFSREPAIR: &[&str] = &["xfsrepair"];
const PGBENCH: &[&str] = &["pgbench"];
const PARALLELDD: &[&str] = &["paralleldd"];
const COUNTER: &[&str] = &[];

/// The month before any change of names.
const BEGINNING: Month = month(0, 1);
/// 0ce799d6: autonumabench begins.
const AUTONUMA_BEGAN: Month = month(2012, 10);
/// 913df658: the counter of updated PTEs is one of base PTEs.
const BASE_PTES: Month = month(2014, 1);
/// 49614150: pgbench's operations are numbers of clients.
const CLIENTS: Month = month(2014, 10);
/// f055ee5b: xfsrepair begins.
const XFSREPAIR_BEGAN: Month = month(2015, 3);
/// 37777fec: xfsrepair has `elapsd` and `system`.
const ELAPSD: Month = month(2015, 5);
/// 55f024af, f96c5e4a: `Ops` and `Duration` stand before labels, and percent signs in some.
pub const OPS: Month = month(2018, 12);
/// 349b2419: paralleldd's operations are numbers of readers.
const READERS: Month = month(2019, 5);
/// d7f5db36: autonumabench has `syst` and `elsp`, and the name of a test without its slip.
const ELSP: Month = month(2019, 9);
/// 798208b1: the range is not one of base PTEs.
const RANGE: Month = month(2019, 10);
/// 3fc5565d, 56923131, 228281ba: autonumabench, xfsrepair and pgbench have one form of names.
const SHELLPACK: Month = month(2026, 1);

const NAMES: &[Name] = &[
    name(AUTONUMA, "Elapsed-*", "elsp-*", ELSP, Some(SHELLPACK)),
    name(AUTONUMA, "System-*", "syst-*", ELSP, Some(SHELLPACK)),
    name(AUTONUMA, "User-NUMA01_THREADLOCAL", "User-NUMA01_THEADLOCAL", AUTONUMA_BEGAN, Some(ELSP)),
    name(
        AUTONUMA,
        "System-NUMA01_THREADLOCAL",
        "System-NUMA01_THEADLOCAL",
        AUTONUMA_BEGAN,
        Some(ELSP),
    ),
    name(
        AUTONUMA,
        "Elapsed-NUMA01_THREADLOCAL",
        "Elapsed-NUMA01_THEADLOCAL",
        AUTONUMA_BEGAN,
        Some(ELSP),
    ),
    name(AUTONUMA, "CPU-NUMA01_THREADLOCAL", "CPU-NUMA01_THEADLOCAL", AUTONUMA_BEGAN, Some(ELSP)),
    name(XFSREPAIR, "Elapsed-*", "real-*", XFSREPAIR_BEGAN, Some(ELAPSD)),
    name(XFSREPAIR, "System-*", "syst-*", XFSREPAIR_BEGAN, Some(ELAPSD)),
    name(XFSREPAIR, "Elapsed-*", "elapsd-*", ELAPSD, Some(SHELLPACK)),
    name(XFSREPAIR, "System-*", "system-*", ELAPSD, Some(SHELLPACK)),
    name(PGBENCH, "txn-#", "#", CLIENTS, Some(SHELLPACK)),
    name(PARALLELDD, "Elapsd-#", "#", READERS, None),
    name(COUNTER, "KiB paged in", "Sector Reads", BEGINNING, None),
    name(COUNTER, "KiB paged out", "Sector Writes", BEGINNING, None),
    name(COUNTER, "Kswapd efficiency", "Kswapd efficiency %", OPS, None),
    name(COUNTER, "Direct efficiency", "Direct efficiency %", OPS, None),
    // Both are plain `numa_pte_updates`. Tables of 2014 to 2019 have another row under our name, which
    // counts the huge updates once more.
    name(COUNTER, "NUMA page range updates", "NUMA base PTE updates", BASE_PTES, Some(RANGE)),
    name(COUNTER, "NUMA page range updates", "NUMA base-page range updates", RANGE, None),
    name(COUNTER, "NUMA base-page updates", "NUMA PTE updates", RANGE, None),
    name(COUNTER, "NUMA huge PMD updates", "NUMA PMD updates", RANGE, None),
    name(COUNTER, "NUMA hint local faults", "NUMA hint local faults %", OPS, None),
];

/// Words that mmtests prints before the names of rows. Users who copy a row may copy them too.
const STATISTICS: [&str; 5] = ["Amean ", "Hmean ", "Gmean ", "Time ", "Ops "];

/// The names of the rows of a manifest, or of counters if there is no manifest.
fn names_of(manifest: Option<&Manifest>) -> impl Iterator<Item = &'static Name> {
    let called = manifest.map(|it| [Some(&*it.name), it.command.get(1).map(|word| &**word)]);
    NAMES.iter().filter(move |name| match &called {
        None => name.workloads.is_empty(),
        Some(called) => called.iter().flatten().any(|it| name.workloads.contains(it)),
    })
}

/// `name`, which matches the pattern `from`, rewritten by the pattern `to`. Both patterns have the same sign, or
/// none. The part before `-*` also matches alone.
fn translated(name: &str, from: &str, to: &str) -> Option<String> {
    if let (Some(from), Some(to)) = (from.strip_suffix("-*"), to.strip_suffix("-*"))
        && name == from
    {
        return Some(to.to_owned());
    }
    let Some(sign) = ['*', '#'].into_iter().find(|sign| from.contains(*sign)) else {
        return (name == from).then(|| to.to_owned());
    };
    let (begin, end) = from.split_once(sign)?;
    let label = name.strip_prefix(begin)?.strip_suffix(end)?;
    let is_number = || {
        label.bytes().all(|it| it.is_ascii_digit() || it == b'*')
            && label.bytes().any(|it| it.is_ascii_digit())
    };
    (!label.is_empty() && (sign == '*' || is_number())).then(|| to.replacen(sign, label, 1))
}

/// Our name for the row that mmtests calls, or called, `theirs`. The row belongs to the workload that `manifest`
/// describes, or to counters if there is no manifest. A `*` in the name stands for anything. `None` for a name that
/// mmtests does not use for another of our rows.
pub fn ours(theirs: &str, manifest: Option<&Manifest>) -> Option<String> {
    let bare = STATISTICS.iter().find_map(|statistic| theirs.strip_prefix(statistic));
    let name = bare.map_or(theirs, str::trim_start);
    let known = |name: &str| {
        names_of(manifest).find_map(|it| match manifest {
            Some(_) => translated(name, it.theirs, it.ours),
            None => it.theirs.eq_ignore_ascii_case(name).then(|| it.ours.to_owned()),
        })
    };
    known(name).or_else(|| bare.map(|_| name.to_owned()))
}

/// What mmtests called our row in that month; our own name if it had no other.
pub fn theirs(ours: &str, manifest: Option<&Manifest>, at: Month) -> String {
    // A name from another month is first translated into ours.
    let own = names_of(manifest).find_map(|it| translated(ours, it.theirs, it.ours));
    let own = own.unwrap_or_else(|| ours.to_owned());
    let mut names = names_of(manifest).filter(|it| it.is_at(at));
    names.find_map(|it| translated(&own, it.ours, it.theirs)).unwrap_or(own)
}

/// What mmtests called our row of counters in that month, if it had a name of its own.
pub fn counter(ours: &str, at: Month) -> Option<&'static str> {
    names_of(None).find(|it| it.is_at(at) && it.ours == ours).map(|it| it.theirs)
}

/// What mmtests calls, or called, a row of counters. Each name has its months: `NUMA PTE updates (since 2019-10)`.
pub fn of_counter(ours: &str) -> Vec<String> {
    let names = names_of(None).filter(|it| it.ours == ours);
    let told = names.map(|it| match (it.since, it.until) {
        (BEGINNING, _) => it.theirs.to_owned(),
        (since, None) => format!("{} (since {since})", it.theirs),
        (since, Some(until)) => format!("{} ({since} to {until})", it.theirs),
    });
    told.collect()
}

/// The beginnings of mmtests' names for rows of a workload, such as `elsp` and `syst`, where they differ from ours;
/// names of counters if there is no manifest.
pub fn others(manifest: Option<&Manifest>) -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for name in names_of(manifest) {
        let begin = name.theirs.trim_end_matches("-*");
        if !names.contains(&begin) {
            names.push(begin);
        }
    }
    names
}
