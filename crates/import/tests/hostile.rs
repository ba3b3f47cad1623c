//! Checks that any bytes are read with bounded work, and that no figure is invented.

use import::{Document, Lines};
use proptest::collection::vec;
use proptest::prelude::*;

/// Checks the properties that hold for everything that is read.
fn hold(bytes: &[u8]) {
    let document: Document = import::read(bytes);
    let lines = String::from_utf8_lossy(bytes).lines().count();
    let within = |at: Lines| 0 < at.first && at.first <= at.last && at.last <= lines;
    assert!(document.unread.iter().all(|unread| within(unread.lines)));
    for table in &document.tables {
        assert!(within(table.lines));
        assert!(!table.columns.is_empty() && !table.rows.is_empty());
        for row in &table.rows {
            assert!(table.lines.first <= row.line && row.line <= table.lines.last);
            assert_eq!(row.cells.len(), table.columns.len());
            let figures = row.cells.iter().flat_map(|cell| [&cell.value, &cell.percent]);
            assert!(figures.flatten().all(|figure| figure.value.is_finite()));
        }
        import::check(table);
        for number in 0..=table.columns.len() {
            let rebased = import::rebase(table, &format!("#{number}"), None);
            let rows = rebased.iter().flat_map(|table| &table.rows);
            let cells = rows.flat_map(|row| &row.cells);
            assert!(cells.filter_map(|cell| cell.percent.as_ref()).all(|it| it.value.is_finite()));
        }
    }
}

/// Pieces from which tables are made.
fn piece() -> impl Strategy<Value = String> {
    let words = [
        "\n",
        "\n",
        "\n",
        " ",
        "  ",
        "        ",
        "\t",
        "> ",
        ">> ",
        "Amean",
        "Min",
        "COMMIT",
        "config",
        "AVG",
        "6.1",
        "4.0.0-rc1",
        "vanilla",
        "12.50",
        "0.00",
        "-1",
        "99%",
        "8m08s",
        "(0.00%)",
        "( -3.50%)",
        "*1.00%*",
        "%diff",
        "\n%stddev %change %stddev\n",
        "\u{b1} 5%",
        "+-5%",
        "[ 1.00]( 2.00)",
        "(1.00 pct)",
        "|",
        "~",
        "+29",
        "---",
        "====",
        "...",
        "(",
        ")",
        "*",
        "%",
        "-",
        "=3D",
        "=\n",
        "From: A <a@b>\n",
        "On x, B wrote:\n",
        "@@ -1,3 +1,3 @@\n",
        "x:",
        "NUMA hit",
        "numa_hit",
        "1.002.00",
        "\u{e9}",
        "\u{a0}",
        "Content-Transfer-Encoding: quoted-printable\n\n",
        "Content-Transfer-Encoding: base64\n\n",
    ];
    prop_oneof![
        20 => proptest::sample::select(words.to_vec()).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        1 => any::<f64>().prop_map(|number| number.to_string()),
    ]
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in vec(any::<u8>(), 0..2000)) {
        hold(&bytes);
    }

    #[test]
    fn any_pieces_of_tables_are_read(pieces in vec(piece(), 0..200)) {
        hold(pieces.concat().as_bytes());
    }
}

#[test]
fn megabytes_on_a_line_or_in_lines_are_read() {
    for unit in
        ["x", "> ", "1.00 ", "(1%) ", "a 1 2\n", "---\n", "\n", "a\n---\n", "-\n", "x 1 2 3\n\n"]
    {
        hold(unit.repeat((1 << 20) / unit.len()).as_bytes());
    }
    let authors: String =
        (0..20_000).map(|it| format!("On x, A{it}z <a> wrote:\n> a 1 (0%) 2 (1%)\n")).collect();
    hold(authors.as_bytes());
}
