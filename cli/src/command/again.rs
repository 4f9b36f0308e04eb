//! `heapdiff REPORT.json`: a report that was written as JSON, in another format, and through gates.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use heapdiff_diff::{HeapReport, Report as Growth};
use heapdiff_report::Report;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::diff::{self, Found};
use super::heap;
use crate::failure::{Exit, Failure, Result, plain};
use crate::job::{Question, Setup};

/// The most bytes of a report; this program writes none as large.
const MOST: u64 = 1 << 30;
const GROWTH: &str = "heapdiff.diff/1";
const HEAP: &str = "heapdiff.heap/1";

/// Whether a file begins as JSON does. One that is no file (a pipe would be read), or cannot be read, does not.
pub(crate) fn is_json(path: &Path) -> bool {
    let mut head = Vec::new();
    let is_file = path.metadata().is_ok_and(|meta| meta.is_file());
    let mut read = || File::open(path).and_then(|f| f.take(64).read_to_end(&mut head));
    is_file && read().is_ok() && head.trim_ascii_start().first() == Some(&b'{')
}

/// What is asked for of a report.
pub(super) fn run(setup: &Setup, path: &Path, question: &Question) -> Result<Vec<Report>> {
    /// What every report says first.
    #[derive(Deserialize)]
    struct Any {
        schema: String,
    }
    let text = text(path)?;
    let any: Any = read(path, &text, GROWTH)?;
    match &*any.schema {
        HEAP => {
            if question.gates.any() || question.growth.is_some() || question.ignore.is_some() {
                let message = format!("{}: gates and --ignore are about growth", path.display());
                return Err(Failure::usage(message).with_hint("it is the report of one dump"));
            }
            let heap: HeapReport = read(path, &text, HEAP)?;
            let reports = heap::shaped(setup, heap, (false, None), question);
            Ok(reports
                .into_iter()
                .map(|report| Report::Heap(Box::new(report)))
                .collect())
        }
        _ => {
            let found = Found {
                report: growth(path, &text)?,
                allocated: None,
            };
            let reports = diff::shaped(setup, found, None, question)?;
            Ok(reports
                .into_iter()
                .map(|report| Report::Diff(Box::new(report)))
                .collect())
        }
    }
}

/// The content of a file.
pub(super) fn text(path: &Path) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MOST).read_to_end(&mut text))
        .map_err(|e| wrong(path, plain(&e)))?;
    Ok(text)
}

/// A comparison that was written as JSON.
pub(super) fn growth(path: &Path, text: &[u8]) -> Result<Growth> {
    let report: Growth = read(path, text, GROWTH)?;
    match report.schema == GROWTH {
        true => Ok(report),
        false => Err(wrong(
            path,
            format!("not a {GROWTH} report: its schema is {:?}", report.schema),
        )),
    }
}

fn read<T: DeserializeOwned>(path: &Path, text: &[u8], schema: &str) -> Result<T> {
    serde_json::from_slice(text).map_err(|e| {
        wrong(path, format!("not a {schema} report: {e}"))
            .with_hint("`heapdiff BEFORE AFTER -o report.json` writes one")
    })
}

fn wrong(path: &Path, why: String) -> Failure {
    let why = heapdiff_report::printable(&why);
    Failure {
        exit: Exit::Input,
        message: format!("{}: {why}", path.display()),
        hint: None,
    }
}
