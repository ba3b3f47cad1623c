//! Decodes transfer encodings: quoted-printable, base64, encoded words of headers; and bytes as text.

use std::borrow::Cow;
use std::iter::Peekable;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::table::Lines;

/// A line joined with its continuation lines and decoded, and the number of the last of these lines. Only `is_mark`,
/// which tells separators of parts, ends a continued line.
pub fn quoted_printable<'a>(
    number: usize,
    line: &'a str,
    is_mark: bool,
    following: &mut impl Iterator<Item = (usize, &'a str)>,
) -> (usize, String) {
    let mut last = number;
    let mut bytes = Vec::new();
    let mut line = line.trim_end();
    loop {
        let soft = line.strip_suffix('=').filter(|_| !is_mark);
        decode(soft.unwrap_or(line), &mut bytes);
        if soft.is_none() {
            break;
        }
        let Some((number, next)) = following.next() else {
            break;
        };
        (last, line) = (number, next.trim_end());
    }
    (last, decoded(&bytes).into_owned())
}

/// Bytes as text: UTF-8. A line that is not UTF-8 is read as Latin-1, whose no-break spaces align tables.
pub fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let line = |line| match std::str::from_utf8(line) {
        Ok(text) => text.to_owned(),
        Err(_) => line.iter().map(|byte| char::from(*byte)).collect(),
    };
    Cow::Owned(bytes.split_inclusive(|byte| *byte == b'\n').map(line).collect())
}

/// Decodes `=3D` and the like; anything else stays as it is.
fn decode(line: &str, bytes: &mut Vec<u8>) {
    let mut rest = line.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digit = |place: usize| char::from(*after.get(place)?).to_digit(16);
        let code = (byte == b'=').then(|| Some(digit(0)? * 16 + digit(1)?)).flatten();
        match code.and_then(|code| u8::try_from(code).ok()) {
            Some(code) => {
                bytes.push(code);
                rest = &after[2..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
}

/// Decodes the value of a header if it begins with an encoded word such as `=?utf-8?q?Ad=61?=`.
pub fn unencoded(value: &str) -> String {
    let decoded = || {
        let (charset, rest) = value.strip_prefix("=?")?.split_once('?')?;
        let (encoding, rest) = rest.split_once('?')?;
        let (word, after) = rest.split_once("?=")?;
        let bytes = match encoding {
            "q" | "Q" => {
                let mut bytes = Vec::new();
                decode(&word.replace('_', " "), &mut bytes);
                bytes
            }
            "b" | "B" => STANDARD.decode(word).ok()?,
            _ => return None,
        };
        let text = String::from_utf8(bytes).ok()?;
        charset.eq_ignore_ascii_case("utf-8").then(|| text + after)
    };
    decoded().unwrap_or_else(|| value.to_owned())
}

/// A decoded line, and the lines of the file that it comes from.
pub struct Decoded {
    pub lines: Lines,
    pub text: String,
}

/// Decodes a base64 part that begins with `line`, and returns its first lines, at most `most`. The part ends before
/// the first line that cannot belong to it, at the latest on line `last` of the file. If the lines are not base64,
/// they are returned as they are.
pub fn base64<'a>(
    number: usize,
    line: &'a str,
    most: usize,
    last: usize,
    following: &mut Peekable<impl Iterator<Item = (usize, &'a str)>>,
) -> Result<Vec<Decoded>, Vec<(usize, &'a str)>> {
    let mut encoded = vec![(number, line.trim())];
    let in_part = |line: &str| {
        let digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
        !line.is_empty() && line.bytes().all(digit)
    };
    let in_part = |(number, line): &(usize, &str)| *number <= last && in_part(line.trim());
    while let Some((number, line)) = following.next_if(in_part) {
        encoded.push((number, line.trim()));
    }
    let text: String = encoded.iter().map(|(_, line)| *line).collect();
    let Ok(bytes) = STANDARD.decode(text) else {
        return Err(encoded);
    };
    // The number of the last byte of each line of the file. Four letters make three bytes.
    let mut letters = 0;
    let ends = encoded.iter().map(|(number, line)| {
        letters += line.len();
        (letters / 4 * 3, *number)
    });
    let ends: Vec<(usize, usize)> = ends.collect();
    let at = |byte: usize| {
        let place = ends.partition_point(|(end, _)| *end <= byte).min(ends.len() - 1);
        ends[place].1
    };
    let mut start = 0;
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').take(most).map(|line| {
        let end = start + line.len();
        let text = decoded(line).trim_end_matches(['\r', '\n']).to_owned();
        let lines = Lines { first: at(start), last: at(end - 1) };
        start = end;
        Decoded { lines, text }
    });
    Ok(lines.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_names_are_decoded() {
        assert_eq!(unencoded("=?UTF-8?q?Ad=C3=A1_B?= <a@b.c>"), "Ad\u{e1} B <a@b.c>");
        assert_eq!(unencoded("=?x?b?QQ==?= <a@b.c>"), "=?x?b?QQ==?= <a@b.c>");
        assert_eq!(unencoded("Ada <a@b.c>"), "Ada <a@b.c>");
    }
}
