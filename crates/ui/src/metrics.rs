//! Answers `/metrics`: figures of the running JVMs, for Prometheus.

use heapdiff_report::openmetrics::{TraceMetrics, TraceSite, trace_metrics};
use heapdiff_trace::{HeapOutlook, Timeline, Window};

use crate::by::By;
use crate::candidates::Lines;
use crate::runs;
use crate::text::cut;
use crate::traces::Traces;
use crate::view::Life;

/// Maximum number of runs with metrics. Runs that have ended have no metrics.
const MOST_RUNS: usize = 50;
/// Maximum number of allocation sites of each run.
const MOST_SITES: usize = 10;

/// Returns the metrics of the runs that have not ended. A trace that cannot be read has no metrics.
pub(crate) fn metrics(traces: &Traces) -> String {
    let lives = Life::read_all(traces, &runs::keys(traces));
    let running = lives.into_iter().filter(|life| life.run.ended_ms.is_none());
    let all: Vec<TraceMetrics> = running
        .take(MOST_RUNS)
        .filter_map(|life| of_run(traces, &life))
        .collect();
    trace_metrics(&all, &[])
}

fn of_run(traces: &Traces, life: &Life) -> Option<TraceMetrics> {
    let answer = traces.get(life.key.trace)?.ask(|open| {
        let timeline = Timeline::of(&open.trace, &life.run, Window::ALL)?;
        let outlook = HeapOutlook::of(&timeline, open.trace.heap_limit(&life.run)?);
        let mut rankings = open.rankings.borrow_mut();
        let of = (life.key.run, By::Frame);
        let ranking = rankings.of(of, Window::ALL, || By::Frame.rank(&open.trace, &timeline))?;
        let mut lines = Lines::default();
        lines.add(&open.trace, life.key, &ranking, By::Frame, MOST_SITES)?;
        let sites = (1..)
            .zip(lines.top(MOST_SITES))
            .map(|(rank, line)| TraceSite {
                rank,
                verdict: line.standing.verdict.name(),
                class: line.class,
                place: line.place,
                live_bytes: None,
                bytes_per_hour: line.trending.bytes.slope,
            });
        let last = timeline.ticks().last();
        Ok(TraceMetrics {
            labels: TraceMetrics::labels(
                life.run.pid,
                cut(&life.run.host),
                life.run.service.as_deref().map(cut),
            ),
            last_tick_ms: last.map_or(0, |tick| tick.time_ms),
            heap_used: last.map(|tick| tick.heap_used),
            heap_limit: outlook.limit.map(|limit| limit.bytes),
            full_gcs: outlook.full_gcs,
            bytes_per_hour: outlook.slope.map(|slope| slope.slope),
            oom_ms: outlook
                .left
                .map(|left| [left.at_ms, left.from_ms, left.to_ms]),
            sites: sites.collect(),
        })
    });
    answer.ok()
}
