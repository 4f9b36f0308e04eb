//! Lists the runs in the traces.

use heapdiff_trace::{Trace, TraceError};
use serde::Serialize;

use crate::amount::signed;
use crate::key::Key;
use crate::text::cut;
use crate::traces::Traces;

/// Maximum number of runs on one page, over all traces. The latest runs of each trace are shown.
const MOST_RUNS: usize = 200;
/// The prefix of notes about the progress of `heapdiff hunt`.
const HUNT: &str = "hunt: ";

/// The traces and runs that the page can show.
#[derive(Serialize)]
pub(crate) struct Listed {
    traces: Vec<File>,
    runs: Vec<Run>,
    /// The number of runs that are not listed because of the limit.
    more: u64,
}

#[derive(Serialize)]
struct File {
    path: String,
    /// The reason why the trace cannot be read.
    fault: Option<String>,
}

/// A run of a JVM.
#[derive(Serialize)]
struct Run {
    key: String,
    pid: i64,
    host: String,
    service: Option<String>,
    started_ms: i64,
    ended_ms: Option<i64>,
    jvm: String,
    command: String,
    options: String,
    interval_bytes: i64,
    strategy: String,
    /// The end of the last recorded period, or `null` if the run has none.
    last_ms: Option<i64>,
    heap_used: i64,
    heap_committed: i64,
    hunt: Option<HuntNote>,
}

#[derive(Serialize)]
struct HuntNote {
    time_ms: i64,
    text: String,
}

/// Lists the runs of all traces. A trace that cannot be read has no runs, and the reason is listed.
pub(crate) fn list(traces: &Traces) -> Listed {
    let mut listed = Listed {
        traces: Vec::new(),
        runs: Vec::new(),
        more: 0,
    };
    for (index, trace) in traces.iter() {
        let room = MOST_RUNS.saturating_sub(listed.runs.len());
        if let Ok((runs, all)) = trace.ask(|open| Ok(of(&open.trace, index, room)?)) {
            listed.more += all.saturating_sub(runs.len()) as u64;
            listed.runs.extend(runs);
        }
        listed.traces.push(File {
            path: trace.path().display().to_string(),
            fault: trace.fault(),
        });
    }
    listed
}

/// Returns the latest runs of a trace, the oldest first, and the number of all runs.
fn of(trace: &Trace, index: usize, room: usize) -> Result<(Vec<Run>, usize), TraceError> {
    let all = trace.runs()?;
    let mut runs = Vec::new();
    for run in &all[all.len().saturating_sub(room)..] {
        let key = Key {
            trace: index,
            run: run.id,
        };
        let last = trace.first_and_last(run.id)?.map(|(_, last)| last);
        let hunt = trace.last_note(run.id, HUNT)?;
        runs.push(Run {
            key: key.to_string(),
            pid: signed(run.pid),
            host: cut(&run.host).to_owned(),
            service: run.service.as_deref().map(|s| cut(s).to_owned()),
            started_ms: signed(run.started_ms),
            ended_ms: run.ended_ms.map(signed),
            jvm: cut(&run.jvm).to_owned(),
            command: cut(&run.command).to_owned(),
            options: cut(&run.options).to_owned(),
            interval_bytes: signed(run.interval_bytes),
            strategy: cut(&run.strategy).to_owned(),
            last_ms: last.map(|t| signed(run.started_ms.saturating_add(t.uptime_ms))),
            heap_used: last.map_or(0, |t| signed(t.heap_used)),
            heap_committed: last.map_or(0, |t| signed(t.heap_committed)),
            hunt: hunt.map(|note| HuntNote {
                time_ms: signed(note.time_ms),
                text: cut(&note.text).to_owned(),
            }),
        });
    }
    Ok((runs, all.len()))
}

/// Returns the keys of all runs that the page lists.
pub(crate) fn keys(traces: &Traces) -> Vec<Key> {
    let mut keys = Vec::new();
    for (trace, opened) in traces.iter() {
        let room = MOST_RUNS.saturating_sub(keys.len());
        // Skip traces that cannot be read. `list` reports them.
        let runs = opened.ask(|open| Ok(open.trace.runs()?));
        let ids = runs.unwrap_or_default().into_iter().map(|run| run.id);
        keys.extend(ids.rev().take(room).map(|run| Key { trace, run }));
    }
    keys.sort_unstable();
    keys
}
