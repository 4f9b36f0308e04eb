//! Apache Parquet, written one row group at a time.
//!
//! Format: <https://parquet.apache.org/docs/file-format/>. Files use version 1 pages and Snappy, so every engine can
//! read them. Strings are dictionary-encoded if that is shorter; ids are delta-encoded.

use std::io::Write;
use std::sync::Arc;

use ::parquet::basic::{Compression, ConvertedType, Encoding, LogicalType, Repetition, Type};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::{ColumnPath, Type as SchemaType};
use bytes::Bytes;

use crate::{Cell, Column, Error, Kind, RowWriter, check_width};

/// The metadata to write into a Parquet file, and the limits of its row groups.
#[derive(Clone, Debug)]
pub struct ParquetOptions {
    /// Names and values in the file's footer, in this order.
    pub metadata: Vec<(String, String)>,
    /// The name of the program that writes the file: `heapdiff version 0.2.0`.
    pub created_by: String,
    /// Maximum number of rows in a row group.
    pub group_rows: usize,
    /// Approximate maximum size of a row group's cells in bytes. The writer keeps up to this number of bytes in memory,
    /// and twice this number while it writes the group.
    pub group_bytes: usize,
}

impl Default for ParquetOptions {
    fn default() -> Self {
        Self {
            metadata: Vec::new(),
            created_by: "heapdiff".to_owned(),
            group_rows: 1 << 19,
            group_bytes: 48 << 20,
        }
    }
}

/// Writes a Parquet file. [`ParquetWriter::finish`] writes the footer: without it, the file cannot be read.
pub struct ParquetWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<Buffer>,
    options: ParquetOptions,
    /// The first field is the number of rows in the current group. The second is the number of rows in the groups
    /// before it.
    gathered: usize,
    before: u64,
}

/// The cells of one column in the current row group.
struct Buffer {
    column: Column,
    /// The definition level of each row: 0 for null, otherwise 1.
    levels: Vec<i16>,
    cells: Cells,
}

enum Cells {
    Bool(Vec<bool>),
    Whole(Vec<i64>),
    Double(Vec<f64>),
    /// All strings concatenated, and the offset at which each string ends.
    Text(Vec<u8>, Vec<usize>),
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Starts a file.
    ///
    /// # Errors
    /// Returns an error if the first bytes cannot be written.
    pub fn new(out: W, columns: &[Column], options: ParquetOptions) -> Result<Self, Error> {
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(options.created_by.clone())
            .set_key_value_metadata(Some(
                options
                    .metadata
                    .iter()
                    .map(|(key, value)| KeyValue::new(key.clone(), value.clone()))
                    .collect(),
            ));
        for column in columns.iter().filter(|c| c.kind == Kind::Id) {
            let path = ColumnPath::new(vec![column.name.to_string()]);
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
        let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
        let schema = SchemaType::group_type_builder("schema")
            .with_fields(fields)
            .build()?;
        let file = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties.build()))?;
        Ok(Self {
            file,
            columns: columns.iter().map(Buffer::new).collect(),
            options,
            gathered: 0,
            before: 0,
        })
    }

    /// Writes the last rows and the footer, and returns the output.
    ///
    /// # Errors
    /// Returns an error if these cannot be written.
    pub fn finish(mut self) -> Result<W, Error> {
        self.write_group()?;
        Ok(self.file.into_inner()?)
    }

    /// Returns the number of rows written so far.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.before + self.gathered as u64
    }

    fn write_group(&mut self) -> Result<(), Error> {
        if self.gathered == 0 {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for column in &mut self.columns {
            column.write(&mut group)?;
        }
        group.close()?;
        self.before += self.gathered as u64;
        self.gathered = 0;
        Ok(())
    }
}

impl<W: Write + Send> RowWriter for ParquetWriter<W> {
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), Error> {
        let row = self.rows() + 1;
        check_width(row, cells, self.columns.len())?;
        // All cells of a row are checked before any is stored, so a rejected row changes nothing.
        for (buffer, cell) in self.columns.iter().zip(cells) {
            buffer.check(*cell, row)?;
        }
        for (buffer, cell) in self.columns.iter_mut().zip(cells) {
            buffer.push(*cell);
        }
        self.gathered += 1;
        let bytes = || self.columns.iter().map(Buffer::bytes).sum::<usize>();
        // Adding up the sizes of all columns takes time, so this is done only for every 256th row. Long strings are
        // rare, so groups are seldom much larger than the limit.
        let full = self.gathered >= self.options.group_rows
            || self.gathered.is_multiple_of(256) && bytes() >= self.options.group_bytes;
        if full {
            self.write_group()?;
        }
        Ok(())
    }
}

impl<W: Write + Send> std::fmt::Debug for ParquetWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParquetWriter")
            .field("rows", &self.rows())
            .finish_non_exhaustive()
    }
}

