//! `heapdiff hunt`: dumps of a running JVM, and what grew between them.

use heapdiff_report::{DiffReport, Report};

use super::diff;
use crate::capture;
use crate::failure::{Failure, Result};
use crate::job::{Hunt, Output, Question, Setup};
use crate::style::When;
use crate::write;

/// Takes the dumps, compares them, and keeps the report with them besides showing it, unless there are to be no files.
pub(crate) fn run(setup: &Setup, hunt: &Hunt, question: &Question) -> Result<Report> {
    if !hunt.files {
        return without_files(setup, hunt, question);
    }
    let kept = format!("report.{}", setup.output.format.extension());
    let hunted = capture::hunt(hunt, &[&kept], setup.progress)?;
    let trace = hunted.trace.as_deref();
    let mut reports: Vec<DiffReport> = diff::run(setup, &hunted.dumps, trace, question)?;
    let report = reports
        .pop()
        .ok_or_else(|| Failure::usage("there is no output"))?;
    let report = Report::Diff(Box::new(report));
    let file = Output {
        format: setup.output.format,
        file: Some(hunted.folder.join(kept)),
        color: When::Never,
    };
    write::report(&file, &report)?;
    Ok(report)
}

/// Reduces the first dump to its summary before the second is taken.
fn without_files(setup: &Setup, hunt: &Hunt, question: &Question) -> Result<Report> {
    let report = capture::hunt_without_files(
        hunt,
        setup.progress,
        |dump, name| diff::summary_of(setup, dump, name),
        |before, dump, name| diff::with_earlier(setup, before, (dump, name), question),
    )?;
    Ok(Report::Diff(Box::new(report)))
}
