//! Boots in a store.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::Boot;

/// The number of a boot in its store. Written `b3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootId(pub i64);

impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("b{}", self.0))
    }
}

/// The error that a text is not the number of a boot, such as `b3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoBootId;

impl FromStr for BootId {
    type Err = NoBootId;

    fn from_str(text: &str) -> Result<Self, NoBootId> {
        let number = text.strip_prefix('b').filter(|it| it.bytes().all(|it| it.is_ascii_digit()));
        number.and_then(|number| number.parse().ok()).map(Self).ok_or(NoBootId)
    }
}

impl Serialize for BootId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A boot as a store keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// The boot's number in the store.
    pub id: BootId,
    /// Whether it failed, and was repeated or will be.
    pub superseded: bool,
    /// The boot, as far as it was read.
    pub boot: Boot,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_boot_is_read_as_it_is_written() {
        assert_eq!(BootId(12).to_string().parse(), Ok(BootId(12)));
        for text in ["12", "b", "b-1", "b+1", "b1 ", "B1", "b99999999999999999999"] {
            assert_eq!(text.parse::<BootId>(), Err(NoBootId), "{text}");
        }
    }
}
