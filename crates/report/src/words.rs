//! Formats changes and figures for sentences. Tables have figures without groups of digits.

use compare::{Comparison, Row, Table, Verdict};
use model::{EQUAL_ENTRIES, INSTRUCTIONS, count, grouped};

use crate::ascii::escape;

/// Changes by at least this factor are printed as a factor.
const TIMES: f64 = 10.0;
/// Gains of at least this factor are printed as a factor: beyond it a gain is below -100 %, which is hard to read.
const DOUBLE: f64 = 2.0;
/// Factors below this have a decimal.
const WHOLE_TIMES: f64 = 100.0;
/// Figures of at least this size are printed in powers of ten.
const HUGE: f64 = 1e15;
/// Units of time that a metric can have.
const TIME: [&str; 7] = ["ns", "us", "ms", "s", "min", "h", "seconds"];

/// Returns the boots of a host for which verdicts hold, in a few words; `None` if the boots are of VMs.
pub fn scope(comparison: &Comparison) -> Option<String> {
    Some(match comparison.host_boots? {
        1 => "within one boot of this host".to_owned(),
        boots => format!("within {boots} boots of hosts"),
    })
}

/// Returns the same as a sentence.
pub fn scope_sentence(comparison: &Comparison) -> Option<String> {
    let scope = scope(comparison)?;
    Some(format!(
        "Each boot is a session on a running kernel, {scope}: what differs from one boot of a kernel to another, such as \
         the placement of its memory, is in no interval."
    ))
}

/// The kind of a figure, which determines the words for its change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// A number of things, such as instructions, entries or faults.
    Number,
    /// A duration, such as seconds.
    Time,
    /// Any other amount, such as memory, a rate or a share.
    Amount,
}

impl Of {
    /// Returns the kind of figures with this unit. A row without a unit is a number, and so are events per
    /// second (`/s`).
    pub fn unit(unit: &str) -> Self {
        let lower = unit.to_lowercase();
        let size = lower.strip_suffix('b').map(|it| it.strip_suffix('i').unwrap_or(it));
        let is_size = matches!(size, Some("" | "k" | "m" | "g" | "t")) || lower == "bytes";
        let per = unit.split_once('/').is_some_and(|(what, _)| !what.is_empty());
        match unit {
            _ if TIME.contains(&unit.split(" a ").next().unwrap_or_default()) => Self::Time,
            "%" | "model units" => Self::Amount,
            _ if is_size || per || unit.contains(" a ") => Self::Amount,
            _ => Self::Number,
        }
    }

    /// Appends the direction of a change to its size. A size that is printed as zero has no direction.
    pub fn directed(self, size: String, change: f64) -> String {
        match (size.contains(|c: char| matches!(c, '1'..='9')), self) {
            (false, _) => size,
            (true, Self::Number) if change < 0.0 => size + " fewer",
            (true, _) if change < 0.0 => size + " less",
            (true, _) => size + " more",
        }
    }

    /// Formats a gain as a factor of at least two, with its interval: `12.3 times as long (11.0 to 13.9)`. `None` for
    /// other factors.
    pub fn times(self, ratio: f64, interval: Option<[f64; 2]>) -> Option<String> {
        (ratio >= DOUBLE && ratio.is_finite()).then(|| self.factor(ratio, interval))
    }

    /// Formats a factor: `1,401 times as many`.
    fn factor(self, ratio: f64, interval: Option<[f64; 2]>) -> String {
        let factor = |it: f64| figure(it, if ratio < WHOLE_TIMES { 1 } else { 0 });
        let word = match self {
            Self::Number => "many",
            Self::Time => "long",
            Self::Amount => "much",
        };
        let interval = interval
            .map_or(String::new(), |[low, high]| format!(" ({} to {})", factor(low), factor(high)));
        format!("{} times as {word}{interval}", factor(ratio))
    }

