//! What the page draws of a window of time: the lines that grow, the heap, and what happened.
//!
//! Moments are milliseconds since 1970 as the run's monotonic clock has them: its beginning and its
//! uptime. A change of the machine's time moves nothing.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;

use crate::candidates::{Amount, Bounds, Line, Lines, Live};
use crate::runs::Key;
use crate::traces::{Traces, Unanswered};

/// Points of a line.
pub(crate) const MOST_POINTS: usize = 1000;
/// Lines.
pub(crate) const MOST_LINES: usize = 50;
/// Marks of collections; more of them are put together.
const MOST_COLLECTIONS: usize = 1000;
/// Dumps and notes.
const MOST_NOTES: i64 = 100;
/// Ticks of a window of one run that are read: three weeks of seconds.
const MOST_TICKS: i64 = 2_000_000;
/// Lines of each run that are named before runs are put together.
const MOST_NAMED: usize = 400;

/// What makes a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Class,
    Site,
}

/// What ranks the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    Objects,
    Bytes,
}

/// What is asked.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) runs: Vec<Key>,
    /// The window; without a bound, all there is.
    pub(crate) from: Option<i64>,
    pub(crate) to: Option<i64>,
    pub(crate) by: By,
    pub(crate) measure: Measure,
    pub(crate) top: usize,
    pub(crate) points: usize,
}

/// The answer.
#[derive(Debug, Default, Serialize)]
pub(crate) struct View {
    /// The window.
    from_ms: i64,
    to_ms: i64,
    /// All there is.
    first_ms: i64,
    last_ms: i64,
    /// The points' moments.
    x: Vec<i64>,
    lines: Vec<Drawn>,
    /// Lines that there are.
    all_lines: usize,
    heap: Vec<Heap>,
    collections: Vec<Collection>,
    dumps: Vec<Said>,
    notes: Vec<Said>,
    lost_samples: i64,
    lost_bytes: i64,
    /// Whether some of it was too much to look at.
    cut: bool,
}

#[derive(Debug, Serialize)]
struct Drawn {
    /// The same for the same line in every answer.
    key: String,
    /// Its sites, to ask for their stacks.
    at: Vec<String>,
    class: String,
    place: Option<String>,
    objects: Vec<i64>,
    bytes: Vec<i64>,
    grown_objects: i64,
    grown_bytes: i64,
}

#[derive(Debug, Serialize)]
struct Heap {
    run: String,
    used: Vec<Option<i64>>,
    committed: Vec<Option<i64>>,
    metaspace_used: Vec<Option<i64>>,
    metaspace_committed: Vec<Option<i64>>,
    classes: Vec<Option<i64>>,
}

#[derive(Debug, Serialize)]
struct Collection {
    run: String,
    ms: i64,
    /// So many at about this time.
    count: i64,
    major: bool,
    collector: String,
    cause: String,
    pause_us: i64,
    before_bytes: i64,
    after_bytes: i64,
}

#[derive(Debug, Serialize)]
struct Said {
    run: String,
    ms: i64,
    text: String,
}

/// A run that is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    pub(crate) key: Key,
    pub(crate) started: i64,
    /// Of its first and last tick.
    pub(crate) first: i64,
    pub(crate) last: i64,
}

impl Life {
    /// The runs that have ticks.
    pub(crate) fn of(traces: &Traces, runs: &[Key]) -> Vec<Self> {
        let mut lives = Vec::new();
        for &key in runs {
            let Some(trace) = traces.get(key.trace) else {
                continue;
            };
            // A trace that cannot be read is told of in the list of runs.
            if let Ok(Some(life)) = trace.ask(|c| Ok(Self::read(c, key)?)) {
                lives.push(life);
            }
        }
        lives
    }

    fn read(c: &Connection, key: Key) -> rusqlite::Result<Option<Self>> {
        let started = c
            .prepare_cached("SELECT started_ms FROM run WHERE id = ?1")?
            .query_row([key.run], |r| r.get::<_, i64>(0))
            .optional()?;
        let end = |order: &str, column: &str| {
            let sql = format!(
                "SELECT {column} FROM tick WHERE run = ?1 ORDER BY uptime_ms {order} LIMIT 1"
            );
            let mut statement = c.prepare_cached(&sql)?;
            statement
                .query_row([key.run], |r| r.get::<_, i64>(0))
                .optional()
        };
        let (first, last) = (
            end("ASC", "uptime_ms - span_ms")?,
            end("DESC", "uptime_ms")?,
        );
        let (Some(started), Some(first), Some(last)) = (started, first, last) else {
            return Ok(None);
        };
        Ok(Some(Self {
            key,
            started,
            first: started.saturating_add(first),
            last: started.saturating_add(last),
        }))
    }

