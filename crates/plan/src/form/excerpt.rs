//! The lines of a user's file that an error quotes: cut around the error, and in letters that a terminal only shows.

use std::ops::Range;
use std::path::Path;

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use model::visible;

use super::mistake::Mistake;

/// A longer line is cut to this many letters.
const LONGEST: usize = 160;
/// This many letters of a cut line are before the error.
const BEFORE: usize = 60;
/// If a place has more lines, only its first line is marked.
const MOST_LINES: usize = 20;
/// Most visible letters of a message, which may quote the file too.
const LONGEST_MESSAGE: usize = 1000;

/// The place of an error with the lines around it.
#[derive(Debug)]
pub struct Excerpt {
    /// The name of the file as the error prints it.
    name: String,
    /// The quoted lines. Long ones are cut.
    text: String,
    /// The number of the first line, from 0.
    first: usize,
    /// The letter of its line at which the place begins, from 0.
    column: usize,
    place: Range<usize>,
}

impl Excerpt {
    /// The lines of `text` around `place`, with one line before and one after.
    pub fn new(path: &Path, text: &str, place: Range<usize>) -> Self {
        let Range { start, mut end } = within(text, place);
        let line = text[..start].matches('\n').count();
        let mut last = line + text[start..end].matches('\n').count();
        if last - line >= MOST_LINES {
            last = line;
            end = text[start..].find('\n').map_or(text.len(), |length| start + length);
        }
        let first = line.saturating_sub(1);
        let mut shown = String::new();
        let mut marked = 0..0;
        let lines = text.split_inclusive('\n').skip(first).take(last + 2 - first);
        for whole in lines {
            let begin = whole.as_ptr().addr() - text.as_ptr().addr();
            let inside = |at: usize| at.clamp(begin, begin + whole.len()) - begin;
            let line = Line::cut(whole, inside(start));
            let place = |at: usize| shown.len() + line.place(inside(at));
            if begin <= start {
                marked.start = place(start);
            }
            if begin <= end {
                marked.end = place(end);
            }
            shown.push_str(&line.shown);
        }
        // The last line is empty.
        if line_start(text, start) == text.len() {
            marked = shown.len()..shown.len();
        }
        let name = visible(&path.display().to_string()).into_owned();
        let column = column(text, start);
        Self { name, text: shown, first, column, place: marked }
    }

    /// Where the error is in the quoted lines.
    pub fn place(&self) -> SourceSpan {
        self.place.clone().into()
    }

    /// The quoted lines from the error on.
    #[cfg(test)]
    pub fn marked(&self) -> &str {
        &self.text[self.place.start..]
    }
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let found = self.text.as_str().read_span(span, before, after)?;
        // Without lines before it, this is asked for the error's place in the file.
        let column = if before == 0 { self.column } else { found.column() };
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            found.data(),
            *found.span(),
            found.line() + self.first,
            column,
            found.line_count(),
        )))
    }
}

/// A mistake with the line that it is about.
pub fn quoted(mistake: &Mistake, text: &str) -> String {
    let message = brief(&mistake.to_string());
    let Some(place) = mistake.place.clone() else { return message };
    let Range { start, end } = within(text, place);
    let begin = line_start(text, start);
    let line = text[begin..].split_inclusive('\n').next().unwrap_or_default();
    let quoted = Line::cut(line, start - begin);
    let [from, to] = [start, end].map(|at| quoted.place((at - begin).min(line.trim_end().len())));
    let letters = |range: Range<usize>| quoted.shown[range].chars().count();
    let (indent, marks) = (letters(0..from), letters(from..to.max(from)).max(1));
    let (number, column) = (1 + text[..begin].matches('\n').count(), 1 + column(text, start));
    let gutter = " ".repeat(number.to_string().len());
    let shown = quoted.shown.trim_end().replace('\t', " ");
    format!(
        "TOML parse error at line {number}, column {column}\n{gutter} |\n{number} | {shown}\n\
         {gutter} | {}{}\n{message}",
        " ".repeat(indent),
        "^".repeat(marks)
    )
}

/// A message in visible letters, cut if it has too many.
pub fn brief(message: &str) -> String {
    let end = fitting(message.chars(), LONGEST_MESSAGE);
    let more = if end < message.len() { "..." } else { "" };
    format!("{}{more}", visible(&message[..end]))
}

/// A line with its end, cut.
struct Line<'a> {
    whole: &'a str,
    /// The part that is shown.
    part: Range<usize>,
    /// What stands for the beginning of the line.
    prefix: &'static str,
    shown: String,
}

