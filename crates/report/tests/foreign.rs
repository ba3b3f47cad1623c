//! Tests of the text of imported tables.

mod common;

use common::{blocks, compared, count};
use import::{Cell, Document, Figure, Kind, Lines, Row, Table};
use proptest::collection::vec;
use proptest::prelude::*;
use report::{Foreign, ForeignTable, ForeignUnread};

const THREAD: &str = include_str!("../../import/fixtures/patchwork-thread.txt");
const ODDS: &str = include_str!("../../import/fixtures/odds.txt");
const HOSTILE: &str = "From: <script>alert(1)</script> <a@b.c>\n\n\
    Amean    \u{1b}[2J<b>&\"x\" 10.00 (0.00%) 8.00 *20.00%*\n";

fn found(text: &str) -> Foreign {
    let Document { tables, unread } = import::read(text.as_bytes());
    let file = || "<mail>.txt".to_owned();
    let table = |table| ForeignTable {
        file: file(),
        check: Some(import::check(&table)),
        table,
        note: None,
    };
    let unread = unread.into_iter().map(|unread| ForeignUnread { file: file(), unread });
    Foreign { tables: tables.into_iter().map(table).collect(), unread: unread.collect() }
}

/// The tables that `compare` prints are read completely: names and parts are the same, and no line is left
/// over.
#[test]
fn our_own_tables_are_read_whole() {
    let side = |scale: f64, seed: u64| {
        let mut boots = blocks(6, scale, seed);
        for boot in &mut boots {
            let seconds = (100.0 * scale) as i64;
            boot.chunks.clear();
            let grown = [
                ("pgfault", 40 * seconds),
                ("pgmajfault", seconds),
                ("pgscan_kswapd", 3 * seconds),
                ("numa_hit", 7 * seconds),
            ];
            count(boot, 0, &grown);
        }
        boots
    };
    let (base, worse, third) = (side(1.0, 1), side(1.08, 2), side(1.3, 3));
    let text = report::text(&compared(&[("6.1", &base), ("6.12", &worse), ("7.3-rc1", &third)]));
    let Document { tables, unread } = import::read(text.as_bytes());
    assert_eq!(unread, [], "{text}");
    assert!(tables.iter().all(|table| table.columns == ["6.1", "6.12", "7.3-rc1"]), "{text}");
    let kinds: Vec<Kind> = tables.iter().map(|table| table.kind).collect();
    assert_eq!(kinds, [Kind::Metrics, Kind::Duration, Kind::Counters], "{text}");
    let counters: Vec<_> = tables[2].rows.iter().map(|row| (&*row.section, &*row.label)).collect();
    for row in [("Reclaim", "Minor Faults"), ("NUMA", "NUMA alloc hit")] {
        assert!(counters.contains(&row), "{counters:?}");
    }
    let printed = report::foreign(&found(&text));
    assert!(
        printed.contains("\nReclaim\nMinor Faults ") && printed.contains("\nNUMA\nNUMA alloc hit ")
    );
}

#[test]
fn text() {
    insta::assert_snapshot!(report::foreign(&found(THREAD)));
}

#[test]
fn odds() {
    insta::assert_snapshot!(report::foreign(&found(ODDS)));
}

#[test]
fn json() {
    insta::assert_snapshot!(report::foreign_json(&found(HOSTILE)).unwrap());
}

#[test]
fn csv() {
    let csv = report::foreign_csv(&found(THREAD)).unwrap();
    let head: Vec<&str> = csv.lines().take(8).collect();
    insta::assert_snapshot!(head.join("\n"));
}

#[test]
fn check() {
    let wrong =
        THREAD.replace("811.90 (  1.03%)", "811.90 ( -1.03%)").replace("( 35.20%)", "( 35.25%)");
    insta::assert_snapshot!(report::foreign_check(&found(&wrong)));
}

#[test]
fn html_is_whole_and_hostile_names_do_nothing_in_it() {
    let html = report::foreign_html(&found(HOSTILE));
    assert!(!html.contains("<script") && !html.contains("<b>") && !html.contains('\u{1b}'));
    assert!(!html.contains("http:") && !html.contains("https:"));
    insta::assert_snapshot!(html.split_once("</style>").unwrap().1);
}

fn figure(value: i64) -> Figure {
    let text = format!("{:.2}", value as f64 / 100.0);
    Figure { value: text.parse().unwrap(), half: 0.005, text }
}

prop_compose! {
    fn cell(percent: bool)(value in 0_i64..100_000_000, gain in -30_000_i64..30_000, marked in any::<bool>())
        -> Cell {
        let percent = percent.then(|| figure(gain));
        Cell { value: Some(figure(value)), marked: marked && percent.is_some(), percent, spread: None }
    }
}

fn name() -> impl Strategy<Value = String> {
    let pattern = "([3-6]\\.[0-9]{1,2}\\.0(-rc[1-9])?|[a-z]{2,9})(-[a-z]{1,9}[0-9]{0,2}){0,2}";
    pattern.prop_filter("means percentages", |name| {
        !["gain", "diff", "delta", "change"].contains(&&**name)
    })
}

prop_compose! {
    fn row(columns: usize, percents: bool)
        (statistic in proptest::sample::select(vec!["Min", "Amean", "BHmean-50", "Stddev"]),
         label in "[a-z]{2,8}-[a-zA-Z0-9]{1,12}",
         cells in any::<bool>().prop_flat_map(move |percent| vec(cell(percent && percents), columns)))
        -> Row {
        Row {
            line: 0,
            section: String::new(),
            statistic: statistic.into(),
            label,
            better: None,
            cells,
        }
    }
}

fn table() -> impl Strategy<Value = Table> {
    (2_usize..6, any::<bool>()).prop_flat_map(|(columns, percent)| {
        (vec(name(), columns), vec(row(columns, percent), 2..12)).prop_map(|(columns, rows)| {
            Table {
                lines: Lines { first: 1, last: 1 },
                author: None,
                kind: Kind::Metrics,
                title: String::new(),
                heading: String::new(),
                columns,
                baseline: None,
                signs: None,
                rows,
            }
        })
    })
}

/// One table of the parts into which a wide table was split. Each part repeats the first column.
fn joined(parts: Vec<Table>) -> Table {
    let mut parts = parts.into_iter();
    let mut table = parts.next().unwrap();
    for part in parts {
        assert_eq!(part.rows.len(), table.rows.len());
        table.columns.extend(part.columns.into_iter().skip(1));
        for (row, more) in table.rows.iter_mut().zip(part.rows) {
            assert_eq!((&row.label, &row.cells[0]), (&more.label, &more.cells[0]));
            row.cells.extend(more.cells.into_iter().skip(1));
        }
    }
    table
}

proptest! {
    /// Printed tables are read as the same tables.
    #[test]
    fn printed_tables_are_read_again(table in table()) {
        let file = "x.txt".to_owned();
        let printed = ForeignTable { file, table: table.clone(), check: None, note: None };
        let text = report::foreign(&Foreign { tables: vec![printed], unread: Vec::new() });
        let document = import::read(text.as_bytes());
        let read = &joined(document.tables);
        prop_assert_eq!(&read.columns, &table.columns, "{}", text);
        let rows = |table: &Table| -> Vec<(String, String, Vec<Cell>)> {
            let row = |row: &Row| (row.statistic.clone(), row.label.clone(), row.cells.clone());
            table.rows.iter().map(row).collect()
        };
        prop_assert_eq!(rows(read), rows(&table), "{}", text);
    }
}
