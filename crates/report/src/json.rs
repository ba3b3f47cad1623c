//! The comparison as JSON: a contract, to which keys may be added while its version stays.

use compare::{Comparison, Kind, Notes, Pool, Row, Table, Variant};
use serde::Serialize;

/// The version of the contract.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    baseline: Option<&'a str>,
    variants: Vec<&'a str>,
    tables: Vec<TableDocument<'a>>,
    emulated: bool,
    boots: &'a [Variant],
    notes: &'a Notes,
}

#[derive(Serialize)]
struct TableDocument<'a> {
    workload: &'a str,
    kind: Kind,
    pooled: &'a [Pool],
    rows: Vec<RowDocument<'a>>,
}

/// A row with what the contract foresees for each column and no comparison gives yet: `null`.
#[derive(Serialize)]
struct RowDocument<'a> {
    #[serde(flatten)]
    row: &'a Row,
    verdicts: Vec<()>,
    intervals: Vec<()>,
}

/// The comparison as one JSON object, figures in full precision. `baseline` is null only if there
/// is no variant at all.
///
/// # Errors
/// None that a comparison can cause.
pub fn json(comparison: &Comparison) -> Result<String, serde_json::Error> {
    let variants = comparison.variants.iter();
    let document = Document {
        schema: SCHEMA,
        baseline: comparison.variants.first().map(|first| &*first.name),
        variants: variants.map(|variant| &*variant.name).collect(),
        tables: comparison.tables.iter().map(table).collect(),
        emulated: comparison.emulated,
        boots: &comparison.variants,
        notes: &comparison.notes,
    };
    serde_json::to_string_pretty(&document)
}

fn table(table: &Table) -> TableDocument<'_> {
    TableDocument {
        workload: &table.workload,
        kind: table.kind,
        pooled: &table.pooled,
        rows: table.rows.iter().map(row).collect(),
    }
}

fn row(row: &Row) -> RowDocument<'_> {
    let columns = row.values.len();
    RowDocument { row, verdicts: vec![(); columns], intervals: vec![(); columns] }
}
