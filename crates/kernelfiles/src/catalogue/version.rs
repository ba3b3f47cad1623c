//! A kernel release, as precise as the history of counters needs.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// A version such as `6.12`, or `2.6.32`: before 3.0 the third number distinguishes releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Version([u32; 3]);

impl FromStr for Version {
    type Err = String;

    /// Parses `6.12`, `2.6.32`, and `uname -r` with its suffix: `6.12.57+deb12-cloud-amd64`.
    fn from_str(text: &str) -> Result<Self, String> {
        let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let numbers = text[..end.unwrap_or(text.len())].split('.').map(str::parse);
        match numbers.take(3).collect::<Result<Vec<u32>, _>>().as_deref() {
            Ok([2, minor, patch]) => Ok(Self([2, *minor, *patch])),
            Ok([major, minor, ..]) if *major > 2 => Ok(Self([*major, *minor, 0])),
            _ => Err(format!("`{text}` is not a version of the kernel")),
        }
    }
}

impl TryFrom<String> for Version {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [2, minor, patch] => write!(f, "2.{minor}.{patch}"),
            [major, minor, _] => write!(f, "{major}.{minor}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_in_order() {
        let all = ["2.6.32", "2.6.39", "3.0", "3.19.8", "4.0-rc1", "4.20", "5.10.0-46-cloud-amd64"];
        let versions: Vec<Version> = all.iter().map(|text| text.parse().unwrap()).collect();
        assert!(versions.is_sorted());
        let printed: Vec<_> = versions.iter().map(ToString::to_string).collect();
        assert_eq!(printed, ["2.6.32", "2.6.39", "3.0", "3.19", "4.0", "4.20", "5.10"]);
        for text in ["", "6", "2.6", "six", "6.x", "99999999999.1", "1.2.3"] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }
}
