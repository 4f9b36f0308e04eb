//! `heapdiff BEFORE AFTER`: what grew, and what holds it.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use heapdiff_diff::{ClassGrowth, Comparison, Filter, Summary};

use heapdiff_report::{DiffReport, Format, growth};
use hprof::{Progress, Snapshot};

use super::{history, open_after};
use crate::failure::{Failure, Result};
use crate::gates;
use crate::ignore::Ignored;
use crate::job::{Question, Setup};

const SUSPECTS: usize = 10;
/// The most classes in text; JSON has all that changed.
const CLASSES: usize = 15;

/// Each dump is reduced to its summary before the next is opened; only the last stays open until
/// the paths of what grew are looked up in it.
pub(crate) fn run(
    setup: &Setup,
    dumps: &[PathBuf],
    trace: Option<&Path>,
    question: &Question,
) -> Result<DiffReport> {
    // A trace that cannot be read is reported before the dumps are.
    let trace = trace.map(super::trace::open).transpose()?;
    let limit = setup.top.unwrap_or(SUSPECTS);
    let filter = Filter {
        classes: &|names| question.classes.admits(names),
        // One more than is reported tells whether there are more; gates and rules look at all.
        suspects: match question.gates.any() || question.ignore.is_some() {
            true => usize::MAX,
            false => limit.saturating_add(1),
        },
    };
    let mut comparison = Comparison::default();
    let mut last: Option<(Snapshot, &PathBuf)> = None;
    for dump in dumps {
        let previous = last.take().map(|(snapshot, _)| snapshot);
        let (snapshot, meter) = open_after(previous, setup, dump)?;
        meter.phase("folding the dominator tree", 0);
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
    let format = setup.output.format;
    let allocated = match format.is_of_stacks() || format == Format::Html {
        true => comparison.allocated(),
        false => None,
    };
    if format.is_of_stacks() && allocated.is_none() {
        return Err(Failure::usage(
            "the last dump names no allocation sites: it was taken without the agent",
        )
        .with_hint("load it into the JVM with `heapdiff attach PID` before the dumps"));
    }
    if format.is_read_whole() {
        // People see classes by their shallow growth: by retained growth, the classes
        // that hold the suspects would come first.
        let key = |c: &ClassGrowth| (growth(&c.shallow_bytes), growth(&c.objects));
        report.classes.sort_by_key(|class| Reverse(key(class)));
    }
    let suspects = std::mem::take(&mut report.suspects);
    let ignored = match &question.ignore {
        Some(file) => file.sort(suspects),
        None => Ignored {
            new: suspects,
            ..Ignored::default()
        },
    };
    report.suspects = ignored.new;
    let more_suspects = report.suspects.split_off(limit.min(report.suspects.len()));
    let strange_trace = match &trace {
        Some(trace) => history::tell(trace, &mut report)?,
        None => None,
    };
    if let Some(focus) = question.focus.as_ref().filter(|_| format.is_read_whole()) {
        for suspect in &mut report.suspects {
            suspect.stacks = heapdiff_report::focused(&suspect.stacks, focus);
        }
    }
    let rows = setup.rows(CLASSES);
    let more_classes = report.classes.len().saturating_sub(rows);
    report.classes.truncate(rows);
    let mut report = DiffReport {
        diff: report,
        more_suspects,
        more_classes,
        verbose: setup.progress.verbose,
        known: ignored.known,
        unused_rules: ignored.unused_rules,
        strange_trace,
        allocated,
        focus: question.focus.clone(),
        columns: question.columns,
        gates: question.gates,
        outcomes: Vec::new(),
    };
    report.outcomes = gates::outcomes(&report);
    Ok(report)
}
