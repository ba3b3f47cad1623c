//! The tables as CSV: a line for each value, with the names of the columns in the first line.

use csv::{Error, Writer};
use import::Figure;
use model::{Better, csv_text};

use super::{Foreign, ForeignTable};

const HEAD: &str = "file,first_line,last_line,author,title,kind,baseline,line,statistic,label,\
    better,column,value,gain,marked,section,spread";

/// Returns every value of every table with its gain. What is missing is blank. Times are in seconds. No
/// table causes an error.
pub fn csv(found: &Foreign) -> Result<String, Error> {
    let mut writer = Writer::from_writer(Vec::new());
    writer.write_record(HEAD.split(','))?;
    for table in &found.tables {
        write(table, &mut writer)?;
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn write(found: &ForeignTable, writer: &mut Writer<Vec<u8>>) -> Result<(), Error> {
    let ForeignTable { file, table, .. } = found;
    let number = |figure: Option<&Figure>| figure.map_or(String::new(), |it| it.value.to_string());
    for row in &table.rows {
        let better = match row.better {
            Some(Better::Lower) => "lower",
            Some(Better::Higher) => "higher",
            None => "",
        };
        for (name, cell) in table.columns.iter().zip(&row.cells) {
            writer.write_record([
                &*csv_text(file),
                &table.lines.first.to_string(),
                &table.lines.last.to_string(),
                &csv_text(table.author.as_deref().unwrap_or_default()),
                &csv_text(&table.title),
                table.kind.name(),
                &csv_text(table.baseline_name().unwrap_or_default()),
                &row.line.to_string(),
                &csv_text(&row.statistic),
                &csv_text(&row.label),
                better,
                &csv_text(name),
                &number(cell.value.as_ref()),
                &number(cell.percent.as_ref()),
                if cell.marked { "true" } else { "false" },
                &csv_text(&row.section),
                cell.spread.as_ref().map_or("", |spread| &spread.text),
            ])?;
        }
    }
    Ok(())
}
