//! What `heapdiff query` and `heapdiff export` are asked.

use std::path::PathBuf;

use clap::Args;
use heapdiff_query::{Limits, Table};
use heapdiff_report::Format;

use super::common::{CommonArgs, ReportArgs, input};
use crate::failure::{Failure, Result};
use crate::job::{ExportJob, Setup, Task};

/// Rows that text and JSON show, where the user does not say.
const ROWS: [u64; 2] = [100, 10_000];

const QUERY_HELP: &str = "\
Tables: objects, classes, refs, roots, strings, threads, frames, samples, allocated, counted_sites;
docs/query.md has their columns, functions and examples. Ids are written 0x7f0012345678.

  heapdiff query a.hprof \"select class, objects from classes order by objects desc limit 10\"
  heapdiff query a.hprof \"select id, length from objects where class = 'byte[]' and length > 1e6\"
  heapdiff query a.hprof \"select * from refs where target_id = 0x7f0012345678\" -o refs.csv";

#[derive(Debug, Args)]
#[command(after_help = QUERY_HELP)]
pub(super) struct QueryArgs {
    /// A heap dump (HPROF), gzipped or not
    #[arg(value_parser = input())]
    dump: PathBuf,
    /// One SELECT, in SQLite's SQL
    sql: String,
    /// Rows that are given [default: 100 in text, 10000 in JSON, all in CSV and Parquet]
    #[arg(long, value_name = "N")]
    max_rows: Option<u64>,
    #[command(flatten)]
    common: CommonArgs,
}

impl QueryArgs {
    pub(super) fn task(self) -> Result<(Setup, Task)> {
        let setup = self.common.setup(std::slice::from_ref(&self.dump))?;
        let format = setup.output.format;
        if format == Format::Parquet && setup.output.file.is_none() {
            let message = "Parquet is written to a file";
            return Err(Failure::usage(message).with_hint("name it with -o FILE.parquet"));
        }
        // A mistake in the statement is told before the dump is read, which may take a while.
        heapdiff_query::check(&self.sql).map_err(|e| Failure::query(&self.dump, e))?;
        let top = setup.top.map(|top| top as u64);
        let rows = self.max_rows.or(top).or(match format {
            Format::Text => Some(ROWS[0]),
            Format::Json => Some(ROWS[1]),
            _ => None,
        });
        let limits = Limits {
            rows,
            memory: setup.analysis.max_memory,
        };
        let task = Task::Query {
            dump: self.dump,
            sql: self.sql,
            limits,
        };
        Ok((setup, task))
    }
}

const EXPORT_HELP: &str = "\
One file for each table: objects.parquet, classes.parquet, ... (docs/query.md has their columns).
Files appear whole or not at all. What is in each file's metadata: the version of heapdiff, the
dump's path, its time and JVM, and the labels.";

#[derive(Debug, Args)]
#[command(after_help = EXPORT_HELP)]
pub(super) struct ExportArgs {
    /// A heap dump (HPROF), gzipped or not
    #[arg(value_parser = input())]
    dump: PathBuf,
    /// The folder to write to; made if it does not exist
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Only these tables: objects, classes, refs, roots, strings, threads, frames, samples, allocated, counted_sites [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = table)]
    tables: Vec<Table>,
    /// Labels in the metadata of the files, such as service=shop or host=web-3; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    label: Vec<(String, String)>,
    #[command(flatten)]
    report: ReportArgs,
}

impl ExportArgs {
    pub(super) fn task(self) -> Result<(Setup, Task)> {
        let format = match self.report.format() {
            None => Format::Parquet,
            Some(format @ (Format::Parquet | Format::Csv)) => format,
            Some(other) => {
                let message = format!("tables are not exported as {}", other.name());
                return Err(Failure::usage(message).with_hint("--format parquet or --format csv"));
            }
        };
        if self.output.exists() && !self.output.is_dir() {
            let message = format!("-o {}: is not a folder", self.output.display());
            return Err(Failure::usage(message));
        }
        let mut setup = self.report.setup(None, std::slice::from_ref(&self.dump))?;
        // What is told of the export.
        setup.output.format = Format::Text;
        let tables = match self.tables.is_empty() {
            true => Table::ALL.to_vec(),
            false => {
                let mut tables = Table::ALL.to_vec();
                tables.retain(|table| self.tables.contains(table));
                tables
            }
        };
        let job = ExportJob {
            folder: self.output,
            tables,
            labels: self.label,
            format,
        };
        let task = Task::Export {
            dump: self.dump,
            job,
        };
        Ok((setup, task))
    }
}

fn table(name: &str) -> Result<Table, String> {
    Table::by_name(name.trim()).ok_or_else(|| {
        let names: Vec<&str> = Table::ALL.iter().map(|t| t.name()).collect();
        format!(
            "there is no table `{name}`; the tables are {}",
            names.join(", ")
        )
    })
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.to_owned()))
        }
        _ => Err(format!("`{text}` is not KEY=VALUE")),
    }
}
