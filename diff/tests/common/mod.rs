//! Reports on dumps, and heaps of applications, for the tests.

#[allow(dead_code, reason = "not every test builds heaps with it")]
pub(crate) mod app;
mod redacted;

use std::path::Path;

use heapdiff_diff::{Comparison, Filter, HeapOptions, HeapReport, OneDump, Report, Summary};
use hprof::{Options, Silent, Snapshot, Source};

/// Compares dumps, oldest first.
pub(crate) fn report(dumps: impl IntoIterator<Item = Source>) -> Report {
    filtered(dumps, &|_| true)
}

/// Compares dump files like [`report`].
#[allow(dead_code, reason = "not every test has files")]
pub(crate) fn of_files(dumps: &[&Path]) -> Report {
    report(dumps.iter().map(|path| Source::open(path).unwrap()))
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
    let (mut summaries, mut last) = (Vec::new(), None);
    for (source, name) in dumps {
        drop(last.take());
        let mut options = Options::default();
        options.holders = true;
        let snapshot = Snapshot::of(source, &options, &Silent).unwrap();
        summaries.push(Summary::new(&snapshot, name).unwrap());
        last = Some(snapshot);
    }
    let filter = Filter {
        recording: None,
        classes,
        suspects: 10,
    };
    let last = last.unwrap();
    Comparison::new(&summaries, &last).unwrap().report(&filter)
}

/// Returns the report on one dump.
#[allow(dead_code, reason = "most tests are of comparisons")]
pub(crate) fn alone(source: Source) -> HeapReport {
    let mut options = Options::default();
    options.holders = true;
    let snapshot = Snapshot::of(source, &options, &Silent).unwrap();
    let summary = Summary::new(&snapshot, "a.hprof".to_owned()).unwrap();
    let options = HeapOptions { waste: true };
    let one = OneDump::analyze(&summary, &snapshot, &Filter::default(), options, &Silent);
    one.unwrap().report
}
