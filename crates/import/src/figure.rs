//! Figures: numbers, percentages, and times such as `1m2.5s`.

use crate::table::Figure;

/// Longest word that can be a figure.
const MAX_LENGTH: usize = 40;
/// Placeholders for missing values; a tilde means about the same as the baseline's.
const MISSING: [&str; 7] = ["-", "--", "~", "n/a", "N/A", "NaN", "nan"];

/// Units that may follow values.
const UNITS: [&str; 29] = [
    "ns", "us", "\u{b5}s", "\u{3bc}s", "usec", "usecs", "ms", "msec", "msecs", "s", "sec", "secs",
    "B", "kB", "KB", "KiB", "MB", "MiB", "GB", "GiB", "B/s", "kB/s", "KB/s", "KiB/s", "MB/s",
    "MiB/s", "GB/s", "GiB/s", "ops/s",
];

/// Whether a word is the unit of the preceding value.
pub fn is_unit(word: &str) -> bool {
    UNITS.contains(&word)
}

/// Whether `word` is a placeholder for a missing value.
pub fn is_missing(word: &str) -> bool {
    MISSING.contains(&word)
}

/// Parses `word` as a figure: a decimal number with an optional sign, thousands separated by commas, a
/// percent sign; or a time in hours, minutes and seconds that ends in `s`.
pub fn figure(word: &str) -> Option<Figure> {
    if word.is_empty() || word.len() > MAX_LENGTH || !word.is_ascii() {
        return None;
    }
    let (value, half) = match word.strip_suffix('s') {
        Some(time) => seconds(time)?,
        None => number(word.strip_suffix('%').unwrap_or(word))?,
    };
    let finite = value.is_finite() && half.is_finite();
    finite.then(|| Figure { value, half, text: word.to_owned() })
}

/// Splits values of one width that have run together, such as `123.45678.90`: each has as many decimals as the last
/// one, at least two. Percentages such as `99%81%` match as well. Versions such as `4.16.0` do not.
pub fn run_together(word: &str) -> Option<Vec<&str>> {
    if word.ends_with('%') && word.len() <= MAX_LENGTH * 4 {
        let pieces: Vec<&str> = word.split_inclusive('%').collect();
        return pieces.iter().all(|piece| figure(piece).is_some()).then_some(pieces);
    }
    let decimals = word.rsplit_once('.')?.1.len();
    if word.len() > MAX_LENGTH * 4 || decimals < 2 || word.matches('.').count() < 2 {
        return None;
    }
    let mut pieces = Vec::new();
    let mut rest = word;
    while !rest.is_empty() {
        let end = rest.find('.')? + 1 + decimals;
        let piece = rest.get(..end)?;
        figure(piece)?;
        pieces.push(piece);
        rest = &rest[end..];
    }
    Some(pieces)
}

/// A number, and half a step of its last decimal.
fn number(text: &str) -> Option<(f64, f64)> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i16>().ok()?),
        None => (digits, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_whole(whole) || !all_digits(fraction) || mantissa.ends_with('.') {
        return None;
    }
    let value = text.replace(',', "").parse().ok()?;
    let step = i32::from(exponent) - i32::try_from(fraction.len()).ok()?;
    Some((value, 0.5 * 10_f64.powi(step)))
}

/// Digits, with or without commas before every third from the right.
fn is_whole(text: &str) -> bool {
    let mut groups = text.split(',');
    let first = groups.next().unwrap_or_default();
    let digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    let set_off = text.contains(',');
    !first.is_empty()
        && digits(first)
        && (!set_off || first.len() <= 3)
        && groups.all(|group| group.len() == 3 && digits(group))
}

/// Parses a time without its final `s`. The result is in seconds.
fn seconds(text: &str) -> Option<(f64, f64)> {
    let (hours, rest) = text.split_once('h').unwrap_or(("0", text));
    let (minutes, seconds) = rest.split_once('m').unwrap_or(("0", rest));
    let whole = |text: &str| text.parse::<u32>().ok().map(f64::from);
    if !seconds.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let (seconds, half) = number(seconds)?;
    Some((whole(hours)? * 3600.0 + whole(minutes)? * 60.0 + seconds, half))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(word: &str) -> Option<f64> {
        figure(word).map(|figure| figure.value)
    }

    #[test]
    fn figures_are_numbers_percentages_and_times() {
        for (word, expected) in [
            ("12", 12.0),
            ("-0.61", -0.61),
            ("+29", 29.0),
            ("99%", 99.0),
            ("471,752", 471_752.0),
            ("1.5e3", 1500.0),
            ("8m08s", 488.0),
            ("1m1.507s", 61.507),
            ("2h0m1s", 7201.0),
            ("12.5s", 12.5),
        ] {
            assert_eq!(value(word), Some(expected), "{word}");
        }
    }

    #[test]
    fn words_and_versions_are_no_figures() {
        for word in [
            "", "-", "s", "ms", "3.19.0", "4.0-rc1", "v8", "1,00", "1,0000", "12.", ".5", "0x10",
            "1e999", "inf", "NaN", "7m45", "5ms", "m5s", "+", "1-2", "100Mb",
        ] {
            assert_eq!(value(word), None, "{word}");
        }
    }

    #[test]
    fn half_a_step_is_that_of_the_last_decimal() {
        let half = |word| figure(word).unwrap().half;
        assert_eq!(half("12"), 0.5);
        assert_eq!(half("0.25"), 0.005);
        assert_eq!(half("1.5e3"), 50.0);
        assert_eq!(half("1m2.5s"), 0.05);
    }

    #[test]
    fn values_that_ran_together_are_split_by_their_decimals() {
        assert_eq!(run_together("123.45678.90"), Some(vec!["123.45", "678.90"]));
        assert_eq!(run_together("1.00-2.00"), Some(vec!["1.00", "-2.00"]));
        assert_eq!(run_together("99%81%"), Some(vec!["99%", "81%"]));
        for word in
            ["99%a%", "%%", "4.16.0", "5.10.12", "192.168.10.25", "1.25", "a.bb.cc", "1..00"]
        {
            assert_eq!(run_together(word), None, "{word}");
        }
    }
}
