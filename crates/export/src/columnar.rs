//! Writes rows as Parquet. Rows are collected by column and written in groups, so at most one group is in memory.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;

use crate::cell::{Cell, Column, Kind};

/// The number of rows in a group.
const GROUP: usize = 1 << 16;
/// Times are stored in milliseconds.
const MILLISECONDS: i64 = 1000;

/// A Parquet file being written.
pub struct Columnar<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<Gathered>,
    rows: usize,
}

/// The values of one column of a group.
struct Gathered {
    nullable: bool,
    /// For each row, 1 if there is a value and 0 if not.
    levels: Vec<i16>,
    values: Values,
}

enum Values {
    Text(Vec<ByteArray>),
    Integer(Vec<i64>),
    Number(Vec<f64>),
    Flag(Vec<bool>),
}

impl<W: Write + Send> Columnar<W> {
    pub fn new(columns: &[Column], out: W) -> io::Result<Self> {
        let schema = parse_message_type(&schema(columns)).map_err(from_parquet)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(format!("faultline version {}", env!("CARGO_PKG_VERSION")))
            .build();
        let file = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties));
        Ok(Self {
            file: file.map_err(from_parquet)?,
            columns: columns.iter().map(Gathered::new).collect(),
            rows: 0,
        })
    }

    /// Collects a row: one cell for each column. Writes the group once it is full.
    pub fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.push(cell)?;
        }
        self.rows += 1;
        if self.rows == GROUP { self.group() } else { Ok(()) }
    }

    /// Writes the last group and the footer, without which no program can read the file.
    pub fn finish(mut self) -> io::Result<()> {
        if self.rows > 0 {
            self.group()?;
        }
        self.file.close().map_err(from_parquet)?;
        Ok(())
    }

    fn group(&mut self) -> io::Result<()> {
        let mut write = || {
            let mut group = self.file.next_row_group()?;
            for column in &mut self.columns {
                if let Some(writer) = group.next_column()? {
                    column.write(writer)?;
                }
            }
            group.close()?;
            Ok(())
        };
        self.rows = 0;
        write().map_err(from_parquet)
    }
}

impl Gathered {
    fn new(column: &Column) -> Self {
        let values = match column.kind {
            Kind::Text => Values::Text(Vec::new()),
            Kind::Integer | Kind::Time => Values::Integer(Vec::new()),
            Kind::Number => Values::Number(Vec::new()),
            Kind::Flag => Values::Flag(Vec::new()),
        };
        Self { nullable: column.nullable, levels: Vec::new(), values }
    }

    fn push(&mut self, cell: &Cell<'_>) -> io::Result<()> {
        match (&mut self.values, cell) {
            (_, Cell::Null) if self.nullable => {}
            (Values::Text(values), Cell::Text(text)) => {
                // Equal texts in succession share their bytes.
                let last = values.last().filter(|last| last.data() == text.as_bytes());
                let value = last.cloned().unwrap_or_else(|| ByteArray::from(*text));
                values.push(value);
            }
            (Values::Integer(values), Cell::Integer(value)) => values.push(*value),
            (Values::Integer(values), Cell::Time(value)) => values.push(value * MILLISECONDS),
            (Values::Number(values), Cell::Number(value)) => values.push(*value),
            (Values::Flag(values), Cell::Flag(value)) => values.push(*value),
            _ => return Err(io::Error::other("a value has another kind than its column")),
        }
        if self.nullable {
            self.levels.push(i16::from(*cell != Cell::Null));
        }
        Ok(())
    }

    /// Writes the collected values to the column, and clears them.
    fn write(&mut self, writer: SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = self.nullable.then_some(&*self.levels);
        match &mut self.values {
            Values::Text(values) => write::<ByteArrayType>(writer, values, levels)?,
            Values::Integer(values) => write::<Int64Type>(writer, values, levels)?,
            Values::Number(values) => write::<DoubleType>(writer, values, levels)?,
            Values::Flag(values) => write::<BoolType>(writer, values, levels)?,
        }
        self.levels.clear();
        Ok(())
    }
}

fn write<T: DataType>(
    mut writer: SerializedColumnWriter<'_>,
    values: &mut Vec<T::T>,
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    writer.typed::<T>().write_batch(values, levels, None)?;
    values.clear();
    writer.close()
}

/// The schema in Parquet's own notation.
fn schema(columns: &[Column]) -> String {
    let fields = columns.iter().map(|column| {
        let repetition = if column.nullable { "optional" } else { "required" };
        let kind = match column.kind {
            Kind::Text => ("binary", " (STRING)"),
            Kind::Integer => ("int64", ""),
            Kind::Number => ("double", ""),
            Kind::Time => ("int64", " (TIMESTAMP(MILLIS,true))"),
            Kind::Flag => ("boolean", ""),
        };
        format!("{repetition} {} {}{};", kind.0, column.name, kind.1)
    });
    format!("message row {{ {} }}", fields.collect::<Vec<_>>().join(" "))
}

/// The error of `out`, if that is the cause.
fn from_parquet(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        other => io::Error::other(other),
    }
}
