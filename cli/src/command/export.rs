//! `heapdiff export`: writes the tables of a dump to files.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use heapdiff_model::export::{ExportReport, ExportedFile};
use heapdiff_model::snapshot::SnapshotInfo;
use heapdiff_query::{Heap, Table, rows_of};
use heapdiff_report::{Format, Report};
use heapdiff_tables::{CsvWriter, ParquetOptions, ParquetWriter};
use hprof::Progress;

use super::dump_info;
use super::opened::open;
use crate::args::labels::label;
use crate::args::{ReportArgs, input, listing};
use crate::failure::{Failure, Result};
use crate::job::{Job, Setup, Task};
use crate::overwrite;
use crate::write::{failed, replace};

const HELP: &str = "\
Examples:
  # all tables as Parquet files
  heapdiff export app.hprof -o tables
  # two tables as CSV
  heapdiff export app.hprof -o tables --tables objects,refs --format csv

Writes objects.parquet, classes.parquet, ... (docs/query.md has the columns). Each file appears only
when it is complete. The metadata of each file contains the version of heapdiff, the path, time and
JVM of the dump, and the labels.";

#[derive(Debug, Args)]
#[command(after_help = HELP, mut_arg("format", listing(Format::has_only_rows)))]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    export: Export,
    #[command(flatten)]
    report: ReportArgs,
}

#[derive(Debug, Args)]
struct Export {
    /// Heap dump (HPROF), gzipped or not
    #[arg(value_parser = input())]
    dump: PathBuf,
    /// Folder to write to; created if missing
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Export only these tables: objects, classes, refs, roots, strings, threads, frames, samples,
    /// allocated, counted_sites [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = table)]
    tables: Vec<Table>,
    /// Label for the metadata of the files, such as service=shop or host=web-3; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    label: Vec<(String, String)>,
    // The format of the exported files. It is not the format of the report about these files, which is text.
    #[arg(skip)]
    format: Format,
}

impl ExportArgs {
    pub(crate) fn job(self) -> Result<Job> {
        let mut export = self.export;
        export.format = match self.report.format {
            None => Format::Parquet,
            Some(format @ (Format::Parquet | Format::Csv)) => format,
            Some(other) => {
                let message = format!("`heapdiff export` cannot write the format {}", other.name());
                return Err(
                    Failure::usage(message).with_hint("use --format parquet or --format csv")
                );
            }
        };
        if export.output.exists() && !export.output.is_dir() {
            let message = format!("-o {}: this is not a folder", export.output.display());
            return Err(Failure::usage(message));
        }
        let mut setup = self.report.setup(None)?;
        setup.output.format = Format::Text;
        Job::new(setup, export)
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

impl Task for Export {
    fn run(&self, setup: &Setup) -> Result<Vec<Report>> {
        let place = |table: Table| {
            let name = format!("{}.{}", table.name(), self.format.extension());
            self.output.join(name)
        };
        let is_chosen = |table: &Table| self.tables.is_empty() || self.tables.contains(table);
        let tables: Vec<Table> = Table::ALL.into_iter().filter(is_chosen).collect();
        let mut places = tables.iter().map(|&table| place(table));
        places.try_for_each(|path| overwrite::check("-o", &path))?;
        fs::create_dir_all(&self.output).map_err(|e| failed(self.output.display(), &e))?;
        let (opened, meter) = open(setup, &self.dump)?;
        meter.phase("writing tables", 0);
        let report = |snapshot, files| vec![Report::Export(ExportReport { snapshot, files })];
        let heap = Heap::new(Arc::clone(&opened.snapshot));
        let mut info = dump_info::of(heap.snapshot(), heap.own());
        if setup.strict && info.partial {
            // With `--strict`, a damaged dump is not exported at all. The caller prints the warnings about the damage.
            return Ok(report(info, Vec::new()));
        }
        let heap = Arc::new(heap);
        let options = ParquetOptions {
            metadata: metadata(&info, &self.label),
            created_by: concat!("heapdiff version ", env!("CARGO_PKG_VERSION")).to_owned(),
            ..ParquetOptions::default()
        };
        let mut files = Vec::new();
        for table in tables {
            let path = place(table);
            let mut rows = 0;
            let mut failure = None;
            let written = replace(&path, |out| {
                let done = match self.format {
                    Format::Csv => csv(&heap, table, out),
                    _ => parquet(&heap, table, options.clone(), out),
                };
                done.map(|count| rows = count).map_err(|e| {
                    failure = Some(e);
                    io::Error::other("the table could not be written")
                })
            });
            if table == Table::Samples {
                info.warnings
                    .extend(heap.doubt_of_samples().map(str::to_owned));
            }
            // If the samples of one table cannot be read, write the other tables nevertheless.
            if let Some(heapdiff_query::Error::Samples(_)) = failure {
                continue;
            }
            if let Some(error) = failure {
                return Err(match error {
                    heapdiff_query::Error::Output(heapdiff_tables::Error::Io(e)) => {
                        failed(path.display(), &e)
                    }
                    other => Failure::query(&self.dump, other),
                });
            }
            written.map_err(|e| failed(path.display(), &e))?;
            files.push(ExportedFile {
                table: table.name(),
                rows,
                bytes: File::open(&path)
                    .and_then(|f| f.metadata())
                    .map_or(0, |m| m.len()),
                path: path.display().to_string(),
            });
        }
        Ok(report(info, files))
    }
}

/// Returns the metadata of each exported file.
fn metadata(info: &SnapshotInfo, labels: &[(String, String)]) -> Vec<(String, String)> {
    let own = [
        ("heapdiff.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("heapdiff.dump", info.path.clone()),
        ("heapdiff.taken_ms", info.taken_ms.to_string()),
        ("heapdiff.jvm", info.jvm.clone().unwrap_or_default()),
        ("heapdiff.partial", info.partial.to_string()),
    ];
    let own = own.into_iter().map(|(key, value)| (key.to_owned(), value));
    own.chain(labels.iter().cloned()).collect()
}

fn parquet(
    heap: &Arc<Heap>,
    table: Table,
    options: ParquetOptions,
    out: &mut (dyn Write + Send),
) -> heapdiff_query::Result<u64> {
    let mut writer = ParquetWriter::new(out, &table.columns(), options)?;
    let export = rows_of(heap, table, &mut writer)?;
    writer.finish()?;
    Ok(export.rows)
}

fn csv(
    heap: &Arc<Heap>,
    table: Table,
    out: &mut (dyn Write + Send),
) -> heapdiff_query::Result<u64> {
    let mut writer = CsvWriter::new(BufWriter::new(out), &table.columns())?;
    let export = rows_of(heap, table, &mut writer)?;
    writer.finish()?;
    Ok(export.rows)
}
