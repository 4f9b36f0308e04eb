//! Writes the rows of a query while the query finds them.

use std::error::Error;
use std::fmt;
use std::io::{self, Write};

use heapdiff_model::query::QueryHead;
use heapdiff_tables::{
    Cell, CsvWriter, Error as TableError, JsonRows, Kind, Outcome, ParquetOptions, ParquetWriter,
    ResultColumn, RowWriter, Sink,
};
use heapdiff_units::counted;
use serde::Serialize;
use serde_json::json;

use crate::document::{Column, Table, Tone};
use crate::format::Format;
use crate::printable::{printable, shorten_middle};
use crate::style::Style;
use crate::text;

/// The error of a query that cannot write its rows. It is an error of the source that produces the rows, or a
/// [`TableError`] of the writer.
pub type RowError = Box<dyn Error + Send + Sync>;

/// A source that produces rows on demand, so that rows need not be kept in memory.
pub trait RowSource: fmt::Debug {
    /// Writes all rows to the sink.
    ///
    /// # Errors
    /// Returns an error if rows cannot be found, or if the sink fails.
    fn write_to(&self, sink: &mut dyn Sink) -> Result<Outcome, RowError>;
}

/// Maximum width of a table cell in text output, in columns of the terminal. The last cell of a row may take all of the
/// remaining width.
const CELL: usize = 60;
/// Number of rows at the start of the result that determine the types of computed columns in Parquet.
const SAMPLE: usize = 4096;

/// Runs a query and writes its rows. Characters that can control a terminal are not written to a terminal.
///
/// # Errors
/// Returns an error if the query or the stream fails.
pub fn render(
    format: Format,
    report: &PendingQuery,
    style: Style,
    is_terminal: bool,
    out: &mut dyn Write,
) -> Result<(), RowError> {
    match format {
        Format::Csv => csv(report, is_terminal, out),
        Format::Json => json(report, out),
        _ => table(report, style, out),
    }
}

/// A query that has not run yet. It runs while its rows are written.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct PendingQuery {
    /// The JSON keys that come before the rows.
    pub head: QueryHead,
    /// The source of the rows.
    #[serde(skip)]
    pub rows: Box<dyn RowSource>,
    /// Maximum number of rows; `None` for all.
    #[serde(skip)]
    pub max_rows: Option<u64>,
}

/// A cell of a query result that does not borrow from its row.
#[derive(Debug)]
enum Held {
    Text(String),
    Other(Cell<'static>),
}

impl Held {
    fn from_cell(cell: Cell<'_>) -> Self {
        Self::Other(match cell {
            Cell::Text(text) => return Self::Text(text.to_owned()),
            Cell::Null => Cell::Null,
            Cell::Bool(value) => Cell::Bool(value),
            Cell::Int(value) => Cell::Int(value),
            Cell::Id(id) => Cell::Id(id),
            Cell::Double(value) => Cell::Double(value),
        })
    }

    fn cell(&self) -> Cell<'_> {
        match self {
            Self::Text(text) => Cell::Text(text),
            Self::Other(cell) => *cell,
        }
    }
}

/// The rows of a query, kept in memory.
#[derive(Debug)]
struct Found {
    columns: Vec<ResultColumn>,
    rows: Vec<Vec<Held>>,
    /// Maximum number of columns of a string. The middle of a longer string is removed.
    longest: usize,
    outcome: Outcome,
}

impl Sink for Found {
    fn columns(&mut self, columns: &[ResultColumn]) -> Result<(), TableError> {
        self.columns = columns.to_vec();
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), TableError> {
        let held = cells.iter().map(|&cell| match cell {
            Cell::Text(text) => Held::Text(shorten_middle(text, self.longest).into_owned()),
            other => Held::from_cell(other),
        });
        self.rows.push(held.collect());
        Ok(())
    }
}