    /// Formats the change from `base` to `new`: `139.97 % more`, `0.52 % fewer`, from a factor of ten on
    /// `1,401 times as many`, and `0.00 %` if it rounds to zero. `None` if the change has no size, such as
    /// a change from 0.
    pub fn change(self, [base, new]: [f64; 2], decimals: usize) -> Option<String> {
        let ratio = new / base;
        if base > 0.0 && ratio >= TIMES && ratio.is_finite() {
            return Some(self.factor(ratio, None));
        }
        let percent = 100.0 * (new - base) / base.abs();
        let size = percent.is_finite().then(|| format!("{:.decimals$} %", percent.abs()))?;
        Some(self.directed(size, percent))
    }
}

/// Returns the name of the phase that a row of instructions is about, or else the name of the row. A figure at equal
/// entries is marked.
pub fn phase_of(row: &Row) -> String {
    match row.metric.ends_with(EQUAL_ENTRIES) {
        true => format!("{} (at equal entries)", phase_alone(row)),
        false => phase_alone(row).to_owned(),
    }
}

/// Returns the name of the phase that a row of instructions is about, as its measured phase has it, or else the name of
/// the row.
pub fn phase_alone(row: &Row) -> &str {
    let kernel = row.metric.strip_prefix(INSTRUCTIONS).and_then(|it| it.strip_prefix("-kernel"));
    let phase = match kernel {
        Some("") => "all phases",
        Some(rest) => rest.trim_start_matches('-'),
        None => &row.metric,
    };
    phase.strip_suffix(EQUAL_ENTRIES).unwrap_or(phase)
}

/// Formats a figure with `decimals` decimals; a dash if there is none. A figure that rounds to zero has no
/// sign.
pub fn decimal(value: Option<f64>, decimals: usize) -> String {
    let Some(value) = value.filter(|value| value.is_finite()) else {
        return "-".to_owned();
    };
    if value.abs() >= HUGE {
        return format!("{value:.6e}");
    }
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(zero) if zero.chars().all(|digit| matches!(digit, '0' | '.')) => zero.to_owned(),
        _ => text,
    }
}

/// Formats a figure with `decimals` decimals and groups of digits: `2,369,712`; a dash if it is not a
/// number.
pub fn figure(value: f64, decimals: usize) -> String {
    grouped(&decimal(Some(value), decimals))
}

/// Formats a figure with groups of digits and with its sign, even if it rounds to 0.
pub fn signed(value: f64, decimals: usize) -> String {
    let sign = if value < 0.0 { '-' } else { '+' };
    format!("{sign}{}", figure(value.abs(), decimals))
}

