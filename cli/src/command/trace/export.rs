//! `heapdiff trace export`: writes the tables or profiles for other programs.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use heapdiff_tables::{Cell, Column, CsvWriter, Kind, ParquetOptions, ParquetWriter, RowWriter};
use heapdiff_trace::{ColumnType, Table, Trace, TraceError, ValueRef};
use heapdiff_units::{Span, counted};

use super::read::{open_named, select_run};
use super::slices;
use crate::args::NamesArgs;
use crate::failure::{Exit, Failure, Result, system_message};
use crate::write::{failed, replace};
use crate::{interrupt, messages, overwrite};

const HELP: &str = "\
Examples:
  heapdiff trace export app.db --format csv -o tables                 # all tables as CSV files
  heapdiff trace export app.db --format pprof --slice 5m -o profiles  # one profile per 5 minutes";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Export {
    /// Trace that the agent wrote (agent option trace=FILE)
    trace: PathBuf,
    /// File format: csv, json (JSON Lines) or parquet for one file per table; pprof for one profile
    /// per time slice
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: ExportFormat,
    /// Folder to write to, created if missing; with --table, the file to write
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Export only this table, to a file or to standard output
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// Length of a time slice, for pprof [default: 1m]
    #[arg(long, value_name = "TIME")]
    slice: Option<Span>,
    /// Run to export, for pprof [default: the last]
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    names: NamesArgs,
    /// Do not print what was written
    #[arg(short, long)]
    quiet: bool,
}

/// The format of an export.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ExportFormat {
    Csv,
    Json,
    Parquet,
    Pprof,
}

impl ExportFormat {
    const fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Json => "jsonl",
            Self::Parquet => "parquet",
            Self::Pprof => "pb.gz",
        }
    }
}

impl Export {
    /// Writes the export and prints which files were written.
    pub(crate) fn run(&self) -> Result<Exit> {
        let pprof = self.format == ExportFormat::Pprof;
        let wrong = match (&self.output, &self.table) {
            (_, Some(_)) if pprof => {
                "--table does not work with --format pprof: profiles need all tables"
            }
            (None, None) => "add -o PATH, the folder to write to",
            _ if self.slice.is_some() && !pprof => "--slice needs --format pprof",
            _ if self.run.is_some() && !pprof => {
                "--run needs --format pprof: tables contain all runs"
            }
            (None, Some(_)) if self.format == ExportFormat::Parquet => {
                "add -o FILE, because Parquet cannot be written to standard output"
            }
            _ => "",
        };
        if !wrong.is_empty() {
            return Err(Failure::usage(wrong));
        }
        let mapping = self.names.read()?;
        interrupt::handle();
        let trace = open_named(mapping.as_ref(), &self.trace)?;
        let said = match (&self.table, &self.output) {
            (Some(name), output) => one(&trace, name, self.format, output.as_deref())?,
            (None, Some(folder)) => {
                make(folder)?;
                match self.format {
                    ExportFormat::Pprof => {
                        let (_, run) = select_run(&trace, self.run.as_deref())?;
                        let written = slices::write(&trace, &run, self.slice, folder)?;
                        format!(
                            "wrote {} to {}",
                            counted(written, "profile"),
                            folder.display()
                        )
                    }
                    format => tables(&trace, format, folder)?,
                }
            }
            (None, None) => return Err(Failure::usage("add -o PATH, the folder to write to")),
        };
        messages::mapping_of(mapping.as_ref(), self.quiet);
        if !self.quiet {
            messages::print_done(&said);
        }
        Ok(Exit::Done)
    }
}

fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)
        .map_err(|e| Failure::usage(format!("-o {}: {}", folder.display(), system_message(&e))))
}

fn tables(trace: &Trace, format: ExportFormat, folder: &Path) -> Result<String> {
    let tables = trace.tables().map_err(|e| Failure::trace(&e))?;
    let mut rows = 0;
    let place = |table: &Table| folder.join(format!("{}.{}", table.name, format.extension()));
    let mut places = tables.iter().map(place);
    places.try_for_each(|path| overwrite::check("-o", &path))?;
    for table in &tables {
        rows += to_file(trace, table, format, &place(table))?;
    }
    let tables = counted(tables.len() as u64, "table");
    Ok(format!(
        "wrote {tables} with {rows} to {folder}",
        rows = counted(rows, "row"),
        folder = folder.display()
    ))
}

fn one(trace: &Trace, name: &str, format: ExportFormat, output: Option<&Path>) -> Result<String> {
    let tables = trace.tables().map_err(|e| Failure::trace(&e))?;
    let Some(table) = tables.iter().find(|t| t.name == name) else {
        let names: Vec<&str> = tables.iter().map(|t| &*t.name).collect();
        let message = format!("--table {name}: the trace has no such table");
        return Err(Failure::usage(message)
            .with_hint(format!("the trace has the tables {}", names.join(", "))));
    };
    let rows = match output {
        Some(path) => to_file(trace, table, format, path)?,
        None => {
            let mut out = io::BufWriter::new(io::stdout().lock());
            let done = write(trace, table, format, &mut out);
            let done = done.and_then(|rows| out.flush().map(|()| rows).map_err(Fault::Output));
            return match done {
                Err(Fault::Output(e)) if e.kind() == io::ErrorKind::BrokenPipe => Ok(String::new()),
                done => done
                    .map(|_| String::new())
                    .map_err(|f| f.failure("standard output")),
            };
        }
    };
    Ok(format!(
        "wrote {} of the table {name}",
        counted(rows, "row")
    ))
}

