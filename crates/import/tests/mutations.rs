//! Damages lines of tables. Each row must be read with its values in the columns in which they are printed, or be
//! listed as unread. No row may be lost silently.

#[path = "mutations/damage.rs"]
mod damage;

use std::collections::BTreeMap;
use std::path::Path;

use damage::{Damaged, damaged};
use import::{Cell, Document, Table};

/// A cell as it must be read: the value and the percentage.
type Printed = (Option<String>, Option<String>);

fn printed(cell: &Cell) -> Printed {
    let text = |figure: &Option<import::Figure>| figure.as_ref().map(|it| it.text.clone());
    (text(&cell.value), text(&cell.percent))
}

/// What is read of each line that is a row.
fn rows(document: &Document) -> BTreeMap<usize, (Vec<String>, Vec<Printed>)> {
    let of_table = |table: &Table| {
        let columns = table.columns.clone();
        let row = move |row: &import::Row| {
            (row.line, (columns.clone(), row.cells.iter().map(printed).collect()))
        };
        table.rows.iter().map(row).collect::<Vec<_>>()
    };
    document.tables.iter().flat_map(of_table).collect()
}

/// What is wrong in the tables of a damaged text, if anything.
fn wrong(before: &Document, damaged: &Damaged) -> Option<String> {
    let after = import::read(damaged.text.as_bytes());
    let unread = |line: usize| {
        after.unread.iter().any(|it| (it.lines.first..=it.lines.last).contains(&line))
    };
    let read = rows(&after);
    let one = |(line, (columns, cells)): (usize, (Vec<String>, Vec<Printed>))| {
        let places = &damaged.places[&line];
        let listed = places.iter().any(|place| unread(*place));
        let Some((names, found)) = places.iter().find_map(|place| read.get(place)) else {
            let lost = !listed && !places.is_empty();
            return lost.then(|| format!("line {line}: lost"));
        };
        let wanted = damaged.wanted.iter().filter(|(row, _)| *row == line);
        let wanted: Vec<_> = wanted.map(|(_, cells)| cells.clone()).collect();
        let right = if wanted.is_empty() { *found == cells } else { wanted.contains(found) };
        // If names are on two lines, one of them may be out of place now.
        let mut pairs = columns.iter().zip(names);
        let named = damaged.renames || pairs.all(|(before, name)| before.starts_with(name));
        (!right || !named).then(|| format!("line {line}: {names:?} {found:?}"))
    };
    rows(before).into_iter().find_map(one)
}

#[test]
fn no_damage_loses_a_row_or_moves_a_value() {
    for name in [
        "patchwork-thread.txt", "list-page.txt", "collapsed.txt", "odds.txt", "units.txt",
        "lookalikes.txt",
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
        let text = std::fs::read_to_string(path).unwrap();
        let before = import::read(text.as_bytes());
        let all = damaged(&text, &before);
        assert!(all.len() > 100, "{name}");
        for damaged in all {
            let wrong = wrong(&before, &damaged);
            assert_eq!(wrong, None, "{name}, {}:\n{}", damaged.what, damaged.text);
        }
    }
}
