//! Columns and cells.

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    /// A signed 64-bit integer.
    Integer,
    Number,
    /// A time in UTC.
    Time,
    Flag,
}

#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
    /// Whether the column may be empty.
    pub nullable: bool,
}

impl Column {
    /// A column that is never empty.
    pub const fn full(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, nullable: false }
    }

    /// A column that may be empty.
    pub const fn nullable(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, nullable: true }
    }
}

/// The value in one column of one row, with the column's type; or nothing if the column allows that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    Null,
    Text(&'a str),
    Integer(i64),
    /// A finite number.
    Number(f64),
    Time(i64),
    Flag(bool),
}

impl<'a> Cell<'a> {
    /// A text; an empty one is no value.
    pub fn text(text: &'a str) -> Self {
        if text.is_empty() { Self::Null } else { Self::Text(text) }
    }

    /// A number; infinity and NaN are no value.
    pub fn number(number: f64) -> Self {
        if number.is_finite() { Self::Number(number) } else { Self::Null }
    }

    /// An amount that no machine has 0 of, such as CPUs: 0 means unknown, and is no value.
    pub fn amount(amount: u64) -> Self {
        match amount {
            0 => Self::Null,
            _ => Self::Integer(amount.try_into().unwrap_or(i64::MAX)),
        }
    }
}