/// An error of the trace or of the writer for the exported files.
enum Fault {
    Trace(TraceError),
    Output(io::Error),
    Row(String),
}

impl Fault {
    fn failure(&self, what: &str) -> Failure {
        match self {
            Self::Trace(e) => Failure::trace(e),
            Self::Output(e) => failed(what, e),
            Self::Row(why) => Failure::usage(format!("cannot write {what}: {why}")),
        }
    }
}

impl From<heapdiff_tables::Error> for Fault {
    fn from(error: heapdiff_tables::Error) -> Self {
        match error {
            heapdiff_tables::Error::Io(e) => Self::Output(e),
            other => Self::Row(other.to_string()),
        }
    }
}

fn to_file(trace: &Trace, table: &Table, format: ExportFormat, path: &Path) -> Result<u64> {
    let mut written = Ok(0);
    let done = replace(path, |out| {
        written = write(trace, table, format, out);
        match &written {
            Ok(_) => Ok(()),
            Err(Fault::Output(e)) => Err(e.kind().into()),
            Err(_) => Err(io::ErrorKind::Other.into()),
        }
    });
    let name = path.display().to_string();
    let rows = written.map_err(|fault| fault.failure(&name))?;
    done.map_err(|e| failed(&name, &e))?;
    Ok(rows)
}

fn write(
    trace: &Trace,
    table: &Table,
    format: ExportFormat,
    out: &mut dyn Write,
) -> Result<u64, Fault> {
    let columns: Vec<Column> = table
        .columns
        .iter()
        .map(|c| {
            let kind = match c.kind {
                ColumnType::Integer => Kind::Int,
                ColumnType::Real => Kind::Double,
                ColumnType::Text => Kind::Text,
            };
            Column::new(c.name.clone(), kind)
        })
        .collect();
    match format {
        ExportFormat::Csv => {
            let mut writer = CsvWriter::new(out, &columns)?;
            let rows = rows(trace, table, &mut writer)?;
            writer.finish()?;
            Ok(rows)
        }
        ExportFormat::Json => rows(
            trace,
            table,
            &mut JsonLines {
                out,
                columns: &columns,
            },
        ),
        ExportFormat::Parquet => {
            let options = ParquetOptions {
                metadata: vec![("heapdiff.table".to_owned(), table.name.clone())],
                created_by: format!("heapdiff version {}", env!("CARGO_PKG_VERSION")),
                ..ParquetOptions::default()
            };
            // `ParquetWriter` needs an output that can be sent to another thread. A `Vec` has this property.
            let mut writer = ParquetWriter::new(Vec::new(), &columns, options)?;
            let rows = rows(trace, table, &mut writer)?;
            out.write_all(&writer.finish()?).map_err(Fault::Output)?;
            Ok(rows)
        }
        ExportFormat::Pprof => Err(Fault::Row(
            "a pprof profile cannot contain a single table".to_owned(),
        )),
    }
}

/// Passes all rows of a table to a writer. If a value does not have the type of its column, the cell becomes empty.
fn rows(trace: &Trace, table: &Table, writer: &mut dyn RowWriter) -> Result<u64, Fault> {
    let mut count = 0;
    let mut fault = None;
    let read = trace.each_row(table, |values| {
        let texts: Vec<_> = values
            .iter()
            .map(|value| match value {
                ValueRef::Text(bytes) => String::from_utf8_lossy(bytes),
                _ => "".into(),
            })
            .collect();
        let cells = values.iter().zip(&table.columns).zip(&texts);
        let cells: Vec<Cell<'_>> = cells
            .map(|((value, column), text)| match (column.kind, value) {
                (ColumnType::Integer, ValueRef::Integer(n)) => Cell::Int(*n),
                (ColumnType::Real, ValueRef::Real(x)) => Cell::Double(*x),
                (ColumnType::Real, ValueRef::Integer(n)) => Cell::Double(*n as f64),
                (ColumnType::Text, ValueRef::Text(_)) => Cell::Text(text),
                _ => Cell::Null,
            })
            .collect();
        match writer.row(&cells) {
            Ok(()) => count += 1,
            Err(e) => fault = Some(e),
        }
        fault.is_none()
    });
    if let Some(fault) = fault {
        return Err(fault.into());
    }
    read.map_err(Fault::Trace)?;
    Ok(count)
}

/// A writer of JSON Lines: one object on a line for each row.
struct JsonLines<'a> {
    out: &'a mut dyn Write,
    columns: &'a [Column],
}

impl RowWriter for JsonLines<'_> {
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), heapdiff_tables::Error> {
        for (i, (cell, column)) in cells.iter().zip(self.columns).enumerate() {
            self.out.write_all(if i == 0 { b"{" } else { b"," })?;
            serde_json::to_writer(&mut *self.out, &column.name).map_err(io::Error::from)?;
            self.out.write_all(b":")?;
            let out = &mut *self.out;
            match *cell {
                Cell::Bool(value) => serde_json::to_writer(out, &value),
                Cell::Int(value) => serde_json::to_writer(out, &value),
                Cell::Id(value) => serde_json::to_writer(out, &format!("{value:#x}")),
                Cell::Double(value) => serde_json::to_writer(out, &value),
                Cell::Text(value) => serde_json::to_writer(out, value),
                Cell::Null => serde_json::to_writer(out, &()),
            }
            .map_err(io::Error::from)?;
        }
        self.out.write_all(b"}\n")?;
        Ok(())
    }
}
