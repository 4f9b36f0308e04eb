//! `heapdiff trace samples`: samples one by one.

use std::cmp::Reverse;
use std::collections::HashMap;

use heapdiff_model::trace::{SampleReportRow, SampleTotals, TraceSamplesReport};
use heapdiff_report::{Format, View, Viewed};
use heapdiff_trace::{SampleRow, Trace, Which};

use super::{ROWS, ROWS_OF_PROGRAMS, chosen, file, frames, run_info};
use crate::failure::{Failure, Result};
use crate::job::{SampleOrder, SamplesJob, Setup};

/// How many samples beyond those shown are collected before the last in order are dropped.
const AT_HAND: usize = 1 << 16;
const OLD: &str =
    "this trace has only totals, not the single samples, because an older agent wrote the trace";

/// A site's class and frames, and whether samples of it are wanted.
struct Named {
    class: String,
    frames: Vec<String>,
    wanted: bool,
}

pub(super) fn run(
    setup: &Setup,
    trace: &Trace,
    job: &SamplesJob,
) -> Result<Viewed<TraceSamplesReport>> {
    let failed = |e| Failure::trace(&e);
    let (number, run) = chosen(trace, job.run.as_deref())?;
    let ticks = trace.ticks(run.id).map_err(failed)?;
    let last = ticks.last();
    let at_uptime_ms = last.map_or(0, |t| t.uptime_ms);
    let sites = sites(trace, job)?;
    let threads = trace.threads().map_err(failed)?;
    let of_thread = |s: &SampleRow| s.thread.and_then(|id| threads.get(&id));
    let age = |s: &SampleRow| {
        let end = s.collected_ms.unwrap_or(at_uptime_ms);
        end.saturating_sub(s.allocated_ms)
    };
    let order = |s: &SampleRow| {
        let first = match job.by {
            SampleOrder::Age => age(s),
            SampleOrder::Bytes => s.bytes,
        };
        (Reverse(first), s.uid)
    };
    let default = match setup.output.format {
        Format::Text => ROWS,
        _ => ROWS_OF_PROGRAMS,
    };
    let limit = setup.top.unwrap_or(default);
    let mut totals = SampleTotals::default();
    let mut rows: Vec<SampleRow> = Vec::new();
    let shorten = |rows: &mut Vec<SampleRow>| {
        rows.sort_unstable_by_key(order);
        rows.truncate(limit);
    };
    let take = |sample: SampleRow| {
        let of_site = sites.get(&sample.site).is_none_or(|site| site.wanted);
        let of_thread = job.thread.as_ref().is_none_or(|re| {
            let name = of_thread(&sample);
            name.is_some_and(|name| re.is_match(name))
        });
        if !of_site || !of_thread {
            return;
        }
        totals.samples += 1;
        totals.bytes = totals.bytes.saturating_add(sample.bytes);
        rows.push(sample);
        if rows.len() > limit.saturating_add(AT_HAND) {
            shorten(&mut rows);
        }
    };
    trace.each_sample(run.id, job.which, take).map_err(failed)?;
    shorten(&mut rows);
    let samples = rows.iter().map(|s| {
        let site = sites.get(&s.site);
        let at = |uptime_ms| run.started_ms.saturating_add(uptime_ms);
        SampleReportRow {
            uid: s.uid,
            class: site.map_or_else(|| "(unknown class)".to_owned(), |s| s.class.clone()),
            bytes: s.bytes,
            thread: of_thread(s).map(ToString::to_string),
            allocated_ms: at(s.allocated_ms),
            allocated_uptime_ms: s.allocated_ms,
            collected_ms: s.collected_ms.map(at),
            collected_uptime_ms: s.collected_ms,
            age_ms: age(s),
            frames: site.map_or_else(Vec::new, |s| s.frames.clone()),
        }
    });
    let samples = samples.collect();
    let mut file = file(trace);
    if !trace.has_samples() {
        file.warnings.push(OLD.to_owned());
    }
    let patterns = [("--focus", &job.focus), ("--thread", &job.thread)];
    let given: Vec<String> = patterns
        .iter()
        .filter_map(|(option, re)| Some(format!("{option} {}", re.as_ref()?)))
        .collect();
    if totals.samples == 0 && !given.is_empty() {
        let given = given.join(" ");
        file.warnings.push(format!("{given}: no sample matches"));
    }
    let report = TraceSamplesReport {
        schema: TraceSamplesReport::SCHEMA,
        trace: file,
        run: run_info(number, &run),
        which: match job.which {
            Which::Live => "live",
            Which::Recent => "recent",
            Which::Chosen => "chosen",
        },
        by: match job.by {
            SampleOrder::Age => "age",
            SampleOrder::Bytes => "bytes",
        },
        focus: job.focus.as_ref().map(ToString::to_string),
        thread: job.thread.as_ref().map(ToString::to_string),
        at_ms: last.map_or(run.started_ms, |t| t.time_ms),
        at_uptime_ms,
        totals,
        samples,
    };
    Ok(Viewed {
        data: report,
        view: View {
            verbose: setup.progress.verbose,
            ..View::default()
        },
        more: (),
    })
}

fn sites(trace: &Trace, job: &SamplesJob) -> Result<HashMap<i64, Named>> {
    let failed = |e| Failure::trace(&e);
    let stacks = trace.stacks().map_err(failed)?;
    let sites = trace.sites().map_err(failed)?.into_iter().map(|site| {
        let frames = site.stack.map_or_else(Vec::new, |s| frames(&stacks, s));
        let wanted = job.focus.as_ref().is_none_or(|re| {
            re.is_match(&site.class) || frames.iter().any(|frame| re.is_match(frame))
        });
        let named = Named {
            class: site.class.to_string(),
            frames,
            wanted,
        };
        (site.id, named)
    });
    Ok(sites.collect())
}
