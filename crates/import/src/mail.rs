//! A mail, a mailbox, a web page of mails, a patch or a commit message as lines of text: transfer encoding
//! decoded, quoting removed, headers and patches marked, each line with its author.

use std::collections::HashMap;
use std::iter::Peekable;

use crate::encoding::{Decoded, base64, decoded, quoted_printable, unencoded};
use crate::quoting;
use crate::table::Lines;

/// Longest line that can belong to a table.
pub const MAX_LINE: usize = 4096;
/// Headers that begin a mail, or a part of it, within a text.
const HEADERS: [&str; 8] = [
    "From", "Date", "Subject", "Message-ID", "Author", "Commit-ID", "Content-Type",
    "Content-Transfer-Encoding",
];
/// The largest number of lines of a mail that are read, counted in the file or after decoding.
pub const MAX_LINES: usize = 2_000_000;
/// A legend: gains in percent, and coefficients of variation.
const LEGEND: &str = "[pct imp](CV)";
/// Distance of tab stops.
const TAB: usize = 8;

/// The role of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Text, or a blank line.
    Text,
    /// A header of a mail, part of a patch, or of a kernel's log: it cannot hold a table.
    Apart,
    /// Text in a transfer encoding that is not decoded.
    Encoded,
}

/// A line of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The lines of the file that it was made from.
    pub lines: Lines,
    pub role: Role,
    /// The depth of quoting.
    pub depth: usize,
    /// The text without quote marks and trailing spaces. Tabs are expanded.
    pub text: String,
    /// The index of the author in [`Mail::authors`].
    author: Option<usize>,
}

/// The lines and their authors.
#[derive(Debug, Default)]
pub struct Mail {
    pub lines: Vec<Line>,
    authors: Vec<String>,
    /// The first line of the file that was not read, if there are too many.
    pub cut: Option<usize>,
}

impl Mail {
    /// Who wrote a line.
    pub fn author(&self, line: &Line) -> Option<String> {
        line.author.map(|author| self.authors[author].clone())
    }
}

/// How a part of a mail is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Plain,
    QuotedPrintable,
    Base64,
}

/// What the next line of a text belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    Headers,
    Body,
    /// A hunk of a patch, with the numbers of old and new lines that follow.
    Hunk(usize, usize),
}

struct Unfolder {
    mail: Mail,
    inside: Inside,
    encoding: Encoding,
    /// Whether the current headers have declared the encoding.
    declared: bool,
    /// Whether the current part is text.
    is_text: bool,
    /// Whether lines that begin with a space have an extra one (RFC 3676).
    is_stuffed: bool,
    /// The author at each depth of quoting, by index.
    authors: Vec<Option<usize>>,
    /// The indices of authors.
    places: HashMap<String, usize>,
    /// The last line of text that is not blank.
    before: String,
    /// No lines of the file beyond this one are read.
    last: usize,
}

/// Splits `bytes` into lines; `before` lines of the text precede them.
pub fn unfold(bytes: &[u8], before: usize) -> Mail {
    let text = decoded(bytes);
    let mut raw = (before + 1..).zip(text.lines()).peekable();
    let inside = if begins_with_headers(&text) { Inside::Headers } else { Inside::Body };
    let mut unfolder = Unfolder {
        mail: Mail::default(),
        inside,
        encoding: Encoding::Plain,
        declared: false,
        is_text: true,
        is_stuffed: false,
        authors: Vec::new(),
        places: HashMap::new(),
        before: String::new(),
        last: before.saturating_add(MAX_LINES),
    };
    while let Some((number, line)) = raw.next() {
        if unfolder.is_full(number) {
            break;
        }
        unfolder.line(number, line, &mut raw);
    }
    unfolder.mail
}

impl Unfolder {
    fn line<'a>(
        &mut self,
        number: usize,
        line: &'a str,
        following: &mut Peekable<impl Iterator<Item = (usize, &'a str)>>,
    ) {
        if self.begins_headers(line) {
            self.inside = Inside::Headers;
            self.declared = false;
        }
        let inside = self.inside;
        match inside {
            Inside::Headers if line.trim().is_empty() => {
                self.inside = Inside::Body;
                // The mark is not part of the encoded text.
                return self.body(number, number, line);
            }
            Inside::Headers if self.header(line) => {
                return self.push(number, number, Role::Apart, line);
            }
            Inside::Headers => self.inside = Inside::Body,
            Inside::Hunk(..) if self.hunk(number, line) => return,
            Inside::Hunk(..) | Inside::Body => {}
        }
        match self.encoding {
            // A separator of parts.
            Encoding::Base64 if line.starts_with("--") => {
                self.push(number, number, Role::Apart, line);
            }
            Encoding::Base64 if self.is_text => self.base64(number, line, following),
            Encoding::Base64 => self.push(number, number, Role::Apart, line),
            Encoding::Plain => self.body(number, number, line),
            Encoding::QuotedPrintable => {
                let is_mark = line.starts_with("--")
                    && following.peek().is_some_and(|(_, next)| header_name(next).is_some());
                let (last, line) = quoted_printable(number, line, is_mark, following);
                self.body(number, last, &line);
            }
        }
    }

