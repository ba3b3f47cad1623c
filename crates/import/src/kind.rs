//! The kind of a table, by the names of its rows.

use kernelfiles::derived;

use crate::table::{Figure, Kind, Row};

/// First words that mmtests and its readers put before the metric.
const STATISTICS: [&str; 18] = [
    "Luck", "Min", "Max", "Mean", "Amean", "Hmean", "Gmean", "Stddev", "HStddev", "CoeffVar",
    "HCoeffVar", "Median", "Samples", "Time", "Ops", "Duration", "Percentage", "MB/sec",
];
/// Words of [`STATISTICS`] that labels use too. They are statistics only as the first word.
const OPERATIONS: [&str; 6] = ["Time", "Ops", "Duration", "Percentage", "Samples", "MB/sec"];
/// Statistics with a suffix: `BAmean-50`, `Max-90%`, `Pctile.95`, `Best5%Mean`.
const STATISTIC_PREFIXES: [&str; 12] = [
    "BAmean-", "BAmean.", "BHmean-", "BHmean.", "SubAmean", "SubHmean", "AmeanCI-", "HmeanCI-",
    "Max-", "Min-", "Pctile", "Best",
];
/// First words of counters in tables on the kernel's lists.
const COUNTERS: [&str; 27] = [
    "Allocation", "AutoNUMA", "Compact", "Compaction", "DMA", "DMA32", "Direct", "Fragmentation",
    "Kcompactd", "Kswapd", "Major", "Migrate", "Minor", "Movable", "NUMA", "Normal", "Page",
    "Pageblock", "Pages", "Reclaim", "Sector", "Slabs", "Swap", "THP", "Unevictable", "Zone",
    "vmscan",
];
/// A counter whose first word is a statistic in other tables.
const DIRECT_SCANS: [&str; 3] = ["Percentage", "direct", "scans"];
/// The names of the times of a whole benchmark in `time` and mmtests.
const DURATIONS: [&str; 6] = ["User", "System", "Elapsed", "real", "user", "sys"];
/// Statistics as names of columns.
const COLUMN_STATISTICS: [&str; 12] = [
    "avg", "average", "mean", "amean", "hmean", "median", "min", "max", "stddev", "std",
    "coeffvar", "cv",
];

/// Splits the label of a row into what was measured and the statistic. The statistic is mostly the first word, in
/// some tables the second, after the name of a file system or the like.
pub fn split_label(label: &str) -> (String, String) {
    let words: Vec<&str> = label.split_whitespace().filter(|word| *word != "|").collect();
    if words == DIRECT_SCANS {
        return (String::new(), words.join(" "));
    }
    for place in 0..words.len().min(2) {
        let behind = place > 0 && OPERATIONS.contains(&words[place]);
        if is_statistic(words[place]) && words.len() > 1 && !behind {
            let rest: Vec<&str> =
                words[..place].iter().chain(&words[place + 1..]).copied().collect();
            return (words[place].to_owned(), rest.join(" "));
        }
    }
    (String::new(), words.join(" "))
}

fn is_statistic(word: &str) -> bool {
    STATISTICS.contains(&word)
        || word.ends_with("-qrtle")
        || STATISTIC_PREFIXES.iter().any(|prefix| {
            word.strip_prefix(prefix).is_some_and(|rest| {
                !rest.is_empty() || matches!(*prefix, "SubAmean" | "SubHmean" | "Pctile")
            })
        })
}

/// Whether a statistic is a spread.
pub fn is_spread(row: &Row) -> bool {
    let lower = row.label.to_ascii_lowercase();
    let spread = |text: &str| text.ends_with("Stddev") || text.ends_with("CoeffVar");
    spread(&row.statistic) || row.statistic.ends_with("CI") || lower.ends_with("stddev")
}

/// Whether a label names a time of the whole benchmark.
pub fn is_duration(label: &str) -> bool {
    DURATIONS.contains(&label)
}

