//! Reads the name mappings of `--mapping`, once per run. Reports a mapping that matches nothing.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use heapdiff_diff::samples::OriginalNames;
use heapdiff_mapping::Mapping;
use heapdiff_sites::Originals;
use hprof::NameMapping;

use crate::failure::{Failure, Result, system_message};

/// Maximum number of bytes of a mapping file.
const MOST: u64 = 2 << 30;

/// Reads all files into one mapping. Each file may contain the names of a different part of the program. Returns `None`
/// if there are no files.
pub(crate) fn read(files: &[PathBuf]) -> Result<Option<Arc<dyn NameMapping>>> {
    if files.is_empty() {
        return Ok(None);
    }
    let texts: Vec<Vec<u8>> = files.iter().map(|f| text(f)).collect::<Result<_>>()?;
    let mapping = Mapping::new(texts).map_err(|(at, error)| {
        let file = files.get(at).map_or(Path::new(""), |file| file);
        input(file, &format!("not a ProGuard or R8 mapping: {error}")).with_hint(
            "create a mapping file with ProGuard's -printmapping or R8's --pg-map-output",
        )
    })?;
    Ok(Some(Arc::new(mapping)))
}

fn text(file: &Path) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let read = File::open(file).and_then(|f| f.take(MOST + 1).read_to_end(&mut text));
    read.map_err(|e| input(file, &system_message(&e)))?;
    if text.len() as u64 > MOST {
        Err(input(
            file,
            "not a ProGuard or R8 mapping: the file is larger than 2 GiB",
        ))
    } else {
        Ok(text)
    }
}

fn input(file: &Path, why: &str) -> Failure {
    Failure::bad_input(format!("{}: {why}", file.display()))
}

/// The failure if `--mapping` is used with a saved report, because the names in a saved report cannot be changed any
/// more.
pub(crate) fn mapping_of_report_failure(report: &Path) -> Failure {
    let message = format!(
        "{}: --mapping does not work with a saved report",
        report.display()
    );
    Failure::usage(message).with_hint("use --mapping when you write the report: heapdiff BEFORE AFTER --mapping FILE -o report.json")
}

/// Converts the mapping to the interface through which traces, recordings and samples read original names.
pub(crate) fn originals(mapping: Option<&Arc<dyn NameMapping>>) -> Option<Arc<dyn Originals>> {
    let mapping = Arc::clone(mapping?);
    Some(Arc::new(OriginalNames(mapping)))
}
