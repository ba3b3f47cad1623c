//! The functions whose machine code differs between two kernels, as text and as JSON. Listings show the
//! code of a function side by side.

use code::{Change, CodeDifference, Function, Listing};
use model::{count, grouped};
use serde::Serialize;

use crate::ascii::{WIDTH, cut, excerpt};
use crate::document::{Column, TEXT, note, part, sections, sentence, table, text};
use crate::explain::cause;

/// The version of the JSON.
const SCHEMA: u32 = 1;
/// Most changed, new and gone functions that are listed without `full`.
const ROWS: [usize; 3] = [16, 5, 5];
/// Width of one side of a listing, in characters.
const CELL: usize = (WIDTH - 3) / 2;

const CHANGES: [(Change, &str); 3] = [
    (Change::Changed, "Changed, those with the most different instructions first"),
    (Change::New, "New, the largest first"),
    (Change::Gone, "Gone, the largest first"),
];
const COLUMNS: [Column; 5] = [
    Column::figures("base").at_least(7),
    Column::figures("new").at_least(7),
    Column::figures("removed"),
    Column::figures("added").at_least(7),
    Column::subject("instructions of"),
];

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    base: &'a str,
    new: &'a str,
    same: usize,
    functions: &'a [Function],
}

#[derive(Serialize)]
struct ListingsDocument<'a> {
    schema: u32,
    base: &'a str,
    new: &'a str,
    pieces: Vec<PieceDocument<'a>>,
}

#[derive(Serialize)]
struct PieceDocument<'a> {
    base: Option<&'a str>,
    new: Option<&'a str>,
    lines: Vec<LineDocument<'a>>,
}

#[derive(Serialize)]
struct LineDocument<'a> {
    base: Option<&'a str>,
    new: Option<&'a str>,
    base_source: Option<&'a str>,
    new_source: Option<&'a str>,
    same: bool,
}

/// Returns the difference as JSON. The format is stable: keys may be added without a new version. No
/// difference causes an error.
pub fn code_json(
    [base, new]: [&str; 2],
    difference: &CodeDifference,
) -> serde_json::Result<String> {
    let CodeDifference { functions, same } = difference;
    let document = Document { schema: SCHEMA, base, new, same: same.len(), functions };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

/// Returns the word for a change.
pub fn word(change: Change) -> &'static str {
    match change {
        Change::Changed => "changed",
        Change::New => "new",
        Change::Gone => "gone",
    }
}

/// Returns the listings of one function as JSON. The format is stable. No listing causes an error.
pub fn listings_json([base, new]: [&str; 2], listings: &[Listing]) -> serde_json::Result<String> {
    let pieces = listings.iter().map(piece).collect();
    let document = ListingsDocument { schema: SCHEMA, base, new, pieces };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn piece(it: &Listing) -> PieceDocument<'_> {
    let [base, new] = it.symbols.each_ref().map(Option::as_deref);
    let lines = it.lines.iter().map(|line| {
        let [base, new] = line.sides.each_ref().map(Option::as_deref);
        let [base_source, new_source] = line.sources.each_ref().map(Option::as_deref);
        LineDocument { base, new, base_source, new_source, same: line.same }
    });
    PieceDocument { base, new, lines: lines.collect() }
}

/// Returns the difference as plain text: ASCII, at most 40 lines of at most 100 columns; with `full`, all
/// functions.
pub fn code(names: [&str; 2], difference: &CodeDifference, full: bool) -> String {
    let [base, new] = names.map(excerpt);
    let same = difference.same.len();
    if difference.functions.is_empty() {
        let same = count(same, "function");
        let said = format!("From {base} to {new} no function differs ({same} compared).");
        return text(&[sentence(said)], &TEXT);
    }
    let number = |change| difference.of(change).count();
    let [changed, added, gone] = [Change::Changed, Change::New, Change::Gone].map(number);
    let changed = count(changed, "function");
    let [added, gone, same] = [added, gone, same].map(|number| grouped(&number.to_string()));
    let head = format!(
        "From {base} to {new}: {changed} changed, {added} new, {gone} gone, {same} the same."
    );
    let tables = CHANGES.into_iter().zip(ROWS).map(|((change, title), rows)| {
        let all: Vec<&Function> = difference.of(change).collect();
        let shown = if full { all.len() } else { all.len().min(rows) };
        if all.is_empty() {
            return Vec::new();
        }
        let rows = all[..shown].iter().map(|it| row(it)).collect();
        let more =
            (shown < all.len()).then(|| note(format!("{} more (--full)", all.len() - shown)));
        let below = [table(COLUMNS, rows)].into_iter().chain(more);
        vec![part(format!("{title}:"), below.collect::<Vec<_>>())]
    });
    sections(&[vec![sentence(head)]].into_iter().chain(tables).collect::<Vec<_>>(), &TEXT)
}

fn row(it: &Function) -> Vec<String> {
    let figures = [it.base.instructions, it.new.instructions, it.removed, it.added];
    let inlined = it.inlined.as_ref().map(|name| format!(" (inlined from {name})"));
    let kinds = cause::instrumented(&it.instrumentation).map(|kinds| format!(" ({kinds})"));
    let [inlined, kinds] = [inlined, kinds].map(Option::unwrap_or_default);
    let name = cut(&format!("{}{inlined}{kinds}", it.name), 60);
    figures.iter().map(ToString::to_string).chain([name]).collect()
}

