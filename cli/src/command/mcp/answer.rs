//! Answers: reports as JSON and as text, neither of them long.

use heapdiff_report::{Format, Report, Style, bounded, printable, render, rows};
use hprof::bytes;
use serde_json::Value;

use crate::command;
use crate::failure::{Failure, Result};
use crate::job::Job;
use crate::{messages, write};

/// Bytes of an answer's JSON and of its text, as the protocol has them. A token is about four bytes, so an answer is
/// below 4,000 tokens.
const DATA: usize = 10_000;
const TEXT: usize = 5_000;

/// The most columns that a text in a query's rows takes.
const CELL: usize = 1_000;

/// What a tool answers.
#[derive(Debug)]
pub(super) struct Answer {
    /// As `--format json` has it, with what was left out.
    pub(super) data: Value,
    /// As people read it.
    pub(super) text: String,
}

/// Does what was asked for.
pub(super) fn of(job: &Job) -> Result<Answer> {
    // What changed before is no part of this answer.
    let _ = bytes::changed_file();
    let mut reports = command::run(job)?;
    for report in &mut reports {
        if let Report::Query(query) = report {
            rows::find(query, CELL).map_err(|e| write::no_rows(query, e))?;
        }
    }
    // The first is for text. The last is for JSON, or the same where both are of one.
    let (Some(shown), Some(kept)) = (reports.first(), reports.last()) else {
        return Err(Failure::usage("there is no report"));
    };
    messages::conditions(shown, &job.setup)?;
    let mut text = warnings(shown);
    text += &String::from_utf8_lossy(&written(Format::Text, shown)?);
    let data = serde_json::from_slice(&written(Format::Json, kept)?);
    let data: Value = data.map_err(|e| Failure::usage(format!("the report is no JSON: {e}")))?;
    if let Some(error) = bytes::changed_file() {
        return Err(Failure::changed(&error));
    }
    let data = bounded::data(&data, &bounded::left_out(kept), DATA).ok_or_else(|| {
        Failure::usage(format!("the answer has more than {DATA} bytes"))
            .with_hint("ask for less: fewer dumps, rows or columns")
    })?;
    Ok(Answer {
        data,
        text: bounded::text(&text, TEXT),
    })
}

/// A failure in the words that a command has for it.
pub(super) fn refusal(failure: &Failure) -> String {
    let mut text = format!("{failure}\n");
    if let Some(hint) = &failure.hint {
        // On a terminal hints stand below the message.
        text += &hint.replace("\n          ", "\n");
    }
    bounded::text(&text, TEXT).trim_end().to_owned()
}

/// What a command tells of its dumps on standard error.
fn warnings(report: &Report) -> String {
    let of_dump = report.conditions().into_iter().flat_map(|dump| {
        let lines = dump.warnings.iter();
        lines.map(move |warning| format!("warning: {}: {}\n", dump.path, printable(warning)))
    });
    of_dump.collect()
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
