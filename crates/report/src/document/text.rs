//! Lays documents out as lines of printable ASCII.

use textwrap::{Options, WordSeparator, WordSplitter};

use super::grid;
use super::{Block, Holds, Table};
use crate::ascii::{self, escape};

/// Where lines go.
#[derive(Clone, Copy, Debug)]
pub struct Medium {
    /// Most letters of a line.
    pub width: usize,
    /// Most letters of the cells before a sentence that hangs beside them.
    beside: usize,
    /// Whether no line may be longer. Then words are broken, grids are split, and each row of a table that is too
    /// wide is a sentence.
    pub strict: bool,
}

/// A terminal. Words that are too long stay whole, so that they can be searched for.
pub const TEXT: Medium =
    Medium { width: ascii::WIDTH, beside: 3 * ascii::WIDTH / 4, strict: false };
/// A mail. RFC 5322 asks for lines of at most 78 letters (2.1.1). One is kept free for
/// [`crate::mail::guarded`].
pub const MAIL: Medium = Medium { width: 77, beside: 38, strict: true };

/// Wider words push only their own line to the right.
const MAX_WORDS: usize = 40;
/// Letters by which a part is indented, and between columns.
const GAP: &str = "  ";

/// Sections, with an empty line between them. Empty ones are left out.
pub fn sections(sections: &[Vec<Block>], medium: &Medium) -> String {
    let texts = sections.iter().map(|blocks| text(blocks, medium));
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The lines of `blocks`.
pub fn text(blocks: &[Block], medium: &Medium) -> String {
    indented(blocks, medium, "")
}

fn indented(blocks: &[Block], medium: &Medium, indent: &str) -> String {
    let block = |block: &Block| match block {
        Block::Sentence(_, said) => medium.wrapped(indent, indent, said),
        Block::Part(title, blocks) => {
            let below = format!("{indent}{GAP}");
            medium.wrapped(indent, indent, title) + &indented(blocks, medium, &below)
        }
        Block::Table(it) => table(it, medium, indent),
        Block::Grid(it) => grid::text(it, medium),
        Block::Code(lines) => {
            let lines = lines.lines().map(|line| format!("{indent}{}", escape(line)));
            lines.map(|line| line.trim_end().to_owned() + "\n").collect()
        }
    };
    blocks.iter().map(block).collect()
}

fn table(table: &Table, medium: &Medium, indent: &str) -> String {
    let Table { columns, rows } = table;
    let escaped = |row: &Vec<String>| row.iter().map(|cell| escape(cell)).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(escaped).collect();
    let has_heads = columns.iter().any(|column| !column.head.is_empty());
    let heads = has_heads.then(|| columns.iter().map(|it| it.head.to_owned()).collect::<Vec<_>>());
    let lines = || heads.iter().chain(&rows);
    let last = columns.len() - 1;
    let widths = columns.iter().enumerate().map(|(place, column)| {
        let alone = |row: &&Vec<String>| place + 1 < row.len() || place == last;
        let cells = lines().filter(alone).filter_map(|row| row.get(place));
        let widest = cells.map(String::len).max().unwrap_or(0).max(column.least);
        match column.holds {
            Holds::Topics | Holds::Words => widest.min(MAX_WORDS),
            _ => widest,
        }
    });
    let widths: Vec<usize> = widths.collect();
    let is_open = matches!(columns[last].holds, Holds::Subject | Holds::Sentences);
    let whole = indent.len() + widths.iter().sum::<usize>() + GAP.len() * last;
    if medium.strict && !is_open && whole > medium.width {
        return rows.iter().map(|row| row_in_words(row, table, medium, indent)).collect();
    }
    let mut text = String::new();
    let mut above = "";
    for row in lines() {
        let (end, before) = row.split_last().expect("rows have cells");
        let mut first = indent.to_owned();
        for (place, cell) in before.iter().enumerate() {
            let is_same = columns[place].holds == Holds::Topics && cell == above;
            let (shown, width) = (if is_same { "" } else { cell }, widths[place]);
            first += &match columns[place].holds {
                Holds::Figures => format!("{shown:>width$}{GAP}"),
                _ => format!("{shown:<width$}{GAP}"),
            };
        }
        above = before.first().map_or("", |cell| cell);
        text += &match columns[last].holds {
            Holds::Figures => format!("{first}{end:>width$}\n", width = widths[last]),
            Holds::Topics | Holds::Words => format!("{}\n", format!("{first}{end}").trim_end()),
            Holds::Subject | Holds::Sentences => medium.beside(&first, indent, end),
        };
    }
    text
}

/// A row of a table that is too wide: its first cell, then the others by their names.
fn row_in_words(row: &[String], table: &Table, medium: &Medium, indent: &str) -> String {
    let cells = row.iter().zip(&table.columns).skip(1);
    let cells = cells.map(|(cell, column)| format!("{} {}", column.head, cell.trim()));
    let said = format!("{}: {}", row[0], cells.collect::<Vec<_>>().join(", "));
    medium.wrapped(indent, &format!("{indent}{GAP}"), &said)
}

impl Medium {
    /// Lines of a sentence beside `first`, or after it where that leaves too little room.
    fn beside(&self, first: &str, indent: &str, said: &str) -> String {
        match first.len() <= self.beside {
            true => self.wrapped(first, &" ".repeat(first.len()), said),
            false => {
                let said = format!("{}{said}", first.trim_start());
                self.wrapped(indent, &format!("{indent}{GAP}"), &said)
            }
        }
    }

    /// Lines of a sentence, the first after `first`, the others after `rest`. No percentage is split.
    pub fn wrapped(&self, first: &str, rest: &str, said: &str) -> String {
        const TIED: &str = "\u{a0}%";
        let options = Options::new(self.width)
            .initial_indent(first)
            .subsequent_indent(rest)
            .word_separator(WordSeparator::AsciiSpace)
            .word_splitter(WordSplitter::NoHyphenation)
            .break_words(self.strict);
        let said = escape(said).replace(" %", TIED);
        let lines = textwrap::wrap(&said, options);
        lines.iter().map(|line| line.trim_end().replace(TIED, " %") + "\n").collect()
    }
}
