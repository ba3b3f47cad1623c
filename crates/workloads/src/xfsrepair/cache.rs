//! Parses the output of `xfs_repair -vv`: a line for each step, and the contents of its buffer cache, a hash table,
//! after each phase.

use std::fmt;

/// The number of phases. Each begins with a line `Phase N - ...`.
const PHASES: usize = 7;
/// The beginning of a report on the cache.
const REPORT: &str = "libxfs_bcache:";
/// The largest number of lines about buckets in a report (xfsprogs, `libxfs/cache.c`: 20, and one for all longer
/// chains).
const MAX_BUCKETS: usize = 64;

/// What the buffer cache contains at the end of a repair.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cache {
    /// The number of buckets of the hash table.
    pub buckets: u64,
    /// The largest number of entries at any time.
    pub entries: u64,
    /// The number of look-ups that found their entry.
    pub hits: u64,
    /// The number of look-ups that did not.
    pub misses: u64,
    /// How many buckets have how many entries, in the order of the report.
    pub chains: Vec<Chains>,
}

/// Buckets with the same number of entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Chains {
    /// The number of entries of each bucket.
    pub entries: u64,
    /// Whether each has more than `entries`.
    pub more: bool,
    /// The number of buckets.
    pub buckets: u64,
}

impl Cache {
    /// The look-ups that found their entry, in percent; `None` if there were none.
    pub fn hit_percent(&self) -> Option<f64> {
        let lookups = self.hits as f64 + self.misses as f64;
        (lookups > 0.0).then(|| 100.0 * self.hits as f64 / lookups)
    }

    /// The number of entries of the fullest bucket, as far as it is reported.
    pub fn longest(&self) -> u64 {
        let filled = self.chains.iter().filter(|chains| chains.buckets > 0);
        filled.map(|chains| chains.entries + u64::from(chains.more)).max().unwrap_or(0)
    }
}

impl fmt::Display for Cache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("hash buckets by entries:")?;
        for Chains { entries, more, buckets } in &self.chains {
            let more = if *more { ">" } else { "" };
            write!(formatter, " {more}{entries}: {buckets}")?;
        }
        Ok(())
    }
}

/// Reads the last report of a repair that went through all phases. If the text has none, the error says what is
/// missing.
pub fn last_report(text: &str) -> Result<Cache, String> {
    let mut phases = 0;
    let mut report: Option<Cache> = None;
    for line in text.lines().map(str::trim) {
        if line.starts_with(&format!("Phase {} - ", phases + 1)) {
            phases += 1;
        } else if line.starts_with(REPORT) {
            report = Some(Cache::default());
        } else if let Some(report) = &mut report {
            add(report, line).ok_or_else(|| format!("`{}`", guest::cut(line, 80)))?;
        }
    }
    if phases != PHASES {
        return Err(format!("its output has {phases} of {PHASES} phases"));
    }
    if text.trim_end().lines().last().map(str::trim) != Some("done") {
        return Err("its last line is not `done`".into());
    }
    let report = report.ok_or("no report on the buffer cache")?;
    match report.buckets {
        0 => Err("its report on the buffer cache has no size".into()),
        _ => Ok(report),
    }
}

/// Adds a line of a report; other lines are ignored. `None` if the number in the line cannot be read.
fn add(report: &mut Cache, line: &str) -> Option<()> {
    if let Some(rest) = line.strip_prefix("Hash buckets with") {
        if report.chains.len() < MAX_BUCKETS {
            report.chains.push(chains(rest)?);
        }
    } else if let Some((name, value)) = line.split_once(" = ") {
        let number = match name {
            "Hash table size" => &mut report.buckets,
            "Max utilized entries" => &mut report.entries,
            "Hits" => &mut report.hits,
            "Misses" => &mut report.misses,
            _ => return Some(()),
        };
        *number = value.trim().parse().ok()?;
    }
    Some(())
}

/// Parses a line such as `  3 entries   2787 (  1%)` or ` >20 entries     12 (  0%)`.
fn chains(rest: &str) -> Option<Chains> {
    let (entries, buckets) = rest.split_once("entries")?;
    let entries = entries.trim();
    let (more, entries) = match entries.strip_prefix('>') {
        Some(entries) => (true, entries.trim()),
        None => (false, entries),
    };
    let buckets = buckets.split_whitespace().next()?.parse().ok()?;
    Some(Chains { entries: entries.parse::<u32>().ok()?.into(), more, buckets })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Output of version 6.1.0 for an image of 24,000 files. Of the lines about allocation groups and of the reports
    /// on the cache, it has only some.
    const TEXT: &str = include_str!("xfs_repair.txt");

    #[test]
    fn the_last_report_is_read() {
        let cache = last_report(TEXT).unwrap();
        let Cache { buckets, entries, hits, misses, .. } = cache;
        assert_eq!((buckets, entries, hits, misses), (101_073, 5716, 10_445, 5717));
        // The program itself prints `Hit ratio = 64.63`.
        assert_eq!(format!("{:.2}", cache.hit_percent().unwrap()), "64.63");
        assert_eq!(cache.longest(), 3);
        let all: u64 = cache.chains.iter().map(|chains| chains.buckets).sum();
        assert_eq!(all, buckets);
        let held: u64 = cache.chains.iter().map(|chains| chains.buckets * chains.entries).sum();
        assert_eq!(held, entries);
        assert_eq!(cache.to_string(), "hash buckets by entries: 0: 95518 1: 5398 2: 153 3: 4");
    }

    #[test]
    fn long_chains_are_combined() {
        let chains = chains("  >20 entries     12 (  0%)").unwrap();
        assert_eq!(chains, Chains { entries: 20, more: true, buckets: 12 });
        let cache = Cache { chains: vec![chains], ..Cache::default() };
        assert_eq!((cache.longest(), cache.to_string().ends_with(" >20: 12")), (21, true));
    }

    #[test]
    fn a_repair_that_did_not_end_is_refused() {
        let without = |part: &str| last_report(&TEXT.replace(part, "")).unwrap_err();
        assert_eq!(without("Phase 6 - "), "its output has 5 of 7 phases");
        assert_eq!(without("\ndone\n"), "its last line is not `done`");
        assert_eq!(without("libxfs_bcache"), "no report on the buffer cache");
        assert_eq!(without("Hash table size"), "its report on the buffer cache has no size");
        assert_eq!(last_report(""), Err("its output has 0 of 7 phases".into()));
        let error = last_report(&TEXT.replace("Misses = 5717", "Misses = -1")).unwrap_err();
        assert_eq!(error, "`Misses = -1`");
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(lines in "(Hash buckets with [ >0-9]{0,24}entries [0-9]{0,24}\n|Hits = [0-9a-z]{0,24}\n|.{0,20}\n){0,90}") {
            let text = TEXT.replace("\nMRU 0", &format!("\n{lines}MRU 0"));
            if let Ok(cache) = last_report(&text) {
                prop_assert!(cache.chains.len() <= MAX_BUCKETS);
                prop_assert!(cache.to_string().len() < flight::protocol::MAX_LINE);
                let _ = (cache.longest(), cache.hit_percent());
            }
            let _ = last_report(&lines);
        }
    }
}
