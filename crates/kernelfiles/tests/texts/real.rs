//! The parsers on texts of real kernels. The expected number of counters comes from counting words, without
//! the parsers.

use std::collections::BTreeSet;

use model::Source;

use crate::fixture::{Fixture, fixtures};

fn is_number(word: &str) -> bool {
    word.parse::<u64>().is_ok()
}

/// Numbers on the lines of a text, after the first `skip` words of each.
fn numbers(text: &str, skip: usize) -> usize {
    let numbers = |line: &str| {
        let words = line.split_whitespace().skip(skip);
        words.filter(|word| is_number(word)).count()
    };
    text.lines().map(numbers).sum()
}

/// The number of counters in a file.
fn expected(source: Source, text: &str) -> usize {
    let lines = text.lines();
    match source {
        Source::Vmstat
        | Source::NodeVmstat
        | Source::NodeNumastat
        | Source::Meminfo
        | Source::NodeMeminfo => lines.count(),
        Source::Zoneinfo => {
            let value = |line: &&str| line.split(' ').next_back().is_some_and(is_number);
            lines.filter(value).count() - text.matches("\n    cpu: ").count()
        }
        Source::Stat => {
            let of_interrupts = lines.filter(|line| line.starts_with("intr ")).map(|line| {
                // Only the sum counts.
                numbers(line, 0) - 1
            });
            numbers(text, 0) - of_interrupts.sum::<usize>() - text.matches("btime ").count()
        }
        Source::Schedstat => {
            // A CPU has 9 fields, one of them unused; a domain 36 or 45, six of them unused.
            let used = |line: &str| match line.split_whitespace().count() {
                10 => 8,
                38 => 30,
                48 => 39,
                _ => 0,
            };
            lines.map(used).sum()
        }
        Source::Pressure => text.matches('=').count(),
        Source::Interrupts | Source::Softirqs => {
            let cpus = text.lines().next().unwrap().matches("CPU").count();
            let cells = |line: &str| match line.split_whitespace().count() {
                2 if cpus > 1 => 1,
                _ => 1 + cpus,
            };
            lines.skip(1).map(cells).sum()
        }
        Source::Diskstats => numbers(text, 3),
        // `Node 0, zone Normal`: the node's number is followed by a comma.
        Source::Buddyinfo => numbers(text, 4),
        Source::Pagetypeinfo => {
            let rows = lines.filter(|line| line.starts_with("Node "));
            rows.map(|line| numbers(line, 4)).sum()
        }
        Source::Slabinfo => (text.lines().count() - 2) * 7,
        Source::Events => {
            let events = lines.filter_map(|line| line.split(' ').next());
            3 * events.collect::<BTreeSet<_>>().len()
        }
    }
}

#[test]
fn every_line_of_every_fixture_is_understood() {
    let fixtures = fixtures();
    assert!(!fixtures.is_empty());
    for Fixture { path, source, part, text } in fixtures {
        let counters = kernelfiles::counters(source, &part, &text);
        let path = path.display();
        assert_eq!(counters.len(), expected(source, &text), "{path}");
        assert!(!counters.is_empty(), "{path}");
        let names: BTreeSet<_> = counters.iter().map(|(name, _)| name).collect();
        let may_repeat = source == Source::Slabinfo;
        assert!(may_repeat || names.len() == counters.len(), "{path}");
        let prefix = format!("{part} ");
        let named = |name: &&String| part.is_empty() || name.starts_with(&prefix);
        assert!(names.iter().all(named), "{path}");
    }
}

#[test]
fn sums_of_the_parts_are_the_kernel_s_own() {
    for Fixture { path, source, text, .. } in fixtures() {
        let counters = kernelfiles::counters(source, "", &text);
        let sum_of = |prefix: &str, suffix: &str| -> i64 {
            let matching = |name: &str| name.starts_with(prefix) && name.ends_with(suffix);
            let values = counters.iter().filter(|(name, _)| matching(name));
            values.map(|(_, value)| value).sum()
        };
        let path = path.display();
        match source {
            // The kernel rounds the sum and each CPU to ticks separately.
            Source::Stat => {
                let total = sum_of("cpu user", "user");
                let parts = sum_of("cpu", " user") - total;
                assert!(total > 0 && (total - parts).abs() <= 256, "{path}");
                let softirqs = sum_of("softirq ", "") - sum_of("softirq total", "");
                assert_eq!(softirqs, sum_of("softirq total", ""), "{path}");
            }
            Source::Softirqs => {
                let parts: i64 = (0..256).map(|cpu| sum_of("", &format!(" cpu{cpu}"))).sum();
                assert!(parts > 0, "{path}");
                assert_eq!(parts, sum_of("", " total"), "{path}");
            }
            Source::Meminfo => {
                let slab = sum_of("SReclaimable", "") + sum_of("SUnreclaim", "");
                assert_eq!(slab, sum_of("Slab", "Slab"), "{path}");
            }
            _ => {}
        }
    }
}
