//! The parameters of workloads, and the values that they may have.

use std::fmt;
use std::str::FromStr;

use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Millis;

named! {
    /// The kind of a parameter's values.
    pub enum Kind {
        /// Any text.
        Text = "text",
        /// A whole number, which may be negative.
        Whole = "whole",
        /// A whole number that is a power of two.
        PowerOfTwo = "power-of-two",
        /// A finite number, whole or not.
        Number = "number",
        /// Bytes in the notation of mkfs: a whole number, alone or with k, m, g, t or p, or with s or b for
        /// sectors of 512 bytes or blocks of 4 KiB.
        Size = "size",
        /// A number with a unit of time.
        Duration = "duration",
        /// A yes or a no.
        Flag = "flag",
        /// One of the words.
        Word = "word",
        /// A CPU of the machine, by its number.
        Cpu = "cpu",
    }
}

/// A parameter of a workload. In a file it is a table, or only the default if it may have any value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Parameter {
    /// The value. In a manifest it is the default.
    #[serde(rename = "default")]
    pub value: String,
    /// The kind of its values.
    pub kind: Kind,
    /// The smallest number that is allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// An exclusive lower bound: larger numbers are allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<f64>,
    /// The largest number that is allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
    /// The allowed words. For other kinds than [`Kind::Word`] these words are allowed besides. An empty word allows
    /// an empty value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// The number of values, separated by commas; 0 for any number; `None` for a single value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<usize>,
    /// For a value that is a percentage of the machine's memory: the space that the workload needs on its disk, as a
    /// multiple of that amount. The disk must have a file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<f64>,
    /// The meaning of the parameter in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub meaning: String,
}

impl From<&str> for Parameter {
    /// A parameter that may have any value.
    fn from(value: &str) -> Self {
        Self {
            value: value.to_owned(),
            kind: Kind::Text,
            least: None,
            above: None,
            most: None,
            words: Vec::new(),
            values: None,
            disk: None,
            meaning: String::new(),
        }
    }
}

impl Serialize for Parameter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self == self.as_run() {
            true => serializer.serialize_str(&self.value),
            false => Self::serialize(self, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Parameter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;
        impl<'de> serde::de::Visitor<'de> for Form {
            type Value = Parameter;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or a table with default and kind")
            }

            fn visit_str<E>(self, text: &str) -> Result<Parameter, E> {
                Ok(text.into())
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                table: A,
            ) -> Result<Parameter, A::Error> {
                Parameter::deserialize(MapAccessDeserializer::new(table))
            }
        }
        deserializer.deserialize_any(Form)
    }
}

impl Parameter {
    /// The parameter without the fields that only restrict and explain its value.
    pub fn as_run(&self) -> Self {
        self.value.as_str().into()
    }

    /// Checks the value for a machine with this number of CPUs. The error is the wrong part of the value, and the
    /// allowed values in words.
    pub fn check(&self, cpus: u32) -> Result<(), (String, String)> {
        let allowed = || self.allowed(Some(cpus));
        if self.words.contains(&self.value) {
            return Ok(());
        }
        let Some(number) = self.values else {
            return match self.fits(&self.value, cpus) {
                true => Ok(()),
                false => Err((self.value.clone(), allowed())),
            };
        };
        let values: Vec<&str> = self.value.split(',').map(str::trim).collect();
        match values.iter().find(|value| !self.fits(value, cpus)) {
            Some(wrong) => Err(((*wrong).to_owned(), allowed())),
            None if number > 0 && values.len() != number => Err((self.value.clone(), allowed())),
            None => Ok(()),
        }
    }

    /// Whether one value is allowed.
    fn fits(&self, value: &str, cpus: u32) -> bool {
        let number = |number: f64| {
            self.least.is_none_or(|least| number >= least)
                && self.above.is_none_or(|above| number > above)
                && self.most.is_none_or(|most| number <= most)
        };
        match self.kind {
            Kind::Text => true,
            Kind::Word => !value.is_empty() && self.words.iter().any(|word| word == value),
            Kind::Flag => ["true", "false"].contains(&value),
            Kind::Whole => value.parse().is_ok_and(|whole: i64| number(whole as f64)),
            Kind::PowerOfTwo => {
                value.parse().is_ok_and(|it: u64| it.is_power_of_two() && number(it as f64))
            }
            Kind::Number => value.parse().is_ok_and(|it: f64| it.is_finite() && number(it)),
            Kind::Size => bytes(value).is_some_and(|bytes| number(bytes as f64)),
            Kind::Duration => Millis::from_str(value).is_ok(),
            Kind::Cpu => value.parse().is_ok_and(|cpu: u32| cpu < cpus),
        }
    }