    pub(crate) fn uptime(&self, ms: i64) -> i64 {
        ms.saturating_sub(self.started)
    }
}

/// The moments that have points.
#[derive(Debug)]
struct Grid(Vec<i64>);

impl Grid {
    /// The ticks' own moments if they are few, else equal steps.
    fn new(
        traces: &Traces,
        lives: &[Life],
        from: i64,
        to: i64,
        most: usize,
    ) -> Result<Self, Unanswered> {
        let mut moments = BTreeSet::new();
        for life in lives {
            let Some(trace) = traces.get(life.key.trace) else {
                continue;
            };
            let found = trace.ask(|c| {
                let sql = "SELECT uptime_ms FROM tick WHERE run = ?1 AND uptime_ms > ?2 \
                           AND uptime_ms <= ?3 ORDER BY uptime_ms LIMIT ?4";
                let mut statement = c.prepare_cached(sql)?;
                let limit = i64::try_from(most).unwrap_or(i64::MAX).saturating_add(1);
                let bounds = params![life.key.run, life.uptime(from), life.uptime(to), limit];
                let rows = statement.query_map(bounds, |r| r.get::<_, i64>(0))?;
                Ok(rows.collect::<Result<Vec<_>, _>>()?)
            })?;
            moments.extend(found.iter().map(|up| life.started.saturating_add(*up)));
            if moments.len() > most {
                return Ok(Self::even(from, to, most));
            }
        }
        Ok(Self(moments.into_iter().collect()))
    }

    fn even(from: i64, to: i64, most: usize) -> Self {
        let span = i128::from(to) - i128::from(from);
        let steps = most as i128;
        let end = |i: i128| i64::try_from(i128::from(from) + span * i / steps).unwrap_or(to);
        Self((1..=steps).map(end).collect())
    }

    /// The first point at or after a moment.
    fn place(&self, ms: i64) -> usize {
        self.0.partition_point(|&x| x < ms)
    }
}

/// Answers a question.
pub(crate) fn view(traces: &Traces, question: &Question) -> Result<View, Unanswered> {
    let lives = Life::of(traces, &question.runs);
    let (Some(first), Some(last)) = (
        lives.iter().map(|l| l.first).min(),
        lives.iter().map(|l| l.last).max(),
    ) else {
        return Ok(View::default());
    };
    let to = question.to.unwrap_or(last).min(last);
    let from = question.from.unwrap_or(first).max(first).min(to);
    let grid = Grid::new(
        traces,
        &lives,
        from,
        to,
        question.points.clamp(2, MOST_POINTS),
    )?;
    let mut view = View {
        from_ms: from,
        to_ms: to,
        first_ms: first,
        last_ms: last,
        ..View::default()
    };
    let mut lines = Lines::default();
    let kind = (question.by, question.measure);
    let most = if lives.len() == 1 {
        usize::MAX
    } else {
        MOST_NAMED
    };
    for life in &lives {
        let Some(trace) = traces.get(life.key.trace) else {
            continue;
        };
        trace.ask(|c| {
            let (begin, end) = (life.uptime(from), life.uptime(to));
            view.heap(c, life, &grid, (begin, end))?;
            view.collections(c, life, (begin, end))?;
            view.said(c, life)?;
            if let Some(bounds) = Bounds::of(c, life.key.run, begin, end)? {
                let most = if question.by == By::Site {
                    question.top.max(MOST_LINES) * 4
                } else {
                    most
                };
                lines.add(c, life.key, bounds, kind, most)?;
            }
            Ok(())
        })?;
    }
    view.cut |= lines.cut;
    let (top, all) = lines.top(question.measure, question.top.min(MOST_LINES));
    view.all_lines = all;
    let mut drawn: Vec<Drawn> = top
        .iter()
        .map(|line| Drawn::new(line, grid.0.len()))
        .collect();
    for life in &lives {
        let Some(trace) = traces.get(life.key.trace) else {
            continue;
        };
        trace.ask(|c| {
            let (begin, end) = (life.uptime(from), life.uptime(to));
            for (line, drawn) in top.iter().zip(&mut drawn) {
                let sites = line.sites.iter().filter(|(key, _)| *key == life.key);
                drawn.add(c, life, &grid, (begin, end), sites.map(|(_, site)| *site))?;
            }
            Ok(())
        })?;
    }
    view.lines = drawn;
    view.thin();
    view.x = grid.0;
    Ok(view)
}

