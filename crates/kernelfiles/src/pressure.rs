//! `/proc/pressure/*`: time that tasks waited for CPU, memory or I/O (`kernel/sched/psi.c`,
//! `Documentation/accounting/psi.rst`).
//!
//! `some` is time in which at least one task waited, `full` time in which all did. The totals are
//! microseconds since boot. The averages over 10, 60 and 300 seconds are printed as percent with two
//! decimals and kept as hundredths of a percent, as their names say.

use crate::{Counters, scan};

/// The counters, such as `some total` and `full avg10_centipercent`.
pub fn parse(text: &str) -> Counters {
    let mut counters = Vec::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        if let Some(kind @ ("some" | "full")) = words.next() {
            counters.extend(words.filter_map(|word| counter(kind, word)));
        }
    }
    counters
}

fn counter(kind: &str, word: &str) -> Option<(String, i64)> {
    match word.split_once('=')? {
        ("total", value) => Some((format!("{kind} total"), scan::number(value)?)),
        (name @ ("avg10" | "avg60" | "avg300"), value) => {
            Some((format!("{kind} {name}_centipercent"), hundredths(value)?))
        }
        _ => None,
    }
}

fn hundredths(percent: &str) -> Option<i64> {
    let (whole, fraction) = percent.split_once('.')?;
    let fraction = (fraction.len() == 2).then(|| fraction.parse::<u8>().ok())??;
    let whole = i64::from(whole.parse::<u32>().ok()?);
    Some(whole * 100 + i64::from(fraction))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::expected;

    #[test]
    fn averages_and_totals() {
        let text = "some avg10=14.14 avg60=6.07 avg300=0.00 total=16973810\n\
            full avg10=100.00 total=0\n";
        let counters = "some avg10_centipercent 1414, some avg60_centipercent 607, \
            some avg300_centipercent 0, some total 16973810, full avg10_centipercent 10000, \
            full total 0";
        assert_eq!(parse(text), expected(counters));
    }

    #[test]
    fn damaged_words_are_skipped() {
        let text = "some avg10=1.2 avg60=.11 avg300=-1.00 avg9=1.00 total=x\nmost total=1\n";
        assert_eq!(parse(text), []);
    }
}
