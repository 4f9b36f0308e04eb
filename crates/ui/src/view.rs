//! What the page draws of a window of time: the lines that grow, the heap, and what happened.
//!
//! Moments are milliseconds since 1970 as the run's monotonic clock has them: its beginning and its
//! uptime. A change of the machine's time moves nothing.

use std::collections::{BTreeMap, BTreeSet};

use heapdiff_trace::read::{self, Run};
use heapdiff_trace::{Ranking, Steps, Timeline, Trace, TraceError, Window};
use serde::Serialize;

use crate::amount::{Amount, Measure, signed};
use crate::by::By;
use crate::candidates::{Line, Lines};
use crate::key::Key;
use crate::text::cut;
use crate::traces::{Traces, Unanswered};

/// The most points of a line.
pub(crate) const MOST_POINTS: usize = 1000;
/// The most lines.
pub(crate) const MOST_LINES: usize = 50;
/// The most marks of collections; more of them are merged.
const MOST_COLLECTIONS: usize = 1000;
/// The most marks of dumps and of notes.
const MOST_NOTES: usize = 100;
/// The most lines of each run that are named before runs are merged.
const MOST_NAMED: usize = 400;

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
    /// How many lines there are, drawn or not.
    all_lines: usize,
    heap: Vec<Heap>,
    collections: Vec<Collection>,
    dumps: Vec<NoteMark>,
    notes: Vec<NoteMark>,
    /// What the verdicts of each run's lines are based on.
    told: Vec<VerdictBasis>,
    lost_samples: i64,
    lost_bytes: i64,
    /// How many figures make no sense.
    odd: u64,
    /// Whether some of it was left out because there was too much.
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
    /// Point by point, of what is asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    objects: Vec<i64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bytes: Vec<i64>,
    verdict: &'static str,
    trend: &'static str,
    grown_objects: i64,
    grown_bytes: i64,
}

/// What verdicts come from.
#[derive(Debug, Serialize)]
struct VerdictBasis {
    basis: &'static str,
    majors: usize,
    collections: usize,
}

#[derive(Debug, Serialize)]
struct Heap {
    run: String,
    used: Vec<Option<i64>>,
    committed: Vec<Option<i64>>,
    metaspace_used: Vec<Option<i64>>,
    metaspace_committed: Vec<Option<i64>>,
}

/// All there is, as far as a line of it needs: the heap in use.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Overview {
    first_ms: i64,
    last_ms: i64,
    x: Vec<i64>,
    heap: Vec<HeapUsed>,
}

#[derive(Debug, Serialize)]
struct HeapUsed {
    run: String,
    used: Vec<Option<i64>>,
}

#[derive(Debug, Serialize)]
struct Collection {
    ms: i64,
    /// How many collections this mark stands for.
    count: i64,
    major: bool,
    collector: String,
    cause: String,
    pause_us: i64,
    before_bytes: i64,
    after_bytes: i64,
}

#[derive(Debug, Serialize)]
struct NoteMark {
    run: String,
    ms: i64,
    text: String,
}

/// A run that is looked at.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) key: Key,
    pub(crate) run: Run,
    started: i64,
    /// The moments of its first and last tick.
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
            // The list of runs says which traces cannot be read.
            if let Ok(Some(life)) = trace.ask(|open| Ok(Self::read(&open.trace, key)?)) {
                lives.push(life);
            }
        }
        lives
    }

    fn read(trace: &Trace, key: Key) -> Result<Option<Self>, TraceError> {
        let Some(run) = trace.run(key.run)? else {
            return Ok(None);
        };
        let Some((first, last)) = trace.first_and_last(key.run)? else {
            return Ok(None);
        };
        let started = signed(run.started_ms);
        let at = |uptime| started.saturating_add(signed(uptime));
        Ok(Some(Self {
            key,
            started,
            first: at(first.uptime_ms.saturating_sub(first.span_ms)),
            last: at(last.uptime_ms),
            run,
        }))
    }

    pub(crate) fn at(&self, uptime_ms: u64) -> i64 {
        self.started.saturating_add(signed(uptime_ms))
    }

    /// What of the run is after one moment (or from its beginning), up to another. A tick belongs to the window that
    /// it ends in.
    pub(crate) fn window(&self, after: Option<i64>, to: i64) -> Window {
        let uptime = |ms: i64| u64::try_from(ms.saturating_sub(self.started)).ok();
        match uptime(to) {
            Some(to_ms) => Window {
                from_ms: after.and_then(uptime).map_or(0, |ms| ms.saturating_add(1)),
                to_ms,
            },
            // Before the run there is nothing.
            None => Window {
                from_ms: 1,
                to_ms: 0,
            },
        }
    }
}

/// A run, and the ticks of it that are asked for.
struct Part {
    life: Life,
    timeline: Timeline,
}