impl From<ParquetError> for Error {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(source) => match source.downcast::<std::io::Error>() {
                Ok(io) => Self::Io(*io),
                Err(other) => Self::Parquet(other.to_string()),
            },
            other => Self::Parquet(other.to_string()),
        }
    }
}

fn field(column: &Column) -> Result<Arc<SchemaType>, Error> {
    let physical = match column.kind {
        Kind::Bool => Type::BOOLEAN,
        Kind::Int | Kind::Id => Type::INT64,
        Kind::Double => Type::DOUBLE,
        Kind::Text => Type::BYTE_ARRAY,
    };
    let field = SchemaType::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL);
    let field = match column.kind {
        Kind::Id => field
            .with_logical_type(Some(LogicalType::integer(64, false)))
            .with_converted_type(ConvertedType::UINT_64),
        Kind::Text => field
            .with_logical_type(Some(LogicalType::String))
            .with_converted_type(ConvertedType::UTF8),
        _ => field,
    };
    Ok(Arc::new(field.build()?))
}

impl Buffer {
    fn new(column: &Column) -> Self {
        Self {
            column: column.clone(),
            levels: Vec::new(),
            cells: match column.kind {
                Kind::Bool => Cells::Bool(Vec::new()),
                Kind::Int | Kind::Id => Cells::Whole(Vec::new()),
                Kind::Double => Cells::Double(Vec::new()),
                Kind::Text => Cells::Text(Vec::new(), Vec::new()),
            },
        }
    }

    fn bytes(&self) -> usize {
        let cells = match &self.cells {
            Cells::Bool(list) => list.len(),
            Cells::Whole(list) => list.len() * 8,
            Cells::Double(list) => list.len() * 8,
            Cells::Text(text, ends) => text.len() + ends.len() * 8,
        };
        cells + self.levels.len() * 2
    }

    fn check(&self, cell: Cell<'_>, row: u64) -> Result<(), Error> {
        let kind = self.column.kind;
        match cell.kind() {
            None => Ok(()),
            Some(found) if found == kind => Ok(()),
            // A computed column may hold a reference in one row and a number in another.
            Some(Kind::Int) if kind == Kind::Id => Ok(()),
            Some(Kind::Id) if kind == Kind::Int => Ok(()),
            // Integers are accepted as doubles.
            Some(Kind::Int) if kind == Kind::Double => Ok(()),
            Some(found) => Err(Error::Kind {
                column: self.column.name.to_string(),
                row,
                expected: kind.name(),
                found: found.name(),
            }),
        }
    }

    #[allow(
        clippy::cast_precision_loss,
        reason = "the column contains fractions, so it stores whole numbers as floating-point numbers"
    )]
    fn push(&mut self, cell: Cell<'_>) {
        self.levels.push(i16::from(cell != Cell::Null));
        match (&mut self.cells, cell) {
            (Cells::Bool(list), Cell::Bool(value)) => list.push(value),
            (Cells::Whole(list), Cell::Int(value)) => list.push(value),
            (Cells::Whole(list), Cell::Id(id)) => list.push(id.cast_signed()),
            (Cells::Double(list), Cell::Double(value)) => list.push(value),
            (Cells::Double(list), Cell::Int(value)) => list.push(value as f64),
            (Cells::Text(all, ends), Cell::Text(text)) => {
                all.extend_from_slice(text.as_bytes());
                ends.push(all.len());
            }
            // The cell is null: `check` has rejected all cells of a wrong type.
            _ => {}
        }
    }

    /// Writes the column's part of a row group, and clears the buffer.
    fn write<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), Error> {
        let levels = std::mem::take(&mut self.levels);
        match &mut self.cells {
            Cells::Bool(list) => write::<BoolType, W>(group, &std::mem::take(list), &levels),
            Cells::Whole(list) => write::<Int64Type, W>(group, &std::mem::take(list), &levels),
            Cells::Double(list) => write::<DoubleType, W>(group, &std::mem::take(list), &levels),
            Cells::Text(all, ends) => {
                let all = Bytes::from(std::mem::take(all));
                let mut start = 0;
                let texts: Vec<ByteArray> = std::mem::take(ends)
                    .into_iter()
                    .map(|end| ByteArray::from(all.slice(std::mem::replace(&mut start, end)..end)))
                    .collect();
                write::<ByteArrayType, W>(group, &texts, &levels)
            }
        }
    }
}

fn write<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    levels: &[i16],
) -> Result<(), Error> {
    // The schema has one column for each buffer, and this function is called once for each buffer. So there is always a
    // next column.
    let Some(mut column) = group.next_column()? else {
        return Ok(());
    };
    column
        .typed::<T>()
        .write_batch(values, Some(levels), None)?;
    column.close()?;
    Ok(())
}
