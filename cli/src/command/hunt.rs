//! `heapdiff hunt`: dumps of a running JVM, and what grew between them.

use std::path::PathBuf;

use heapdiff_diff::Suspect;
use heapdiff_report::{Report, printable};
use heapdiff_units::{Size, counted};

use super::{diff, each};
use crate::capture;
use crate::failure::Result;
use crate::job::{Hunt, Output, Question, Setup};
use crate::messages;
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
        file: Some(hunted.folder.join(kept)),
        color: When::Never,
        ..setup.output.clone()
    };
    for report in &reports {
        write::report(&file, report)?;
    }
    Ok(reports)
}

/// Prints which files a hunt wrote, what to change in the next hunt, and the command that shows more.
pub(crate) fn end(setup: &Setup, hunt: &Hunt, report: &Report) {
    let Report::Diff(report) = report else {
        return;
    };
    if setup.progress.quiet {
        return;
    }
    let (diff, suspect) = (&report.data, report.suspects.first());
    if hunt.files {
        let dumps = diff
            .snapshots
            .iter()
            .map(|snapshot| PathBuf::from(&snapshot.path));
        messages::said(&written(&dumps.collect::<Vec<_>>(), setup));
    }
    if let Some(few) = suspect.and_then(|suspect| few_samples(suspect, hunt)) {
        messages::said(&few);
    }
    let next = suspect.and_then(|suspect| suspect.next.first());
    if let Some(next) = next.filter(|_| hunt.files) {
        messages::said(&format!("next: {}", printable(next)));
    }
}

/// Returns the sentence that names the files of a hunt: the first one with the folder.
fn written(dumps: &[PathBuf], setup: &Setup) -> String {
    let folder = dumps.first().and_then(|dump| dump.parent());
    let report = format!("report.{}", setup.output.format.extension());
    let others = [&report, capture::TRACE].map(|name| folder.map(|folder| folder.join(name)));
    let others = others.into_iter().flatten().filter(|path| path.is_file());
    let files = dumps.iter().cloned().chain(others).enumerate();
    let names = files.map(|(place, file)| match (place, file.file_name()) {
        (1.., Some(name)) => name.to_string_lossy().into_owned(),
        _ => file.display().to_string(),
    });
    let names: Vec<String> = names.collect();
    printable(&format!("wrote {}", names.join(", "))).into_owned()
}

/// Returns the sentence for a suspect with too few samples, with the command that gets more.
fn few_samples(suspect: &Suspect, hunt: &Hunt) -> Option<String> {
    let (samples, options) = (suspect.coverage.samples, &hunt.agent.as_ref()?.options);
    let option = |key: &str| {
        options
            .split(',')
            .find_map(|option| option.strip_prefix(key))
    };
    let given = option("interval=").map_or(Ok(DEFAULT), str::parse).ok()?;
    let grown = u64::try_from(suspect.growth.retained_bytes).ok()?;
    let interval = interval(grown);
    if samples >= ENOUGH || option("strategy=").is_some() || given.0 <= interval {
        return None;
    }
    Some(format!(
        "there is only {} of the growth in {}: too few to find the stacks that allocate; run `heapdiff hunt {} interval={}k`",
        counted(samples, "sample"),
        printable(&suspect.holder),
        printable(&hunt.target.to_string()),
        interval >> 10,
    ))
}

/// The interval without the option.
const DEFAULT: Size = Size(512 << 10);
/// Samples of a suspect that are enough to name its stacks.
const ENOUGH: u64 = 10;
/// The samples that an interval is suggested for.
const WANTED: u64 = 32;

/// Returns the sampling interval, a power of two, at which growth of `grown` bytes gets enough samples.
fn interval(grown: u64) -> u64 {
    let most = (grown / WANTED).clamp(4 << 10, 256 << 10);
    1 << most.ilog2()
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
