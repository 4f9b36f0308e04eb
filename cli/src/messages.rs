//! Errors and warnings on standard error.

use std::io::{self, Write};

use heapdiff_report::Report;

use crate::failure::{Exit, Failure, Result};
use crate::job::Setup;
use crate::style::When;

/// The most lines of warnings for one dump; the rest is counted. JSON has all.
const LINES: usize = 10;

/// Prints why there is no report.
pub(crate) fn error(failure: &Failure) {
    let stderr = io::stderr();
    let style = When::Auto.style(&stderr);
    let mut out = stderr.lock();
    // Nothing can be done about a standard error that is closed.
    let _ = writeln!(out, "{} {failure}", style.red("heapdiff:"));
    if let Some(hint) = &failure.hint {
        let _ = writeln!(out, "          {hint}");
    }
}

/// Prints what was done to standard error.
pub(crate) fn said(text: &str) {
    if !text.is_empty() {
        let _ = writeln!(io::stderr(), "heapdiff: {text}");
    }
}

/// Prints what is wrong with the dumps; under `--strict` damage is a failure.
pub(crate) fn conditions(report: &Report, setup: &Setup) -> Result<()> {
    let stderr = io::stderr();
    let style = setup.output.color.style(&stderr);
    let conditions = report.conditions();
    let label = style.yellow("warning:");
    if !setup.progress.quiet {
        let mut out = stderr.lock();
        for condition in &conditions {
            let path = condition.path;
            for warning in condition.warnings.iter().take(LINES) {
                let _ = writeln!(out, "{label} {path}: {warning}");
            }
            let more = condition.warnings.len().saturating_sub(LINES);
            if more > 0 {
                let _ = writeln!(out, "{label} {path}: and {more} more like these");
            }
        }
        if let Report::Diff(diff) = report {
            for rule in diff.unused_rules.iter().chain(&diff.strange_trace) {
                let _ = writeln!(out, "{label} {rule}");
            }
        }
        if let Report::Sizeof(sizeof) = report
            && let Some(finals) = sizeof.finals.as_ref().filter(|f| f.unknown_classes > 0)
        {
            let more = match finals.unknown_classes - finals.unknown.len() as u64 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let names = finals.unknown.join(", ");
            let names = heapdiff_report::printable(&names);
            let _ = writeln!(
                out,
                "{label} a dump does not say which fields are final, and --classpath has no matching class file for \
                 {names}{more}: their final fields are followed"
            );
        }
        for (later, earlier) in out_of_order(report) {
            let _ = writeln!(
                out,
                "{label} {later} was taken before {earlier}: name the oldest dump first"
            );
        }
    }
    match conditions.iter().find(|c| c.partial) {
        Some(damaged) if setup.strict => Err(Failure {
            exit: Exit::Input,
            message: format!("{}: damaged, which --strict refuses", damaged.path),
            hint: Some("without --strict the report covers what could be read".to_owned()),
        }),
        _ => Ok(()),
    }
}

/// Pairs of dumps that are not in order of time: the later in the list, then the earlier.
fn out_of_order(report: &Report) -> Vec<(&str, &str)> {
    let Report::Diff(diff) = report else {
        return Vec::new();
    };
    diff.diff
        .snapshots
        .windows(2)
        .filter(|pair| pair[1].taken_ms < pair[0].taken_ms)
        .map(|pair| (&*pair[1].path, &*pair[0].path))
        .collect()
}

/// Prints which gates tripped.
pub(crate) fn gates(tripped: &[&str], setup: &Setup) {
    let stderr = io::stderr();
    let style = setup.output.color.style(&stderr);
    let mut out = stderr.lock();
    for gate in tripped {
        let _ = writeln!(out, "{} {gate}", style.red("gate tripped:"));
    }
}
