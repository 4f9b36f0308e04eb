//! `heapdiff trace flame`: what each stack allocated in a part of a run, or what of it is alive at the end.

use std::collections::HashMap;

use heapdiff_diff::{Allocated, AllocatedLine};
use heapdiff_report::svg::Measured;
use heapdiff_report::{FlameReport, span, utc};
use heapdiff_trace::{Candidate, Stacks, Timeline, Trace, rank_groups};
use regex::Regex;

use super::{chosen, file, frames, window};
use crate::failure::{Failure, Result};
use crate::fits;
use crate::job::RunWindow;

pub(super) fn run(
    trace: &Trace,
    part: &RunWindow,
    (focus, live, reverse): (Option<&Regex>, bool, bool),
) -> Result<FlameReport> {
    let failed = |e| Failure::trace(&e);
    let (number, run) = chosen(trace, part.run.as_deref())?;
    let uptime_ms = trace.ticks(run.id).map_err(failed)?;
    let uptime_ms = uptime_ms.last().map_or(0, |t| t.uptime_ms);
    let timeline = Timeline::of(trace, &run, window(part, &run, uptime_ms)?).map_err(failed)?;
    let stacks = trace.stacks().map_err(failed)?;
    let ranking = rank_groups(trace, &timeline, |site| Some(site.id)).map_err(failed)?;
    let ticks = timeline.ticks();
    let from = ticks.first().map(|t| {
        let from = t.time_ms.saturating_sub(t.span_ms);
        (from, t.uptime_ms.saturating_sub(t.span_ms))
    });
    let (from_ms, from_uptime) = from.unwrap_or_default();
    let to = ticks.last().map(|t| (t.time_ms, t.uptime_ms));
    let (to_ms, to_uptime) = to.unwrap_or_default();
    let mut file = file(trace);
    let allocated = all(&ranking.candidates, &stacks, live, run.interval_bytes);
    file.warnings
        .extend(focus.and_then(|focus| fits::frames(focus, &allocated)));
    Ok(FlameReport {
        of: format!(
            "{}, run {number} (process {}), {} UTC, {}",
            file.path,
            run.pid,
            utc(from_ms),
            span(to_uptime.saturating_sub(from_uptime)),
        ),
        from_ms,
        to_ms,
        measured: match (live, &*run.strategy) {
            (false, _) => Measured::Allocated,
            // What a recording found alive at last stands for itself.
            (true, "recording") => Measured::Followed,
            (true, _) => Measured::Estimated,
        },
        allocated,
        path: file.path,
        warnings: file.warnings,
        only: focus.cloned(),
        reverse,
    })
}

/// All sites of a ranking by site.
fn all(candidates: &[Candidate], stacks: &Stacks, live: bool, interval_bytes: u64) -> Allocated {
    let mut all = Allocated {
        interval_bytes,
        ..Allocated::default()
    };
    let mut numbers: HashMap<String, u32> = HashMap::new();
    let mut classes: HashMap<String, u32> = HashMap::new();
    let number = |texts: &mut Vec<String>, numbers: &mut HashMap<String, u32>, text: &str| {
        if let Some(&number) = numbers.get(text) {
            return number;
        }
        let number = u32::try_from(texts.len()).unwrap_or(u32::MAX);
        texts.push(text.to_owned());
        numbers.insert(text.to_owned(), number);
        number
    };
    for candidate in candidates {
        let amount = match live {
            true => candidate.live.amount,
            false => candidate.allocated,
        };
        if amount.bytes == 0 {
            continue;
        }
        let stack = candidate.sites.first().and_then(|site| site.stack);
        let texts = stack.map_or_else(Vec::new, |stack| frames(stacks, stack));
        let texts = texts.iter();
        all.lines.push(AllocatedLine {
            frames: texts
                .map(|t| number(&mut all.frames, &mut numbers, t))
                .collect(),
            class: number(&mut all.classes, &mut classes, &candidate.class),
            samples: vec![amount.samples],
            objects: vec![amount.objects],
            bytes: vec![amount.bytes],
        });
    }
    all
}