impl View {
    /// The most heap in use around each point.
    fn heap(
        &mut self,
        c: &Connection,
        life: &Life,
        grid: &Grid,
        (from, to): (i64, i64),
    ) -> rusqlite::Result<()> {
        let none = || vec![None; grid.0.len()];
        let mut heap = Heap {
            run: life.key.to_string(),
            used: none(),
            committed: none(),
            metaspace_used: none(),
            metaspace_committed: none(),
            classes: none(),
        };
        let mut statement = c.prepare_cached(
            "SELECT uptime_ms, heap_used, heap_committed, metaspace_used, metaspace_committed, \
             loaded_classes, lost_samples, lost_bytes FROM tick \
             WHERE run = ?1 AND uptime_ms > ?2 AND uptime_ms <= ?3 ORDER BY uptime_ms LIMIT ?4",
        )?;
        let mut rows = statement.query(params![life.key.run, from, to, MOST_TICKS])?;
        let mut seen = 0;
        let mut filled = 0_usize;
        while let Some(row) = rows.next()? {
            seen += 1;
            let place = grid.place(life.started.saturating_add(row.get(0)?));
            let columns = [
                &mut heap.used,
                &mut heap.committed,
                &mut heap.metaspace_used,
                &mut heap.metaspace_committed,
                &mut heap.classes,
            ];
            for (i, column) in columns.into_iter().enumerate() {
                // Points without a tick of their own have what was last.
                let before = filled
                    .checked_sub(1)
                    .and_then(|p| column.get(p).copied())
                    .flatten();
                for gap in column.get_mut(filled..place).unwrap_or_default() {
                    *gap = before;
                }
                let value: i64 = row.get(i + 1)?;
                if let Some(point) = column.get_mut(place) {
                    *point = Some(point.unwrap_or(value).max(value));
                }
            }
            filled = place.saturating_add(1);
            self.lost_samples = self.lost_samples.saturating_add(row.get(6)?);
            self.lost_bytes = self.lost_bytes.saturating_add(row.get(7)?);
        }
        self.cut |= seen == MOST_TICKS;
        self.heap.push(heap);
        Ok(())
    }

    fn collections(
        &mut self,
        c: &Connection,
        life: &Life,
        (from, to): (i64, i64),
    ) -> rusqlite::Result<()> {
        // Put together by time and kind, so that a week of them does not pass through here.
        let step = (to.saturating_sub(from) / (MOST_COLLECTIONS as i64 / 2)).max(1);
        let mut statement = c.prepare_cached(
            "SELECT max(uptime_ms), count(*), major, substr(collector, 1, 100), substr(cause, 1, 100), \
             max(pause_us), before_bytes, after_bytes FROM collection \
             WHERE run = ?1 AND uptime_ms > ?2 AND uptime_ms <= ?3 \
             GROUP BY (uptime_ms - ?2) / ?4, major ORDER BY uptime_ms",
        )?;
        let rows = statement.query_map(params![life.key.run, from, to, step], |row| {
            Ok(Collection {
                run: life.key.to_string(),
                ms: life.started.saturating_add(row.get(0)?),
                count: row.get(1)?,
                major: row.get::<_, i64>(2)? != 0,
                collector: row.get(3)?,
                cause: row.get(4)?,
                pause_us: row.get(5)?,
                before_bytes: row.get(6)?,
                after_bytes: row.get(7)?,
            })
        })?;
        for row in rows {
            self.collections.push(row?);
        }
        Ok(())
    }

