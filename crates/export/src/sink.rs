//! Writes rows to a file of any format.

use std::io::{self, BufWriter, Write};

use model::{csv_text, visible};

use crate::Format;
use crate::cell::{Cell, Column};
use crate::columnar::Columnar;
use crate::identity::rfc3339;

/// A file of rows with the same columns.
pub enum Sink<W: Write + Send> {
    Parquet(Columnar<W>),
    Csv(csv::Writer<W>),
    Json(Json<W>),
}

/// A JSON array of objects.
pub struct Json<W: Write> {
    out: BufWriter<W>,
    columns: Vec<Column>,
    empty: bool,
}

impl<W: Write + Send> Sink<W> {
    pub fn new(format: Format, columns: Vec<Column>, out: W) -> io::Result<Self> {
        Ok(match format {
            Format::Parquet => Self::Parquet(Columnar::new(&columns, out)?),
            Format::Csv => {
                let mut writer = csv::Writer::from_writer(out);
                writer.write_record(columns.iter().map(|column| column.name)).map_err(from_csv)?;
                Self::Csv(writer)
            }
            Format::Json => Self::Json(Json { out: BufWriter::new(out), columns, empty: true }),
        })
    }

    /// Writes a row: one cell for each column.
    pub fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        match self {
            Self::Parquet(file) => file.row(cells),
            Self::Csv(writer) => {
                for cell in cells {
                    let field = match cell {
                        Cell::Text(text) => csv_text(text),
                        other => plain(other).into(),
                    };
                    writer.write_field(field.as_bytes()).map_err(from_csv)?;
                }
                writer.write_record(None::<&[u8]>).map_err(from_csv)
            }
            Self::Json(json) => json.row(cells),
        }
    }

    /// Writes what the format has at its end.
    pub fn finish(self) -> io::Result<()> {
        match self {
            Self::Parquet(file) => file.finish(),
            Self::Csv(mut writer) => writer.flush(),
            Self::Json(mut json) => {
                json.out.write_all(if json.empty { b"[]\n" } else { b"\n]\n" })?;
                json.out.flush()
            }
        }
    }
}

impl<W: Write> Json<W> {
    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        let mut next = if self.empty { "[\n{" } else { ",\n{" };
        self.empty = false;
        for (column, cell) in self.columns.iter().zip(cells) {
            write!(self.out, "{next}\"{}\":", column.name)?;
            match cell {
                Cell::Null => self.out.write_all(b"null")?,
                Cell::Text(text) => {
                    let text = serde_json::to_string(text)?;
                    self.out.write_all(visible(&text).as_bytes())?;
                }
                Cell::Time(_) => write!(self.out, "\"{}\"", plain(cell))?,
                other => self.out.write_all(plain(other).as_bytes())?,
            }
            next = ",";
        }
        self.out.write_all(b"}")
    }
}

/// A cell as text; empty if there is no value. Numbers keep their exact value.
fn plain(cell: &Cell<'_>) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Text(text) => (*text).to_owned(),
        Cell::Integer(number) => number.to_string(),
        Cell::Number(number) => format!("{number:?}"),
        Cell::Time(seconds) => rfc3339(*seconds),
        Cell::Flag(flag) => flag.to_string(),
    }
}

fn from_csv(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
