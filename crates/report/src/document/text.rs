//! Lays documents out as lines of printable ASCII.

use super::grid;
use super::medium::{GAP, Medium};
use super::{Block, Cell, Column, Holds, On, Table};
use crate::ascii::escape;

/// Most characters by which words widen their column. Longer words push the rest of their line to the
/// right.
const MAX_WORDS: usize = 40;

/// Lays out sections with an empty line between them. Sections without text are left out.
pub fn sections(sections: &[Vec<Block>], medium: &Medium) -> String {
    let texts = sections.iter().map(|blocks| text(blocks, medium));
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Lays out `blocks` as lines.
pub fn text(blocks: &[Block], medium: &Medium) -> String {
    indented(blocks, medium, "")
}

fn indented(blocks: &[Block], medium: &Medium, indent: &str) -> String {
    let block = |block: &Block| match block {
        // Sentences in a part have a hanging indent, so that each one stands out.
        Block::Sentence(_, said) if indent.is_empty() => medium.wrapped("", "", said),
        Block::Sentence(_, said) | Block::More(said, _) => {
            medium.wrapped(indent, &format!("{indent}{GAP}"), said)
        }
        Block::Part(title, blocks) => {
            let below = format!("{indent}{GAP}");
            medium.wrapped(indent, indent, title) + &indented(blocks, medium, &below)
        }
        Block::Table(it) => table(it, medium, indent),
        Block::Grid(it) => grid::text(it, medium),
        Block::Verdicts(first, given) => {
            let given: Vec<&str> = given.iter().map(|it| &*it.said).collect();
            medium.wrapped(indent, indent, &format!("{first} {}.", given.join(", ")))
        }
        Block::Fold(..) | Block::Drawing(_) | Block::Chart(_) | Block::Charts(..) => String::new(),
        Block::Code(lines) => {
            let lines = lines.lines().map(|line| format!("{indent}{}", escape(line)));
            lines.map(|line| line.trim_end().to_owned() + "\n").collect()
        }
    };
    blocks.iter().map(block).collect()
}

fn table(table: &Table, medium: &Medium, indent: &str) -> String {
    let (columns, rows) = &table.on(On::Text);
    let escaped = |row: &Vec<&Cell>| row.iter().map(|cell| escape(&cell.said)).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(escaped).collect();
    let has_heads = !table.bare && columns.iter().any(|column| !column.head.is_empty());
    let heads = has_heads.then(|| columns.iter().map(|it| escape(&it.head)).collect::<Vec<_>>());
    let lines = || heads.iter().chain(&rows);
    let last = columns.len() - 1;
    let widest = columns.iter().enumerate().map(|(place, column)| {
        let alone = |row: &&Vec<String>| place + 1 < row.len() || place == last;
        let cells = lines().filter(alone).filter_map(|row| row.get(place));
        cells.map(String::len).max().unwrap_or(0).max(column.least)
    });
    let widest: Vec<usize> = widest.collect();
    let is_open = matches!(columns[last].holds, Holds::Subject | Holds::Sentences);
    let whole = indent.len() + widest.iter().sum::<usize>() + GAP.len() * last;
    if medium.strict && !is_open && whole > medium.width {
        return rows.iter().map(|row| row_in_words(row, columns, medium, indent)).collect();
    }
    let mut above = "";
    let mut text = String::new();
    for row in lines() {
        text += &line(row, above, columns, &widest, medium, indent);
        above = &row[0];
    }
    text
}

/// Lays out a row. A topic equal to `above`, the first cell of the row before, is not repeated.
fn line(
    row: &[String],
    above: &str,
    columns: &[&Column],
    widest: &[usize],
    medium: &Medium,
    indent: &str,
) -> String {
    let (end, before) = row.split_last().expect("rows have cells");
    let cells = before.iter().enumerate().map(|(place, cell)| {
        let (widest, words) = (widest[place], widest[place].min(MAX_WORDS));
        match columns[place].holds {
            Holds::Figures => format!("{cell:>widest$}{GAP}"),
            Holds::Topics if cell == above => format!("{:words$}{GAP}", ""),
            _ => format!("{cell:<words$}{GAP}"),
        }
    });
    let first = indent.to_owned() + &cells.collect::<String>();
    let last = columns.len() - 1;
    match columns[last].holds {
        Holds::Figures => {
            format!("{}\n", format!("{first}{end:>widest$}", widest = widest[last]).trim_end())
        }
        // A row without a subject has only figures.
        Holds::Subject if end.is_empty() => format!("{}\n", first.trim_end()),
        Holds::Subject => medium.wrapped(&first, &format!("{}{GAP}", " ".repeat(first.len())), end),
        Holds::Sentences => medium.beside(&first, indent, end),
        _ => format!("{}\n", format!("{first}{end}").trim_end()),
    }
}

/// Lays out a row of a table that is too wide for the medium, as a sentence: the first cell, then each
/// other cell after the name of its column.
fn row_in_words(row: &[String], columns: &[&Column], medium: &Medium, indent: &str) -> String {
    let cells = row.iter().zip(columns).skip(1);
    let cells = cells.map(|(cell, column)| format!("{} {}", escape(&column.head), cell.trim()));
    let said = format!("{}: {}", row[0], cells.collect::<Vec<_>>().join(", "));
    medium.wrapped(indent, &format!("{indent}{GAP}"), &said)
}

#[cfg(test)]
mod tests {
    use super::super::{MAIL, TEXT, part, sentence, table};
    use super::*;

    fn rows(columns: &[Column], rows: &[&[&str]]) -> Block {
        let rows = rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect());
        table(columns, rows.collect())
    }

    #[test]
    fn sentences_hang_beside_words() {
        let columns = [Column::topics(), Column::words(""), Column::sentences("")];
        let long = "word ".repeat(30);
        let block = rows(&columns, &[&["a", "x", &long], &["a", "longer", "y"], &["b", "z"]]);
        let text = text(&[part("Title:", [block])], &TEXT);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "Title:");
        assert!(
            lines[1].starts_with("  a  x       word") && lines[2].starts_with("             word")
        );
        assert_eq!(&lines[3..], ["     longer  y", "  b  z"]);
        assert!(lines.iter().all(|line| line.len() <= 100 && !line.ends_with(' ')));
    }

    #[test]
    fn subjects_hang_beside_figures() {
        let columns = [Column::figures("change"), Column::subject("function")];
        let long = "name ".repeat(25);
        let text = text(&[rows(&columns, &[&["+1", &long], &["+22", ""]])], &TEXT);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "change  function");
        assert!(lines[1].starts_with("    +1  name name"), "{text}");
        assert!(lines[2].starts_with("          name") && lines[2].ends_with("name"), "{text}");
        assert_eq!(lines[3], "   +22");
    }

    #[test]
    fn a_sentence_follows_words_that_leave_no_room() {
        let columns = [Column::words(""), Column::sentences("")];
        let long = "n".repeat(90);
        let text = text(&[rows(&columns, &[&[&long, "two words"]])], &TEXT);
        assert_eq!(text, format!("{long}  two\n  words\n"));
    }

    #[test]
    fn a_table_too_wide_for_a_mail_is_sentences() {
        let columns = [Column::words(""), Column::figures("base"), Column::figures("new")];
        let long = "n".repeat(76);
        let block = rows(&columns, &[&[&long, "1", "2"]]);
        let block = [block];
        assert_eq!(text(&block, &TEXT).lines().count(), 2);
        assert_eq!(text(&block, &MAIL), format!("{long}:\n  base 1, new 2\n"));
    }

    #[test]
    fn percentages_stay_whole_and_words_of_a_terminal() {
        let said = format!("{} 12.5 % more", "n".repeat(95));
        let text = |medium| text(&[sentence(said.clone())], medium);
        assert_eq!(text(&TEXT), format!("{}\n12.5 % more\n", "n".repeat(95)));
        assert!(text(&MAIL).lines().all(|line| line.len() <= 77));
    }

    #[test]
    fn nothing_but_printable_ascii_is_left() {
        let text = text(&[sentence("a\x1b[2J \u{e9}"), Block::Code("\u{202e} x ".into())], &TEXT);
        assert_eq!(text, "a\\u{1b}[2J \\u{e9}\n\\u{202e} x\n");
    }
}
