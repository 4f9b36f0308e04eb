//! Converts a trace to profiles, one per slice of time. A profile contains the bytes that were allocated in its slice,
//! and the live bytes at the end of the slice.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use heapdiff_report::pprof::{About, HeapSample, render_heap};
use heapdiff_trace::Trace;
use heapdiff_trace::read::{Amount, Run, Tick};
use heapdiff_units::Span;

use super::read::frames;
use crate::failure::{Failure, Result};
use crate::write::{failed, replace};

const DEFAULT: Span = Span(Duration::from_secs(60));

/// The bytes that an allocation site allocated in a slice of time, and its live bytes at the end of the slice.
#[derive(Clone, Copy, Debug, Default)]
struct SiteState {
    allocated: Amount,
    live: Amount,
}

/// Writes the profiles of a run to a folder, one for each slice of time. Returns the number of profiles. A slice for
/// which the trace has no data has no profile.
///
/// Memory grows with the number of allocation sites, not with the length of the trace.
pub(super) fn write(trace: &Trace, run: &Run, slice: Option<Span>, folder: &Path) -> Result<u64> {
    let failure = |e| Failure::trace(&e);
    let length = u64::try_from(slice.unwrap_or(DEFAULT).0.as_millis()).unwrap_or(u64::MAX);
    if length == 0 {
        return Err(Failure::usage("--slice must be longer than 0s"));
    }
    let stacks = trace.stacks().map_err(failure)?;
    let mut sites: HashMap<i64, usize> = HashMap::new();
    let mut texts = Vec::new();
    for site in trace.sites().map_err(failure)? {
        sites.insert(site.id, texts.len());
        let frames = site
            .stack
            .map_or_else(Vec::new, |stack| frames(&stacks, stack));
        texts.push((site.class, frames));
    }
    let mut states = vec![SiteState::default(); texts.len()];
    let ticks = trace.ticks(run.id).map_err(failure)?;
    // A tick is the trace's data of one time interval. It belongs to the slice of time in which the interval ends.
    let number = |tick: &Tick| tick.uptime_ms.saturating_sub(1) / length;
    let mut written = 0;
    for together in ticks.chunk_by(|a, b| number(a) == number(b)) {
        for tick in together {
            for row in trace.tick_sites(tick.id).map_err(failure)? {
                // In a row from `tick_sites`, the field `tick` contains the id of the allocation site, not of a time
                // interval.
                if let Some(state) = sites.get(&row.tick).and_then(|&at| states.get_mut(at)) {
                    state.allocated = state.allocated.saturating_add(row.allocated);
                    state.live = row.live;
                }
            }
        }
        let samples: Vec<HeapSample<'_>> = states
            .iter()
            .zip(&texts)
            .filter(|(s, _)| s.allocated.bytes > 0 || s.live.bytes > 0)
            .map(|(state, (class, frames))| HeapSample {
                frames: frames.iter().map(|f| &**f).collect(),
                class,
                allocated: [state.allocated.objects, state.allocated.bytes],
                live: [state.live.objects, state.live.bytes],
            })
            .collect();
        let slice = together.first().map_or(0, number);
        let from_ms = run.started_ms.saturating_add(slice.saturating_mul(length));
        let service = run.service.as_deref().unwrap_or(&run.command);
        let about = About {
            from_ms,
            to_ms: from_ms.saturating_add(length),
            interval_bytes: run.interval_bytes,
            dumps: vec![
                format!("service: {service}"),
                format!("host: {}", run.host),
                format!("process: {}", run.pid),
            ],
            warnings: Vec::new(),
        };
        let path = folder.join(format!("{}-{}.pb.gz", run.pid, about.from_ms));
        replace(&path, |out| render_heap(&samples, &about, out))
            .map_err(|e| failed(path.display(), &e))?;
        for state in &mut states {
            state.allocated = Amount::default();
        }
        written += 1;
    }
    Ok(written)
}
