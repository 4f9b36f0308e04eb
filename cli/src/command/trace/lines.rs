//! The agent's counts for each line of code, for `trace top`.

use heapdiff_model::count::{CountSite, CountTotals, CountedMissed};
use heapdiff_model::trace::{CountedLineRow, CountedLines, SampledLineRow};
use heapdiff_trace::read::Run;
use heapdiff_trace::{CountedLine, CountedPart, CountedRun, SampledLine, Trace, Window};
use regex::Regex;

use crate::failure::{Failure, Result};

/// Returns the `most` lines that allocated the most bytes in a window of a run. Only lines that match the focus are
/// returned. Returns `None` if the agent did not count lines in this run or window.
pub(super) fn lines(
    trace: &Trace,
    run: &Run,
    window: Window,
    most: usize,
    focus: Option<&Regex>,
) -> Result<Option<CountedLines>> {
    let wanted = |line: &CountedLine| {
        let place = || match line.line {
            Some(at) => format!("{}.{}:{at}", line.class, line.method),
            None => format!("{}.{}", line.class, line.method),
        };
        focus.is_none_or(|focus| focus.is_match(&place()))
    };
    let top = trace.top_lines(run.id, window, (most, wanted));
    let Some(top) = top.map_err(|e| Failure::trace(&e))? else {
        return Ok(None);
    };
    let part = top.part;
    let sampled = trace.sampled_lines(run, part, &top.rows);
    let sampled = sampled.map_err(|e| Failure::trace(&e))?.unwrap_or_default();
    let sampled = sampled.into_iter().map(Some).chain(std::iter::repeat(None));
    let rows = top.rows.into_iter().zip(sampled);
    Ok(Some(CountedLines {
        from_uptime_ms: part.from_ms,
        to_uptime_ms: part.to_ms,
        jdk: top.run.jdk,
        totals: CountTotals {
            sites: top.lines,
            objects: top.objects,
            bytes: top.bytes,
            sites_without_bytes: top.lines_without_bytes,
        },
        objects_per_second: part.per_second(top.objects),
        bytes_per_second: part.per_second(top.bytes),
        rows: rows
            .map(|(line, sampled)| row(part, line, sampled))
            .collect(),
        missed: uncounted_in_run(&top.run),
    }))
}

/// Returns what the agent could not count in a run.
pub(super) fn uncounted_in_run(run: &CountedRun) -> CountedMissed {
    CountedMissed {
        sites: run.missed_sites,
        methods: run.missed_methods,
        classes: run.missed_classes,
    }
}

fn row(part: CountedPart, line: CountedLine, sampled: Option<SampledLine>) -> CountedLineRow {
    CountedLineRow {
        objects_per_second: part.per_second(line.objects),
        bytes_per_second: line.bytes.map(|bytes| part.per_second(bytes)),
        sampled: sampled.map(|sampled| SampledLineRow {
            samples: sampled.allocated.samples,
            estimated_objects: sampled.allocated.objects,
            estimated_bytes: sampled.allocated.bytes,
            objects_per_second: part.per_second(sampled.allocated.objects),
            beyond_chance: sampled.beyond_chance,
        }),
        site: CountSite {
            class: line.class,
            method: line.method,
            line: line.line.and_then(|line| u32::try_from(line).ok()),
            allocated: line.allocated,
            objects: line.objects,
            bytes: line.bytes,
        },
    }
}
