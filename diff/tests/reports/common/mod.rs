//! Reports on dumps, and heaps of applications, for the tests.

pub(crate) mod app;
mod redacted;

use std::path::Path;

use heapdiff_diff::{Comparison, Filter, HeapOptions, HeapReport, OneDump, Report, Summary};
use hprof::{Options, Silent, Snapshot, Source};
use testdata::jvm::{DumpOptions, Target};

/// Compares dumps, oldest first.
pub(crate) fn report(dumps: impl IntoIterator<Item = Source>) -> Report {
    filtered(dumps, &|_| true)
}

/// Compares dump files like [`report`].
pub(crate) fn of_files(dumps: &[&Path]) -> Report {
    report(dumps.iter().map(|path| Source::open(path).unwrap()))
}

/// Compares two dumps of a program that is ready. Between the dumps, the program runs its second phase.
pub(crate) fn of_target(mut target: Target, folder: &Path) -> Report {
    let [before, after] = ["before", "after"].map(|n| folder.join(format!("{n}.hprof")));
    target.dump(&before, DumpOptions::default()).unwrap();
    target.advance(2).unwrap();
    target.dump(&after, DumpOptions::default()).unwrap();
    of_files(&[&before, &after])
}

/// Compares dumps with a filter. Also redacts the dumps, and checks that the comparison of the redacted dumps gives the
/// same report.
pub(crate) fn filtered(
    dumps: impl IntoIterator<Item = Source>,
    classes: &dyn Fn(&[&str]) -> bool,
) -> Report {
    let mut named = Vec::new();
    let mut redacted = Vec::new();
    for dump in dumps {
        let name = dump.path().display().to_string();
        redacted.push((redacted::of(&dump), name.clone()));
        named.push((dump, name));
    }
    let report = compared(named, classes);
    redacted::assert_same(&report, &compared(redacted, classes));
    report
}

fn compared(dumps: Vec<(Source, String)>, classes: &dyn Fn(&[&str]) -> bool) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let (mut summaries, mut last) = (Vec::new(), None);
    let mut files = Vec::new();
    for (source, name) in dumps {
        drop(last.take());
        let mut options = Options::default();
        options.holders = true;
        let snapshot = Snapshot::of(source, &options, &Silent).unwrap();
        let summary = Summary::new(&snapshot, name.clone()).unwrap();
        // If a summary has invalid figures, [`Summary::to_file`] returns `None`.
        if let Some(bytes) = summary.to_file(&snapshot) {
            let file = folder.path().join(files.len().to_string());
            std::fs::write(&file, bytes).unwrap();
            files.push(Summary::from_file(&file, &options, name).unwrap());
        }
        summaries.push(summary);
        last = Some(snapshot);
    }
    let filter = Filter {
        recording: None,
        classes,
        suspects: 10,
    };
    let last = last.unwrap();
    let report = Comparison::new(&summaries, &last).unwrap().report(&filter);
    if files.len() == summaries.len() {
        let of_files = Comparison::from_summaries(&files).unwrap().report(&filter);
        assert_same_without_dump(&report, of_files);
    }
    report
}

/// Checks that a report on summaries is the same as the report on the dumps, except for the parts that it lists as left
/// out.
fn assert_same_without_dump(report: &Report, mut of_files: Report) {
    let mut report = report.clone();
    let left_out = std::mem::take(&mut of_files.left_out);
    assert_eq!(left_out.is_empty(), of_files.suspects.is_empty());
    let are_threads_left_out = left_out.iter().any(|part| part.contains("threads"));
    let are_paths_left_out = left_out.iter().any(|part| part.contains("other paths"));
    for suspect in report.suspects.iter_mut().chain(&mut of_files.suspects) {
        suspect.next.clear();
        suspect.work = None;
        suspect.left_out.clear();
        if are_paths_left_out {
            suspect.holder_id = None;
        }
        if are_threads_left_out {
            suspect.reasons.retain(|reason| !reason.contains("thread"));
            let end = suspect.root.find(" \"").unwrap_or(suspect.root.len());
            suspect.root.truncate(end);
            suspect.headline.clear();
        }
    }
    assert_eq!(format!("{report:#?}"), format!("{of_files:#?}"));
}

/// Returns the report on one dump.
pub(crate) fn alone(source: Source) -> HeapReport {
    let mut options = Options::default();
    options.holders = true;
    let snapshot = Snapshot::of(source, &options, &Silent).unwrap();
    let summary = Summary::new(&snapshot, "a.hprof".to_owned()).unwrap();
    let options = HeapOptions { waste: true };
    let one = OneDump::analyze(&summary, &snapshot, &Filter::default(), options, &Silent);
    one.unwrap().report
}