/// Whether a label names a kernel counter.
pub fn is_counter(label: &str) -> bool {
    let first = label.split_whitespace().next().unwrap_or_default();
    let known = || label == DIRECT_SCANS.join(" ") || derived::find(label).is_some();
    if COUNTERS.contains(&first) || known() {
        return true;
    }
    let letters = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    first == label
        && label.starts_with(|first: char| first.is_ascii_lowercase())
        && label.contains('_')
        && label.split('_').all(letters)
}

/// Whether the words before a line's first figure look like a usual row label.
pub fn has_known_label(text: &str) -> bool {
    let is_figure = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit());
    let words: Vec<&str> = text.split_whitespace().take_while(|word| !is_figure(word)).collect();
    let label = words.join(" ");
    begins_as_row(text) || is_duration(&label) || is_counter(&label)
}

/// Whether these rows can be told from prose without names over them.
pub fn is_known(rows: &[Row]) -> bool {
    rows.iter()
        .all(|row| !row.statistic.is_empty() || is_duration(&row.label) || is_counter(&row.label))
}

/// Determines the kind of a table.
pub fn kind(heading: &str, columns: &[String], rows: &[Row]) -> Kind {
    let all = |holds: &dyn Fn(&Row) -> bool| rows.iter().all(holds);
    let is_time = |figure: &Figure| figure.text.ends_with('s');
    let cells = || rows.iter().flat_map(|row| &row.cells);
    let percents = cells().any(|cell| cell.percent.is_some());
    let statistic = |name: &String| COLUMN_STATISTICS.contains(&&*name.to_ascii_lowercase());
    if heading.eq_ignore_ascii_case("commit") || columns.iter().all(statistic) && !percents {
        Kind::Commits
    } else if all(&|row| is_duration(&row.label) && matches!(&*row.statistic, "" | "Duration")) {
        Kind::Duration
    } else if percents {
        Kind::Metrics
    } else if all(&|row| {
        row.statistic == "Ops" || row.statistic.is_empty() && is_counter(&row.label)
    }) {
        Kind::Counters
    } else if all(&|row| matches!(&*row.statistic, "Mean" | "Max")) {
        Kind::Monitor
    } else if all(&|row| !row.statistic.is_empty()) {
        Kind::Metrics
    } else if cells().filter_map(|cell| cell.value.as_ref()).all(is_time) {
        Kind::Times
    } else {
        Kind::Figures
    }
}

/// Whether a line begins as rows usually do.
pub fn begins_as_row(text: &str) -> bool {
    let (statistic, _) = split_label(text);
    !statistic.is_empty() && text.trim_start().starts_with(&statistic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statistic_is_the_first_word_or_the_second() {
        let split = |label: &str| {
            let (statistic, label) = split_label(label);
            format!("{statistic}|{label}")
        };
        assert_eq!(split("Amean    real-fsmark"), "Amean|real-fsmark");
        assert_eq!(split("Max-90%     mmap"), "Max-90%|mmap");
        assert_eq!(split("Best5%Mean  mmap"), "Best5%Mean|mmap");
        assert_eq!(split("1st-qrtle 1-files/sec"), "1st-qrtle|1-files/sec");
        assert_eq!(split("ext3    Max      elapsed"), "Max|ext3 elapsed");
        assert_eq!(split("Ops NUMA hint faults"), "Ops|NUMA hint faults");
        assert_eq!(split("User"), "|User");
        assert_eq!(split("NUMA hint local percent"), "|NUMA hint local percent");
        assert_eq!(split("Min"), "|Min");
        assert_eq!(split("Build Time stddev"), "|Build Time stddev");
        assert_eq!(split("Percentage direct scans"), "|Percentage direct scans");
        assert_eq!(split("Percentage huge-1"), "Percentage|huge-1");
    }

    #[test]
    fn counters_are_known_by_their_names() {
        for label in ["NUMA alloc hit", "numa_hit", "pgmigrate_success", "DMA32 allocs"] {
            assert!(is_counter(label), "{label}");
        }
        for derived in derived::rows() {
            assert!(is_counter(derived.label), "{}", derived.label);
        }
        for label in ["User", "hit rate", "_", "a_", "Foo_bar", "numa_hit of"] {
            assert!(!is_counter(label), "{label}");
        }
    }
}
