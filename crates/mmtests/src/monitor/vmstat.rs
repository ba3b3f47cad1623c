//! `/proc/vmstat` printed repeatedly. This is most of the text by far, so reading is optimised. Names come in the
//! same order each time: each is compared with the expected one instead of looked up.

use super::{Clock, stamped, time};
use crate::table::SeriesTable;

/// Reads samples from blocks of whole lines.
pub struct VmstatFileReader {
    clock: Clock,
    /// Whether a time was read. What precedes the first time has none, and is skipped.
    begun: bool,
}

impl VmstatFileReader {
    /// A reader whose times are relative to `clock`.
    pub fn new(clock: Clock) -> Self {
        Self { clock, begun: false }
    }

    pub fn read(&mut self, block: &[u8], table: &mut SeriesTable<'_>) {
        let mut rest = block;
        while !rest.is_empty() {
            if self.begun {
                table.go_on(|name| {
                    let (value, after) = counter(name, rest)?;
                    rest = after;
                    Some(value)
                });
            }
            let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
            self.line(&rest[..end], table);
            rest = &rest[end..];
        }
    }

    fn line(&mut self, line: &[u8], table: &mut SeriesTable<'_>) {
        let line = String::from_utf8_lossy(line);
        let (_, line) = stamped(line.trim_end());
        if let Some((time, _)) = time(line) {
            self.begun = true;
            table.row(self.clock.at(time));
        } else if self.begun {
            for (name, value) in kernelfiles::vmstat::parse(line) {
                table.set(&name, value);
            }
        }
    }
}

/// The value of the line `name value` at the start of `text`, and the text after it. `None` if the text starts with
/// another name, or if the value is not plain digits.
fn counter<'a>(name: &str, text: &'a [u8]) -> Option<(i64, &'a [u8])> {
    /// Any number with this many digits is below 2^63.
    const DIGITS: usize = 18;
    let digits = text.strip_prefix(name.as_bytes())?.strip_prefix(b" ")?;
    let mut value = 0;
    for (place, &byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' if place < DIGITS => value = 10 * value + i64::from(byte - b'0'),
            b'\n' if place > 0 => return Some((value, &digits[place + 1..])),
            _ => return None,
        }
    }
    None
}
