//! The content of the page for a time window: lines that grow, the heap, GCs, dumps and notes.
//!
//! Times are milliseconds since 1970: the start of the run plus the uptime. So they do not jump if the wall clock is
//! changed during the run.

use std::collections::{BTreeMap, BTreeSet};

use heapdiff_trace::read::{self, Run};
use heapdiff_trace::{HeapOutlook, Ranking, Steps, Timeline, Trace, TraceError, Window};
use serde::Serialize;

use crate::amount::{Amount, Measure, signed};
use crate::by::By;
use crate::candidates::{Line, Lines};
use crate::key::Key;
use crate::text::cut;
use crate::traces::{Traces, Unanswered};

/// Maximum number of points of a line in the chart.
pub(crate) const MOST_POINTS: usize = 1000;
/// Maximum number of lines in the chart.
pub(crate) const MOST_LINES: usize = 50;
/// Maximum number of marks for GCs in the chart. GCs at nearly the same time share a mark.
const MOST_COLLECTIONS: usize = 1000;
/// Maximum number of marks for dumps in the chart, and maximum number of marks for notes.
const MOST_NOTES: usize = 100;
/// Maximum number of chart lines that are taken from each run before the lines of all runs are merged. Names are read
/// for these lines only.
const MOST_NAMED: usize = 400;

/// A request of the page.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) runs: Vec<Key>,
    /// Start of the time window; `None` for the first recorded period. `to` is its end; `None` for the last recorded
    /// period.
    pub(crate) from: Option<i64>,
    pub(crate) to: Option<i64>,
    pub(crate) by: By,
    pub(crate) measure: Measure,
    pub(crate) top: usize,
    pub(crate) points: usize,
}

/// The answer to a `view` request.
#[derive(Debug, Default, Serialize)]
pub(crate) struct View {
    /// The time window that the page shows.
    from_ms: i64,
    to_ms: i64,
    /// The time range of all recorded data.
    first_ms: i64,
    last_ms: i64,
    /// The times of the points in the chart.
    x: Vec<i64>,
    lines: Vec<Drawn>,
    /// The number of all lines, including those that are not drawn.
    all_lines: usize,
    heap: Vec<Heap>,
    collections: Vec<Collection>,
    dumps: Vec<NoteMark>,
    notes: Vec<NoteMark>,
    /// For each run, the figures on which its verdicts are based.
    told: Vec<VerdictBasis>,
    lost_samples: i64,
    lost_bytes: i64,
    /// The number of invalid figures in the traces, such as negative sizes.
    odd: u64,
    /// True if some marks for GCs were left out because there were too many.
    cut: bool,
}

#[derive(Debug, Serialize)]
struct Drawn {
    /// The key of the line, by which the page recognizes the same line in each answer.
    key: String,
    /// The allocation sites of the line, if the line is a stack. The page uses them to request the stacks of the line.
    at: Vec<String>,
    class: String,
    place: Option<String>,
    /// Live objects at each point. Only the requested measure, objects or bytes, is filled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    objects: Vec<i64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bytes: Vec<i64>,
    verdict: &'static str,
    trend: &'static str,
    grown_objects: i64,
    grown_bytes: i64,
}

/// The figures on which the verdicts of a run are based.
#[derive(Debug, Serialize)]
struct VerdictBasis {
    basis: &'static str,
    majors: usize,
    collections: usize,
    /// Trend of the heap after full GCs, up to the end of the window.
    heap: HeapEnd,
}

/// The trend of the heap after full GCs.
#[derive(Debug, Serialize)]
struct HeapEnd {
    state: &'static str,
    bytes_per_hour: Option<i64>,
    limit_bytes: Option<i64>,
    limit: Option<&'static str>,
    /// Time from the end of the last recorded period of the window until the heap is full, and its 95 % interval.
    at_ms: Option<i64>,
    from_ms: Option<i64>,
    to_ms: Option<i64>,
}

impl HeapEnd {
    fn new(outlook: &HeapOutlook) -> Self {
        let left = outlook.left.as_ref();
        Self {
            state: outlook.state.name(),
            bytes_per_hour: outlook.slope.map(|slope| slope.slope),
            limit_bytes: outlook.limit.map(|limit| signed(limit.bytes)),
            limit: outlook.limit.map(|limit| limit.source.name()),
            at_ms: left.map(|left| signed(left.at_ms)),
            from_ms: left.map(|left| signed(left.from_ms)),
            to_ms: left.map(|left| signed(left.to_ms)),
        }
    }
}

#[derive(Debug, Serialize)]
struct Heap {
    run: String,
    used: Vec<Option<i64>>,
    committed: Vec<Option<i64>>,
    metaspace_used: Vec<Option<i64>>,
    metaspace_committed: Vec<Option<i64>>,
}

/// The used heap from the first to the last recorded period.
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
    /// Number of GCs that this mark in the chart represents.
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

/// A run and its time range.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) key: Key,
    pub(crate) run: Run,
    started: i64,
    /// The start of the first recorded period, and the end of the last.
    pub(crate) first: i64,
    pub(crate) last: i64,
}