    /// Of several runs no more than of one: those of the whole heap first.
    fn thin(&mut self) {
        if self.collections.len() > MOST_COLLECTIONS {
            self.collections
                .sort_by_key(|c| (!c.major, std::cmp::Reverse(c.pause_us)));
            self.collections.truncate(MOST_COLLECTIONS);
            self.cut = true;
        }
        self.collections.sort_by_key(|c| c.ms);
        for said in [&mut self.dumps, &mut self.notes] {
            said.sort_by_key(|s| std::cmp::Reverse(s.ms));
            said.truncate(MOST_NOTES as usize);
        }
    }

    fn said(&mut self, c: &Connection, life: &Life) -> rusqlite::Result<()> {
        let said = |sql: &str| {
            let mut statement = c.prepare_cached(sql)?;
            let rows = statement.query_map([life.key.run, MOST_NOTES], |row| {
                Ok(Said {
                    run: life.key.to_string(),
                    ms: row.get(0)?,
                    text: row.get(1)?,
                })
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        let mut dumps = said(
            "SELECT uptime_ms, substr(coalesce(path, ''), 1, 400) FROM dump WHERE run = ?1 \
             ORDER BY id DESC LIMIT ?2",
        )?;
        for dump in &mut dumps {
            dump.ms = life.started.saturating_add(dump.ms);
        }
        self.dumps.extend(dumps);
        self.notes.extend(said(
            "SELECT time_ms, substr(text, 1, 400) FROM note WHERE run = ?1 ORDER BY id DESC LIMIT ?2",
        )?);
        Ok(())
    }
}

impl Drawn {
    fn new(line: &Line, points: usize) -> Self {
        /// Sites that are named to ask for their stacks; lines of classes are asked for by name.
        const NAMED: usize = 200;
        let grown = line.floor.less(line.before);
        let by_site = line.place.is_some() || !line.stack.is_empty();
        let at = line.sites.iter().take(if by_site { NAMED } else { 0 });
        Self {
            key: crate::page::digest(&format!("{}\n{}", line.class, line.stack)),
            at: at.map(|(key, site)| format!("{key}:{site}")).collect(),
            class: line.class.clone(),
            place: line.place.clone(),
            objects: vec![0; points],
            bytes: vec![0; points],
            grown_objects: grown.objects,
            grown_bytes: grown.bytes,
        }
    }

    /// Adds what is alive at some sites of a run, point by point.
    fn add(
        &mut self,
        c: &Connection,
        life: &Life,
        grid: &Grid,
        (from, to): (i64, i64),
        sites: impl Iterator<Item = i64>,
    ) -> rusqlite::Result<()> {
        let Some(bounds) = Bounds::of(c, life.key.run, from, to)? else {
            return Ok(());
        };
        let mut live = Live::new(c)?;
        let mut changes = c.prepare_cached(
            "SELECT t.uptime_ms, s.live_objects, s.live_bytes FROM site_tick s JOIN tick t ON t.id = s.tick \
             WHERE s.site = ?1 AND s.tick > ?2 AND s.tick <= ?3 AND t.run = ?4 ORDER BY s.tick",
        )?;
        // What comes and goes at each point; the sum of them so far is what is alive.
        let mut steps = vec![Amount::default(); grid.0.len() + 1];
        let mut step = |place: usize, by: Amount| {
            if let Some(step) = steps.get_mut(place) {
                *step = step.plus(by);
            }
        };
        // A run that ended before the window's end has no live objects any more.
        let over = grid.0.partition_point(|&x| x <= life.last);
        for site in sites {
            let mut now = live.at(life.key.run, site, bounds.from)?;
            step(0, now);
            let mut rows = changes.query(params![site, bounds.from, bounds.to, bounds.run])?;
            while let Some(row) = rows.next()? {
                let next = Amount {
                    objects: row.get(1)?,
                    bytes: row.get(2)?,
                };
                step(
                    grid.place(life.started.saturating_add(row.get(0)?)),
                    next.less(now),
                );
                now = next;
            }
            step(over, Amount::default().less(now));
        }
        let mut now = Amount::default();
        for ((step, objects), bytes) in steps.iter().zip(&mut self.objects).zip(&mut self.bytes) {
            now = now.plus(*step);
            *objects = objects.saturating_add(now.objects);
            *bytes = bytes.saturating_add(now.bytes);
        }
        Ok(())
    }
}
