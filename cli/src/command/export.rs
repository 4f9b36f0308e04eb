//! `heapdiff export`: a dump's tables as files.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use heapdiff_model::export::{ExportReport, ExportedFile};
use heapdiff_model::snapshot::SnapshotInfo;
use heapdiff_query::{Heap, Table, rows_of};
use heapdiff_report::Format;
use heapdiff_tables::{CsvWriter, ParquetOptions, ParquetWriter};
use hprof::Progress;

use super::dump_info;
use super::open;
use crate::failure::{Exit, Failure, Result, plain};
use crate::job::{ExportJob, Setup};
use crate::overwrite;
use crate::write;

pub(crate) fn run(setup: &Setup, dump: &Path, job: &ExportJob) -> Result<ExportReport> {
    let place = |table: Table| {
        let name = format!("{}.{}", table.name(), job.format.extension());
        job.folder.join(name)
    };
    let mut places = job.tables.iter().map(|&table| place(table));
    places.try_for_each(|path| overwrite::check(&path))?;
    fs::create_dir_all(&job.folder).map_err(|e| failed(&job.folder, &e))?;
    let (opened, meter) = open(setup, dump)?;
    meter.phase("writing tables", 0);
    let heap = Heap::new(Arc::clone(&opened.snapshot));
    let mut info = dump_info::of(heap.snapshot(), heap.own());
    if setup.strict && info.partial {
        // The warnings are reported again later, but no file may have been written by then.
        return Ok(ExportReport {
            snapshot: info,
            files: Vec::new(),
        });
    }
    let heap = Arc::new(heap);
    let options = ParquetOptions {
        metadata: metadata(&info, &job.labels),
        created_by: concat!("heapdiff version ", env!("CARGO_PKG_VERSION")).to_owned(),
        ..ParquetOptions::default()
    };
    let mut files = Vec::new();
    for &table in &job.tables {
        let path = place(table);
        let mut rows = 0;
        let mut failure = None;
        let written = write::replace(&path, |out| {
            let done = match job.format {
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
        // A table that fails does not keep the others from being written.
        if let Some(heapdiff_query::Error::Samples(_)) = failure {
            continue;
        }
        if let Some(error) = failure {
            return Err(match error {
                heapdiff_query::Error::Output(heapdiff_tables::Error::Io(e)) => failed(&path, &e),
                other => Failure::query(dump, other),
            });
        }
        written.map_err(|e| failed(&path, &e))?;
        files.push(ExportedFile {
            table: table.name(),
            rows,
            bytes: File::open(&path)
                .and_then(|f| f.metadata())
                .map_or(0, |m| m.len()),
            path: path.display().to_string(),
        });
    }
    Ok(ExportReport {
        snapshot: info,
        files,
    })
}

/// The metadata of each file.
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

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure {
        exit: Exit::Usage,
        message: format!("cannot write {}: {}", path.display(), plain(error)),
        hint: None,
    }
}
