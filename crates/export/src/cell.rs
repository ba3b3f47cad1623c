//! Columns and cells.

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// A signed 64-bit integer.
    Integer,
    /// A double-precision number.
    Number,
    /// A time in UTC.
    Time,
    /// True or false.
    Flag,
}

#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Whether it may be empty.
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
    /// No value.
    Null,
    Text(&'a str),
    Integer(i64),
    /// A finite number.
    Number(f64),
    /// Seconds since 1970.
    Time(i64),
    /// True or false.
    Flag(bool),
}

impl<'a> Cell<'a> {
    /// A text; no value if it is empty.
    pub fn text(text: &'a str) -> Self {
        if text.is_empty() { Self::Null } else { Self::Text(text) }
    }

    /// A number; no value if it is infinite or NaN.
    pub fn number(number: f64) -> Self {
        if number.is_finite() { Self::Number(number) } else { Self::Null }
    }

    /// An amount that is never 0 on a machine, such as its CPUs; 0 means unknown and becomes no value.
    pub fn amount(amount: u64) -> Self {
        match amount {
            0 => Self::Null,
            _ => Self::Integer(amount.try_into().unwrap_or(i64::MAX)),
        }
    }
}
