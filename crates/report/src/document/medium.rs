//! The width of lines, and how sentences are broken.

use textwrap::{Options, WordSeparator, WordSplitter};

use crate::ascii::{self, escape};

/// How wide lines are and where they may break.
#[derive(Clone, Copy, Debug)]
pub struct Medium {
    /// Most letters of a line.
    pub width: usize,
    /// Most letters of the cells before a sentence that hangs beside them.
    pub beside: usize,
    /// Whether no line may be longer. Then words are broken, grids are split, and each row of a table that is too
    /// wide is a sentence.
    pub strict: bool,
}

/// A terminal. Words that are too long stay whole, so that they can be searched for.
pub const TEXT: Medium =
    Medium { width: ascii::WIDTH, beside: 3 * ascii::WIDTH / 4, strict: false };
/// A mail. RFC 5322 asks for lines of at most 78 letters (2.1.1). One is kept free for
/// [`crate::mail::guarded`].
pub const MAIL: Medium = Medium { width: 77, beside: 46, strict: true };

/// Letters by which a part is indented, and between columns.
pub const GAP: &str = "  ";

impl Medium {
    /// A line, cut where it ends.
    pub fn cut(&self, mut line: String) -> String {
        if line.len() > self.width {
            line.truncate(self.width - 2);
            line.push_str("..");
        }
        format!("{}\n", line.trim_end())
    }

    /// Lines of a sentence beside `first`, or after it where that leaves too little room.
    pub fn beside(&self, first: &str, indent: &str, said: &str) -> String {
        match first.len() <= self.beside {
            true => self.wrapped(first, &" ".repeat(first.len()), said),
            false => {
                let said = format!("{}{said}", first.trim_start());
                self.wrapped(indent, &format!("{indent}{GAP}"), &said)
            }
        }
    }

    /// Lines of a sentence, the first after `first`, the others after `rest`. No number is parted from its unit.
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

/// A space at which no line ends. Escaped text has none.
const TIE: char = '\u{a0}';
/// Units that follow a number after a space.
const UNITS: [&str; 10] = ["%", "B", "KiB", "MiB", "GiB", "ns", "us", "ms", "s", "min"];

/// A text with its numbers tied to their units.
fn tied(text: &str) -> String {
    let mut tied = String::with_capacity(text.len());
    for (place, word) in text.split(' ').enumerate() {
        let is_unit = UNITS.contains(&word.trim_end_matches([',', ';', '.', ':', ')']));
        let ties = is_unit && tied.ends_with(|it: char| it.is_ascii_digit());
        tied.extend((place > 0).then_some(if ties { TIE } else { ' ' }));
        tied.push_str(word);
    }
    tied
}