/// The moments that have points.
#[derive(Debug)]
struct Grid(Vec<i64>);

impl Grid {
    /// The moments of the ticks if they are few, else equal steps.
    fn new(parts: &[Part], from: i64, to: i64, most: usize) -> Self {
        let mut moments = BTreeSet::new();
        for Part { life, timeline } in parts {
            for tick in timeline.ticks() {
                moments.insert(life.at(tick.uptime_ms));
                if moments.len() > most {
                    return Self::even(from, to, most);
                }
            }
        }
        Self(moments.into_iter().collect())
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
    let mut view = View {
        from_ms: from,
        to_ms: to,
        first_ms: first,
        last_ms: last,
        ..View::default()
    };
    let top = question.top.min(MOST_LINES);
    let most = if lives.len() == 1 { top } else { MOST_NAMED };
    let mut lines = Lines::default();
    let mut parts = Vec::with_capacity(lives.len());
    for life in lives {
        let Some(trace) = traces.get(life.key.trace) else {
            continue;
        };
        let window = life.window(question.from.map(|_| from), to);
        let timeline = trace.ask(|open| {
            let odd = open.trace.odd();
            let timeline = Timeline::of(&open.trace, &life.run, window)?;
            view.said(&open.trace, &life)?;
            if top > 0 {
                let mut rankings = open.rankings.borrow_mut();
                let of = (life.key.run, question.by);
                let ranking =
                    rankings.of(of, window, || question.by.rank(&open.trace, &timeline))?;
                lines.add(&open.trace, life.key, &ranking, question.by, most)?;
                view.all_lines += ranking.candidates.len();
                view.told.push(VerdictBasis::new(&ranking));
            }
            view.odd += open.trace.odd().saturating_sub(odd);
            Ok(timeline)
        })?;
        parts.push(Part { life, timeline });
    }
    let points = question.points.clamp(2, MOST_POINTS);
    let grid = Grid::new(&parts, from, to, points);
    if parts.len() > 1 {
        // Lines of several runs that have the same names become one.
        view.all_lines = lines.len();
    }
    let top = lines.top(top);
    let mut drawn: Vec<Drawn> = top
        .iter()
        .map(|line| Drawn::new(line, question.by))
        .collect();
    for part in &parts {
        view.heap(part, &grid);
        view.collections(part, points);
        let Some(trace) = traces.get(part.life.key.trace).filter(|_| !top.is_empty()) else {
            continue;
        };
        trace.ask(|open| {
            for (line, drawn) in top.iter().zip(&mut drawn) {
                let sites = line.sites.iter().filter(|(key, _)| *key == part.life.key);
                let sites: Vec<i64> = sites.map(|(_, site)| *site).collect();
                let steps = Steps::of(&open.trace, &part.timeline, &sites)?;
                drawn.add(part, &grid, question.measure, &steps);
            }
            Ok(())
        })?;
    }
    view.lines = drawn;
    view.thin();
    view.x = grid.0;
    Ok(view)
}

/// Answers how much heap was in use all the time.
pub(crate) fn overview(traces: &Traces, question: &Question) -> Result<Overview, Unanswered> {
    let all = Question {
        from: None,
        to: None,
        top: 0,
        ..question.clone()
    };
    let view = view(traces, &all)?;
    let heap = view.heap.into_iter();
    Ok(Overview {
        first_ms: view.first_ms,
        last_ms: view.last_ms,
        x: view.x,
        heap: heap
            .map(|Heap { run, used, .. }| HeapUsed { run, used })
            .collect(),
    })
}

impl VerdictBasis {
    fn new(ranking: &Ranking) -> Self {
        let points = &ranking.points;
        Self {
            basis: points.basis.name(),
            majors: points.majors,
            collections: points.collections,
        }
    }
}

impl View {
    /// The most heap in use around each point.
    fn heap(&mut self, Part { life, timeline }: &Part, grid: &Grid) {
        let none = || vec![None; grid.0.len()];
        let mut heap = Heap {
            run: life.key.to_string(),
            used: none(),
            committed: none(),
            metaspace_used: none(),
            metaspace_committed: none(),
        };
        let mut filled = 0_usize;
        for tick in timeline.ticks() {
            let place = grid.place(life.at(tick.uptime_ms));
            for (column, value) in [
                (&mut heap.used, tick.heap_used),
                (&mut heap.committed, tick.heap_committed),
                (&mut heap.metaspace_used, tick.metaspace_used),
                (&mut heap.metaspace_committed, tick.metaspace_committed),
            ] {
                // Points without a tick of their own repeat the last figure.
                let before = filled
                    .checked_sub(1)
                    .and_then(|p| column.get(p).copied())
                    .flatten();
                for gap in column.get_mut(filled..place).unwrap_or_default() {
                    *gap = before;
                }
                let value = signed(value);
                if let Some(point) = column.get_mut(place) {
                    *point = Some(point.unwrap_or(value).max(value));
                }
            }
            filled = place.saturating_add(1);
            self.lost_samples = self.lost_samples.saturating_add(signed(tick.lost_samples));
            self.lost_bytes = self.lost_bytes.saturating_add(signed(tick.lost_bytes));
        }
        self.heap.push(heap);
    }

