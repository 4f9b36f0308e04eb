//! Aggregates the data of each run by hour.

use std::collections::HashMap;
use std::path::Path;

use heapdiff_tables::{Cell, Column, Kind};
use heapdiff_trace::read::{Amount, Collection, Frame, Run, Site, Tick};
use heapdiff_trace::{Stacks, Trace};

use crate::files::{DAY_MS, Partition, Table, hash};
use crate::{Added, FleetError, Labels};

const HOUR_MS: u64 = 3_600_000;

/// An allocation site, with the strings that its rows in the table contain.
struct Named {
    id: i64,
    class: String,
    /// The methods of the stack without line numbers, root first and separated by `;`, as in collapsed stacks.
    stack: String,
    /// The allocating frame with its line: `com.acme.Foo.add(Foo.java:42)`.
    leaf: String,
    /// A key of the site. It is the same for this class and stack on every host and in every build.
    key: String,
}

impl Named {
    fn new(site: &Site, stacks: &Stacks) -> Self {
        let frames = site.stack.map(|s| stacks.frames(s)).unwrap_or_default();
        let method = |f: &&Frame| format!("{}.{}", f.class, f.method).replace([';', '\n'], "_");
        let stack: Vec<String> = frames.iter().rev().map(method).collect();
        let stack = stack.join(";");
        Self {
            id: site.id,
            key: hash(&[&site.class, &stack]),
            class: site.class.to_string(),
            leaf: frames.first().map(|f| leaf(f)).unwrap_or_default(),
            stack,
        }
    }
}

fn leaf(frame: &Frame) -> String {
    let Frame { class, method, .. } = frame;
    match (&frame.file, frame.line) {
        (Some(file), Some(line)) => format!("{class}.{method}({file}:{line})"),
        (Some(file), None) => format!("{class}.{method}({file})"),
        _ => format!("{class}.{method}"),
    }
}

/// The live objects of a site at one point in time.
#[derive(Clone, Copy, Default)]
struct Live {
    amount: Amount,
    variance: f64,
}

/// Allocated and garbage-collected objects of a site in one hour, and its live objects at the end of the hour.
#[derive(Clone, Copy)]
struct Hour {
    start_ms: u64,
    allocated: Amount,
    collected: Amount,
    live: Live,
}

/// The ticks (writes to a trace) of a run in one hour or one day, as a range of indexes in the list of ticks.
struct Span {
    start_ms: u64,
    ticks: std::ops::Range<usize>,
}

/// Adds all runs of a trace to the tables `sites` and `runs` in the folder `fleet`.
pub(crate) fn add(trace: &Trace, fleet: &Path, labels: &Labels) -> Result<Added, FleetError> {
    let mut added = Added::default();
    // Read a consistent state, since a JVM may be writing to the trace.
    trace.hold()?;
    let stacks = trace.stacks()?;
    let sites: Vec<Named> = trace
        .sites()?
        .iter()
        .map(|site| Named::new(site, &stacks))
        .collect();
    for run in trace.runs()? {
        add_run(trace, &run, &sites, fleet, labels, &mut added)?;
    }
    trace.release()?;
    added.odd = trace.invalid_number_count();
    Ok(added)
}

fn add_run(
    trace: &Trace,
    run: &Run,
    sites: &[Named],
    fleet: &Path,
    labels: &Labels,
    added: &mut Added,
) -> Result<(), FleetError> {
    let mut ticks = trace.ticks(run.id)?;
    // The monotonic clock determines the order of the ticks (periods of the run). The wall clock only determines the
    // start of the run.
    ticks.sort_by_key(|t| (t.uptime_ms, t.id));
    let collections = trace.collections(run.id)?;
    let order: HashMap<i64, usize> = ticks.iter().enumerate().map(|(i, t)| (t.id, i)).collect();
    let mut live = vec![Live::default(); sites.len()];
    for day in spans(run, &ticks, 0..ticks.len(), DAY_MS) {
        let host_service = run.service.as_deref().unwrap_or("");
        let partition = Partition::new(labels, host_service, &run.host, day.start_ms / DAY_MS);
        let hours = spans(run, &ticks, day.ticks.clone(), HOUR_MS);
        let day_ticks = &ticks[day.ticks.clone()];
        let ids = day_ticks.iter().map(|t| t.id);
        let (Some(first), Some(last)) = (ids.clone().min(), ids.max()) else {
            continue;
        };

        let mut table = Table::begin(fleet, "sites", &partition, &run.uid, &site_columns())?;
        for (site, live) in sites.iter().zip(&mut live) {
            let mut happened: Vec<_> = trace
                .site_ticks(site.id, first, last)?
                .into_iter()
                .filter_map(|s| Some((*order.get(&s.tick)?, s)))
                .filter(|(at, _)| day.ticks.contains(at))
                .collect();
            happened.sort_by_key(|(at, _)| *at);
            let mut happened = happened.into_iter().peekable();
            for span in &hours {
                let mut hour = Hour {
                    start_ms: span.start_ms,
                    allocated: Amount::default(),
                    collected: Amount::default(),
                    live: *live,
                };
                while let Some((_, s)) = happened.next_if(|(at, _)| span.ticks.contains(at)) {
                    hour.allocated = hour.allocated.saturating_add(s.allocated);
                    hour.collected = hour.collected.saturating_add(s.collected);
                    hour.live = Live {
                        amount: s.live,
                        variance: s.variance,
                    };
                }
                *live = hour.live;
                let nothing = Amount::default();
                let figures = [hour.allocated, hour.collected, hour.live.amount];
                if figures.iter().any(|&f| f != nothing) {
                    table.row(&site_row(run, site, &hour))?;
                }
            }
        }
        finish_table(table, added)?;

        let mut table = Table::begin(fleet, "runs", &partition, &run.uid, &run_columns())?;
        for span in &hours {
            table.row(&run_row(
                run,
                span,
                &ticks[span.ticks.clone()],
                &collections,
            ))?;
        }
        finish_table(table, added)?;
    }
    Ok(())
}