impl RowSource for Found {
    fn write_to(&self, sink: &mut dyn Sink) -> Result<Outcome, RowError> {
        sink.columns(&self.columns)?;
        for row in &self.rows {
            let cells: Vec<Cell<'_>> = row.iter().map(Held::cell).collect();
            sink.row(&cells)?;
        }
        Ok(self.outcome)
    }
}

/// Runs the query and stores its rows in `report`, so that the rows can be written more than once. The middle of a
/// string with more than `longest` columns is removed.
///
/// # Errors
/// Returns an error if the query fails.
pub fn find(report: &mut PendingQuery, longest: usize) -> Result<(), RowError> {
    let mut found = Found {
        columns: Vec::new(),
        rows: Vec::new(),
        longest,
        outcome: Outcome {
            rows: 0,
            more: false,
        },
    };
    found.outcome = ask(report, &mut found)?;
    report.rows = Box::new(found);
    Ok(())
}

fn ask(report: &PendingQuery, sink: &mut dyn Sink) -> Result<Outcome, RowError> {
    report.rows.write_to(sink)
}

fn io(error: io::Error) -> RowError {
    Box::new(TableError::Io(error))
}

fn table(report: &PendingQuery, style: Style, out: &mut dyn Write) -> Result<(), RowError> {
    #[derive(Default)]
    struct TextRows {
        names: Vec<String>,
        /// True if a column contains text. Such a column is aligned to the left.
        texts: Vec<bool>,
        rows: Vec<Vec<String>>,
    }
    impl Sink for TextRows {
        fn columns(&mut self, columns: &[ResultColumn]) -> Result<(), TableError> {
            self.names = columns.iter().map(|c| c.name.clone()).collect();
            let is_text =
                |c: &ResultColumn| matches!(c.kind, Some(Kind::Text | Kind::Id | Kind::Bool));
            self.texts = columns.iter().map(is_text).collect();
            Ok(())
        }
        fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), TableError> {
            for (texts, cell) in self.texts.iter_mut().zip(cells) {
                *texts |= matches!(cell, Cell::Text(_) | Cell::Id(_) | Cell::Bool(_));
            }
            let last = cells.len().saturating_sub(1);
            let cells = cells.iter().enumerate().map(|(at, cell)| match cell {
                Cell::Null => "-".to_owned(),
                // The last cell of a row is not cut here. It is cut later, to the width that remains for it.
                Cell::Text(text) if at < last => {
                    shorten_middle(&printable(text), CELL).into_owned()
                }
                Cell::Text(text) => printable(text).into_owned(),
                other => other.to_string(),
            });
            self.rows.push(cells.collect());
            Ok(())
        }
    }
    let mut found = TextRows::default();
    let outcome = ask(report, &mut found)?;
    let columns = found
        .names
        .iter()
        .zip(found.texts)
        .map(|(name, texts)| {
            let column = if texts { Column::Name } else { Column::Figure };
            let name = shorten_middle(&printable(name), CELL).into_owned();
            (name.into(), column)
        })
        .collect();
    let rows = found.rows;
    text::table(
        &Table {
            title: "",
            columns,
            rows,
        },
        style,
        out,
    )
    .map_err(io)?;
    let mut end = counted(outcome.rows, "row");
    if outcome.more {
        let most = report.max_rows.unwrap_or(outcome.rows);
        end = format!(
            "only the first {} shown; --max-rows N shows more",
            counted(most, "row")
        );
    }
    writeln!(out, "{}", style.toned(Tone::Dim, format!("({end})"))).map_err(io)
}

