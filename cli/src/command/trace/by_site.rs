//! Ranks the allocation sites in a part of a run. Each site has its own rank: sites are not merged by class or frame.

use heapdiff_trace::read::{Run, Tick};
use heapdiff_trace::{Ranking, Stacks, Timeline, Trace, rank_groups};

use super::read::{RunArgs, WindowArgs, select_run, window};
use crate::failure::{Failure, Result};

/// The allocation sites in a part of a run, with their ranks.
pub(super) struct BySite {
    /// The number of the run in the trace.
    pub(super) number: u64,
    pub(super) run: Run,
    pub(super) timeline: Timeline,
    pub(super) ranking: Ranking,
    pub(super) stacks: Stacks,
}

impl BySite {
    pub(super) fn read(trace: &Trace, run: &RunArgs, part: &WindowArgs) -> Result<Self> {
        let failed = |e| Failure::trace(&e);
        let (number, run) = select_run(trace, run.run.as_deref())?;
        let uptime_ms = trace.ticks(run.id).map_err(failed)?;
        let uptime_ms = uptime_ms.last().map_or(0, |t| t.uptime_ms);
        let timeline = Timeline::of(trace, &run, window(part, &run, uptime_ms)?).map_err(failed)?;
        let stacks = trace.stacks().map_err(failed)?;
        let ranking = rank_groups(trace, &timeline, |site| Some(site.id)).map_err(failed)?;
        Ok(Self {
            number,
            run,
            timeline,
            ranking,
            stacks,
        })
    }

    /// Returns the start of the part of the run, as a pair: milliseconds since 1970, and milliseconds since the start
    /// of the run.
    pub(super) fn from(&self) -> (u64, u64) {
        let first = self.timeline.ticks().first();
        first.map_or((0, 0), |t: &Tick| {
            (
                t.time_ms.saturating_sub(t.span_ms),
                t.uptime_ms.saturating_sub(t.span_ms),
            )
        })
    }

    /// Returns the end of the part of the run, as a pair: milliseconds since 1970, and milliseconds since the start of
    /// the run.
    pub(super) fn to(&self) -> (u64, u64) {
        let last = self.timeline.ticks().last();
        last.map_or((0, 0), |t| (t.time_ms, t.uptime_ms))
    }
}