fn finish_table(table: Table, added: &mut Added) -> Result<(), FleetError> {
    let (file, rows) = table.finish()?;
    added.rows += rows;
    added.files.push(file);
    Ok(())
}

/// Returns the time at which a tick ends: the start of the run plus the uptime. So changes of the wall clock during the
/// run do not matter.
const fn tick_end_time(run: &Run, tick: &Tick) -> u64 {
    run.started_ms.saturating_add(tick.uptime_ms)
}

/// Divides a range of ticks into hours or days. Hours or days without ticks are left out.
fn spans(run: &Run, ticks: &[Tick], range: std::ops::Range<usize>, length: u64) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for at in range {
        // A tick that ends exactly at the end of an hour belongs to that hour.
        let start_ms = tick_end_time(run, &ticks[at]).saturating_sub(1) / length * length;
        match spans.last_mut() {
            Some(span) if span.start_ms == start_ms => span.ticks.end = at + 1,
            _ => spans.push(Span {
                start_ms,
                ticks: at..at + 1,
            }),
        }
    }
    spans
}

fn site_columns() -> Vec<Column> {
    let texts = ["run", "site", "class", "stack", "leaf"];
    let mut columns: Vec<Column> = texts.map(|n| Column::new(n, Kind::Text)).into();
    columns.push(Column::new("hour_ms", Kind::Int));
    for what in ["allocated", "collected", "live"] {
        for unit in ["samples", "objects", "bytes"] {
            columns.push(Column::new(format!("{what}_{unit}"), Kind::Int));
        }
    }
    columns.push(Column::new("live_bytes_variance", Kind::Double));
    columns
}

fn site_row<'a>(run: &'a Run, site: &'a Named, hour: &Hour) -> Vec<Cell<'a>> {
    let texts = [&run.uid, &site.key, &site.class, &site.stack, &site.leaf];
    let mut row: Vec<Cell<'a>> = texts.map(|t| Cell::Text(t)).into();
    row.push(int(hour.start_ms));
    for amount in [hour.allocated, hour.collected, hour.live.amount] {
        row.extend([amount.samples, amount.objects, amount.bytes].map(int));
    }
    row.push(Cell::Double(hour.live.variance));
    row
}

fn run_columns() -> Vec<Column> {
    let texts = ["run", "jvm", "command", "strategy"];
    let mut columns: Vec<Column> = texts.map(|n| Column::new(n, Kind::Text)).into();
    let figures = [
        "pid",
        "interval_bytes",
        "started_ms",
        "hour_ms",
        "observed_ms",
        "heap_used_max",
        "heap_used_last",
        "heap_committed_last",
        "metaspace_used_last",
        "loaded_classes_last",
        "samples",
        "lost_samples",
        "lost_bytes",
        "minor_collections",
        "major_collections",
        "pause_us",
        "after_major_bytes",
    ];
    columns.extend(figures.map(|n| Column::new(n, Kind::Int)));
    columns
}

fn run_row<'a>(
    run: &'a Run,
    span: &Span,
    ticks: &[Tick],
    collections: &[Collection],
) -> Vec<Cell<'a>> {
    let end_ms = span.start_ms + HOUR_MS;
    let within = |c: &&Collection| {
        let moment = run.started_ms.saturating_add(c.uptime_ms);
        moment > span.start_ms && moment <= end_ms
    };
    let collections: Vec<&Collection> = collections.iter().filter(within).collect();
    let major = collections.iter().filter(|c| c.major);
    let after_major = major.clone().next_back().map(|c| c.after_bytes);
    let sum = |of: fn(&Tick) -> u64| ticks.iter().map(of).fold(0, u64::saturating_add);
    let last = |of: fn(&Tick) -> u64| ticks.last().map_or(0, of);
    let majors = major.count() as u64;
    let pause = collections
        .iter()
        .fold(0_u64, |sum, c| sum.saturating_add(c.pause_us));
    let texts = [&run.uid, &run.jvm, &run.command, &run.strategy];
    let mut row: Vec<Cell<'a>> = texts.map(|t| Cell::Text(t)).into();
    row.extend(
        [
            run.pid,
            run.interval_bytes,
            run.started_ms,
            span.start_ms,
            sum(|t| t.span_ms),
            ticks.iter().map(|t| t.heap_used).max().unwrap_or(0),
            last(|t| t.heap_used),
            last(|t| t.heap_committed),
            last(|t| t.metaspace_used),
            last(|t| t.loaded_classes),
            sum(|t| t.samples),
            sum(|t| t.lost_samples),
            sum(|t| t.lost_bytes),
            collections.len() as u64 - majors,
            majors,
            pause,
        ]
        .map(int),
    );
    row.push(after_major.map_or(Cell::Null, int));
    row
}

fn int(figure: u64) -> Cell<'static> {
    Cell::Int(i64::try_from(figure).unwrap_or(i64::MAX))
}
