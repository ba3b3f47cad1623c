//! The width of lines, and how sentences are broken into lines.

use textwrap::{Options, WordSeparator, WordSplitter};

use crate::ascii::{self, escape};

/// The widths of a medium, and whether it may exceed them.
#[derive(Clone, Copy, Debug)]
pub struct Medium {
    /// Most characters in a line.
    pub width: usize,
    /// A sentence is printed beside the cells before it if they have at most this many characters, and
    /// after them on the same line otherwise.
    pub beside: usize,
    /// Whether no line may be longer than `width`. If so, long words are broken, grids are split, and the
    /// rows of a table that is too wide are printed as sentences.
    pub strict: bool,
}

/// A terminal. Long words stay whole, so that they can be searched for.
pub const TEXT: Medium =
    Medium { width: ascii::WIDTH, beside: 3 * ascii::WIDTH / 4, strict: false };
/// A mail. RFC 5322, section 2.1.1, asks for lines of at most 78 characters. One of these is reserved for
/// [`crate::mail::guarded`].
pub const MAIL: Medium = Medium { width: 77, beside: 46, strict: true };

/// The indentation of a part, and the space between columns.
pub const GAP: &str = "  ";

impl Medium {
    /// Lays out a sentence beside `first`. If `first` is longer than the limit of the medium, the sentence
    /// follows it, and continues on indented lines.
    pub fn beside(&self, first: &str, indent: &str, said: &str) -> String {
        match first.len() <= self.beside {
            true => self.wrapped(first, &" ".repeat(first.len()), said),
            false => {
                let said = format!("{}{said}", first.trim_start());
                self.wrapped(indent, &format!("{indent}{GAP}"), &said)
            }
        }
    }

    /// Breaks a sentence into lines. The first line begins with `first`, the others with `rest`. A number
    /// and its unit stay on one line.
    pub fn wrapped(&self, first: &str, rest: &str, said: &str) -> String {
        let options = Options::new(self.width)
            .initial_indent(first)
            .subsequent_indent(rest)
            .word_separator(WordSeparator::AsciiSpace)
            .word_splitter(WordSplitter::NoHyphenation)
            .break_words(self.strict);
        let said = tied(&escape(said));
        let lines = textwrap::wrap(&said, options);
        lines.iter().map(|line| line.trim_end().replace(TIE, " ") + "\n").collect()
    }
}

/// A space at which lines are not broken. Escaped text never contains it.
const TIE: char = '\u{a0}';
/// Units that can follow a number and a space.
const UNITS: [&str; 10] = ["%", "B", "KiB", "MiB", "GiB", "ns", "us", "ms", "s", "min"];

/// Replaces the space between a number and its unit by [`TIE`].
pub fn tied(text: &str) -> String {
    let mut tied = String::with_capacity(text.len());
    for (place, word) in text.split(' ').enumerate() {
        let is_unit = UNITS.contains(&word.trim_end_matches([',', ';', '.', ':', ')']));
        let ties = is_unit && tied.ends_with(|it: char| it.is_ascii_digit());
        tied.extend((place > 0).then_some(if ties { TIE } else { ' ' }));
        tied.push_str(word);
    }
    tied
}