fn json(report: &PendingQuery, out: &mut dyn Write) -> Result<(), RowError> {
    struct JsonReport<'a> {
        report: &'a PendingQuery,
        /// The output stream. It is moved to the writer as soon as the columns are known.
        out: Option<&'a mut dyn Write>,
        rows: Option<JsonRows<&'a mut dyn Write>>,
    }
    impl Sink for JsonReport<'_> {
        fn columns(&mut self, columns: &[ResultColumn]) -> Result<(), TableError> {
            let Some(out) = self.out.take() else {
                return Ok(());
            };
            let columns: Vec<_> = columns
                .iter()
                .map(|c| json!({ "name": c.name, "type": c.kind.map(Kind::name) }))
                .collect();
            // Do not close the JSON object yet, because columns and rows are further keys of this object.
            let head = serde_json::to_string_pretty(self.report).map_err(io::Error::from)?;
            let head = head.strip_suffix("\n}").unwrap_or(&head);
            write!(out, "{head},\n  \"columns\": [")?;
            for (at, column) in columns.iter().enumerate() {
                let comma = if at > 0 { "," } else { "" };
                write!(out, "{comma}\n    {column}")?;
            }
            write!(out, "\n  ],\n  \"rows\": ")?;
            self.rows = Some(JsonRows::new(out, columns.len(), "  ")?);
            Ok(())
        }
        fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), TableError> {
            self.rows.as_mut().map_or(Ok(()), |rows| rows.row(cells))
        }
    }
    let mut found = JsonReport {
        report,
        out: Some(out),
        rows: None,
    };
    let outcome = ask(report, &mut found)?;
    let Some(rows) = found.rows else {
        return Ok(());
    };
    let out = rows.finish()?;
    let Outcome { rows, more } = outcome;
    writeln!(
        out,
        ",\n  \"row_count\": {rows},\n  \"more_rows\": {more}\n}}"
    )
    .map_err(io)
}

fn csv(report: &PendingQuery, is_terminal: bool, out: &mut dyn Write) -> Result<(), RowError> {
    struct CsvRows<'a> {
        out: Option<&'a mut dyn Write>,
        csv: Option<CsvWriter<&'a mut dyn Write>>,
        is_terminal: bool,
    }
    impl Sink for CsvRows<'_> {
        fn columns(&mut self, columns: &[ResultColumn]) -> Result<(), TableError> {
            let columns: Vec<_> = columns.iter().map(|c| c.as_column(Kind::Text)).collect();
            if let Some(out) = self.out.take() {
                self.csv = Some(CsvWriter::new(out, &columns)?);
            }
            Ok(())
        }
        fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), TableError> {
            let Some(csv) = &mut self.csv else {
                return Ok(());
            };
            if !self.is_terminal {
                return csv.row(cells);
            }
            let shown: Vec<_> = cells
                .iter()
                .map(|cell| match cell {
                    Cell::Text(text) => Some(printable(text)),
                    _ => None,
                })
                .collect();
            let pairs = cells.iter().zip(&shown);
            let cells: Vec<Cell<'_>> = pairs
                .map(|(cell, text)| text.as_deref().map_or(*cell, Cell::Text))
                .collect();
            csv.row(&cells)
        }
    }
    let mut found = CsvRows {
        out: Some(out),
        csv: None,
        is_terminal,
    };
    ask(report, &mut found)?;
    if let Some(csv) = found.csv {
        csv.finish()?;
    }
    Ok(())
}