    /// The allowed values in words, on a machine with `cpus` CPUs, which is `None` if the number is not known.
    pub fn allowed(&self, cpus: Option<u32>) -> String {
        let kind = match self.kind {
            Kind::Text => "a text",
            Kind::Word => "one of",
            Kind::Flag => "true or false",
            Kind::Whole => "a whole number",
            Kind::PowerOfTwo => "a power of two",
            Kind::Number => "a number",
            Kind::Size => "a whole number, alone or with s, b, k, m, g, t or p",
            Kind::Duration => "a duration such as 10ms, 1s or 5m",
            Kind::Cpu => match cpus {
                Some(cpus) => &format!("one of the machine's CPUs 0 to {}", cpus.saturating_sub(1)),
                None => "one of the machine's CPUs",
            },
        };
        let range = match (self.least, self.above, self.most) {
            (Some(least), _, Some(most)) => format!(" from {least} to {most}"),
            (Some(least), _, None) => format!(", {least} or more"),
            (None, Some(above), Some(most)) => format!(" above {above}, at most {most}"),
            (None, Some(above), None) => format!(" above {above}"),
            (None, None, Some(most)) => format!(", at most {most}"),
            (None, None, None) => String::new(),
        };
        let words: Vec<&str> = self
            .words
            .iter()
            .map(|word| match &**word {
                "" => "nothing",
                word => word,
            })
            .collect();
        let words = match (self.kind, words.join(", ")) {
            (_, words) if words.is_empty() => String::new(),
            (Kind::Word, words) => format!(" {words}"),
            (_, words) => format!(", or {words}"),
        };
        let values = match self.values {
            None => String::new(),
            Some(0) => "; several are separated by commas".to_owned(),
            Some(number) => format!("; {number} of them, separated by commas"),
        };
        format!("{kind}{range}{words}{values}")
    }
}

/// A [`Kind::Size`] in bytes.
fn bytes(text: &str) -> Option<u64> {
    let number = text.trim_end_matches(|last: char| last.is_ascii_alphabetic());
    let shift = match &*text[number.len()..].to_ascii_lowercase() {
        "" => 0,
        "s" => 9,
        "k" => 10,
        "b" => 12,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        "p" => 50,
        _ => return None,
    };
    let digits = Some(number).filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    digits?.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(json: &str) -> Parameter {
        let json = format!(r#"{{"default": "", {}}}"#, json.replace('\'', "\""));
        serde_json::from_str(&json).unwrap_or_else(|error| panic!("{json}: {error}"))
    }

    #[test]
    fn values_are_allowed_or_refused_with_what_is_allowed() {
        for (json, good, bad, allowed) in [
            ("'kind': 'text'", &["", "a b"][..], &[][..], ""),
            (
                "'kind': 'whole', 'least': 0, 'most': 9",
                &["0", "9"],
                &["-1", "10", "1.5", "x", ""],
                "a whole number from 0 to 9",
            ),
            ("'kind': 'whole', 'least': -1", &["-1", "7"], &["-2"], "a whole number, -1 or more"),
            (
                "'kind': 'number', 'above': 0, 'most': 45",
                &["0.5", "45"],
                &["0", "46", "nan", "inf", ""],
                "a number above 0, at most 45",
            ),
            ("'kind': 'number', 'above': 2", &["3"], &["2"], "a number above 2"),
            ("'kind': 'number', 'most': 2", &["-3"], &["3", "-inf"], "a number, at most 2"),
            (
                "'kind': 'power-of-two', 'least': 4, 'most': 16",
                &["4", "16"],
                &["2", "12", "32"],
                "a power of two from 4 to 16",
            ),
            (
                "'kind': 'size'",
                &["1", "2k", "500T", "3b"],
                &["", "k", "1kb", "+1", "99999p"],
                "a whole number, alone or with s, b, k, m, g, t or p",
            ),
            (
                "'kind': 'duration'",
                &["10ms", "5m"],
                &["5", ""],
                "a duration such as 10ms, 1s or 5m",
            ),
            ("'kind': 'flag'", &["true", "false"], &["yes"], "true or false"),
            ("'kind': 'word', 'words': ['a', 'b']", &["a", "b"], &["c", ""], "one of a, b"),
            (
                "'kind': 'whole', 'least': 1, 'words': ['', 'all']",
                &["", "all", "2"],
                &["none"],
                "a whole number, 1 or more, or nothing, all",
            ),
            ("'kind': 'cpu'", &["0", "3"], &["4", "-1"], "one of the machine's CPUs 0 to 3"),
            (
                "'kind': 'word', 'words': ['a', 'b'], 'values': 0",
                &["a", "b, a"],
                &["", "a,c"],
                "one of a, b; several are separated by commas",
            ),
            (
                "'kind': 'number', 'values': 2",
                &["1,2"],
                &["1", "1,2,3", "1,x"],
                "a number; 2 of them, separated by commas",
            ),
        ] {
            let check =
                |value: &&str| Parameter { value: (*value).to_owned(), ..parameter(json) }.check(4);
            for value in good {
                assert_eq!(check(value), Ok(()), "{json} {value}");
            }
            for value in bad {
                assert_eq!(check(value).unwrap_err().1, allowed, "{value}");
            }
        }
        let list = Parameter {
            value: "a, c".into(),
            ..parameter("'kind': 'word', 'words': ['a'], 'values': 0")
        };
        assert_eq!(list.check(1).unwrap_err().0, "c");
    }

    #[test]
    fn a_parameter_is_a_text_or_a_table() {
        let typed = parameter("'kind': 'whole', 'most': 3, 'meaning': 'Rounds.'");
        for parameter in [Parameter::from("7"), typed.clone()] {
            let json = serde_json::to_string(&parameter).unwrap();
            assert_eq!(serde_json::from_str::<Parameter>(&json).unwrap(), parameter);
        }
        assert_eq!(serde_json::to_string(&typed.as_run()).unwrap(), "\"\"");
        let told = |json: &str| serde_json::from_str::<Parameter>(json).unwrap_err().to_string();
        assert!(told("7").contains("expected a text, or a table with default and kind"));
        assert!(
            told(r#"{"default": "", "kind": "text", "last": 1}"#).contains("unknown field `last`")
        );
    }
}