    /// Whether no more lines are read; `number` is the next line of the file.
    fn is_full(&mut self, number: usize) -> bool {
        let is_full = number > self.last || self.mail.lines.len() >= MAX_LINES;
        if is_full && self.mail.cut.is_none() {
            self.mail.cut = Some(number);
        }
        is_full
    }

    /// Reads a line of a hunk; false if the hunk ended before it.
    fn hunk(&mut self, number: usize, line: &str) -> bool {
        let Inside::Hunk(old, new) = self.inside else {
            return false;
        };
        let inside = in_hunk(line, old, new);
        self.inside = inside.unwrap_or(Inside::Body);
        if inside.is_some() {
            self.push(number, number, Role::Apart, line);
        }
        inside.is_some()
    }

    /// A base64 part, up to the first line that does not belong to it.
    fn base64<'a>(
        &mut self,
        number: usize,
        line: &'a str,
        following: &mut Peekable<impl Iterator<Item = (usize, &'a str)>>,
    ) {
        // One line more than the limit tells whether the limit is exceeded.
        let most = MAX_LINES + 1 - self.mail.lines.len();
        match base64(number, line, most, self.last, following) {
            Ok(lines) => {
                for Decoded { lines, text } in lines {
                    if self.is_full(lines.first) {
                        break;
                    }
                    if !self.hunk(lines.first, &text) {
                        self.body(lines.first, lines.last, &text);
                    }
                }
                self.inside = Inside::Body;
            }
            Err(encoded) => {
                for (number, line) in encoded {
                    self.push(number, number, Role::Encoded, line);
                }
            }
        }
    }

    /// Whether headers begin at this line or the next.
    fn begins_headers(&mut self, line: &str) -> bool {
        if is_mailbox_mark(line) {
            self.authors.clear();
            self.encoding = Encoding::Plain;
            self.is_text = true;
            self.is_stuffed = false;
            return true;
        }
        if self.inside != Inside::Body {
            return false;
        }
        header_name(line).is_some_and(|name| HEADERS.contains(&name))
    }

    /// Reads a header; false if the line is not one.
    fn header(&mut self, line: &str) -> bool {
        if line.starts_with([' ', '\t']) || is_mailbox_mark(line) {
            self.is_stuffed |= is_flowed(line);
            return true;
        }
        let Some(name) = header_name(line) else {
            return false;
        };
        let value = line[name.len() + 1..].trim();
        if name == "From" || name == "Author" {
            self.set_author(0, quoting::name_of(&unencoded(value)));
        } else if name.eq_ignore_ascii_case("Content-Type") {
            self.is_stuffed = is_flowed(value);
            self.is_text = !value.contains('/') || value.to_ascii_lowercase().starts_with("text/");
            if !self.declared {
                self.encoding = Encoding::Plain;
            }
        } else if name.eq_ignore_ascii_case("Content-Transfer-Encoding") {
            self.declared = true;
            self.encoding = match value.to_ascii_lowercase().as_str() {
                "quoted-printable" => Encoding::QuotedPrintable,
                "base64" => Encoding::Base64,
                _ => Encoding::Plain,
            };
        }
        true
    }

    fn body(&mut self, first: usize, last: usize, line: &str) {
        let line = line.strip_prefix(' ').filter(|_| self.is_stuffed).unwrap_or(line);
        if let Some(inside) = begins_hunk(line) {
            self.inside = inside;
            return self.push(first, last, Role::Apart, line);
        }
        let (depth, text) = quoting::unquote(line);
        if text.len() <= MAX_LINE {
            if depth == 0
                && let Some(author) = quoting::page_author(text)
            {
                self.set_author(0, Some(author));
            }
            if let Some(author) = quoting::quoted_author(text, &self.before) {
                self.set_author(depth + 1, Some(author));
            }
        }
        self.push(first, last, Role::Text, line);
        let text = &self.mail.lines[self.mail.lines.len() - 1].text;
        if !text.is_empty() {
            self.before.clone_from(text);
        }
    }

    /// Records who wrote what is quoted `depth` times; authors of deeper quotes become unknown.
    fn set_author(&mut self, depth: usize, name: Option<String>) {
        self.authors.truncate(depth);
        self.authors.resize(depth, None);
        self.authors.push(name.map(|name| {
            let known = &mut self.mail.authors;
            *self.places.entry(name).or_insert_with_key(|name| {
                known.push(name.clone());
                known.len() - 1
            })
        }));
    }

    fn push(&mut self, first: usize, last: usize, role: Role, line: &str) {
        let (depth, text) = quoting::unquote(line);
        let fits = role == Role::Text && text.len() <= MAX_LINE && !is_log(text);
        let author = self.authors.get(depth).copied().flatten();
        let text = if fits { without_legend(unframe(expand(text))) } else { String::new() };
        let role = if role == Role::Text && !fits { Role::Apart } else { role };
        self.mail.lines.push(Line { lines: Lines { first, last }, role, depth, text, author });
    }
}

