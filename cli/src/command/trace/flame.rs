//! `heapdiff trace flame`: what each stack allocated in a part of a run, or what of it is alive at the end.

use std::collections::HashMap;

use heapdiff_diff::{Allocated, AllocatedLine};
use heapdiff_model::trace::FlameReport;
use heapdiff_report::svg::Measured;
use heapdiff_report::{FlameView, View, Viewed, span, utc};
use heapdiff_trace::Trace;
use regex::Regex;

use super::by_site::BySite;
use super::{file, frames};
use crate::failure::Result;
use crate::fits;
use crate::job::RunWindow;

pub(super) fn run(
    trace: &Trace,
    part: &RunWindow,
    (focus, live, reverse): (Option<&Regex>, bool, bool),
) -> Result<Viewed<FlameReport, FlameView>> {
    let sites = BySite::of(trace, part)?;
    let (run, number) = (&sites.run, sites.number);
    let (from_ms, from_uptime) = sites.from();
    let (to_ms, to_uptime) = sites.to();
    let mut file = file(trace);
    let allocated = all(&sites, live);
    file.warnings
        .extend(focus.and_then(|focus| fits::frames(focus, &allocated)));
    let title = format!(
        "{}, run {number} (process {}), {} UTC, {}",
        file.path,
        run.pid,
        utc(from_ms),
        span(to_uptime.saturating_sub(from_uptime)),
    );
    let more = FlameView {
        title,
        measured: match (live, &*run.strategy) {
            (false, _) => Measured::Allocated,
            // What a recording found alive at last stands for itself.
            (true, "recording") => Measured::Followed,
            (true, _) => Measured::Estimated,
        },
    };
    Ok(Viewed {
        data: FlameReport {
            path: file.path,
            from_ms,
            to_ms,
            warnings: file.warnings,
        },
        view: View {
            focus: focus.cloned(),
            allocated: Some(allocated),
            reverse,
            ..View::default()
        },
        more,
    })
}

/// All sites of a ranking by site.
fn all(sites: &BySite, live: bool) -> Allocated {
    let mut all = Allocated {
        interval_bytes: sites.run.interval_bytes,
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
    for candidate in &sites.ranking.candidates {
        let amount = if live {
            candidate.live.amount
        } else {
            candidate.allocated
        };
        if amount.bytes == 0 {
            continue;
        }
        let stack = candidate.sites.first().and_then(|site| site.stack);
        let texts = stack.map_or_else(Vec::new, |stack| frames(&sites.stacks, stack));
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