    /// As many marks as there are points: more of them would lie on each other.
    fn collections(&mut self, Part { life, timeline }: &Part, points: usize) {
        let (Some(first), Some(last)) = (timeline.ticks().first(), timeline.ticks().last()) else {
            return;
        };
        // Collections are merged by time and kind; the longest of each group stands for it.
        let from = first.uptime_ms.saturating_sub(first.span_ms);
        let most = points.min(MOST_COLLECTIONS / 2) as u64;
        let step = (last.uptime_ms.saturating_sub(from) / most).max(1);
        let mut together: BTreeMap<(u64, bool), (i64, u64, &read::Collection)> = BTreeMap::new();
        for c in timeline.collections() {
            let place = (c.uptime_ms.saturating_sub(from) / step, c.major);
            let (count, ms, longest) = together.entry(place).or_insert((0, 0, c));
            *count += 1;
            *ms = c.uptime_ms.max(*ms);
            if c.pause_us > longest.pause_us {
                *longest = c;
            }
        }
        for (count, ms, c) in together.into_values() {
            self.collections.push(Collection {
                ms: life.at(ms),
                count,
                major: c.major,
                collector: cut(&c.collector).to_owned(),
                cause: cut(&c.cause).to_owned(),
                pause_us: signed(c.pause_us),
                before_bytes: signed(c.before_bytes),
                after_bytes: signed(c.after_bytes),
            });
        }
    }

    /// Several runs together have as many marks as one; collections of the whole heap come first.
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
            said.truncate(MOST_NOTES);
        }
    }

    fn said(&mut self, trace: &Trace, life: &Life) -> Result<(), TraceError> {
        let said = |ms, text: &str| NoteMark {
            run: life.key.to_string(),
            ms,
            text: cut(text).to_owned(),
        };
        let dumps = trace.dumps(life.key.run)?;
        let notes = trace.notes(life.key.run)?;
        self.dumps
            .extend(dumps.iter().rev().take(MOST_NOTES).map(|d| {
                let path = d.path.as_deref().unwrap_or_default();
                said(life.at(d.uptime_ms), path)
            }));
        let notes = notes.iter().rev().take(MOST_NOTES);
        self.notes
            .extend(notes.map(|n| said(signed(n.time_ms), &n.text)));
        Ok(())
    }
}

impl Drawn {
    fn new(line: &Line, by: By) -> Self {
        /// Sites that are named to ask for their stacks; other lines are asked for by class and frame.
        const NAMED: usize = 200;
        let named = if by == By::Stack { NAMED } else { 0 };
        let at = line.sites.iter().take(named);
        Self {
            key: crate::page::digest(&format!("{}\n{}", line.class, line.stack)),
            at: at.map(|(key, site)| format!("{key}:{site}")).collect(),
            class: line.class.clone(),
            place: line.place.clone(),
            objects: Vec::new(),
            bytes: Vec::new(),
            verdict: line.standing.verdict.name(),
            trend: line.trending.trend.name(),
            grown_objects: line.grown.objects,
            grown_bytes: line.grown.bytes,
        }
    }

    /// Adds what is alive at some sites of a run, point by point.
    fn add(&mut self, Part { life, timeline }: &Part, grid: &Grid, measure: Measure, line: &Steps) {
        // Each step is what came and went at a point; the sum up to a point is what is alive there.
        let mut steps = vec![Amount::default(); grid.0.len() + 1];
        let mut step = |place: usize, by: Amount| {
            if let Some(step) = steps.get_mut(place) {
                *step = step.plus(by);
            }
        };
        let mut now = line.before().amount.into();
        step(0, now);
        for (tick, live) in line.changes(timeline) {
            let next: Amount = live.amount.into();
            step(grid.place(life.at(tick.uptime_ms)), next.less(now));
            now = next;
        }
        // A run that ended before the window's end has no live objects after that.
        let over = grid.0.partition_point(|&x| x <= life.last);
        step(over, Amount::default().less(now));
        let mut now = Amount::default();
        let alive = match measure {
            Measure::Objects => &mut self.objects,
            Measure::Bytes => &mut self.bytes,
        };
        alive.resize(grid.0.len(), 0);
        for (step, alive) in steps.iter().zip(alive) {
            now = now.plus(*step);
            *alive = alive.saturating_add(now.of(measure));
        }
    }
}
