//! Tables in texts as they occur: a web page of a thread, a page of a list, collapsed spaces, a mailbox,
//! quoted-printable with CRLF and tabs, unusual tables, our own output, values with units, rows that are
//! labelled by numbers, and rows that look like names.

use std::fmt::Write;
use std::path::Path;

use import::{Cell, Document, Figure, Lines, Table};

fn read(name: &str) -> Document {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
    import::read(&std::fs::read(path).unwrap())
}

/// What was found: the place, author, columns and ends of rows of each table.
fn found(name: &str) -> String {
    let document = read(name);
    let mut text = String::new();
    for table in &document.tables {
        let Lines { first, last } = table.lines;
        let author = table.author.as_deref().unwrap_or("-");
        let _ =
            writeln!(text, "{first}-{last} {} by {author}: {:?}", table.kind.name(), table.title);
        let _ = writeln!(text, "  {:?} {:?}", table.heading, table.columns);
        let _ = writeln!(text, "  against {:?}, {:?}", table.baseline_name(), table.signs);
        let _ = writeln!(text, "  {} rows", table.rows.len());
        let ends = [table.rows.first(), table.rows.last().filter(|_| table.rows.len() > 1)];
        for row in ends.into_iter().flatten() {
            let cells: Vec<String> = row.cells.iter().map(cell).collect();
            let (statistic, label) = (&row.statistic, &row.label);
            let cells = cells.join(" ");
            let _ =
                writeln!(text, "  {}: {statistic:?} {label:?} {:?}: {cells}", row.line, row.better);
        }
    }
    for unread in &document.unread {
        let Lines { first, last } = unread.lines;
        let _ = writeln!(text, "{first}-{last} unread: {}", unread.why);
    }
    text
}

fn cell(cell: &Cell) -> String {
    let text = |figure: &Option<Figure>| figure.as_ref().map_or("-".into(), |it| it.text.clone());
    let star = if cell.marked { "*" } else { "" };
    format!("{}/{}{star}", text(&cell.value), text(&cell.percent))
}

macro_rules! fixtures {
    ($($test:ident: $file:literal,)*) => {
        $(#[test]
        fn $test() {
            insta::assert_snapshot!(stringify!($test), found($file));
        })*
    };
}

fixtures! {
    a_thread_on_a_page: "patchwork-thread.txt",
    a_mail_on_a_page: "list-page.txt",
    collapsed_spaces: "collapsed.txt",
    a_mailbox: "commits.mbox",
    quoted_printable: "quoted-printable.eml",
    odds_and_ends: "odds.txt",
    units_and_numbers: "units.txt",
    rows_like_names_and_names_like_rows: "lookalikes.txt",
}

/// The tables of a text, without their places and authors.
fn content(bytes: &[u8]) -> Vec<Table> {
    let mut tables = import::read(bytes).tables;
    for table in &mut tables {
        table.lines = Lines { first: 0, last: 0 };
        table.author = None;
        table.title.clear();
        table.rows.iter_mut().for_each(|row| row.line = 0);
    }
    tables
}

#[test]
fn line_ends_and_quoting_change_nothing() {
    for name in ["patchwork-thread.txt", "list-page.txt", "odds.txt"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
        let text = std::fs::read_to_string(path).unwrap();
        let plain = content(text.as_bytes());
        assert!(plain.len() > 3);
        assert_eq!(content(text.replace('\n', "\r\n").as_bytes()), plain, "{name}");
        let quoted: String = text.lines().map(|line| format!("> {line}\n")).collect();
        let quoted = content(quoted.as_bytes());
        // Nothing is set apart in a quoted patch, so there may be more tables. None is lost.
        assert!(plain.iter().all(|table| quoted.contains(table)), "{name}");
    }
}

#[test]
fn all_percentages_of_the_fixtures_follow() {
    for name in ["patchwork-thread.txt", "list-page.txt", "collapsed.txt", "odds.txt"] {
        for table in read(name).tables {
            let check = import::check(&table);
            assert_eq!(check.findings, [], "{name}");
            assert_eq!(check.printed, check.derived);
        }
    }
}

#[test]
fn what_cannot_be_read_is_listed_line_by_line() {
    // Percentages torn apart: every second line is what is left of the one before.
    let text = "Amean     syst-NUMA01      11664.40 (   0.00%)    11616.17 *   0.=\n41%*\n\
                Amean     syst-NUMA02          1.55 (   0.00%)        9.31 *-499.=\n26%*\n";
    let document = import::read(text.as_bytes());
    assert!(document.tables.is_empty());
    let lines: Vec<_> = document.unread.iter().map(|unread| unread.lines).collect();
    assert_eq!(lines, [Lines { first: 1, last: 3 }]);
}

#[test]
fn a_word_that_heads_numbers_of_threads_may_be_a_label() {
    let rows = |text: &str| {
        let document = import::read(text.as_bytes());
        let tables = document.tables.iter().map(|table| (table.columns.clone(), table.rows.len()));
        tables.collect::<Vec<_>>()
    };
    let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
    let counts = "threads      1       2\nread     10.50   11.50\nwrite    10.50   11.50\n";
    assert_eq!(rows(counts), [(names(["1", "2"]), 2)]);
    let figures =
        "             base  patched\n\nThreads      1200    1180\nWorkers      120     118\n";
    assert_eq!(rows(figures), [(names(["base", "patched"]), 2)]);
}

#[test]
fn values_with_units_are_no_names_of_columns() {
    let text = "\
| Metric             | Without Patch | With Patch |
|--------------------|---------------|------------|
| Sleep Interval     | 50 us         | 50 us      |
| Actual Sleep time  | 52.639 us     | 52.627 us  |
| Wakeups            | 579817        | 579298     |
| Usage              | 47815         | 2030160    |
";
    let document = import::read(text.as_bytes());
    let names = document.tables.iter().flat_map(|table| &table.columns);
    assert!(names.clone().all(|name| !name.contains("us")), "{:?}", names.collect::<Vec<_>>());
}

#[test]
fn a_row_is_not_the_names_of_the_rows_below() {
    let text = "
                          before                after
Hmean     4      98.00 (   0.00%)      99.00 (   1.02%)
Hmean     8     100.00 (   0.00%)     101.00 (   1.00%)
  base       12         34
Hmean     16    200.00 (   0.00%)     210.00 (   5.00%)
Hmean     32    300.00 (   0.00%)     310.00 (   3.33%)
";
    let document = import::read(text.as_bytes());
    let [table] = document.tables.as_slice() else {
        panic!("{:?}", document.tables);
    };
    assert_eq!(table.columns, ["before", "after"]);
    assert_eq!(table.rows.len(), 5);
}

#[test]
fn the_rest_of_a_torn_number_is_in_no_column() {
    let text = "
             base      new
cpu0         1200     1400
cpu1         1100     1300
cpu2           00
";
    let document = import::read(text.as_bytes());
    assert_eq!(document.tables[0].rows.len(), 2);
    assert_eq!(document.unread[0].lines, Lines { first: 5, last: 5 });
}

#[test]
fn counters_that_we_print_are_counters() {
    let text = "
                         6.1         6.12
Reclaim
Minor Faults              34          25
KiB paged in             760         234
KiB paged out             76          23
";
    let document = import::read(text.as_bytes());
    assert_eq!(document.tables[0].kind, import::Kind::Counters);
}