impl<'a> Line<'a> {
    /// Cuts a line around the letter at `focus`.
    fn cut(whole: &'a str, focus: usize) -> Self {
        let line = whole.strip_suffix('\n').unwrap_or(whole);
        let line = line.strip_suffix('\r').unwrap_or(line);
        let end = &whole[whole.trim_end_matches('\n').len()..];
        let focus = focus.min(line.len());
        let is_long = visible(line).chars().nth(LONGEST).is_some();
        let start = match is_long {
            true => focus - fitting(line[..focus].chars().rev(), BEFORE),
            false => 0,
        };
        let part = match is_long {
            true => start..start + fitting(line[start..].chars(), LONGEST),
            false => start..line.len(),
        };
        let prefix = if part.start > 0 { "..." } else { "" };
        let suffix = if part.end < line.len() { "..." } else { "" };
        let shown = format!("{prefix}{}{suffix}{end}", visible(&line[part.clone()]));
        Self { whole, part, prefix, shown }
    }

    /// Where the letter at this place is shown, or the nearest one that is.
    fn place(&self, at: usize) -> usize {
        let at = at.clamp(self.part.start, self.part.end);
        self.prefix.len() + visible(&self.whole[self.part.start..at]).len()
    }
}

/// The bytes of the first letters that together are shown with `most` letters.
fn fitting(letters: impl Iterator<Item = char>, most: usize) -> usize {
    let mut left = most;
    let fits = |letter: &char| {
        let width = visible(&letter.to_string()).chars().count();
        left.checked_sub(width).map(|rest| left = rest).is_some()
    };
    letters.take_while(fits).map(char::len_utf8).sum()
}

/// A place that is in the text and between letters.
fn within(text: &str, place: Range<usize>) -> Range<usize> {
    let between = |at: usize| {
        let at = at.min(text.len());
        (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
    };
    let start = between(place.start);
    start..between(place.end.max(start))
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// The number of a letter in its line, from 0.
fn column(text: &str, at: usize) -> usize {
    text[line_start(text, at)..at].chars().count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::form;

    fn excerpt(text: &str, place: Range<usize>) -> Excerpt {
        Excerpt::new(Path::new("x.toml"), text, place)
    }

    #[test]
    fn a_long_line_is_cut_around_the_error() {
        let text = format!("a = 1\nb = \"{}\" !\n\nc", "x".repeat(200_000));
        let at = text.find('!').unwrap();
        let cut = excerpt(&text, at..at + 1);
        assert_eq!(cut.text, format!("a = 1\n...{}\" !\n\n", "x".repeat(BEFORE - 2)));
        assert_eq!((cut.marked(), cut.first, cut.column), ("!\n\n", 0, 200_007));
        let cut = excerpt(&text, 6..7);
        assert_eq!(cut.text, format!("a = 1\nb = \"{}...\n\n", "x".repeat(LONGEST - 5)));
        assert_eq!((cut.place.clone(), cut.column), (6..7, 0));
    }

    #[test]
    fn lines_keep_their_numbers_and_have_no_controls() {
        let text = "1\n2\r\n\u{1b}[2J\u{202e}x = 4\r\n5";
        let quoted = excerpt(text, 12..13);
        assert_eq!(quoted.text, "2\n\\u001b[2J\\u202ex = 4\n5");
        assert_eq!((quoted.first, quoted.column, &quoted.marked()[..1]), (1, 5, "x"));
        let lines: String = (0..100).map(|line| format!("{line}\n")).collect();
        assert_eq!(excerpt(&lines, 20..280).text, "9\n10\n11\n");
        assert_eq!(excerpt("a\n", 2..2).place, 2..2);
    }

    #[test]
    fn the_parsers_errors_quote_one_line() {
        let told = |text: &str| quoted(&form::read::<toml::Table>(text).unwrap_err(), text);
        insta::assert_snapshot!(told("a = 1\n\tb = \u{1b}"), @r"
        TOML parse error at line 2, column 6
          |
        2 |  b = \u001b
          |      ^^^^^^
        string values must be quoted, expected literal string
        ");
        let long = told(&format!("a = [{}x]", "1,".repeat(100_000)));
        assert!(long.starts_with("TOML parse error at line 1, column 200006\n"), "{long}");
        assert!(long.lines().all(|line| line.len() < 200), "{long}");
        let message = brief(&format!("unknown field `{}`", "\u{1b}".repeat(100_000)));
        assert!(message.len() < LONGEST_MESSAGE + 4 && message.ends_with("..."), "{message}");
    }

    proptest! {
        #[test]
        fn any_place_of_any_text_is_quoted(text in ".{0,60}[\n\r]{0,2}\\PC{0,300}", start in 0..700_usize, length in 0..99_usize) {
            let quoted = excerpt(&text, start..start + length);
            prop_assert!(quoted.place.end <= quoted.text.len(), "{quoted:?}");
            prop_assert!(quoted.text.is_char_boundary(quoted.place.start), "{quoted:?}");
            prop_assert_eq!(&visible(&quoted.text), &quoted.text);
        }
    }
}
