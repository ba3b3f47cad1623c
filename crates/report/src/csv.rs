//! The verdicts as CSV: a line for each figure of a variant; in a sweep, at each point.

use ::csv::{Error, Writer};
use compare::{Comparison, PointComparison, RowVerdict};
use model::csv_text;

use crate::exact;

const HEAD: &str = "point,workload,metric,unit,better,baseline,variant,base,new,change,low,high,\
    luck_floor,p,verdict,without_loops";

/// Returns the verdicts as CSV, with the names of the columns in the first line. Changes, their intervals
/// and luck floors are in percent of the baseline's figure; above 0 means more. What is not known is blank, and so is the
/// change without loops that copy and clear memory, unless the verdict would be another one without them.
///
/// # Errors
/// No comparison causes an error.
pub fn csv(comparison: &Comparison) -> Result<String, Error> {
    let mut writer = Writer::from_writer(Vec::new());
    writer.write_record(HEAD.split(','))?;
    match &*comparison.points {
        [] => write("", comparison, &mut writer)?,
        points => {
            for PointComparison { name, comparison } in points {
                write(name, comparison, &mut writer)?;
            }
        }
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn write(point: &str, comparison: &Comparison, writer: &mut Writer<Vec<u8>>) -> Result<(), Error> {
    let number = |value: Option<f64>| {
        value.filter(|value| value.is_finite()).map_or(String::new(), |value| value.to_string())
    };
    for column in 1..comparison.variants.len() {
        for RowVerdict { table, row, verdict } in comparison.verdicts(column) {
            let evidence = row.evidence(column);
            let percent = |ratio: f64| 100.0 * (ratio - 1.0);
            let change = match &evidence {
                Some(evidence) => Some(percent(evidence.ratio)),
                None => exact::percent(row, column),
            };
            writer.write_record([
                &*csv_text(point),
                &csv_text(&table.workload),
                &csv_text(&row.metric),
                &csv_text(&row.unit),
                row.better.map_or("", |better| better.name()),
                &csv_text(&comparison.variants[0].name),
                &csv_text(&comparison.variants[column].name),
                &number(row.base(column)),
                &number(row.value(column)),
                &number(change),
                &number(evidence.map(|it| percent(it.low))),
                &number(evidence.map(|it| percent(it.high))),
                &number(exact::floor_percent(row, column)),
                &number(evidence.map(|it| it.p)),
                verdict.name(),
                &number(row.without_loops(column).map(|it| 100.0 * it.share)),
            ])?;
        }
    }
    Ok(())
}
