//! Reads reports that were saved as JSON.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use heapdiff_diff::{HeapReport, Report};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::failure::{Failure, Result, system_message};

/// Maximum number of bytes of a report. heapdiff writes no report of this size.
const MOST: u64 = 1 << 30;
const GROWTH: &str = "heapdiff.diff/1";
const HEAP: &str = "heapdiff.heap/1";

/// A saved report.
pub(crate) enum ReportFile {
    /// A report of a comparison.
    Growth(Box<Report>),
    /// A report of one dump.
    Heap(Box<HeapReport>),
}

/// The JSON key with which every report starts.
#[derive(Deserialize)]
struct Any {
    schema: String,
}

/// True if a file starts like JSON. False for a file that cannot be read, and for a pipe, because reading from
/// a pipe consumes its content.
pub(crate) fn is_json(path: &Path) -> bool {
    let mut head = Vec::new();
    let is_file = path.metadata().is_ok_and(|meta| meta.is_file());
    let mut read = || File::open(path).and_then(|f| f.take(64).read_to_end(&mut head));
    is_file && read().is_ok() && head.trim_ascii_start().first() == Some(&b'{')
}

/// Reads a report.
pub(crate) fn open(path: &Path) -> Result<ReportFile> {
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MOST).read_to_end(&mut text))
        .map_err(|e| report_failure(path, &system_message(&e)))?;
    let Any { schema } = read(path, &text, GROWTH)?;
    match &*schema {
        GROWTH => read(path, &text, GROWTH).map(ReportFile::Growth),
        HEAP => read(path, &text, HEAP).map(ReportFile::Heap),
        _ => {
            let why = format!(
                "its schema is {schema:?}, but a report about heap dumps is needed ({GROWTH})"
            );
            Err(report_failure(path, &why))
        }
    }
}

fn read<T: DeserializeOwned>(path: &Path, text: &[u8], schema: &str) -> Result<T> {
    serde_json::from_slice(text).map_err(|e| {
        report_failure(path, &format!("not a valid report ({schema}): {e}"))
            .with_hint("create a report with `heapdiff BEFORE AFTER -o report.json`")
    })
}

fn report_failure(path: &Path, why: &str) -> Failure {
    Failure::bad_input(format!(
        "{}: {}",
        path.display(),
        heapdiff_report::printable(why)
    ))
}