impl Life {
    /// Returns the runs that have at least one recorded period.
    pub(crate) fn read_all(traces: &Traces, runs: &[Key]) -> Vec<Self> {
        let mut lives = Vec::new();
        for &key in runs {
            let Some(trace) = traces.get(key.trace) else {
                continue;
            };
            // Traces that cannot be read are reported in the list of runs.
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

    /// Returns the window that begins after `after`, or at the start of the run, and ends at `to`. A recorded period
    /// belongs to the window in which it ends.
    pub(crate) fn window(&self, after: Option<i64>, to: i64) -> Window {
        let uptime = |ms: i64| u64::try_from(ms.saturating_sub(self.started)).ok();
        match uptime(to) {
            Some(to_ms) => Window {
                from_ms: after.and_then(uptime).map_or(0, |ms| ms.saturating_add(1)),
                to_ms,
            },
            // The end is before the start of the run, so the window is empty.
            None => Window {
                from_ms: 1,
                to_ms: 0,
            },
        }
    }
}

/// A run, and its ticks (recorded periods) in the time window that the page requested.
struct Part {
    life: Life,
    timeline: Timeline,
}

/// The times of the points in the chart, in ascending order.
#[derive(Debug)]
struct Grid(Vec<i64>);

impl Grid {
    /// Returns the ends of the recorded periods if there are at most `most` different ends. Otherwise returns `most`
    /// times at equal distances.
    fn new(parts: &[Part], from: i64, to: i64, most: usize) -> Self {
        let mut moments = BTreeSet::new();
        for Part { life, timeline } in parts {
            for tick in timeline.ticks() {
                moments.insert(life.at(tick.uptime_ms));
                if moments.len() > most {
                    return Self::evenly_spaced(from, to, most);
                }
            }
        }
        Self(moments.into_iter().collect())
    }

    fn evenly_spaced(from: i64, to: i64, most: usize) -> Self {
        let span = i128::from(to) - i128::from(from);
        let steps = most as i128;
        let end = |i: i128| i64::try_from(i128::from(from) + span * i / steps).unwrap_or(to);
        Self((1..=steps).map(end).collect())
    }

    /// Returns the index of the first point at or after a time.
    fn place(&self, ms: i64) -> usize {
        self.0.partition_point(|&x| x < ms)
    }
}

/// Answers a `view` request.
pub(crate) fn view(traces: &Traces, question: &Question) -> Result<View, Unanswered> {
    let lives = Life::read_all(traces, &question.runs);
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
            let odd = open.trace.invalid_number_count();
            let timeline = Timeline::of(&open.trace, &life.run, window)?;
            view.add_notes(&open.trace, &life)?;
            if top > 0 {
                let mut rankings = open.rankings.borrow_mut();
                let of = (life.key.run, question.by);
                let ranking =
                    rankings.of(of, window, || question.by.rank(&open.trace, &timeline))?;
                lines.add(&open.trace, life.key, &ranking, question.by, most)?;
                view.all_lines += ranking.candidates.len();
                let limit = open.trace.heap_limit(&life.run)?;
                let outlook = HeapOutlook::of(&timeline, limit);
                view.told.push(VerdictBasis::new(&ranking, &outlook));
            }
            view.odd += open.trace.invalid_number_count().saturating_sub(odd);
            Ok(timeline)
        })?;
        parts.push(Part { life, timeline });
    }
    let points = question.points.clamp(2, MOST_POINTS);
    let grid = Grid::new(&parts, from, to, points);
    if parts.len() > 1 {
        // If lines of several runs have the same names, they are merged.
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
    view.limit_marks();
    view.x = grid.0;
    Ok(view)
}

/// Returns the used heap from the first to the last recorded period.
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
    fn new(ranking: &Ranking, outlook: &HeapOutlook) -> Self {
        let points = &ranking.points;
        Self {
            basis: points.basis.name(),
            majors: points.majors,
            collections: points.collections,
            heap: HeapEnd::new(outlook),
        }
    }
}

impl View {
    /// Adds the used heap and metaspace of a run. The value at a point is the maximum over the recorded periods that
    /// ended since the previous point.
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
                // If no recorded period ended since the previous point, a point repeats the previous figure.
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

    /// Adds marks for GCs. GCs whose marks would overlap on the screen share one mark.
    fn collections(&mut self, Part { life, timeline }: &Part, points: usize) {
        let (Some(first), Some(last)) = (timeline.ticks().first(), timeline.ticks().last()) else {
            return;
        };
        // GCs of the same kind (full or not) at nearly the same time share a mark. The mark shows the GC with the
        // longest pause.
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

    /// Limits the number of marks (GCs, dumps and notes), after the marks of all runs were added. Drops young GCs with
    /// short pauses first, and the oldest dumps and notes first.
    fn limit_marks(&mut self) {
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

    fn add_notes(&mut self, trace: &Trace, life: &Life) -> Result<(), TraceError> {
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
        /// Maximum number of allocation sites of a chart line that are sent to the page in the key `at`. They are sent
        /// only if each line is a stack. Otherwise the page requests the stacks of a line by class and frame.
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

    /// Adds the live objects or bytes of a line in one run to the value at each point.
    fn add(&mut self, Part { life, timeline }: &Part, grid: &Grid, measure: Measure, line: &Steps) {
        // Each element is the change at one point. The live objects at a point are the sum of all elements up to this
        // point.
        let mut steps = vec![Amount::default(); grid.0.len() + 1];
        let mut step = |place: usize, by: Amount| {
            if let Some(step) = steps.get_mut(place) {
                *step = step.saturating_add(by);
            }
        };
        let mut now = line.live_before_window().amount.into();
        step(0, now);
        for (tick, live) in line.changes(timeline) {
            let next: Amount = live.amount.into();
            step(
                grid.place(life.at(tick.uptime_ms)),
                next.saturating_sub(now),
            );
            now = next;
        }
        // After the end of the run, it has no live objects.
        let over = grid.0.partition_point(|&x| x <= life.last);
        step(over, Amount::default().saturating_sub(now));
        let mut now = Amount::default();
        let alive = match measure {
            Measure::Objects => &mut self.objects,
            Measure::Bytes => &mut self.bytes,
        };
        alive.resize(grid.0.len(), 0);
        for (step, alive) in steps.iter().zip(alive) {
            now = now.saturating_add(*step);
            *alive = alive.saturating_add(now.of(measure));
        }
    }
}
