//! The tables as JSON. The format is stable: keys may be added without a new version. JSON has a list for
//! each kind of value in a row, while an imported table has cells, so it has types of its own.

use import::{Cell, Check, Clue, Row, Signs};
use model::Better;
use serde::Serialize;

use super::{Foreign, ForeignTable, column};

/// The version of the format.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    tables: Vec<TableDocument<'a>>,
    unread: Vec<UnreadDocument<'a>>,
}

#[derive(Serialize)]
struct UnreadDocument<'a> {
    file: &'a str,
    first_line: usize,
    last_line: usize,
    why: &'a str,
}

#[derive(Serialize)]
struct TableDocument<'a> {
    file: &'a str,
    first_line: usize,
    last_line: usize,
    author: Option<&'a str>,
    title: Option<&'a str>,
    kind: &'a str,
    baseline: Option<&'a str>,
    /// The heading above the labels.
    heading: Option<&'a str>,
    columns: &'a [String],
    /// `gain` or `change`, which is positive if there is more; null without percentages.
    percentages: Option<&'static str>,
    note: Option<&'static str>,
    rows: Vec<RowDocument<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<CheckDocument<'a>>,
}

#[derive(Serialize)]
struct RowDocument<'a> {
    line: usize,
    /// The heading of the row's part of the table.
    section: Option<&'a str>,
    statistic: Option<&'a str>,
    label: &'a str,
    better: Option<Better>,
    values: Vec<Option<f64>>,
    gains: Vec<Option<f64>>,
    marked: Vec<bool>,
    /// The spread of each value, as printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    spreads: Option<Vec<Option<&'a str>>>,
}

#[derive(Serialize)]
struct CheckDocument<'a> {
    printed: usize,
    derived: usize,
    untold: usize,
    findings: Vec<FindingDocument<'a>>,
}

#[derive(Serialize)]
struct FindingDocument<'a> {
    line: usize,
    label: String,
    column: String,
    printed: &'a str,
    follows: [f64; 2],
    clue: Option<&'static str>,
}

/// Returns everything as one JSON object: figures in full precision, `null` for what is missing. No table
/// causes an error.
pub fn json(found: &Foreign) -> Result<String, serde_json::Error> {
    let unread = found.unread.iter().map(|it| UnreadDocument {
        file: &it.file,
        first_line: it.unread.lines.first,
        last_line: it.unread.lines.last,
        why: it.unread.why,
    });
    let document = Document {
        schema: SCHEMA,
        tables: found.tables.iter().map(table).collect(),
        unread: unread.collect(),
    };
    serde_json::to_string_pretty(&document)
}

fn table(found: &ForeignTable) -> TableDocument<'_> {
    let table = &found.table;
    TableDocument {
        file: &found.file,
        first_line: table.lines.first,
        last_line: table.lines.last,
        author: table.author.as_deref(),
        title: some(&table.title),
        kind: table.kind.name(),
        baseline: table.baseline_name(),
        heading: some(&table.heading),
        columns: &table.columns,
        percentages: table.signs.map(|signs| match signs {
            Signs::Gain => "gain",
            Signs::Change => "change",
        }),
        note: found.note,
        rows: table.rows.iter().map(row).collect(),
        check: found.check.as_ref().map(|check| check_document(found, check)),
    }
}

fn row(row: &Row) -> RowDocument<'_> {
    let cells = || row.cells.iter();
    let percent = |cell: &Cell| cell.percent.as_ref().map(|percent| percent.value);
    let spread = |cell: &'_ Cell| cell.spread.is_some();
    let spreads = || cells().map(|cell| cell.spread.as_ref().map(|spread| spread.text.as_str()));
    RowDocument {
        line: row.line,
        section: some(&row.section),
        statistic: some(&row.statistic),
        label: &row.label,
        better: row.better,
        values: cells().map(|cell| cell.value.as_ref().map(|value| value.value)).collect(),
        gains: cells().map(percent).collect(),
        marked: cells().map(|cell| cell.marked).collect(),
        spreads: cells().any(spread).then(|| spreads().collect()),
    }
}

fn check_document<'a>(found: &'a ForeignTable, check: &'a Check) -> CheckDocument<'a> {
    let findings = check.findings.iter().map(|finding| FindingDocument {
        line: finding.line,
        label: super::label(&found.table.rows[finding.row]),
        column: column(&found.table, finding.column),
        printed: &finding.printed,
        follows: [finding.follows.0, finding.follows.1],
        clue: finding.clue.map(|clue| match clue {
            Clue::OtherDirection => "other direction",
            Clue::CutOff => "cut off",
            Clue::BaselinePlusOne => "baseline plus one",
        }),
    });
    CheckDocument {
        printed: check.printed,
        derived: check.derived,
        untold: check.untold,
        findings: findings.collect(),
    }
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
