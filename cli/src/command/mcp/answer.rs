//! Converts reports to the answers of tools: short JSON and short text.

use heapdiff_report::{Condition, Format, Report, Style, bounded, printable, render, rows};
use heapdiff_units::counted;
use hprof::bytes;
use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::job::Job;
use crate::{messages, write};

/// Maximum number of bytes of an answer: of its JSON, and of its text when the text is encoded as JSON. A token has
/// about four bytes, so each of the two has fewer than 4,000 tokens.
const DATA: usize = 10_000;
const TEXT: usize = 5_000;

/// Maximum width of a string in the rows of a query, in columns.
const CELL: usize = 1_000;

/// Maximum number of warnings about a dump in the text. JSON contains more.
const WARNINGS: usize = 3;

/// The answer of a tool.
#[derive(Debug)]
pub(super) struct Answer {
    /// The report in the format of `--format json`, with the number of elements that were left out.
    pub(super) data: Value,
    /// The report in the text format.
    pub(super) text: String,
}

/// Runs a job and returns its report as an answer.
pub(super) fn of(job: &Job) -> Result<Answer> {
    // Discard the record of a file that changed during an earlier job of the server, so that it is not reported for
    // this job.
    let _ = bytes::changed_file();
    let mut reports = job.task.run(&job.setup)?;
    for report in &mut reports {
        if let Report::Query(query) = report {
            rows::find(query, CELL).map_err(|e| write::no_rows(query, e))?;
        }
    }
    // A job may return several reports. The first report becomes the text of the answer, and the last report becomes
    // its JSON.
    let (Some(shown), Some(kept)) = (reports.first(), reports.last()) else {
        return Err(Failure::usage("the command produced no report"));
    };
    messages::conditions(shown, &job.setup)?;
    let mut text: String = shown.conditions().iter().map(warnings).collect();
    text += &String::from_utf8_lossy(&written(Format::Text, shown)?);
    let data = serde_json::from_slice(&written(Format::Json, kept)?);
    let data: Value =
        data.map_err(|e| Failure::usage(format!("the report is not valid JSON: {e}")))?;
    if let Some(error) = bytes::changed_file() {
        return Err(Failure::changed(&error));
    }
    let data = bounded::data(&data, &bounded::left_out(kept), DATA).ok_or_else(|| {
        Failure::usage(format!("the answer is larger than {DATA} bytes"))
            .with_hint("request fewer dumps, rows or columns")
    })?;
    Ok(Answer {
        data,
        text: bounded::text(&text, TEXT),
    })
}

/// Formats a failure and its hint as text.
pub(super) fn refusal(failure: &Failure) -> String {
    let mut text = format!("{failure}\n");
    if let Some(hint) = &failure.hint {
        // Terminal output indents the hint below the message; here the indentation is removed.
        text += &hint.replace("\n          ", "\n");
    }
    bounded::text(&text, TEXT).trim_end().to_owned()
}

/// Returns the first warnings about a dump as lines of the answer's text. A command prints these warnings to standard
/// error, which an answer does not have.
fn warnings(dump: &Condition<'_>) -> String {
    let mut lines = String::new();
    for warning in dump.warnings.iter().take(WARNINGS) {
        lines += &format!("warning: {}: {}\n", dump.path, printable(warning));
    }
    if let Some(more @ 1..) = dump.warnings.len().checked_sub(WARNINGS) {
        let more = counted(more as u64, "more warning");
        lines += &format!("warning: {}: {more} not shown\n", dump.path);
    }
    lines
}

fn written(format: Format, report: &Report) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    match report {
        Report::Query(query) => rows::render(format, query, Style::plain(), false, &mut out)
            .map_err(|e| write::no_rows(query, e))?,
        _ => render(format, report, Style::plain(), &mut out)
            .map_err(|e| write::failed("the answer", &e))?,
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_warnings_are_shown_and_the_rest_is_counted() {
        let told = |count: usize| {
            let all = vec!["cut\u{1b} off".to_owned(); count];
            warnings(&Condition {
                path: "a.hprof",
                partial: true,
                lacks_roots: false,
                warnings: &all,
            })
        };
        let line = "warning: a.hprof: cut\u{fffd} off\n";
        assert_eq!(told(0), "");
        assert_eq!(told(3), line.repeat(3));
        assert_eq!(
            told(5),
            line.repeat(3) + "warning: a.hprof: 2 more warnings not shown\n"
        );
    }

    #[test]
    fn a_refusal_ends_with_its_hint() {
        let failure = Failure::usage("no").with_hint("one\n          two");
        assert_eq!(refusal(&failure), "no\none\ntwo");
        assert_eq!(refusal(&Failure::usage("no")), "no");
    }
}