/// Whether a text begins as a mail does: with a header, followed before the first blank line by a header that every
/// mail has. A title such as `autonuma: 3 boots` does not count.
fn begins_with_headers(text: &str) -> bool {
    let known = |name: &str| HEADERS.iter().any(|header| header.eq_ignore_ascii_case(name));
    let lines = text.lines().take_while(|line| !line.trim().is_empty());
    let mut names = lines.map(header_name);
    // The first header may itself be a known one.
    let first = names.next().flatten();
    first.is_some_and(|name| known(name) || names.flatten().any(known))
}

/// The name of a header such as `From: x`.
fn header_name(line: &str) -> Option<&str> {
    let colon = line.as_bytes().iter().take(80).position(|byte| *byte == b':')?;
    let name = &line[..colon];
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let fits = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(letters)
        && line[colon + 1..].starts_with([' ', '\t']);
    fits.then_some(name)
}

/// Whether a line is `From x Sat Mar  7 15:20:00 2015`, which precedes each mail in a mailbox and in the output of
/// `git format-patch`.
pub fn is_mailbox_mark(line: &str) -> bool {
    line.len() < 200
        && line.starts_with("From ")
        && line.contains(':')
        && line
            .rsplit(' ')
            .next()
            .is_some_and(|year| year.len() == 4 && year.bytes().all(|digit| digit.is_ascii_digit()))
}

/// Whether a `Content-Type` says that lines are space-stuffed, as in flowed text.
fn is_flowed(value: &str) -> bool {
    value.to_ascii_lowercase().contains("format=flowed")
}

/// Whether a line is of the kernel's log: `[   97.003812] ...`.
fn is_log(text: &str) -> bool {
    let stamp = text.trim_start().strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let time = stamp.and_then(|(stamp, _)| stamp.trim_start().split_once('.'));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    time.is_some_and(|(seconds, micros)| {
        !seconds.is_empty() && digits(seconds) && micros.len() == 6 && digits(micros)
    })
}

/// The hunk that is headed by a line such as `@@ -1,7 +1,8 @@`.
fn begins_hunk(line: &str) -> Option<Inside> {
    let mut words = line.strip_prefix("@@ -")?.split(' ');
    let count = |range: &str| match range.split_once(',') {
        Some((_, count)) => count.parse().ok(),
        None => Some(1),
    };
    let old = count(words.next()?)?;
    let new = count(words.next()?.strip_prefix('+')?)?;
    Some(Inside::Hunk(old, new))
}

/// The state of a hunk after `line`; `None` if it ended before.
fn in_hunk(line: &str, old: usize, new: usize) -> Option<Inside> {
    if line.starts_with('\\') {
        return Some(Inside::Hunk(old, new));
    }
    let (old, new) = match line.bytes().next() {
        Some(b' ' | b'\t') | None => (old.checked_sub(1)?, new.checked_sub(1)?),
        Some(b'-') => (old.checked_sub(1)?, new),
        Some(b'+') => (old, new.checked_sub(1)?),
        _ => return None,
    };
    Some(Inside::Hunk(old, new))
}

/// Replaces tabs and no-break spaces by spaces, and removes control characters and spaces at the end.
fn expand(text: &str) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut column = 0;
    for letter in text.chars() {
        let spaces = match letter {
            '\t' => TAB - column % TAB,
            '\u{a0}' => 1,
            '\u{feff}' => 0,
            control if control.is_control() => 0,
            other => {
                expanded.push(other);
                column += 1;
                continue;
            }
        };
        expanded.extend(std::iter::repeat_n(' ', spaces));
        column += spaces;
    }
    expanded.truncate(expanded.trim_end().len());
    expanded
}

/// The text of a line of a framed table, without the bars between its cells.
fn unframe(text: String) -> String {
    let framed = text.trim_start().starts_with('|') && text.ends_with('|');
    if framed && text.matches('|').count() > 2 {
        let is_blank = |cell: &str| cell.trim().is_empty();
        let cells: Vec<&str> = text.split('|').collect();
        let first = cells.iter().position(|cell| !is_blank(cell)).unwrap_or(0);
        let last = cells.iter().rposition(|cell| !is_blank(cell)).unwrap_or(0);
        let filled = cells.iter().enumerate().map(|(place, cell)| match cell.len() {
            width @ 1.. if is_blank(cell) && (first..last).contains(&place) => {
                format!("{:^width$}", "-")
            }
            _ => (*cell).to_owned(),
        });
        filled.collect::<Vec<_>>().join(" ").trim_end().to_owned()
    } else {
        text
    }
}

/// Replaces the legend after each column's name by blanks. Positions are kept.
fn without_legend(text: String) -> String {
    let blank = " ".repeat(LEGEND.len());
    if text.contains(LEGEND) { text.replace(LEGEND, &blank).trim_end().to_owned() } else { text }
}

#[cfg(test)]
mod tests;
