//! The JVMs whose runs the traces hold.

use std::str::FromStr;

use rusqlite::{Connection, OptionalExtension, Row};
use serde::Serialize;

use crate::text::MOST_LETTERS;
use crate::traces::{Traces, Unanswered};

/// Runs on one page, the latest of each trace.
const MOST_RUNS: usize = 200;
/// What a hunt notes of its progress begins so.
const HUNT: &str = "hunt: ";

/// A run by its place: which trace, which row. Written `0.1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) trace: usize,
    pub(crate) run: i64,
}

impl FromStr for Key {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (trace, run) = text.split_once('.').ok_or(())?;
        Ok(Self {
            trace: trace.parse().map_err(|_| ())?,
            run: run.parse().map_err(|_| ())?,
        })
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.trace, self.run)
    }
}

/// Everything that can be looked at.
#[derive(Serialize)]
pub(crate) struct Listed {
    traces: Vec<File>,
    runs: Vec<Run>,
    /// Runs beyond those.
    more: u64,
}

#[derive(Serialize)]
struct File {
    path: String,
    /// What is wrong with it.
    fault: Option<String>,
}

/// A JVM's run.
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
    /// The end of its last tick; none if there is none.
    last_ms: Option<i64>,
    heap_used: i64,
    heap_committed: i64,
    hunt: Option<Said>,
}

#[derive(Serialize)]
struct Said {
    time_ms: i64,
    text: String,
}

/// Lists the runs of all traces; a trace that cannot be read has none, and its fault.
pub(crate) fn list(traces: &Traces) -> Listed {
    let mut listed = Listed {
        traces: Vec::new(),
        runs: Vec::new(),
        more: 0,
    };
    for (index, trace) in traces.iter() {
        let room = MOST_RUNS.saturating_sub(listed.runs.len());
        if let Ok((runs, all)) = trace.ask(|c| Ok(of(c, index, room)?)) {
            listed.more += all.saturating_sub(runs.len() as u64);
            listed.runs.extend(runs);
        }
        listed.traces.push(File {
            path: trace.path().display().to_string(),
            fault: trace.fault(),
        });
    }
    listed
}

fn of(connection: &Connection, trace: usize, room: usize) -> rusqlite::Result<(Vec<Run>, u64)> {
    let all: i64 = connection.query_row("SELECT count(*) FROM run", [], |row| row.get(0))?;
    let short = |column: &str| format!("substr({column}, 1, {MOST_LETTERS})");
    let sql = format!(
        "SELECT id, pid, {}, {}, started_ms, ended_ms, {}, {}, {}, interval_bytes, {} \
         FROM run ORDER BY id DESC LIMIT ?1",
        short("host"),
        short("service"),
        short("jvm"),
        short("command"),
        short("options"),
        short("strategy"),
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([i64::try_from(room).unwrap_or(0)], |row| {
        let key = Key {
            trace,
            run: row.get(0)?,
        };
        Ok((key, described(key, row)?))
    })?;
    let mut runs = Vec::new();
    for row in rows {
        let (key, mut run) = row?;
        let sql = "SELECT uptime_ms, heap_used, heap_committed FROM tick WHERE run = ?1 \
                   ORDER BY uptime_ms DESC LIMIT 1";
        let last = connection
            .prepare_cached(sql)?
            .query_row([key.run], |r| {
                Ok((r.get::<_, i64>(0)?, r.get(1)?, r.get(2)?))
            })
            .optional()?;
        if let Some((uptime, used, committed)) = last {
            run.last_ms = Some(run.started_ms.saturating_add(uptime));
            (run.heap_used, run.heap_committed) = (used, committed);
        }
        let sql = "SELECT time_ms, substr(text, 1, 400) FROM note \
                   WHERE run = ?1 AND text LIKE ?2 || '%' ORDER BY id DESC LIMIT 1";
        let said =
            connection
                .prepare_cached(sql)?
                .query_row(rusqlite::params![key.run, HUNT], |r| {
                    Ok(Said {
                        time_ms: r.get(0)?,
                        text: r.get(1)?,
                    })
                });
        run.hunt = said.optional()?;
        runs.push(run);
    }
    runs.reverse();
    Ok((runs, u64::try_from(all).unwrap_or(0)))
}

fn described(key: Key, row: &Row<'_>) -> rusqlite::Result<Run> {
    Ok(Run {
        key: key.to_string(),
        pid: row.get(1)?,
        host: row.get(2)?,
        service: row.get(3)?,
        started_ms: row.get(4)?,
        ended_ms: row.get(5)?,
        jvm: row.get(6)?,
        command: row.get(7)?,
        options: row.get(8)?,
        interval_bytes: row.get(9)?,
        strategy: row.get(10)?,
        last_ms: None,
        heap_used: 0,
        heap_committed: 0,
        hunt: None,
    })
}

/// Keys of all runs that the page lists.
pub(crate) fn keys(traces: &Traces) -> Vec<Key> {
    let mut keys = Vec::new();
    for (trace, opened) in traces.iter() {
        let room = MOST_RUNS.saturating_sub(keys.len());
        let ids = opened.ask(|c| -> Result<Vec<i64>, Unanswered> {
            let mut statement = c.prepare_cached("SELECT id FROM run ORDER BY id DESC LIMIT ?1")?;
            let rows = statement.query_map([i64::try_from(room).unwrap_or(0)], |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        });
        // A trace that cannot be read is told of in the list.
        keys.extend(
            ids.unwrap_or_default()
                .into_iter()
                .map(|run| Key { trace, run }),
        );
    }
    keys.sort_unstable();
    keys
}
