//! How lists are laid out: columns, lines of bounded width, numbers.

use std::iter;

use report::escape;

/// The width of lines in characters. Only lines with a longer word or with many cells are wider.
pub const WIDTH: usize = 100;

/// A number with this many decimals; `-` if it is not known.
pub fn figure(number: f64, decimals: usize) -> String {
    if number.is_finite() { format!("{number:.decimals$}") } else { "-".to_owned() }
}

/// A number of seconds with this many decimals; `-` if it is not known.
pub fn seconds(number: f64, decimals: usize) -> String {
    if number.is_finite() { format!("{number:.decimals$} s") } else { "-".to_owned() }
}

/// Words in lines of at most [`WIDTH`] characters, unless a word is longer. `first` begins the first line, `indent`
/// begins the others. The words are escaped. Without words there is no line.
pub fn wrapped<'a>(first: &str, indent: &str, words: impl Iterator<Item = &'a str>) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in words.map(escape) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDTH => {
                line.push(' ');
                line.push_str(&word);
            }
            Some(_) => lines.push(indent.to_owned() + &word),
            None => lines.push(first.to_owned() + &word),
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Lines of a topic and a text each, below a head. Texts are escaped, and wrapped behind the longest topic.
pub fn topics(head: &str, lines: &[(&'static str, String)]) -> String {
    let width = lines.iter().map(|(topic, _)| topic.len()).max().unwrap_or(0);
    let indent = " ".repeat(width + 4);
    let lines = lines.iter().map(|(topic, text)| {
        wrapped(&format!("  {topic:width$}  "), &indent, text.split_whitespace())
    });
    format!("{head}:\n{}", lines.collect::<String>())
}

/// Lays rows out in columns, each as wide as its widest cell. Cells are escaped.
pub fn columns<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let rows = rows.map(|row| row.map(|cell| escape(&cell)));
    let rows: Vec<[String; N]> = iter::once(head.map(str::to_owned)).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Like [`columns`], with lines below each row.
pub fn columns_above<const N: usize>(
    head: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
    below: impl Iterator<Item = String>,
) -> String {
    let lines = columns(head, rows);
    let below = iter::once(String::new()).chain(below);
    lines.lines().zip(below).map(|(line, below)| format!("{line}\n{below}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_wrapped() {
        assert_eq!(wrapped("a: ", "  ", [].into_iter()), "");
        let word = "x".repeat(60);
        let text = wrapped("a: ", "  ", ["b c", &word, &word].into_iter());
        assert_eq!(text, format!("a: b c {word}\n  {word}\n"));
    }

    #[test]
    fn topics_are_aligned() {
        let lines = [("a", "b c".to_owned()), ("long", format!("{} d", "x".repeat(92)))];
        let text = format!("Head:\n  a     b c\n  long  {}\n        d\n", "x".repeat(92));
        assert_eq!(topics("Head", &lines), text);
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a".to_owned(), "bcd".to_owned()], ["efgh".to_owned(), "i".to_owned()]];
        let text = columns(["X", "Y"], rows.into_iter());
        assert_eq!(text, "X     Y\na     bcd\nefgh  i\n");
    }

    #[test]
    fn hostile_text_stays_in_its_cell() {
        let rows = [["a\nb\x1b[2J".to_owned(), "c".to_owned()]];
        let text = columns(["X", "Y"], rows.into_iter());
        assert_eq!(text, "X              Y\na\\nb\\u{1b}[2J  c\n");
    }

    #[test]
    fn what_is_not_known_is_a_dash() {
        assert_eq!([figure(1.25, 1), figure(f64::NAN, 1)], ["1.2", "-"]);
        assert_eq!([seconds(61.4, 0), seconds(f64::NAN, 0)], ["61 s", "-"]);
    }
}
