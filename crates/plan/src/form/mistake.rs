//! Mistakes of texts that do not have their form.

use std::fmt;
use std::ops::Range;

use serde::de::{self, Expected, Unexpected};

use super::near::nearest;

/// Why a text does not have a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// What kind of mistake it is.
    pub kind: Kind,
    /// What is wrong with the text.
    pub problem: String,
    /// What was expected instead.
    pub expected: Option<String>,
    /// The known name that may have been meant.
    pub near: Option<&'static str>,
    /// The keys that lead to it, or to what is missing; the place in a list counts from 0.
    pub keys: Vec<String>,
    /// Where it is in the text; `None` for what is missing at the top.
    pub place: Option<Range<usize>>,
}

/// What the reader of a mistake acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The last key is missing.
    Missing,
    /// The last key is not one of the form.
    Unknown,
    /// A text was expected.
    Text,
    /// A list was expected.
    List,
    /// A whole number was expected, or another one.
    Number,
    /// A mistake of another kind.
    Other,
}

impl Mistake {
    /// A mistake without a place.
    pub fn new(kind: Kind, problem: String) -> Self {
        Self { kind, problem, expected: None, near: None, keys: Vec::new(), place: None }
    }

    /// A name that is none of the known ones.
    fn unknown(kind: Kind, what: &str, name: &str, known: &'static [&'static str]) -> Self {
        let quoted: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
        let all = quoted.join(if quoted.len() == 2 { " or " } else { ", " });
        let several = if quoted.len() > 2 { "one of " } else { "" };
        Self {
            expected: Some(format!("{several}{all}")),
            near: nearest(name, known.iter().copied()),
            ..Self::new(kind, format!("unknown {what} `{name}`"))
        }
    }

    /// What may have been meant.
    pub fn hint(&self) -> Option<String> {
        match self.kind {
            Kind::Text => {
                Some("write it in quotation marks, with its unit if it has one: \"1G\"".to_owned())
            }
            Kind::List => Some("write a list in brackets, also of one value".to_owned()),
            _ => self.near.map(|near| format!("did you mean `{near}`?")),
        }
    }

    /// A message about the mistake, after the key whose value is wrong.
    pub fn with_key(&self, message: &str) -> String {
        self.key().map_or(message.to_owned(), |key| format!("{key}: {message}"))
    }

    /// The key whose value is wrong; `None` for keys that are missing or not known, which the problem names.
    pub fn key(&self) -> Option<&str> {
        let is_key = |key: &&String| key.parse::<usize>().is_err();
        let is_of_value = !matches!(self.kind, Kind::Missing | Kind::Unknown);
        let key = self.keys.iter().rev().find(is_key).filter(|_| is_of_value);
        key.map(String::as_str)
    }

    /// Sets the place, if it is not known more exactly.
    pub fn at(self, place: Range<usize>) -> Self {
        Self { place: self.place.or(Some(place)), ..self }
    }

    /// The same mistake below one more key.
    pub fn below(mut self, key: &str) -> Self {
        self.keys.insert(0, key.to_owned());
        self
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.expected {
            Some(expected) => write!(f, "{}, expected {expected}", self.problem),
            None => f.write_str(&self.problem),
        }
    }
}

impl std::error::Error for Mistake {}

impl de::Error for Mistake {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(Kind::Other, message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let problem = format!("invalid type: {found}");
        Self { expected: Some(expected.to_string()), ..Self::new(Kind::Other, problem) }
    }

    fn unknown_variant(value: &str, known: &'static [&'static str]) -> Self {
        Self::unknown(Kind::Other, "value", value, known)
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        Self::unknown(Kind::Unknown, "field", key, known)
    }

    fn missing_field(key: &'static str) -> Self {
        Self::new(Kind::Missing, format!("missing field `{key}`")).below(key)
    }
}