/// Returns the listings of one function as plain text, side by side. Between the sides, `|` marks an
/// instruction that differs, `<` one that only the baseline has, `>` one that only the other kernel has. A
/// source line begins with `#`.
pub fn listings(names: [&str; 2], listings: &[Listing]) -> String {
    let mut text = String::new();
    for listing in listings {
        let [base, new] = [0, 1].map(|side| {
            let symbol = listing.symbols[side].as_deref().unwrap_or("-");
            format!("{symbol} of {}", names[side])
        });
        text.push_str(&columns(Some(&base), ' ', Some(&new)));
        text.push_str(&format!("{}\n", "-".repeat(WIDTH)));
        for line in &listing.lines {
            let sources = line.sources.each_ref().map(|it| it.as_deref().map(source));
            if sources.iter().any(Option::is_some) {
                let [base, new] = sources.each_ref().map(Option::as_deref);
                text.push_str(&columns(base, ' ', new));
            }
            let [base, new] = line.sides.each_ref().map(Option::as_deref);
            let mark = match (base, new) {
                (Some(_), None) => '<',
                (None, Some(_)) => '>',
                _ if line.same => ' ',
                _ => '|',
            };
            text.push_str(&columns(base, mark, new));
        }
        text.push('\n');
    }
    text.pop();
    text
}

/// Formats a source line as a comment. A long line is cut at its beginning, so that the end of the path
/// stays.
fn source(text: &str) -> String {
    let longest = CELL - 5;
    let letters = text.chars().count();
    match letters > longest {
        true => format!("# ...{}", text.chars().skip(letters + 3 - longest).collect::<String>()),
        false => format!("# {text}"),
    }
}

fn columns(base: Option<&str>, mark: char, new: Option<&str>) -> String {
    let [base, new] = [base, new].map(|it| it.map_or(String::new(), |it| cut(it, CELL - 3)));
    format!("{}\n", format!("{base:<CELL$} {mark} {new}").trim_end())
}

#[cfg(test)]
mod tests {
    use code::{Instrumentation, Line, Size};

    use super::*;

    const NAMES: [&str; 2] = ["base", "new\x1b[2J"];

    fn function(name: &str, change: Change, [base, new, removed, added]: [usize; 4]) -> Function {
        let size = |instructions| Size { bytes: 4 * instructions, instructions };
        Function {
            name: name.into(),
            change,
            base: size(base),
            new: size(new),
            removed,
            added,
            inlined: None,
            instrumentation: Instrumentation::default(),
        }
    }

    fn difference() -> CodeDifference {
        let functions = vec![
            Function {
                inlined: Some("dup_mm".into()),
                instrumentation: Instrumentation::default(),
                ..function("fork", Change::Changed, [10, 210, 0, 200])
            },
            function("late", Change::New, [0, 5, 0, 5]),
            function("early", Change::Gone, [7, 0, 7, 0]),
        ];
        CodeDifference { functions, same: ["read".to_owned()].into() }
    }

    #[test]
    fn kernels_that_differ() {
        insta::assert_snapshot!(code(NAMES, &difference(), false));
        insta::assert_snapshot!(code_json(NAMES, &difference()).unwrap());
    }

    #[test]
    fn no_function_differs() {
        let same = ["read".to_owned(), "write".to_owned()].into();
        let none = CodeDifference { functions: Vec::new(), same };
        let said = code(["a", "b"], &none, false);
        assert_eq!(said, "From a to b no function differs (2 functions compared).\n");
    }

    #[test]
    fn the_first_screen_has_forty_lines() {
        let each = |change| {
            (0..50).map(move |number| function(&format!("f{number}"), change, [1, 2, 3, 4]))
        };
        let functions = [Change::Changed, Change::New, Change::Gone].into_iter().flat_map(each);
        let many = CodeDifference { functions: functions.collect(), same: Default::default() };
        let first = code(NAMES, &many, false);
        assert!(first.lines().count() <= 40, "{first}");
        assert!(first.contains("  34 more (--full)\n"), "{first}");
        let all = code(NAMES, &many, true);
        assert_eq!(all.matches("  f49\n").count(), 3, "{all}");
    }

    #[test]
    fn instructions_side_by_side() {
        let line = |base: Option<&str>, new: Option<&str>, same| Line {
            sides: [base, new].map(|side| side.map(str::to_owned)),
            sources: [None, None],
            at: [None, None],
            same,
        };
        let header = format!("{}include/linux/mm.h:88 (dup_mm)", "include/".repeat(5));
        let sources = [Some("kernel/fork.c:10".to_owned()), Some(header)];
        let lines = vec![
            Line { sources, ..line(Some("push %rbp"), Some("push %rbp"), true) },
            line(Some("mov $1,%eax"), Some("mov $2,%eax"), false),
            line(None, Some(&format!("call {}", "long_".repeat(20))), false),
            line(Some("ret"), None, false),
        ];
        let listing = Listing { symbols: [Some("f".into()), Some("f.isra.0".into())], lines };
        let gone = Listing { symbols: [Some("f.cold".into()), None], lines: Vec::new() };
        insta::assert_snapshot!(listings(NAMES, &[listing.clone(), gone]));
        insta::assert_snapshot!(listings_json(NAMES, &[listing]).unwrap());
    }
}
