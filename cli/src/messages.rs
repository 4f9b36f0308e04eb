//! Errors and warnings on standard error.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use heapdiff_report::Report;
use heapdiff_units::counted;
use hprof::{NameMapping, Warning};

use crate::failure::{Failure, Result};
use crate::job::Setup;
use crate::progress::Wanted;
use crate::style::When;

/// Maximum number of printed warnings for one dump. The number of further warnings is printed, too. JSON contains all
/// warnings.
const LINES: usize = 10;

/// Prints an error that ends the run.
pub(crate) fn error(failure: &Failure) {
    let stderr = io::stderr();
    let style = When::Auto.style(&stderr);
    let mut out = stderr.lock();
    // Ignore errors: if standard error is closed, there is no other place for the message.
    let _ = writeln!(out, "{} {failure}", style.red("heapdiff:"));
    if let Some(hint) = &failure.hint {
        let _ = writeln!(out, "          {hint}");
    }
}

/// Prints a message about a completed action to standard error.
pub(crate) fn print_done(text: &str) {
    if !text.is_empty() {
        let _ = writeln!(io::stderr(), "heapdiff: {text}");
    }
}

/// Prints a warning that does not belong to a report.
pub(crate) fn warn(text: &str) {
    let stderr = io::stderr();
    let style = When::Auto.style(&stderr);
    let text = heapdiff_report::printable(text);
    let _ = writeln!(stderr.lock(), "{} {text}", style.yellow("warning:"));
}

/// Prints warnings about the dumps. With `--strict`, damage is a failure.
pub(crate) fn conditions(report: &Report, setup: &Setup) -> Result<()> {
    let stderr = io::stderr();
    let style = setup.output.color.style(&stderr);
    let conditions = report.conditions();
    let label = style.yellow("warning:");
    if !setup.progress.quiet {
        let mut out = stderr.lock();
        for condition in &conditions {
            list(&mut out, &label, &condition.path, condition.warnings);
        }
        let of_all: &[String] = match report {
            Report::Diff(diff) => &diff.warnings,
            Report::Heap(heap) => &heap.warnings,
            _ => &[],
        };
        for warning in of_all {
            let _ = writeln!(out, "{label} {}", heapdiff_report::printable(warning));
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
            let (option, which) = match (sizeof.options.skip_final, sizeof.options.skip_transient) {
                (true, true) => (
                    "--skip-final and --skip-transient have",
                    "final or transient",
                ),
                (false, true) => ("--skip-transient has", "transient"),
                _ => ("--skip-final has", "final"),
            };
            let _ = writeln!(
                out,
                "{label} --classpath has no matching class file for {names}{more}, so {option} no effect on these classes (a dump does not record which fields are {which})"
            );
        }
    }
    match conditions.iter().find(|c| c.partial) {
        Some(condition) if setup.strict && condition.lacks_roots => {
            Err(missing_roots_failure(&condition.path)
                .with_hint("leave out --strict for a report on the objects that could be read"))
        }
        Some(damaged) if setup.strict => Err(damaged_failure(&damaged.path)
            .with_hint("leave out --strict for a report on the objects that could be read")),
        _ => Ok(()),
    }
}

/// Prints a warning if `--mapping` matches nothing.
pub(crate) fn mapping(setup: &Setup) {
    mapping_of(setup.analysis.mapping.as_ref(), setup.progress.quiet);
}

/// Like [`mapping`], but for commands that have no [`Setup`].
pub(crate) fn mapping_of(mapping: Option<&Arc<dyn NameMapping>>, quiet: bool) {
    if mapping.is_some_and(|mapping| !mapping.fits()) && !quiet {
        warn(
            "--mapping contains no class of this input; it may belong to another program or build",
        );
    }
}

/// The failure for a damaged dump under `--strict`.
pub(crate) fn damaged_failure(dump: &dyn Display) -> Failure {
    Failure::bad_input(format!(
        "{dump}: the file is damaged, and --strict refuses damaged files"
    ))
}

/// The failure for a complete dump that lacks GC roots, under `--strict`.
pub(crate) fn missing_roots_failure(dump: &dyn Display) -> Failure {
    Failure {
        message: format!("{dump}: GC roots are missing, and --strict refuses incomplete dumps"),
        ..damaged_failure(dump)
    }
}

/// Prints warnings about an input for which no report is written.
pub(crate) fn print_input_warnings(path: &Path, warnings: &[Warning], wanted: Wanted) {
    if wanted.quiet {
        return;
    }
    let stderr = io::stderr();
    let style = When::Auto.style(&stderr);
    let label = style.yellow("warning:");
    let text = |warning: &Warning| heapdiff_report::printable(&warning.to_string()).into_owned();
    let warnings: Vec<String> = warnings.iter().map(text).collect();
    list(&mut stderr.lock(), &label, &path.display(), &warnings);
}

/// Prints the first warnings about an input, and the number of warnings that are not printed.
fn list(out: &mut impl Write, label: &dyn Display, path: &dyn Display, warnings: &[String]) {
    let rest = rest(warnings.len());
    for warning in warnings.iter().take(LINES).chain(&rest) {
        let _ = writeln!(out, "{label} {path}: {warning}");
    }
}

/// Returns a message with the number of warnings that are not printed.
fn rest(warnings: usize) -> Option<String> {
    let more = warnings.checked_sub(LINES).filter(|&more| more > 0)?;
    Some(format!(
        "{} not shown",
        counted(more as u64, "more warning")
    ))
}

/// Prints which gates tripped. A gate is a condition under which the run fails.
pub(crate) fn gates(tripped: &[&str], setup: &Setup) {
    let stderr = io::stderr();
    let style = setup.output.color.style(&stderr);
    let mut out = stderr.lock();
    for gate in tripped {
        let _ = writeln!(out, "{} {gate}", style.red("gate tripped:"));
    }
}

/// Prints why the gates could not be checked.
pub(crate) fn print_undecided_gates(why: &str, hint: &'static str) {
    error(
        &Failure::bad_input(format!(
            "the gates (--fail-on-...) were not checked: {}",
            heapdiff_report::printable(why)
        ))
        .with_hint(hint),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_that_are_not_printed_are_counted() {
        assert_eq!(rest(LINES), None);
        let told = rest(LINES + 1);
        assert_eq!(told.as_deref(), Some("1 more warning not shown"));
        let told = rest(LINES + 3);
        assert_eq!(told.as_deref(), Some("3 more warnings not shown"));
    }
}