/// Formats a number with at most two decimals, without trailing zeros: `1`, `0.5`, `0.36`.
pub fn short(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats a share in percent, without the sign `%`. Above 1,000 percent, digits would claim more than is
/// known, so there are none.
pub fn in_percent(share: f64, decimals: usize) -> String {
    match share > 10.0 {
        true => "over 1,000".to_owned(),
        false => decimal(Some(100.0 * share), decimals),
    }
}

/// Formats a p-value: `0.034`, or `< 0.001`.
pub fn probability(p: f64) -> String {
    match p {
        ..0.001 => "< 0.001".to_owned(),
        _ => format!("{p:.3}"),
    }
}

/// Returns the name of a row, with its workload if the tables are of several.
pub fn name(comparison: &Comparison, table: &Table, row: &Row) -> String {
    let metric = escape(&row.metric);
    match comparison.has_several_workloads() {
        true => format!("{} {metric}", escape(&table.workload)),
        false => metric,
    }
}

/// Formats how often a verdict was given: `2 regressions`, `1 undecided`.
pub fn times(verdict: Verdict, times: usize) -> String {
    match verdict {
        Verdict::Regression | Verdict::Improvement => count(times, verdict.name()),
        Verdict::Same | Verdict::Undecided => format!("{times} {}", verdict.name()),
    }
}

/// Most boots or seeds that a verdict is said to need; larger numbers are called impractical.
const MOST: usize = 1000;

/// Writes how many more boots or seeds are needed. `unit` is `boot` or `seed`.
pub fn more_of(number: usize, unit: &str) -> String {
    match rough(number) {
        number @ ..=MOST => format!("about {}", count(number, &format!("more {unit}"))),
        number => {
            format!("more {unit}s than are practical (about {})", grouped(&number.to_string()))
        }
    }
}

/// Rounds up to two digits, because the number rests on an estimate of spread.
fn rough(number: usize) -> usize {
    let mut unit = 1;
    while number / unit >= 100 {
        unit *= 10;
    }
    number.div_ceil(unit) * unit
}

/// Joins words as in a sentence: `a, b and c`.
pub fn listed(words: &[String]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_fewer_and_amounts_are_less() {
        let of = |unit| Of::unit(unit);
        for unit in ["", "instructions", "faults", "pages", "huge pages", "events", "/s", "blocks"]
        {
            assert_eq!(of(unit), Of::Number, "{unit}");
        }
        for unit in ["KiB", "MiB", "MB", "B", "bytes", "%", "pages/s", "ns/s", "1/s"] {
            assert_eq!(of(unit), Of::Amount, "{unit}");
        }
        assert_eq!([of("s"), of("ms"), of("ns a page")], [Of::Time; 3]);
        let down = |of: Of| of.change([100.0, 0.05], 2).unwrap();
        assert_eq!(down(Of::Number), "99.95 % fewer");
        assert_eq!([down(Of::Time), down(Of::Amount)], ["99.95 % less"; 2]);
    }

    #[test]
    fn large_changes_are_ratios() {
        let number = |base, new| Of::Number.change([base, new], 2);
        let of = |base, new| number(base, new).unwrap();
        assert_eq!(of(100.0, 140_113.34), "1,401 times as many");
        assert_eq!([of(1.0, 10.0), of(1.0, 12.34)], ["10.0 times as many", "12.3 times as many"]);
        assert_eq!([of(1.0, 9.999), of(1.0, 2.4)], ["899.90 % more", "140.00 % more"]);
        assert_eq!(Of::Time.change([1.0, 250.0], 2).unwrap(), "250 times as long");
        assert_eq!(Of::Amount.change([1.0, 250.0], 2).unwrap(), "250 times as much");
        // Neither 0 nor a negative figure has multiples.
        assert_eq!([number(0.0, 3.0), number(0.0, 0.0)], [None, None]);
        let within = Of::Time.times(12.34, Some([11.0, 13.96]));
        assert_eq!(within.unwrap(), "12.3 times as long (11.0 to 14.0)");
        assert_eq!(Of::Time.times(2.0, None).unwrap(), "2.0 times as long");
        assert_eq!(Of::Time.times(1.99, Some([1.9, 2.1])), None);
        assert_eq!(of(-1.0, 10.0), "1100.00 % more");
        assert_eq!([of(1e6, 1e6), of(1e6, 999_999.0)], ["0.00 %", "0.00 %"]);
    }

    #[test]
    fn digits_stand_in_groups() {
        assert_eq!([figure(2_369_712.0, 0), figure(1234.5, 2)], ["2,369,712", "1,234.50"]);
        assert_eq!([signed(-90_000.0, 0), signed(999.0, 0)], ["-90,000", "+999"]);
        assert_eq!([figure(1e300, 2), figure(f64::NAN, 0)], ["1.000000e300", "-"]);
    }

    #[test]
    fn figures_are_rounded_as_printf_does_it() {
        assert_eq!(decimal(Some(1.005), 2), "1.00");
        assert_eq!(decimal(Some(12.5), 0), "12");
        assert_eq!(decimal(Some(-0.004), 2), "0.00");
        assert_eq!(decimal(Some(-0.006), 2), "-0.01");
        assert_eq!(decimal(Some(1e300), 2), "1.000000e300");
        assert_eq!(decimal(Some(f64::NAN), 2), "-");
        assert_eq!(decimal(None, 2), "-");
    }

    #[test]
    fn absurd_numbers_of_boots_are_not_suggested() {
        assert_eq!(more_of(1, "boot"), "about 1 more boot");
        assert_eq!(more_of(991, "boot"), "about 1,000 more boots");
        assert_eq!(more_of(1001, "seed"), "more seeds than are practical (about 1,100)");
        assert_eq!(more_of(24_801, "boot"), "more boots than are practical (about 25,000)");
    }
}
