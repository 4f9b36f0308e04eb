//! `heapdiff BEFORE AFTER`: what grew, and what holds it.

use std::path::PathBuf;

use heapdiff_diff::{Comparison, Filter, Report, Summary};

use super::open;
use crate::args::{ClassFilter, Setup};
use crate::failure::{Failure, Result};

const SUSPECTS: usize = 10;

/// Each dump is reduced to its summary before the next is opened; only the last stays open until
/// the paths of what grew are looked up in it.
pub(crate) fn run(setup: &Setup, dumps: &[PathBuf], classes: &ClassFilter) -> Result<Report> {
    let filter = Filter {
        class: &|name| classes.admits(name),
        suspects: setup.top.unwrap_or(SUSPECTS),
    };
    let mut comparison = Comparison::default();
    let mut last = None;
    for dump in dumps {
        drop(last.take());
        let snapshot = open(setup, dump)?;
        let summary = Summary::new(&snapshot, dump.display().to_string())
            .map_err(|e| Failure::input(dump, &e))?;
        comparison.add(summary);
        last = Some((snapshot, dump));
    }
    let Some((snapshot, dump)) = last else {
        return Err(Failure::usage("there are no dumps to compare"));
    };
    let mut report = comparison
        .report(&snapshot, &filter)
        .map_err(|e| Failure::input(dump, &e))?;
    report.classes.truncate(setup.top.unwrap_or(usize::MAX));
    Ok(report)
}
