//! Sizes, durations and counts in human-readable form: `512M`, `4G`, `10ms`, `1s`, `2 boots`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A size in bytes. Written with a binary suffix: `4096`, `64K`, `512M`, `4G`, `1T`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A duration in milliseconds. Written with a unit: `10ms`, `1s`, `5m`, `2h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub u64);

/// A share of something. Written in percent: `1%`, `0.5%`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Share(pub f64);

/// The error that a text is no size, duration or share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseQuantityError {
    text: String,
    expected: &'static str,
}

impl fmt::Display for ParseQuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not {}", self.text, self.expected)
    }
}

impl std::error::Error for ParseQuantityError {}

/// A number and a noun whose plural ends in s: `1 boot`, `2 boots`, `1,200 boots`.
pub fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(&number.to_string()))
}

/// A number for sentences, with its digits in groups of three: `1,401`, `-2,369,712.50`. `number` has plain digits.
/// The text after its whole part is not changed.
pub fn grouped(number: &str) -> String {
    let begin = number.len() - number.trim_start_matches(['-', '+']).len();
    let whole = number[begin..].bytes().take_while(u8::is_ascii_digit).count();
    let mut text = number[..begin].to_owned();
    for (place, digit) in number[begin..begin + whole].chars().enumerate() {
        if place > 0 && (whole - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + &number[begin + whole..]
}

/// The date in UTC of a time in seconds since 1970: `2023-11-14`.
pub fn date(seconds: u64) -> String {
    const DAYS_OF_400_YEARS: u64 = 146_097;
    // Days are counted since 1 March of the year 0, so that leap days come last in their years, and 400 years always
    // have the same number of days.
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Month lengths repeat as 31 30 31 30 31 days.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..10 => (400 * era + year, month + 3),
        _ => (400 * era + year + 1, month - 9),
    };
    format!("{year:04}-{month:02}-{day:02}")
}

const SIZES: &[(&str, u64)] = &[("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)];
const SPANS: &[(&str, u64)] = &[("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Splits `text` into digits and a unit, and multiplies. `None` when either is unknown or the
/// product leaves 64 bits.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = units.iter().find(|(name, _)| *name == unit.trim())?.1;
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// Writes `value` with the largest unit that divides it.
fn unscaled(value: u64, units: &[(&str, u64)], none: &str) -> String {
    units.iter().find(|(_, factor)| value >= *factor && value.is_multiple_of(*factor)).map_or_else(
        || format!("{value}{none}"),
        |(unit, factor)| format!("{}{unit}", value / factor),
    )
}

impl Bytes {
    /// A number of mebibytes.
    pub const fn mib(count: u64) -> Self {
        Self(count << 20)
    }
}

impl FromStr for Bytes {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = text.trim().trim_end_matches("iB").trim_end_matches('B');
        let value = plain.parse().ok().or_else(|| scaled(plain, SIZES));
        value.map(Self).ok_or_else(|| ParseQuantityError {
            text: text.into(),
            expected: "a size such as `512M` or `4G`",
        })
    }
}

impl FromStr for Millis {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        scaled(text, SPANS).map(Self).ok_or_else(|| ParseQuantityError {
            text: text.into(),
            expected: "a duration such as `10ms`, `1s` or `5m`",
        })
    }
}

impl FromStr for Share {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // The percentage is parsed with a decimal exponent, so that 0.7% is exactly the double 0.007.
        let number = text.trim().strip_suffix('%').map(|percent| format!("{}e-2", percent.trim()));
        let value = number.and_then(|number| number.parse().ok());
        value.filter(|value: &f64| value.is_finite()).map(Self).ok_or_else(|| ParseQuantityError {
            text: text.into(),
            expected: "a share such as `1%`",
        })
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The value is rounded, so that 0.007 is not 0.7000000000000001 %.
        f.pad(&format!("{}%", (self.0 * 1e11).round() / 1e9))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&unscaled(self.0, SIZES, ""))
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&unscaled(self.0, SPANS, "ms"))
    }
}

macro_rules! as_text {
    ($type:ty) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }
    };
}

as_text!(Bytes);
as_text!(Millis);
as_text!(Share);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        for (text, value) in
            [("4096", 4096), ("64K", 65536), ("512M", 512 << 20), ("4GiB", 4 << 30)]
        {
            assert_eq!(text.parse(), Ok(Bytes(value)));
        }
        assert_eq!(Bytes(6 << 29).to_string(), "3G");
        assert_eq!(Bytes(1000).to_string(), "1000");
    }

    #[test]
    fn durations_are_read_and_written() {
        for (text, value) in [("10ms", 10), ("1s", 1000), ("5m", 300_000)] {
            assert_eq!(text.parse(), Ok(Millis(value)));
        }
        assert_eq!(Millis(1500).to_string(), "1500ms");
        assert_eq!(Millis(0).to_string(), "0ms");
    }

    #[test]
    fn shares_are_read_and_written() {
        for (text, value) in [("1%", 0.01), ("0.5 %", 0.005), ("0.7%", 0.007), ("12.5%", 0.125)] {
            let share: Share = text.parse().unwrap();
            assert_eq!(share, Share(value));
            assert_eq!(share.to_string(), text.replace(' ', ""));
        }
        for text in ["", "1", "%", "nan%", "inf%", "one%"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }

    #[test]
    fn one_is_singular() {
        let counts = [0, 1, 2].map(|number| count(number, "node"));
        assert_eq!(counts, ["0 nodes", "1 node", "2 nodes"]);
        assert_eq!(count(1200, "node"), "1,200 nodes");
    }

    #[test]
    fn digits_stand_in_groups_of_three() {
        for (plain, text) in [
            ("0", "0"),
            ("999", "999"),
            ("1401", "1,401"),
            ("-2369712.5000", "-2,369,712.5000"),
            ("+100000", "+100,000"),
            ("1.000000e300", "1.000000e300"),
            ("-", "-"),
        ] {
            assert_eq!(grouped(plain), text);
        }
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        // As `date -u -d @SECONDS +%F` prints them.
        for (seconds, day) in [
            (0, "1970-01-01"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_700_000_000, "2023-11-14"),
            (4_107_542_399, "2100-02-28"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(date(seconds), day);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "G", "-1G", "4X", "99999999999999999999", "16777216T"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
        for text in ["", "5", "s", "1 week", "18446744073709551615h"] {
            assert!(text.parse::<Millis>().is_err(), "{text}");
        }
    }
}
