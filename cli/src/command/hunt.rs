//! `heapdiff hunt`: dumps of a running JVM, and what grew between them.

use heapdiff_report::Report;

use super::{diff, each};
use crate::capture;
use crate::failure::Result;
use crate::job::{Hunt, Output, Question, Setup};
use crate::style::When;
use crate::write;

/// Takes the dumps, compares them, and keeps the report with them besides showing it, unless there are to be no files.
pub(crate) fn run(setup: &Setup, hunt: &Hunt, question: &Question) -> Result<Vec<Report>> {
    if !hunt.files {
        return without_files(setup, hunt, question);
    }
    let kept = format!("report.{}", setup.output.format.extension());
    let hunted = capture::hunt(hunt, &[&kept], setup.progress)?;
    let trace = hunted.trace.as_deref();
    let reports = each(
        diff::run(setup, &hunted.dumps, trace, question)?,
        Report::Diff,
    );
    let file = Output {
        format: setup.output.format,
        file: Some(hunted.folder.join(kept)),
        color: When::Never,
    };
    for report in &reports {
        write::report(&file, report)?;
    }
    Ok(reports)
}

/// Reduces the first dump to its summary before the second is taken.
fn without_files(setup: &Setup, hunt: &Hunt, question: &Question) -> Result<Vec<Report>> {
    let reports = capture::hunt_without_files(
        hunt,
        setup.progress,
        |dump, name| diff::summary_of(setup, dump, name),
        |before, dump, name| diff::with_earlier(setup, before, (dump, name), question),
    )?;
    Ok(each(reports, Report::Diff))
}