/// Writes the rows of a query as Parquet. The first 4,096 rows determine the type of a computed column.
///
/// # Errors
/// Returns an error if the query or the stream fails.
pub fn parquet(report: &PendingQuery, out: &mut (dyn Write + Send)) -> Result<(), RowError> {
    struct ParquetRows<'a> {
        report: &'a PendingQuery,
        columns: Vec<ResultColumn>,
        /// The first rows, stored until there are enough to determine the types of the columns ([`SAMPLE`]).
        first: Vec<Vec<Held>>,
        out: Option<&'a mut (dyn Write + Send)>,
        parquet: Option<ParquetWriter<&'a mut (dyn Write + Send)>>,
    }
    impl ParquetRows<'_> {
        fn begin(&mut self) -> Result<(), TableError> {
            let Some(out) = self.out.take() else {
                return Ok(());
            };
            let of_rows = |at: usize| {
                let kinds = self
                    .first
                    .iter()
                    .filter_map(|row| row.get(at)?.cell().kind());
                // A column with integers and fractions becomes a column of fractions.
                kinds.reduce(|a, b| match (a, b) {
                    (Kind::Int, Kind::Double) => Kind::Double,
                    _ => a,
                })
            };
            let columns = self.columns.iter().enumerate();
            let columns: Vec<_> = columns
                .map(|(at, c)| c.as_column(of_rows(at).unwrap_or(Kind::Text)))
                .collect();
            let options = ParquetOptions {
                metadata: vec![
                    (
                        "heapdiff.version".to_owned(),
                        env!("CARGO_PKG_VERSION").to_owned(),
                    ),
                    (
                        "heapdiff.dump".to_owned(),
                        self.report.head.snapshot.path.clone(),
                    ),
                    ("heapdiff.sql".to_owned(), self.report.head.sql.clone()),
                ],
                created_by: concat!("heapdiff version ", env!("CARGO_PKG_VERSION")).to_owned(),
                ..ParquetOptions::default()
            };
            let mut parquet = ParquetWriter::new(out, &columns, options)?;
            for row in self.first.drain(..) {
                let cells: Vec<Cell<'_>> = row.iter().map(Held::cell).collect();
                parquet.row(&cells)?;
            }
            self.parquet = Some(parquet);
            Ok(())
        }
    }
    impl Sink for ParquetRows<'_> {
        fn columns(&mut self, columns: &[ResultColumn]) -> Result<(), TableError> {
            self.columns = columns.to_vec();
            Ok(())
        }
        fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), TableError> {
            if let Some(parquet) = &mut self.parquet {
                return parquet.row(cells);
            }
            self.first
                .push(cells.iter().map(|&cell| Held::from_cell(cell)).collect());
            if self.first.len() == SAMPLE {
                self.begin()?;
            }
            Ok(())
        }
    }
    let mut found = ParquetRows {
        report,
        columns: Vec::new(),
        first: Vec::new(),
        out: Some(out),
        parquet: None,
    };
    ask(report, &mut found)?;
    found.begin()?;
    if let Some(parquet) = found.parquet {
        parquet.finish()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use heapdiff_model::query::QueryHead;

    use super::*;
    use crate::text::tests::snapshot;

    fn head() -> QueryHead {
        QueryHead {
            schema: QueryHead::SCHEMA,
            snapshot: snapshot(),
            ..QueryHead::default()
        }
    }

    #[derive(Debug)]
    struct Rows {
        more: bool,
    }

    impl RowSource for Rows {
        fn write_to(&self, sink: &mut dyn Sink) -> Result<Outcome, RowError> {
            let column = ResultColumn {
                name: "class".to_owned(),
                kind: Some(Kind::Text),
            };
            sink.columns(&[column])?;
            sink.row(&[Cell::Text("byte[]")])?;
            Ok(Outcome {
                rows: 1,
                more: self.more,
            })
        }
    }

    #[test]
    fn rows_that_were_found_are_written_again() {
        let mut report = PendingQuery {
            head: head(),
            rows: Box::new(Rows { more: true }),
            max_rows: Some(1),
        };
        let written = |report: &PendingQuery| {
            let mut out = Vec::new();
            render(Format::Json, report, Style::plain(), false, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let first = written(&report);
        find(&mut report, 6).unwrap();
        assert_eq!(written(&report), first);
        find(&mut report, 5).unwrap();
        assert_eq!(written(&report), first.replace("byte[]", "b…e[]"));
    }

    #[test]
    fn more_rows_are_mentioned() {
        let told = |more| {
            let report = PendingQuery {
                head: head(),
                rows: Box::new(Rows { more }),
                max_rows: Some(1),
            };
            let mut out = Vec::new();
            render(Format::Text, &report, Style::plain(), false, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert!(told(true).ends_with("\n(only the first 1 row shown; --max-rows N shows more)\n"));
        assert!(
            told(false).ends_with("\n(1 row)\n")
                && !told(false).contains("--max-rows N shows more")
        );
    }
}
